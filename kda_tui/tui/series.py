"""Benchmark rows grouped by workload, read incrementally from the growing table."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from kda_tui.record.snapshot import BenchTable

BEST_ARMS = ("incumbent", "baseline")


@dataclass(slots=True)
class Series:
    """One workload: measurements in order. ``rival`` is the incumbent's time in the same evaluation."""

    workload: str
    cand: list[str] = field(default_factory=list)
    us: list[float] = field(default_factory=list)
    ratio: list[float] = field(default_factory=list)
    rival: list[float] = field(default_factory=list)
    floor_us: float = math.nan
    left_out: int = 0  # rows that are not admissible
    up: bool = False  # a rate: more is better


class SeriesBook:
    """All workloads of a table; :meth:`update` reads only rows it has not seen."""

    def __init__(self) -> None:
        self._forget(None)

    def _forget(self, table: object) -> None:
        self.series: dict[str, Series] = {}
        self._seen = 0
        self._table = table
        self._rivals: dict[tuple[int, int], float] = {}
        self._last: dict[str, tuple[int, int]] = {}

    def update(self, table: BenchTable | None) -> bool:
        """Take over new rows; true when something changed."""
        if table is None:
            changed = bool(self.series)
            self._forget(None)
            return changed
        if table.median_us is not self._table or table.rows < self._seen:
            self._forget(table.median_us)
        if table.rows == self._seen:
            return False
        for i in range(self._seen, table.rows):
            self._take(table, i)
        self._seen = table.rows
        return True

    def _take(self, table: BenchTable, i: int) -> None:
        workload = table.names[table.workload[i]]
        arm = table.names[table.arm[i]]
        series = self.series.get(workload)
        if series is None:
            is_rate = table.names[table.protocol[i]].endswith(("/s", " x"))
            series = self.series[workload] = Series(workload, up=is_rate)
        if table.admissible[i] == 0:
            series.left_out += 1
            return
        if math.isfinite(table.floor_us[i]):
            series.floor_us = table.floor_us[i]
        key = (table.eval[i], table.workload[i])
        value = table.median_us[i]
        if arm in BEST_ARMS:
            if arm == "incumbent" or key not in self._rivals:
                self._rivals[key] = value
                if series.cand and math.isnan(series.rival[-1]) and self._last[workload] == key:
                    series.rival[-1] = value
            return
        if arm not in ("candidate", ""):
            return
        series.cand.append(table.names[table.candidate[i]])
        series.us.append(value)
        series.ratio.append(table.ratio[i])
        series.rival.append(self._rivals.get(key, math.nan))
        self._last[workload] = key
