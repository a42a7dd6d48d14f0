"""Transcript blocks as lines: who spoke, when, what a tool was asked and what it answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kda_tui.record.records import TranscriptBlock
from kda_tui.record.snapshot import Finding
from kda_tui.tui import words
from kda_tui.tui.line import Line, plain, span, split, wrap

INDENT = 16
FOLDED = frozenset({"thinking", "tool_result"})
LONG = 12  # rows of a block that is not folded by kind before the rest is folded

NAMES: Mapping[str, tuple[str, str]] = {
    "user": ("user", "person"),
    "text": ("text", ""),
    "thinking": ("think", "thinking"),
    "tool_call": ("tool", "tool"),
    "tool_result": ("result", "dim"),
    "steer": ("steer", "person"),
    "question": ("asks", "warn"),
    "answer": ("answer", "person"),
    "notice": ("note", "dim"),
    "usage": ("usage", "dim"),
}


def block_lines(
    block: TranscriptBlock | Finding, unfolded: bool, cells: int, who: str = "", aside: str = ""
) -> list[Line]:
    """The rows of a block at a width; folded blocks take one row.

    ``who`` stands before the text, ``aside`` after it: who steered, and whether the agent has seen it.
    """
    if isinstance(block, Finding):
        return wrap(
            (span(f"{'':9}fault  ", "bad"), span(f"line {block.line}: {block.seen}; {block.done}", "bad")),
            cells,
            INDENT,
        )
    name, style = NAMES.get(block.kind, (block.kind[:6], ""))
    lead: Line = (span(f"{words.time_of_day(block.t)} ", "dim"), span(f"{name:<7}", style))
    body, hidden = _body(block, style, unfolded)
    if who:
        body[0] = (span(f"{who}: ", "bold"), *body[0])
    if aside:
        body[-1] = (*body[-1], span(f"  {aside}", "dim"))
    out: list[Line] = []
    for n, line in enumerate(body):
        head = lead if n == 0 else (span(" " * INDENT),)
        out += wrap((*head, *line), cells, INDENT)
    if hidden:
        more = "" if block.kind == "thinking" else "more "
        out[-1] = (*out[-1], span(f" ({hidden} {more}line{'s' if hidden > 1 else ''} folded)", "dim"))
    return out


def _body(block: TranscriptBlock, style: str, unfolded: bool) -> tuple[list[Line], int]:
    """The lines of a block and how many of them stay folded."""
    if block.kind == "tool_call":
        return [_call(block)], 0
    if block.kind == "usage":
        return [plain(usage_words(block.usage or {}, block.usd), "dim")], 0
    text = block.text or (f"(in a blob: {block.blob[:12]})" if block.blob else "")
    lines = split(
        text.rstrip("\n"), "bad" if block.is_error else style if block.kind != "tool_result" else ""
    )
    if block.kind == "tool_result":
        word = ("failed" if block.is_error else "ok", "bad" if block.is_error else "good")
        took = f" {words.duration(block.dur_s)}" if block.dur_s is not None else ""
        lines[0] = (word, span(took + "  ", "dim"), *lines[0])
    if block.partial:
        lines.append(plain("(cut off)", "warn"))
    keep = len(lines) if unfolded else 0 if block.kind == "thinking" else 1 if block.kind in FOLDED else LONG
    hidden = max(0, len(lines) - keep)
    if keep == 0:
        return [plain("", style)], hidden
    return (lines, 0) if hidden <= 1 and keep > 1 else (lines[:keep], hidden)


def _call(block: TranscriptBlock) -> Line:
    about = [part for part in (block.cand, f"item {block.item}" if block.item else "") if part]
    args = block.args
    if isinstance(args, Mapping):
        shown = " ".join(f"{key}={_short(value)}" for key, value in args.items())
    else:
        shown = "" if args is None else _short(args)
    return (span(block.tool or "tool", "bold"), span("  " + "  ".join([*about, shown]).strip()))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    first = text.split("\n", 1)[0]
    return first if len(first) <= 60 and first == text else f"{first[:57]}…"


def usage_words(usage: Mapping[str, Any], usd: float | None) -> str:
    """Tokens and money: 212k in (91% cached), 8k out, $0.84."""
    fresh, read, write = (float(usage.get(name) or 0) for name in ("in", "cache_read", "cache_write"))
    total = fresh + read + write
    parts = []
    if total:
        parts.append(f"{words.count(total)} in ({words.share(read / total)} cached)")
    if usage.get("out"):
        parts.append(f"{words.count(usage['out'])} out")
    if usd:
        parts.append(f"${usd:.2f}")
    return ", ".join(parts)
