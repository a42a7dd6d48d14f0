"""From slots and blocks to what a verdict shows: per workload results and the rows of benchmark.csv."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kda_tui.evaluation.correctness import WorstError
from kda_tui.evaluation.floor import Floor, sol_score
from kda_tui.evaluation.samples import SampleLog, time_cells
from kda_tui.evaluation.session import BASELINE, INCUMBENT, INCUMBENT_AGAIN
from kda_tui.evaluation.statistics import Block, Interval, interval, median, of_workload
from kda_tui.evaluation.verdict import WorkloadResult

ARMS = ("candidate", INCUMBENT, INCUMBENT_AGAIN, BASELINE)


@dataclass(frozen=True, slots=True)
class Measured:
    """Blocks of admissible measurements and the raw samples behind them."""

    ratios: Sequence[Block]
    over_baseline: Sequence[Block]
    log: SampleLog
    baseline_is_incumbent: bool


def finite(value: float) -> float | None:
    """A number that JSON can hold; None for an unbounded end of an interval."""
    return value if math.isfinite(value) else None


def bounds(found: Interval | None) -> tuple[float | None, float | None, float | None]:
    """Ratio, lower and upper bound, as ratios."""
    if found is None:
        return None, None, None
    low = None if found.lo == -math.inf else math.exp(found.lo)
    high = None if found.hi == math.inf else math.exp(found.hi)
    return math.exp(found.mean), low, high


def workload_results(
    names: Sequence[str],
    errors: Mapping[str, WorstError],
    floors: Mapping[str, Floor],
    measured: Measured | None,
) -> tuple[WorkloadResult, ...]:
    """One result a workload; what was not measured or judged stays None."""
    results: list[WorkloadResult] = []
    for name in names:
        worst = errors.get(name)
        result = WorkloadResult(name)
        if worst is not None:
            result = replace(
                result,
                error=finite(worst.error),
                error_vs_baseline=worst.over_baseline,
                error_tensor=worst.tensor,
                error_tile=worst.tile,
            )
        floor = floors.get(name)
        if floor is not None:
            result = replace(result, floor_us=floor.us)
        if measured is not None:
            result = _with_times(result, measured)
        results.append(result)
    return tuple(results)


def _with_times(result: WorkloadResult, measured: Measured) -> WorkloadResult:
    name, log = result.workload, measured.log
    mine = log.of(name, "candidate")
    rival = log.of(name, INCUMBENT) + log.of(name, INCUMBENT_AGAIN)
    base = rival if measured.baseline_is_incumbent else log.of(name, BASELINE)
    ratio, low, high = bounds(interval(of_workload(measured.ratios, name)))
    over = interval(of_workload(measured.over_baseline, name))
    time_us = median(mine) if mine else None
    return replace(
        result,
        time_us=time_us,
        incumbent_us=median(rival) if rival else None,
        baseline_us=median(base) if base else None,
        ratio=ratio,
        lo=low,
        hi=high,
        vs_baseline=None if over is None else over.ratio,
        floor_share=result.floor_us / time_us if result.floor_us and time_us else None,
        sol=sol_score(time_us, median(base), result.floor_us)
        if result.floor_us and time_us and base
        else None,
    )


def benchmark_rows(
    results: Sequence[WorkloadResult],
    log: SampleLog,
    common: Mapping[str, Any],
    names: Mapping[str, str],
    shas: Mapping[str, str],
) -> tuple[dict[str, Any], ...]:
    """Rows of benchmark.csv without the recorder's columns; ``names`` and ``shas`` are by arm."""
    rows: list[dict[str, Any]] = []
    for result in results:
        for arm in ARMS:
            samples = log.of(result.workload, arm)
            if not samples:
                continue
            row = {**common, **time_cells(samples)}
            row |= {"workload": result.workload, "arm": arm, "candidate": names.get(arm, arm)}
            row |= {"sha12": shas.get(arm, "")[:12], "floor_us": _rounded(result.floor_us)}
            row["clock_mhz"] = log.clock(result.workload, arm)
            if arm == "candidate":
                row |= {"ratio": _rounded(result.ratio), "ratio_lo": _rounded(result.lo)}
                row["ratio_hi"] = _rounded(result.hi)
            rows.append({key: value for key, value in row.items() if value is not None and value != ""})
    return tuple(rows)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
