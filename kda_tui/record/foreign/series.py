"""Measurements as the columns that the screen draws; a series holds one workload, one kind and one unit."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable

from kda_tui.record.foreign.measurements import Measurement
from kda_tui.record.snapshot import BenchTable


def bench_table(measurements: Iterable[Measurement]) -> BenchTable:
    """Times in microseconds; where a row has none, its cycles, rates or sizes as they are.

    Kind and foreign unit are part of a workload's name, in brackets, so no series mixes two of them.
    """
    listed = [m for m in measurements if not m.summary]
    timed = {(m.file, m.line, m.arm) for m in listed if m.unit.us is not None}
    drawn = [m for m in listed if m.unit.us is not None or (m.file, m.line, m.arm) not in timed]
    names: dict[str, int] = {}

    def index(text: str) -> int:
        return names.setdefault(text, len(names))

    floats = {name: array("d") for name in ("median_us", "min_us", "ratio")}
    for m in drawn:
        scale = m.unit.us or 1.0
        floats["median_us"].append(m.value * scale)
        floats["min_us"].append(m.least * scale if m.least is not None else math.nan)
        floats["ratio"].append(m.speedup if m.speedup is not None else math.nan)
    absent = array("d", [math.nan] * len(drawn))
    return BenchTable(
        rows=len(drawn),
        candidate=array("i", [index(m.cand) for m in drawn]),
        workload=array("i", [index(series_of(m)) for m in drawn]),
        arm=array("i", [index(m.arm) for m in drawn]),
        opponent=array("i", [index("baseline" if m.arm == "candidate" else "") for m in drawn]),
        eval=array("i", [index(f"{m.file}:{m.line}") for m in drawn]),
        protocol=array("i", [index(" ".join((m.kind, m.unit.name)).strip()) for m in drawn]),
        names=tuple(names),
        t=[m.t for m in drawn],
        seq=array("q", range(1, len(drawn) + 1)),
        p95_us=absent,
        iqr_us=absent,
        ratio_lo=absent,
        ratio_hi=absent,
        floor_us=absent,
        admissible=array("b", [-1 if m.admissible is None else int(m.admissible) for m in drawn]),
        **floats,
    )


def series_of(m: Measurement) -> str:
    """``s1``, ``s1 [device]``, ``all [cycles]``: what may stand on one line."""
    unit = m.unit.name if m.unit.us is None else ""
    about = " ".join(part for part in (m.kind, unit) if part)
    return f"{m.workload or 'all'} [{about}]" if about else m.workload or "all"
