"""Which agent a name means: ``tuner``, or ``replay:FILE``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kda_tui.agents.interface import Agent
from kda_tui.text import UserError

KNOWN = "tuner, replay:FILE"


def make_agent(spec: str, config: Any = None) -> Agent:
    """The agent that ``spec`` names; raises UserError for an unknown one."""
    kind, _, rest = spec.partition(":")
    if kind == "tuner" and not rest:
        from kda_tui.agents.tuner.agent import TunerAgent

        return TunerAgent()
    if kind == "replay" and rest:
        from kda_tui.agents.replay import ReplayAgent

        return ReplayAgent(Path(rest).expanduser().resolve())
    raise UserError(f"there is no agent {spec!r}; known are {KNOWN}")
