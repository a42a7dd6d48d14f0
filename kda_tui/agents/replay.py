"""The replay agent: plays the blocks of a recorded transcript into a run, for demonstrations and tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kda_tui.agents.interface import Desk, PlanText
from kda_tui.record.records import TranscriptBlock, from_line
from kda_tui.text import UserError

PLAYED = ("kind", "text", "tool", "args", "is_error", "iter", "turn", "msg", "block", "cand", "item")
PER_ITERATION = 8


@dataclass(slots=True)
class ReplayAgent:
    """Says what ``file`` holds, ``pause_s`` between blocks; submits nothing and claims nothing."""

    file: Path
    pause_s: float = 0.05
    name: str = "replay"
    model: str = ""
    _next: int | None = None

    def prompts(self) -> Mapping[str, str]:
        return {}

    async def draft(self, desk: Desk) -> str:
        if not self.file.is_file():
            raise UserError(f"{self.file}: there is no such transcript to replay")
        return f"# Replay\n\nThe blocks of `{self.file.name}` are played again; nothing is compiled or measured.\n"

    async def plan(self, desk: Desk, comments: Sequence[Mapping[str, Any]]) -> PlanText:
        answers = tuple(dict.fromkeys(str(c["decision"]) for c in comments if c.get("decision")))
        return PlanText("# Plan\n\n* P1 play the transcript\n", (("P1", "play the transcript"),), answers)

    async def iterate(self, desk: Desk) -> Literal["again", "converged"]:
        """Play the next few blocks; state is the number of blocks that this run's transcript has."""
        if self._next is None:
            self._next = _played(desk)
        first = self._next
        played = 0
        for number, block in enumerate(_blocks(self.file)):
            if number < first:
                continue
            if played == PER_ITERATION:
                return "again"
            fields = {k: getattr(block, k) for k in PLAYED if k not in ("kind", "text")}
            await desk.say(block.kind, block.text, replayed=number, **fields)
            self._next = number + 1
            played += 1
            await asyncio.sleep(self.pause_s)
        await desk.request_end("the transcript is at its end")
        return "converged"


def _blocks(file: Path) -> Iterator[TranscriptBlock]:
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                parsed = json.loads(line)
            except ValueError:
                continue
            if isinstance(parsed, dict):
                yield from_line(TranscriptBlock, parsed)


def _played(desk: Desk) -> int:
    """How far a former worker got: the highest ``replayed`` number in this run's transcript, plus one."""
    path = desk.snapshot.transcript.path
    if path is None or not path.is_file():
        return 0
    numbers = [b.extra.get("replayed") for b in _blocks(path)]
    return max((n for n in numbers if isinstance(n, int)), default=-1) + 1
