"""Pane 5: per workload, the incumbent's time as a sparkline with candidates as marks, the best, the floor."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kda_tui.record.snapshot import Snapshot
from kda_tui.tui import words
from kda_tui.tui.foreign import text_only_rows
from kda_tui.tui.line import EMPTY, Line, fit, join, plain, span, width
from kda_tui.tui.panes.pane import Keyed, TextPane
from kda_tui.tui.series import Series, SeriesBook
from kda_tui.tui.spark import bucket_of, sparkline

FOREIGN_MARKS = "every row in order; + better than its baseline, - worse, = as good"
SHORTEST_HEAD = 6  # cells of a workload's name that its bracket leaves
NAME_CELLS = 16  # of a workload's name; more where there is room
MARKS = "+ faster than the incumbent then, - slower, = as fast"


class BenchmarksPane(TextPane):
    """All times are in microseconds; a line holds one workload, so never two units."""

    number = 5
    title = "benchmarks"
    scope = "benchmarks"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.book = SeriesBook()

    def draw(self, snapshot: Snapshot, now: float) -> None:
        self.book.update(snapshot.bench)
        super().draw(snapshot, now)

    def layout_rows(self, snapshot: Snapshot, now: float, cells: int) -> tuple[Line, list[Keyed]]:
        contract = snapshot.contract
        cache = contract.benchmark.cache if contract else ""
        cpu = contract is not None and contract.task.device == "cpu"
        details = join(
            [
                plain(
                    "us, or the unit in brackets"
                    if snapshot.foreign
                    else f"us{', ' + cache if cache else ''}"
                ),
                plain("cpu device", "warn") if cpu else EMPTY,
                plain("o plots", "dim"),
            ]
        )
        rows: list[Keyed] = []
        as_text = text_only_rows(snapshot, cells) if snapshot.foreign else []
        if not self.book.series:
            return details, [("none", plain("nothing measured yet", "dim")), *as_text]
        widest = NAME_CELLS if not snapshot.foreign else max(NAME_CELLS, cells // 3)
        name = min(widest, max(len(s) for s in self.book.series))
        for workload, series in self.book.series.items():
            line = series.us if snapshot.foreign else incumbent_line(series)
            first, second = _series_lines(series, line, name, cells)
            rows.append((f"{workload}:us", first))
            rows.append((f"{workload}:marks", second))
        rows.append(("legend", plain(FOREIGN_MARKS if snapshot.foreign else MARKS, "dim")))
        if as_text:
            rows += [("text", plain("rows without a number that has a unit:", "bold")), *as_text]
        return details, rows


def _series_lines(series: Series, best: Sequence[float], name: int, cells: int) -> tuple[Line, Line]:
    """The incumbent's line (somebody's rows as they stand) and the line of marks under it."""
    known = [v for v in best if math.isfinite(v)]
    floor = f" floor {words.micros(series.floor_us)}" if math.isfinite(series.floor_us) else ""
    now = words.micros(known[-1]) if known else "-"
    room = max(8, cells - name - 18 - len(floor))
    line = sparkline(best, room)
    first = (
        span(fit_name(series.workload, name), "bold"),
        span(f" {words.micros(known[0]) if known else '-':>7} ", "dim"),
        span(fit(line, min(room, max(len(line), 1))), "info"),
        span(f" {now:>7}"),
        span(floor, "dim"),
    )
    marks = candidate_marks(series, room)
    left_out = span(f"  {series.left_out} rows not admissible" if series.left_out else "", "dim")
    second = (span(" " * (name + 9)), *((m, _mark_style(m)) for m in marks), left_out)
    return first, second


def fit_name(workload: str, cells: int) -> str:
    """A workload's name in ``cells``; what tells two series of one workload apart, in brackets at its end, stays."""
    head, bracket, about = workload.partition(" [")
    room = cells - width(plain(bracket + about))
    whole = width(plain(workload)) <= cells or not bracket or room < SHORTEST_HEAD
    return fit(workload, cells) if whole else fit(head, room) + bracket + about


def incumbent_line(series: Series) -> list[float]:
    """What the incumbent took at each measurement; where no rival was timed, the best so far."""
    out: list[float] = []
    best = math.nan
    for rival, us, ratio in zip(series.rival, series.us, series.ratio, strict=True):
        implied = us / ratio if series.up and ratio else us * ratio
        value = rival if math.isfinite(rival) else implied if math.isfinite(implied) else math.nan
        best = value if math.isfinite(value) else best if math.isfinite(best) else us
        out.append(best)
    return out


def candidate_marks(series: Series, cells: int) -> str:
    """One mark per cell: the best that a candidate reached there."""
    marks = [" "] * min(cells, len(series.cand))
    order = " -=+"
    for i, (us, ratio, rival) in enumerate(zip(series.us, series.ratio, series.rival, strict=True)):
        quotient = (us / rival if series.up else rival / us) if us and rival else math.nan
        speed = ratio if math.isfinite(ratio) else quotient
        if not math.isfinite(speed):
            continue
        mark = "+" if speed > 1.005 else "-" if speed < 0.995 else "="
        at = bucket_of(i, len(series.cand), cells)
        if order.index(mark) > order.index(marks[at]):
            marks[at] = mark
    return "".join(marks)


def _mark_style(mark: str) -> str:
    return {"+": "good", "-": "bad", "=": "dim"}.get(mark, "")


__all__: Sequence[str] = ("BenchmarksPane", "candidate_marks", "incumbent_line")
