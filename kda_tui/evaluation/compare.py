"""One output against the oracle: classes first, then norms over all and over the worst tile.

Everything goes in slices of some hundred thousand elements, so that an output of tens of millions
needs little memory beside itself. A tolerance holds only if ``error <= tolerance`` is true: a NaN fails.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import Array, on_host
from kda_tui.evaluation.dtypes import as_bits, decode, is_float
from kda_tui.evaluation.oracle import Expected, check_of
from kda_tui.record.contract import Check, TensorSpec

SLICE = 1 << 18  # elements per slice
TILE = 4096  # elements of a tile when the contract names none
TILE_FLOOR = 1e-3  # of the rms of all: a tile of tiny values is judged against that


@dataclass(frozen=True, slots=True)
class Comparison:
    """``error`` is the worst measure over its tolerance: 1.0 is the limit, inf a wrong class or bit."""

    ok: bool
    error: float
    rel_l2: float
    worst_tile: float
    tile: int  # which tile was worst
    max_abs_over_rms: float
    wrong_class: int  # NaN or infinity where the oracle has none, or the other way round; wrong bits if exact
    reason: str = ""


def compare(got: Array, expected: Expected, spec: TensorSpec) -> Comparison:
    """Judge ``got``, the elements of one output as stored bits, in its logical layout."""
    return begin_compare(got, expected, spec)()


def begin_compare(got: Array, expected: Expected, spec: TensorSpec) -> Callable[[], Comparison]:
    """As ``compare``; a device only begins here, and calling the result waits for it."""
    check = check_of(spec)
    if expected.bits is not None:
        found = _compare_bits(got, expected.bits, expected.valid, spec.dtype, check)
        return lambda: found
    assert expected.values is not None
    have, per_tile = tiled(got, check, spec)
    wanted, _ = tiled(expected.values, check, spec)
    keep = None if expected.valid is None else tiled(expected.valid, check, spec)[0]
    with np.errstate(invalid="ignore", over="ignore"):
        sums = tile_sums(have, wanted, keep, per_tile, spec.dtype, check)
    return lambda: _measure(sums(), check)


def _compare_bits(
    got: Array, want: Array, valid: NDArray[np.bool_] | None, dtype: str, check: Check
) -> Comparison:
    wrong = 0
    for have, wanted, keep in _slices(got, want, valid):
        bad = as_bits(have) != as_bits(wanted)
        if check.nan == "match" and is_float(dtype) and dtype != "fp4x2":
            bad &= ~(np.isnan(decode(have, dtype)) & np.isnan(decode(wanted, dtype)))
        wrong += int(np.count_nonzero(bad if keep is None else bad & keep))
    error = 0.0 if wrong == 0 else math.inf
    reason = f"{wrong} elements differ where every bit must agree" if wrong else ""
    return Comparison(wrong == 0, error, error, 0.0, 0, 0.0, wrong, reason)


def _slices(
    got: Array, want: Array, valid: NDArray[np.bool_] | None
) -> Iterator[tuple[Array, Array, NDArray[np.bool_] | None]]:
    flat, wanted = got.reshape(-1), want.reshape(-1)
    keep = None if valid is None else valid.reshape(-1)
    at_once = SLICE if on_host(flat) else flat.size
    for start in range(0, flat.size, at_once):
        part = slice(start, start + at_once)
        yield flat[part], wanted[part], None if keep is None else keep[part]


@dataclass(slots=True)
class TileSums:
    """Per tile: squared difference, squared reference, valid elements; all three in host memory."""

    diff: NDArray[np.float64]
    ref: NDArray[np.float64]
    count: NDArray[np.float64]
    max_abs: float = 0.0
    wrong_class: int = 0


def tile_axes(check: Check, spec: TensorSpec, ndim: int) -> tuple[int, ...]:
    """The axes that a tile spans: ``row`` is the last one, other names are axes of the shape."""
    axes: list[int] = []
    for name in check.tile:
        if name == "row":
            axes.append(ndim - 1)
        else:
            axes += [i for i, extent in enumerate(spec.shape) if str(extent) == name]
    return tuple(sorted(set(axes)))


def tiled(array: Array, check: Check, spec: TensorSpec) -> tuple[Array, int]:
    """The elements flat, tile after tile, and how many make one tile (the last may be shorter)."""
    axes = tile_axes(check, spec, array.ndim)
    if not axes:
        return array.reshape(-1), TILE
    per_tile = int(np.prod([array.shape[a] for a in axes], dtype=np.int64))
    last = tuple(range(array.ndim - len(axes), array.ndim))
    moved = array if axes == last else np.moveaxis(array, axes, last)
    return moved.reshape(-1), per_tile


@functools.singledispatch
def tile_sums(
    got: Array, ref: Array, valid: NDArray[np.bool_] | None, per_tile: int, dtype: str, check: Check
) -> Callable[[], TileSums]:
    """What the norms are made of, from flat arrays; a device registers its own way for its arrays."""
    tiles = -(-ref.size // per_tile)
    sums = TileSums(np.zeros(tiles), np.zeros(tiles), np.zeros(tiles))
    at_once = max(1, SLICE // per_tile)
    for first in range(0, tiles, at_once):
        part = slice(first * per_tile, (first + at_once) * per_tile)
        have = decode(got[part], dtype)
        keep = None if valid is None else valid[part]
        _accumulate_slice(sums, first, have, ref[part], keep, per_tile, check)
    return lambda: sums


def _accumulate_slice(
    sums: TileSums,
    first: int,
    have: Array,
    want: Array,
    keep: NDArray[np.bool_] | None,
    per_tile: int,
    check: Check,
) -> None:
    finite = np.isfinite(want) & np.isfinite(have)
    bad = ~finite & ~_same_class(have, want, check)
    if keep is not None:
        bad &= keep
        finite &= keep
    sums.wrong_class += int(np.count_nonzero(bad))
    diff = np.where(finite, np.abs(have - want), 0.0) if not finite.all() else np.abs(have - want)
    size = np.where(finite, np.abs(want), 0.0)
    starts = np.arange(0, want.size, per_tile)
    part = slice(first, first + starts.size)
    sums.diff[part] = np.add.reduceat(diff * diff, starts)
    sums.ref[part] = np.add.reduceat(size * size, starts)
    sums.count[part] = np.add.reduceat(finite.astype(np.float64), starts)
    sums.max_abs = max(sums.max_abs, float(diff.max(initial=0.0)))


def _same_class(have: Array, want: Array, check: Check) -> NDArray[np.bool_]:
    """Where two not-finite values agree: NaN with NaN, and infinities of one sign, as the contract allows."""
    same = np.zeros(have.shape, np.bool_)
    if check.nan == "match":
        same |= np.isnan(have) & np.isnan(want)
    if check.inf == "match":
        with np.errstate(invalid="ignore"):
            same |= np.isinf(have) & np.isinf(want) & (have == want)
    return same


def _measure(sums: TileSums, check: Check) -> Comparison:
    with np.errstate(over="ignore"):
        total, count = float(sums.ref.sum()), float(sums.count.sum())
    rms = math.sqrt(total / count) if count else 0.0
    rel_l2 = _over(math.sqrt(float(sums.diff.sum())), math.sqrt(total))
    floor = TILE_FLOOR * rms * np.sqrt(sums.count)
    denominator = np.maximum(np.sqrt(sums.ref), floor)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_tile = np.where(sums.diff == 0.0, 0.0, np.sqrt(sums.diff) / denominator)
    tile = int(np.argmax(per_tile)) if per_tile.size else 0
    worst = float(per_tile[tile]) if per_tile.size else 0.0
    spread = _over(sums.max_abs, rms)
    limits = (
        ("relative L2", rel_l2, check.rel_l2),
        (f"relative L2 of tile {tile}", worst, check.rel_l2),
        ("largest error over rms", spread, check.max_abs_over_rms),
    )
    error, reason = 0.0, ""
    for what, value, limit in limits:
        if limit is None:
            continue
        over = _over(value, limit)
        if not over <= error:
            error, reason = over, f"{what} is {value:.3g}, allowed {limit:.3g}"
    if sums.wrong_class:
        error, reason = math.inf, f"{sums.wrong_class} elements are NaN or infinite where they must not be"
    ok = sums.wrong_class == 0 and error <= 1.0
    return Comparison(ok, error, rel_l2, worst, tile, spread, sums.wrong_class, "" if ok else reason)


def _over(value: float, scale: float) -> float:
    if scale > 0.0:
        return value / scale
    return 0.0 if value == 0.0 else math.inf
