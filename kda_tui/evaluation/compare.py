"""One output against the oracle: classes first, then norms over all and over the worst tile.

Everything goes in slices of some hundred thousand elements, so that an output of tens of millions
needs little memory beside itself. A tolerance holds only if ``error <= tolerance`` is true: a NaN fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.dtypes import Array, as_bits, decode, is_float
from kda_tui.evaluation.oracle import Expected
from kda_tui.record.contract import Check, TensorSpec

SLICE = 1 << 18  # elements per slice
TILE = 4096  # elements of a tile when the contract names none
TILE_FLOOR = 1e-3  # of the rms of all: a tile of tiny values is judged against that
DEFAULT_CHECK = {
    "float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2, "fp8_e4m3": 5e-2,
    "fp8_e5m2": 1e-1, "fp4x2": 2e-1, "e8m0": 5e-1, "complex64": 1e-5, "complex128": 1e-12,
}  # fmt: skip


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


def effective_check(spec: TensorSpec) -> Check:
    """The contract's check; without one, exact for integers and a tolerance of the format for floats."""
    check = spec.check or Check()
    if check.exact or not is_float(spec.dtype):
        return check.model_copy(update={"exact": True})
    if check.rel_l2 is None and check.max_abs_over_rms is None:
        return check.model_copy(update={"rel_l2": DEFAULT_CHECK[spec.dtype]})
    return check


def compare(got: Array, expected: Expected, spec: TensorSpec) -> Comparison:
    """Judge ``got``, the elements of one output as stored bits, in its logical layout."""
    if expected.bits is not None:
        return _compare_bits(got, expected, spec)
    check = effective_check(spec)
    if check.exact:
        return _compare_integers(got, expected, spec)
    with np.errstate(invalid="ignore", over="ignore"):
        return _compare_norms(got, expected, spec, check)


def _compare_bits(got: Array, expected: Expected, spec: TensorSpec) -> Comparison:
    wrong = 0
    assert expected.bits is not None
    for have, want, keep in _slices(got, expected.bits, expected.valid):
        bad = as_bits(have) != as_bits(want)
        if spec.check is not None and spec.check.nan == "match" and is_float(spec.dtype):
            bad &= ~(_is_nan(have, spec.dtype) & _is_nan(want, spec.dtype))
        wrong += int(np.count_nonzero(bad if keep is None else bad & keep))
    return _exact_result(wrong)


def _compare_integers(got: Array, expected: Expected, spec: TensorSpec) -> Comparison:
    wrong = 0
    assert expected.values is not None
    for have, want, keep in _slices(got, expected.values, expected.valid):
        bad = decode(have, spec.dtype) != want
        wrong += int(np.count_nonzero(bad if keep is None else bad & keep))
    return _exact_result(wrong)


def _exact_result(wrong: int) -> Comparison:
    ok = wrong == 0
    reason = "" if ok else f"{wrong} elements differ where every bit must agree"
    return Comparison(ok, 0.0 if ok else math.inf, 0.0 if ok else math.inf, 0.0, 0, 0.0, wrong, reason)


def _is_nan(bits: Array, dtype: str) -> NDArray[np.bool_]:
    return np.isnan(decode(bits, dtype))


def _slices(
    got: Array, want: Array, valid: NDArray[np.bool_] | None
) -> Iterator[tuple[Array, Array, NDArray[np.bool_] | None]]:
    flat, wanted = got.reshape(-1), want.reshape(-1)
    keep = None if valid is None else valid.reshape(-1)
    for start in range(0, flat.size, SLICE):
        part = slice(start, start + SLICE)
        yield flat[part], wanted[part], None if keep is None else keep[part]


@dataclass(slots=True)
class _Sums:
    """Per tile: squared difference, squared reference, valid elements."""

    diff: NDArray[np.float64]
    ref: NDArray[np.float64]
    count: NDArray[np.float64]
    max_abs: float = 0.0
    wrong_class: int = 0


def _compare_norms(got: Array, expected: Expected, spec: TensorSpec, check: Check) -> Comparison:
    assert expected.values is not None
    tiles_got, per_tile = tiled(got, check, spec)
    tiles_ref, logical_per_tile = tiled(expected.values, check, spec)
    tiles_valid = None if expected.valid is None else tiled(expected.valid, check, spec)[0]
    sums = _accumulate(tiles_got, tiles_ref, tiles_valid, per_tile, logical_per_tile, spec, check)
    return _measure(sums, check)


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


def _accumulate(
    got: Array,
    ref: Array,
    valid: NDArray[np.bool_] | None,
    per_tile: int,
    logical_per_tile: int,
    spec: TensorSpec,
    check: Check,
) -> _Sums:
    tiles = -(-ref.size // logical_per_tile)
    sums = _Sums(np.zeros(tiles), np.zeros(tiles), np.zeros(tiles))
    at_once = max(1, SLICE // logical_per_tile)
    for first in range(0, tiles, at_once):
        stop = min(first + at_once, tiles)
        want = ref[first * logical_per_tile : stop * logical_per_tile]
        have = decode(got[first * per_tile : stop * per_tile], spec.dtype)[: want.size]
        keep = None if valid is None else valid[first * logical_per_tile : stop * logical_per_tile]
        _accumulate_slice(sums, first, have, want, keep, logical_per_tile, check)
    return sums


def _accumulate_slice(
    sums: _Sums,
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


def _measure(sums: _Sums, check: Check) -> Comparison:
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
