"""What a conversation had done before its worker died: told to its successor, so that nothing is done twice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kda_tui.record.records import TranscriptBlock
from kda_tui.record.transcript import TranscriptFile

MAX_BLOCKS = 400
MAX_TEXT = 500  # characters of one block
UNFINISHED = frozenset({"tool_use", "cut off", "cancelled", "pause_turn", "max_tokens"})


def blocks_of(path: Path | None) -> list[TranscriptBlock]:
    """The newest blocks of a run's transcript."""
    found = TranscriptFile(path).tail(MAX_BLOCKS) if path is not None else []
    return [b for b in found if isinstance(b, TranscriptBlock)]


def talk_of(block: TranscriptBlock) -> str:
    return str(block.extra.get("talk") or "")


def cut_off(blocks: Sequence[TranscriptBlock], kind: str) -> list[TranscriptBlock]:
    """The blocks of the newest conversation whose name begins with ``kind``, if it did not come to its end."""
    newest = next((talk_of(b) for b in reversed(blocks) if talk_of(b).startswith(kind)), "")
    mine = [b for b in blocks if newest and talk_of(b) == newest]
    last = next((b.stop_reason for b in reversed(mine) if b.kind == "usage"), "cut off")
    return mine if mine and last in UNFINISHED else []


def handed_in(blocks: Sequence[TranscriptBlock], talk: str, tool: str) -> Mapping[str, Any] | None:
    """The arguments of a finished call of ``tool`` in a conversation: a paid step that need not be repeated."""
    fine = {b.call for b in blocks if b.kind == "tool_result" and not b.is_error and talk_of(b) == talk}
    for b in reversed(blocks):
        if b.kind == "tool_call" and b.tool == tool and b.call in fine and isinstance(b.args, Mapping):
            return b.args
    return None


def recap(blocks: Sequence[TranscriptBlock]) -> str:
    """The blocks in short; empty if there are none."""
    lines = [line for b in blocks if (line := _line(b))]
    if not lines:
        return ""
    return (
        "# What you had done already\n\n"
        "The worker was restarted in the middle of this. What is listed here is done; go on from it, repeat nothing.\n\n"
        + "\n".join(lines)
    )


def _line(b: TranscriptBlock) -> str:
    if b.kind == "text" and b.text.strip():
        return f"* you said: {_short(b.text)}" + (" [cut off]" if b.partial else "")
    if b.kind == "tool_call" and not b.partial:
        return f"* you called {b.tool} with {_short(json.dumps(b.args, ensure_ascii=False, default=str))}"
    if b.kind == "tool_result":
        return f"* {b.tool} answered{' with an error' if b.is_error else ''}: {_short(b.text)}"
    return ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]} [...]"
