"""Two profiles side by side: what changed, by metric, with a direction only where it is monotone."""

from __future__ import annotations

from dataclasses import dataclass

from kda_tui.profiling.metrics import METRICS, Metric, find
from kda_tui.profiling.model import KernelProfile

NOTABLE = 0.02  # relative change below which a metric is left out


@dataclass(frozen=True, slots=True)
class Change:
    metric: Metric
    before: float | None
    after: float | None
    relative: float | None
    direction: str  # better | worse | changed | appeared | gone


def compare(before: KernelProfile, after: KernelProfile) -> tuple[Change, ...]:
    """Metrics that differ by more than 2 %, largest relative change first."""
    found = []
    for metric in METRICS:
        change = _change(metric, find(before, metric.key), find(after, metric.key))
        if change is not None:
            found.append(change)
    return tuple(sorted(found, key=lambda c: -abs(c.relative) if c.relative is not None else -1e9))


def _change(metric: Metric, before: float | None, after: float | None) -> Change | None:
    if before is None and after is None:
        return None
    if before is None or after is None:
        return Change(metric, before, after, None, "appeared" if before is None else "gone")
    scale = max(abs(before), abs(after))
    if scale == 0 or abs(after - before) / scale < NOTABLE:
        return None
    relative = (after - before) / before if before else None
    if not metric.better:
        direction = "changed"
    else:
        direction = "better" if (after > before) == (metric.better == "more") else "worse"
    return Change(metric, before, after, relative, direction)
