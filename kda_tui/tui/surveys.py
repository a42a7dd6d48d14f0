"""Pane 6 of a workspace that no kda wrote: whatever ncu left in it, hot lines where there are some, and why not elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kda_tui.profiling.survey import Surveyed, survey
from kda_tui.tui import words
from kda_tui.tui.line import Line, join, plain, span, wrap
from kda_tui.tui.panes.pane import Keyed, bar

MOST = 40  # files read for the pane
SHOWN = 8  # hot lines a kernel


def read_survey(root: Path, names: Sequence[str]) -> tuple[Surveyed, ...]:
    """The digests of the files, reports first; runs in the reading thread."""
    ordered = sorted(names, key=lambda name: not name.endswith(".ncu-rep"))
    return tuple(survey(root, ordered[:MOST]))


def survey_rows(found: Sequence[Surveyed], total: int, cells: int) -> list[Keyed]:
    """Files with hot lines first, then those with kernels, then what is no profile at all."""
    rows: list[Keyed] = []
    for one in sorted(found, key=lambda s: (s.hot is None, not s.kernels)):
        about = ", ".join(part for part in (one.digest.get("form"), one.digest.get("version")) if part)
        rows.append((one.file, join([plain(one.file, "bold"), plain(about, "dim")])))
        rows += [(f"{one.file}:{n}", row) for n, row in enumerate(_kernels(one, cells))]
    if total > len(found):
        rows.append(("more", plain(f"{total - len(found)} more files are not read", "dim")))
    return rows


def _kernels(one: Surveyed, cells: int) -> list[Line]:
    hot = one.hot
    if hot is not None:
        title = join([plain(f"  {_name(hot)}"), plain(str(hot.get("verdict") or ""), "bold")])
        return [
            *wrap(title, cells, 4),
            *(row for spot in hot["hotspots"][:SHOWN] for row in _spot(spot, cells)),
        ]
    out = [
        row
        for kernel in one.kernels[:4]
        for row in wrap(plain(f"  {_name(kernel)}: {kernel.get('verdict') or 'no verdict'}"), cells, 4)
    ]
    if len(one.kernels) > 4:
        out.append(plain(f"  and {len(one.kernels) - 4} more kernels", "dim"))
    return [*out, *wrap(plain(f"  no hot lines: {one.why_no_hotspots}", "dim"), cells, 4)]


def _name(kernel: dict[str, Any]) -> str:
    name = str(kernel.get("name") or "kernel")
    return name if len(name) <= 80 else f"{name[:79]}…"


def _spot(spot: dict[str, Any], cells: int) -> list[Line]:
    share, gauge = float(spot.get("share") or 0.0), max(6, min(14, cells // 6))
    causes = ", ".join(str(line) for line in spot.get("waits_on", ())[:3])
    how = f"; {spot['waits_how']} {causes}".rstrip() if spot.get("waits_how") else ""
    head: Line = (
        span(f"{spot.get('line', 0):>6} "),
        span(bar(share, gauge), "info"),
        span(f" {words.share(share):>4}  ", "bold"),
        span(f"{spot.get('words') or spot.get('stall') or ''}{how}"),
    )
    text = str(spot.get("text") or "")
    code = [(span("       | ", "dim"), span(text))] if text else []
    return [*wrap(head, cells, gauge + 14), *code]
