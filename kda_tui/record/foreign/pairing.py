"""Speedups that nobody wrote but both arms give: a candidate's row beside the baseline's of the same workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kda_tui.record.foreign.measurements import Measurement


def pair_arms(measurements: Sequence[Measurement]) -> list[Measurement]:
    """With a speedup where none is written: against the baseline of the same row, of the same run, else of the file.

    Only rows of one file, workload, kind and unit are compared, the newest baseline up to then first, and none
    that may not count.
    """
    latest: dict[tuple[str, ...], float] = {}
    first: dict[tuple[str, ...], float] = {}
    for m in measurements:
        if m.arm == "baseline" and not m.summary and m.admissible is not False and m.value > 0:
            for key in _keys(m):
                first.setdefault(key, m.value)
    paired: list[Measurement] = []
    for m in measurements:
        if m.arm == "baseline" and m.admissible is not False and m.value > 0:
            latest |= dict.fromkeys(_keys(m), m.value)
        base = _base(m, latest, first)
        if base is not None:
            speedup = base / m.value if m.unit.better < 0 else m.value / base
            paired.append(replace(m, speedup=speedup, paired=True))
        else:
            paired.append(m)
    return paired


def _base(
    m: Measurement, latest: dict[tuple[str, ...], float], first: dict[tuple[str, ...], float]
) -> float | None:
    if m.arm != "candidate" or m.speedup is not None or m.summary or not m.unit.better or m.value <= 0:
        return None
    return next((known[key] for key in _keys(m) for known in (latest, first) if key in known), None)


def _keys(m: Measurement) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """What a row is compared by: the row itself, its run or tag, the file."""
    same = (m.file, m.workload, m.kind, m.unit.name)
    return (*same, f":{m.line}"), (*same, m.of), same
