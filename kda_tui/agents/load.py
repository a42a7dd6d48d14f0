"""Which agent a name means: ``tuner``, ``anthropic``, or ``replay:FILE``; and which reviewer goes with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kda_tui.agents.interface import Agent, Reviewer
from kda_tui.config import Config
from kda_tui.text import UserError

KNOWN = "tuner, anthropic, replay:FILE"


def make_agent(spec: str, config: Config | None = None) -> Agent:
    """The agent that ``spec`` names; raises UserError for an unknown one."""
    kind, _, rest = spec.partition(":")
    if kind == "tuner" and not rest:
        from kda_tui.agents.tuner.agent import TunerAgent

        return TunerAgent()
    if kind == "anthropic" and not rest:
        from kda_tui.agents.anthropic.agent import AnthropicAgent
        from kda_tui.agents.skillbook import agent_skills

        config = config or Config()
        return AnthropicAgent(config.agent, agent_skills(config), model=config.agent.model)
    if kind == "replay" and rest:
        from kda_tui.agents.replay import ReplayAgent

        return ReplayAgent(Path(rest).expanduser().resolve())
    raise UserError(f"there is no agent {spec!r}; known are {KNOWN}")


def make_reviewer(agent: Agent, config: Config) -> Reviewer | None:
    """The independent reviewer of an agent's plans and requests; None for agents that write by rule."""
    if agent.name != "anthropic" or config.agent.reviewer == "none":
        return None
    from kda_tui.agents.anthropic.reviewer import AnthropicReviewer
    from kda_tui.agents.skillbook import agent_skills

    model = agent.model if config.agent.reviewer == "same" else config.agent.reviewer
    return AnthropicReviewer(config.agent, model, agent_skills(config))


def agent_secrets(config: Config) -> Mapping[str, str]:
    """Secrets that no environment variable names, for the redactor: the API key out of its file."""
    if not config.agent.api_key_file:
        return {}
    from kda_tui.agents.anthropic.connection import secrets

    return secrets(config.agent)


def skills_of(agent: Agent) -> list[dict[str, str]]:
    """Name and hash of the skills that an agent is given, for run_started."""
    from kda_tui.agents.skillbook import recorded

    return recorded(tuple(getattr(agent, "skills", ())))
