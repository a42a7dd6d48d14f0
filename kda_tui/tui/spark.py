"""Text sparklines: NaN-safe, one unit a line, marks for candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"


def finite(values: Sequence[float]) -> list[float]:
    return [v for v in values if math.isfinite(v)]


def buckets(values: Sequence[float], cells: int) -> list[float]:
    """The last finite value of each of ``cells`` equal parts, the one before where a part has none."""
    if not values or cells <= 0:
        return []
    if len(values) <= cells:
        return list(values)
    out: list[float] = []
    last = math.nan
    for n in range(cells):
        part = finite(values[n * len(values) // cells : (n + 1) * len(values) // cells])
        last = part[-1] if part else last
        out.append(last)
    return out


def sparkline(values: Sequence[float], cells: int) -> str:
    """One row of block characters; not finite is a space, all equal is the lowest block."""
    shown = buckets(values, cells)
    known = finite(shown)
    if not known:
        return ""
    low, high = min(known), max(known)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((v - low) * scale)] if math.isfinite(v) else " " for v in shown)


def bucket_of(position: int, total: int, cells: int) -> int:
    """The cell that the value at ``position`` of ``total`` falls into."""
    return position if total <= cells else min(cells - 1, position * cells // total)


def histogram(values: Sequence[float], bins: int, cells: int) -> list[tuple[float, float, int, str]]:
    """(from, to, count, bar) per bin; values that are not finite are left out."""
    known = sorted(finite(values))
    if not known:
        return []
    low, high = known[0], known[-1]
    if low == high:
        return [(low, high, len(known), "█" * cells)]
    step = (high - low) / bins
    counts = [0] * bins
    for value in known:
        counts[min(bins - 1, int((value - low) / step))] += 1
    most = max(counts)
    return [
        (low + n * step, low + (n + 1) * step, count, "█" * round(cells * count / most))
        for n, count in enumerate(counts)
    ]
