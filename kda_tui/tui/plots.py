"""Plots that a person asks for, drawn with plotext into lines; never on a tick."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

from kda_tui.expressions import evaluate
from kda_tui.profiling.roofline import Ceiling, Point, bounds, curve, usable
from kda_tui.record.contract import Contract, WorkloadSpec
from kda_tui.record.snapshot import Snapshot
from kda_tui.text import UserError
from kda_tui.tui import words
from kda_tui.tui.line import Line, plain, span
from kda_tui.tui.panes.benchmarks import incumbent_line
from kda_tui.tui.panes.pane import Keyed
from kda_tui.tui.series import SeriesBook

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
NEAR = 0.6  # a floor further away than this share of the best time would flatten the plot
PLOTS: Sequence[str] = ("progress", "roofline", "distribution", "intervals")


def plot_rows(kind: str, snapshot: Snapshot, book: SeriesBook, height: int, cells: int) -> list[Keyed]:
    """One plot as rows; what there is nothing to plot of says so."""
    makers: Mapping[str, Callable[[], list[Line]]] = {
        "progress": lambda: _progress(book, cells, height),
        "roofline": lambda: roofline(snapshot, book, cells, height),
        "distribution": lambda: _distribution(snapshot, cells, height),
        "intervals": lambda: _intervals(snapshot, cells, height),
    }
    return [(f"{kind}:{n}", line) for n, line in enumerate(makers[kind]())]


def _progress(book: SeriesBook, cells: int, height: int) -> list[Line]:
    """Time of every measured candidate and of the incumbent, per workload."""
    out: list[Line] = []
    room = max(14, height // max(1, len(book.series)) - 1)
    for series in book.series.values():
        us = [(i + 1, v) for i, v in enumerate(series.us) if math.isfinite(v)]
        best = [(i + 1, v) for i, v in enumerate(incumbent_line(series)) if math.isfinite(v)]
        if not us:
            continue
        floor = series.floor_us
        low = f", floor {words.micros(floor)}" if math.isfinite(floor) else ""
        out.append(
            plain(
                f"{series.workload}: us by measurement, the line is the incumbent, x a candidate{low}", "bold"
            )
        )
        lines = [("incumbent", best)]
        if math.isfinite(floor) and floor > NEAR * min(v for _, v in us):
            lines.append((f"floor {words.micros(floor)}", [(1, floor), (len(series.us), floor)]))
        out += draw(lines, [("candidates", us)], cells, room)
    return out or [plain("nothing measured yet", "dim")]


def roofline(snapshot: Snapshot, book: SeriesBook, cells: int, height: int) -> list[Line]:
    """The fastest measured call of each workload under the roof of the contract's bytes and flops."""
    contract, device = snapshot.contract, snapshot.run.device if snapshot.run else {}
    if contract is None or contract.cost.bytes is None or contract.cost.flops is None:
        return [plain("a roofline needs [cost] bytes and flops in the contract", "dim")]
    bandwidth = device.get("bandwidth")
    if not isinstance(bandwidth, int | float) or not bandwidth > 0:
        return [plain("a roofline needs the device's bandwidth, and this run has not recorded it", "dim")]
    peaks = device.get("flops")
    flops = peaks.get(contract.cost.flops_dtype or "float32") if isinstance(peaks, Mapping) else None
    # Without a known peak the roof is memory alone: its ridge lies beyond what is drawn.
    peak = float(flops) if isinstance(flops, int | float) and flops > 0 else None
    points = usable(
        [point for load in contract.workloads if (point := _point(contract, load, book)) is not None]
    )
    if not points:
        return [plain("nothing measured yet", "dim")]
    highest = max(p.intensity for p in points) * 100
    roof = Ceiling(str(device.get("name", "")), float(bandwidth), peak or bandwidth * highest)
    low, high, _, _ = (
        bounds(roof, points) if peak else (min(p.intensity for p in points) / 4, highest / 25, 0, 0)
    )
    line = [(math.log10(x), math.log10(y)) for x, y in curve(roof, low, high)]
    marks = [(math.log10(p.intensity), math.log10(p.rate)) for p in points]
    out = [plain(f"log10 FLOP/s over log10 FLOP/byte; {roof.name}, {bandwidth / 1e9:.0f} GB/s", "bold")]
    out += draw(
        [("roof" if peak else "roof (memory alone)", line)],
        [("fastest", marks)],
        cells,
        max(12, height - len(points) - 2),
    )
    for point in points:
        share = words.share(point.share(roof))
        out.append(
            plain(
                f"{point.label}: {point.rate / 1e9:.2f} GFLOP/s at {point.intensity:.2f} FLOP/byte, {share} of the roof"
            )
        )
    return out


def _point(contract: Contract, load: WorkloadSpec, book: SeriesBook) -> Point | None:
    """The fastest finite measurement of a workload; None where there is none, or its cost has other names."""
    series = book.series.get(load.id)
    measured = (
        [(us, cand) for us, cand in zip(series.us, series.cand, strict=True) if math.isfinite(us)]
        if series
        else []
    )
    if not measured:
        return None
    us, cand = min(measured)
    try:
        flops = evaluate(contract.cost.flops or 0, load.axes)
        size = evaluate(contract.cost.bytes or 0, load.axes)
    except UserError:
        return None
    return Point(f"{load.id} {cand}", flops, size, us / 1e6)


def _distribution(snapshot: Snapshot, cells: int, height: int) -> list[Line]:
    """How many candidates reached which ratio."""
    ratios = [c.ratio for c in snapshot.candidates.values() if c.ratio is not None and math.isfinite(c.ratio)]
    if not ratios:
        return [plain("no candidate has a ratio yet", "dim")]
    from kda_tui.tui.spark import histogram

    out = [plain(f"{len(ratios)} candidates by ratio to their opponent (1 = as fast)", "bold")]
    for low, high, count, bar in histogram(ratios, max(4, min(20, height - 4)), max(10, cells - 26)):
        out.append(
            (span(f"{low:6.3f} - {high:6.3f} {count:>5}  ", "dim"), span(bar, "good" if low >= 1 else ""))
        )
    return out


def _intervals(snapshot: Snapshot, cells: int, height: int) -> list[Line]:
    """The best candidates with their intervals on one axis."""
    found = [
        c
        for c in snapshot.candidates.values()
        if c.ratio is not None and c.lo is not None and c.hi is not None
    ]
    found = [c for c in found if all(math.isfinite(v) for v in (c.ratio or 0, c.lo or 0, c.hi or 0))]
    found.sort(key=lambda c: -(c.ratio or 0))
    found = found[: max(1, height - 4)]
    if not found:
        return [plain("no candidate has an interval yet", "dim")]
    low = min(1.0, *(c.lo or 1.0 for c in found))
    high = max(1.0, *(c.hi or 1.0 for c in found))
    room = max(20, cells - 34)
    scale = (room - 1) / (high - low) if high > low else 0.0
    one = round((1.0 - low) * scale)
    out = [plain(f"ratio with its interval; | is 1, axis {low:.3f} to {high:.3f}", "bold")]
    for cand in found:
        row = [" "] * room
        first, last, middle = (round(((v or low) - low) * scale) for v in (cand.lo, cand.hi, cand.ratio))
        row[first : last + 1] = ["-"] * (last - first + 1)
        row[one] = "|"
        row[middle] = "o"
        text = "".join(row)
        out.append(
            (
                span(f"{cand.id:<8}", "bold"),
                span(text, words.SPEED_STYLE.get(cand.speed, "")),
                span(f" {words.ratio(cand.ratio)} vs {cand.opponent}", "dim"),
            )
        )
    return out


Points = Sequence[tuple[float, float]]


def draw(
    lines: Sequence[tuple[str, Points]], points: Sequence[tuple[str, Points]], cells: int, height: int
) -> list[Line]:
    """Named lines, and points marked x, through plotext; its figure is one for the process."""
    import plotext

    figure = plotext.figure
    figure.clear()
    plotext.terminal.limit(False, False)
    figure.plot_size(cells, height)
    for name, data in lines:
        signal = figure.signal([x for x, _ in data], [y for _, y in data]).lines()
        signal.label(name)
        figure.draw(signal)
    for name, data in points:
        signal = figure.signal([x for x, _ in data], [y for _, y in data], marker="x")
        signal.label(name)
        figure.draw(signal)
    text = figure.build().string()
    return [plain(ESCAPE.sub("", row)) for row in text.rstrip("\n").split("\n")]
