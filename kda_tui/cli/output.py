"""Facts on standard output: JSON for programs, aligned plain lines for people."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kda_tui.text import clean


def plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses as objects, NaN and infinities as null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str | int | bool) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return str(value)


def print_json(value: Any) -> None:
    click.echo(json.dumps(plain(value), indent=2, ensure_ascii=True, allow_nan=False))


def say(text: str = "") -> None:
    """A line, or several, cleaned of anything that a terminal would obey."""
    click.echo(clean(text))


def table(rows: Sequence[Sequence[object]], right: Iterable[int] = ()) -> str:
    """Rows as aligned columns two spaces apart; the columns in ``right`` are set to the right."""
    cells = [[clean(str(cell)).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))] if cells else []
    to_right = frozenset(right)
    lines = []
    for row in cells:
        line = [
            c.rjust(w) if i in to_right else c.ljust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(line).rstrip())
    return "\n".join(lines)


def number(value: float | None, pattern: str = "") -> str:
    """A number for a person, by default with three digits; what was not measured is a dash, never 0."""
    if value is None or not math.isfinite(value):
        return "-"
    if pattern:
        return pattern.format(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
