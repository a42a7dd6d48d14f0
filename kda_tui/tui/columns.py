"""Columns of the candidates table: what they show, how wide, by what they sort."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Claim, Snapshot
from kda_tui.tui import words
from kda_tui.tui.line import Line, crop, fit, span, text_of, width


@dataclass(frozen=True, slots=True)
class Context:
    """What a cell may need besides its candidate."""

    snapshot: Snapshot
    claims: Mapping[str, Claim]  # open claims by candidate
    now: float
    long: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """``cells`` 0 takes what is left. ``rank``: columns of a low rank stay when space is short."""

    id: str
    title: str
    cells: int
    rank: int
    show: Callable[[Candidate, Context], Line]
    sort: Callable[[Candidate], object]
    right: bool = False


def _text(value: object) -> Line:
    return (span(value),)


def _count(value: float | int | None) -> Line:
    return (span(words.count(value), "" if value else "dim"),)


COLUMNS: Mapping[str, Column] = {
    column.id: column
    for column in (
        Column("id", "id", 6, 0, lambda c, x: (span(c.id, "bold"),), lambda c: c.id),
        Column("hypothesis", "hypothesis", 0, 0, lambda c, x: _text(words.hypothesis(c)), lambda c: c.hypothesis.lower()),
        Column("said", "read as: what was said", 0, 0, lambda c, x: words.said(c, x.snapshot), lambda c: (c.decision == "", c.decision)),
        Column("idea", "idea", 0, 7, lambda c, x: _text(words.hypothesis(c)), lambda c: c.hypothesis.lower()),
        Column("parents", "parents", 8, 5, lambda c, x: (span(" ".join(c.parents), "dim"),), lambda c: " ".join(c.parents)),
        Column("item", "item", 4, 5, lambda c, x: (span(c.item, "dim"),), lambda c: c.item),
        Column("author", "author", 6, 9, lambda c, x: (span(c.author, "dim"),), lambda c: c.author),
        Column("verdict", "verdict", 12, 0, lambda c, x: (words.verdict(c, x.claims.get(c.id), x.snapshot.live, x.snapshot.liveness == "alive"),), lambda c: (c.validity != "passed", c.validity, c.speed)),
        Column("us", "us", 6, 0, lambda c, x: (span(words.micros(c.time_us), "" if c.time_us else "dim"),), lambda c: c.time_us, True),
        Column("ratio", "ratio [interval]", 16, 0, lambda c, x: words.comparison(c, x.snapshot), lambda c: None if c.ratio is None else -c.ratio),
        Column("floor", "floor", 5, 1, lambda c, x: (span(words.share(c.floor_share), "" if c.floor_share else "dim"),), lambda c: None if c.floor_share is None else -c.floor_share, True),
        Column("reg", "regs", 4, 6, lambda c, x: _count(c.registers), lambda c: c.registers, True),
        Column("spill", "spill", 5, 6, lambda c, x: _count(c.spills), lambda c: c.spills, True),
        Column("smem", "smem", 5, 6, lambda c, x: (span(words.size(c.shared_bytes), "" if c.shared_bytes else "dim"),), lambda c: c.shared_bytes, True),
        Column("compile", "cc s", 5, 9, lambda c, x: (span(words.number(c.compile_s, 2), "dim"),), lambda c: c.compile_s, True),
        Column("age", "age", 4, 8, lambda c, x: (span(words.age(c.t, x.now), "dim"),), lambda c: c.seq, True),
        Column("decision", "decision", 9, 0, lambda c, x: (words.decision(c, x.snapshot, x.now, x.long),), lambda c: (c.decision == "", c.decision)),
    )
}  # fmt: skip

DEFAULT: Sequence[str] = (
    "id", "hypothesis", "parents", "item", "verdict", "us", "ratio", "floor", "reg", "spill", "smem", "decision",
)  # fmt: skip
# Of a workspace that no kda wrote: what people said, beside what it is read as.
FOREIGN: Sequence[str] = ("id", "parents", "verdict", "us", "ratio", "said", "idea")
ID_CELLS = 22  # of ids that people made up, at most


def known(names: Sequence[str]) -> tuple[Sequence[str], list[str]]:
    """Configured columns that exist (the default where none is), and complaints about the others."""
    good = [name for name in names if name in COLUMNS]
    bad = [
        f"ui.columns: there is no column '{name}'; there are {', '.join(COLUMNS)}"
        for name in names
        if name not in COLUMNS
    ]
    return good or DEFAULT, bad


MIN_BRANCH = 2  # cells of a tree's drawing that a long id leaves
FLEX = 14  # the narrowest useful hypothesis


def choose(names: Sequence[str], cells: int, branch: int = 0, ids: int = 0) -> list[tuple[Column, int]]:
    """The columns that fit, in order, with their widths; low-ranked ones go first when space is short.

    ``branch`` is what the drawing of a tree needs before the id, ``ids`` what the longest id needs.
    """
    wanted = [COLUMNS[name] for name in names if name in COLUMNS]
    branch += max(0, min(ids, ID_CELLS, cells // 4) - COLUMNS["id"].cells)
    cells -= branch
    while True:
        fixed = sum(column.cells or FLEX for column in wanted) + len(wanted) + 1
        droppable = [column for column in wanted if column.rank > 0]
        if fixed <= cells or not droppable:
            break
        wanted.remove(max(droppable, key=lambda column: column.rank))
    left = cells - 2 - sum(column.cells for column in wanted) - len(wanted) + 1
    flexible = sum(1 for column in wanted if column.cells == 0) or 1
    return [
        (column, (column.cells or max(4, left // flexible)) + (branch if column.id == "id" else 0))
        for column in wanted
    ]


def header(chosen: Sequence[tuple[Column, int]], order: str, reverse: bool) -> Line:
    """Headings, the ordering column marked."""
    parts: list[str] = []
    for column, cells in chosen:
        title = column.title + (("▾" if reverse else "▴") if column.id == order else "")
        parts.append(fit(title, cells, column.right))
    return ((("  " + " ".join(parts)), "head"),)


def cells_of(
    cand: Candidate, chosen: Sequence[tuple[Column, int]], context: Context, prefix: str = ""
) -> Line:
    """One row of the table without its marker."""
    out: list[tuple[str, str]] = []
    for n, (column, cells) in enumerate(chosen):
        if n:
            out.append((" ", ""))
        line = column.show(cand, context)
        if column.id == "id" and prefix:
            room = max(1, cells - max(column.cells, min(width(line), cells - MIN_BRANCH)))
            line = ((prefix[-room:], "dim"), *line)
        line = crop(line, cells)
        pad = (" " * (cells - width(line)), "")
        out.extend((pad, *line) if column.right else (*line, pad))
    return tuple(out)


def sort_key(column: Column) -> Callable[[Candidate], tuple[bool, object]]:
    """Absent and NaN values sort last."""

    def key(cand: Candidate) -> tuple[bool, object]:
        value = column.sort(cand)
        absent = value is None or (isinstance(value, float) and math.isnan(value))
        return (absent, 0 if absent else value)

    return key


__all__ = ["COLUMNS", "DEFAULT", "Column", "Context", "cells_of", "choose", "header", "sort_key", "text_of"]
