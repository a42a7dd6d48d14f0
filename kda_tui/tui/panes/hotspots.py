"""Pane 6: where the profiled candidate spends its time, or why that is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kda_tui.profiling.survey import Surveyed
from kda_tui.record.paths import Workspace
from kda_tui.record.snapshot import Snapshot
from kda_tui.tui import words
from kda_tui.tui.line import Line, join, plain, span, wrap
from kda_tui.tui.panes.pane import Keyed, TextPane, bar
from kda_tui.tui.profiles import Seen, Spot, read_seen
from kda_tui.tui.source import highlight
from kda_tui.tui.surveys import MOST, read_survey, survey_rows

AROUND = 2  # source lines shown before and after a hot one


class HotspotsPane(TextPane):
    """Shows the selected candidate's profile, else the incumbent's."""

    number = 6
    title = "hotspots"
    scope = "workspace"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cand = ""
        self.seen: Seen | None = None
        self.surveyed: tuple[Surveyed, ...] | None = None
        self._asked: object = None

    def draw(self, snapshot: Snapshot, now: float) -> None:
        if snapshot.foreign:
            self._survey(snapshot)
            super().draw(snapshot, now)
            return
        cand = self._candidate(snapshot)
        key = (cand, _changed(Workspace(snapshot.workspace).profile / cand)) if cand else None
        if cand and key != self._asked:
            self._asked = key
            workspace = Workspace(snapshot.workspace)
            self.ask("hotspots", key, lambda: read_seen(workspace, cand))
        super().draw(snapshot, now)

    def _survey(self, snapshot: Snapshot) -> None:
        """Ask for whatever ncu left in somebody's workspace, when its files changed."""
        names = tuple(snapshot.extra.get("profiles", ()))
        key = (names, tuple(_changed(snapshot.workspace / name) for name in names[:MOST]))
        if names and key != self._asked:
            self._asked = key
            root = snapshot.workspace
            self.ask("survey", key, lambda: read_survey(root, names))

    def _candidate(self, snapshot: Snapshot) -> str:
        folder = Workspace(snapshot.workspace).profile
        if self.cand and (folder / self.cand).is_dir():
            return self.cand
        incumbent = snapshot.incumbent.cand
        return incumbent if (folder / incumbent).is_dir() or not self.cand else self.cand

    def loaded(self, slot: str, key: object, value: Any, error: str) -> None:
        if slot == "survey":
            self.surveyed = value if isinstance(value, tuple) else ()
            self.rebuild()
        elif slot == "hotspots":
            self.seen = value if isinstance(value, Seen) else Seen("", why_none=error)
            self.rebuild()

    def layout_rows(self, snapshot: Snapshot, now: float, cells: int) -> tuple[Line, list[Keyed]]:
        if snapshot.foreign:
            return self._foreign_rows(snapshot, cells)
        seen = self.seen
        if seen is None:
            return plain(""), [("none", plain("reading…" if self._asked else "no candidate yet", "dim"))]
        old = words.span_of(max(0.0, now - seen.taken)) if seen.taken is not None else ""
        when = "just now" if old == "now" else f"{old} ago" if old else ""
        details = plain(", ".join(part for part in (seen.cand, seen.version, when) if part))
        if not seen.spots:
            rows = wrap(plain(seen.why_none or "no hotspots in this profile", "dim"), cells)
            return details, [(f"none:{n}", row) for n, row in enumerate(rows)]
        about = join([plain(seen.kernel, "dim"), plain(seen.verdict, "bold")])
        out: list[Keyed] = [(f"kernel:{n}", row) for n, row in enumerate(wrap(about, cells, 2))]
        gauge = max(6, min(14, cells // 6))
        for spot in seen.spots:
            head = (
                span(f"{spot.line:>4} "),
                span(bar(spot.share, gauge), "info"),
                span(f" {words.share(spot.share):>4}  ", "bold"),
                span(spot.words),
            )
            out += [(f"spot:{spot.line}:{n}", row) for n, row in enumerate(wrap(head, cells, gauge + 12))]
            if spot.more:
                out.append((f"why:{spot.line}", plain(" " * (gauge + 12) + spot.more, "dim")))
            out += _source_rows(seen, spot)
        out += [(f"note:{n}", plain(note, "dim")) for n, note in enumerate(seen.notes)]
        return details, out

    def _foreign_rows(self, snapshot: Snapshot, cells: int) -> tuple[Line, list[Keyed]]:
        total = len(snapshot.extra.get("profiles", ()))
        if not total:
            why = "nothing of ncu was found: no .ncu-rep, and no CSV or text in profile/ or ncu/"
            return plain(""), [(f"none:{n}", row) for n, row in enumerate(wrap(plain(why, "dim"), cells))]
        if self.surveyed is None:
            return plain(f"{total} files"), [("none", plain("reading the profiles…", "dim"))]
        return plain(f"{total} files"), survey_rows(self.surveyed, total, cells)


def _source_rows(seen: Seen, spot: Spot) -> list[Keyed]:
    if not seen.source:
        return [(f"src:{spot.line}", (span("     | ", "dim"), *highlight(spot.text)[0]))] if spot.text else []
    first, last = max(1, spot.line - AROUND), min(len(seen.source), spot.line + AROUND)
    lines = highlight("\n".join(seen.source[first - 1 : last]))
    rows: list[Keyed] = []
    for number, line in zip(range(first, last + 1), lines, strict=False):
        mark = ">" if number == spot.line else "|"
        rows.append((f"src:{spot.line}:{number}", (span(f"{number:>5}{mark} ", "dim"), *line)))
    return rows


def _changed(folder: Path) -> int:
    """When a folder changed last, 0 when it is not there."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0
