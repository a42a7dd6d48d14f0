"""Where an output is wrong and what that looks like: index, box, tile map and a guess, for a person."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import Array, to_host
from kda_tui.evaluation.compare import Comparison
from kda_tui.evaluation.dtypes import as_bits, decode, is_float
from kda_tui.evaluation.oracle import Expected, check_of
from kda_tui.evaluation.verdict import Mismatch
from kda_tui.record.contract import TensorSpec

MAP_ROWS = 16
MAP_COLUMNS = 64
MAX_SHIFT = 64
SHIFT_WINDOW = 1 << 18  # elements in which a shift is looked for
HOST_ELEMENTS = 1 << 25  # up to here a mismatch is described in host memory
MOST = 0.999  # a pattern explains an output when it fits this share of it
NEARLY = 0.95  # for patterns that break at the ends of rows


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the judge knows beside the output: what was there before, inputs, and earlier answers."""

    poison: Array | None = None  # stored bits before the launch, same layout as the output
    inputs: Mapping[str, Array] | None = None
    previous: Array | None = None  # the expected values of the launch before


def describe(
    got: Array,
    expected: Expected,
    spec: TensorSpec,
    workload: str,
    seed: str,
    comparison: Comparison,
    evidence: Evidence | None = None,
) -> Mismatch:
    """The mismatch of one output that ``compare`` refused."""
    evidence = evidence or Evidence()
    if got.size <= HOST_ELEMENTS:  # a device would spend seconds on compiling what is done once here
        got, expected, evidence = to_host(got), _expected_on_host(expected), _evidence_on_host(evidence)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return _describe(got, expected, spec, workload, seed, comparison, evidence)


def _expected_on_host(expected: Expected) -> Expected:
    return replace(
        expected,
        values=to_host(expected.values),
        bits=to_host(expected.bits),
        valid=to_host(expected.valid),
    )


def _evidence_on_host(evidence: Evidence) -> Evidence:
    inputs = {name: to_host(values) for name, values in (evidence.inputs or {}).items()}
    return Evidence(to_host(evidence.poison), inputs, to_host(evidence.previous))


def _describe(
    got: Array,
    expected: Expected,
    spec: TensorSpec,
    workload: str,
    seed: str,
    comparison: Comparison,
    evidence: Evidence,
) -> Mismatch:
    have = decode(got, spec.dtype)
    want = expected.values if expected.values is not None else decode(_bits(expected), spec.dtype)
    wrong = _wrong_elements(got, have, want, expected, spec)
    index = _worst_index(have, want, wrong)
    return Mismatch(
        workload=workload,
        tensor=spec.name,
        seed=seed,
        index=index,
        got=_plain(have[index].item()),
        expected=_plain(want[index].item()),
        wrong=int(np.count_nonzero(wrong)),
        total=int(wrong.size if expected.valid is None else np.count_nonzero(expected.valid)),
        box=_box(wrong),
        tile_map=tile_map(wrong),
        guess=_guess(got, have, want, wrong, spec, evidence),
        error=comparison.error if math.isfinite(comparison.error) else None,
        allowed=1.0,
    )


def _bits(expected: Expected) -> Array:
    assert expected.bits is not None
    return expected.bits


def _wrong_elements(
    got: Array, have: Array, want: Array, expected: Expected, spec: TensorSpec
) -> NDArray[np.bool_]:
    """Elements that a person would call wrong; at least the worst one."""
    if expected.bits is not None and spec.dtype != "fp4x2":
        wrong = as_bits(got) != as_bits(expected.bits)
    elif check_of(spec).exact:
        wrong = have != want
    else:
        wrong = _beyond_tolerance(have, want, spec)
    if expected.valid is not None and expected.valid.shape == wrong.shape:
        wrong = wrong & expected.valid
    marks: NDArray[np.bool_] = wrong
    return marks


def _beyond_tolerance(have: Array, want: Array, spec: TensorSpec) -> NDArray[np.bool_]:
    check = check_of(spec)
    finite = np.isfinite(have) & np.isfinite(want)
    agree = (np.isnan(have) & np.isnan(want)) | (have == want)
    rms = math.sqrt(float(np.mean(np.abs(want[np.isfinite(want)]) ** 2))) if np.isfinite(want).any() else 0.0
    tolerance = check.rel_l2 or 0.0
    far = np.abs(have - want) > tolerance * (np.abs(want) + rms)
    wrong: NDArray[np.bool_] = np.where(finite, far, ~agree)
    if not wrong.any() and wrong.size:
        wrong.reshape(-1)[int(np.argmax(np.where(finite, np.abs(have - want), 0.0)))] = True
    return wrong


def _worst_index(have: Array, want: Array, wrong: NDArray[np.bool_]) -> tuple[int, ...]:
    size = np.abs(have - want)
    size = np.where(wrong, np.where(np.isfinite(size), size, np.inf), -1.0)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(size)), size.shape))


def _plain(value: complex) -> float | str:
    if isinstance(value, complex | np.complexfloating):
        return f"{complex(value):.6g}"
    number = float(value)
    return number if math.isfinite(number) else str(number)


def _box(wrong: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    box: list[tuple[int, int]] = []
    for axis in range(wrong.ndim):
        hit = np.flatnonzero(wrong.any(axis=tuple(a for a in range(wrong.ndim) if a != axis)))
        box.append((int(hit[0]), int(hit[-1])) if hit.size else (0, 0))
    return tuple(box)


def tile_map(wrong: NDArray[np.bool_]) -> tuple[str, ...]:
    """At most 16 rows of 64 characters over (leading axes, last axis): '.' right, '#' wrong, '+' partly."""
    wrong = to_host(wrong)
    plane = wrong.reshape(-1, wrong.shape[-1]) if wrong.ndim else wrong.reshape(1, 1)
    rows, columns = min(MAP_ROWS, plane.shape[0]), min(MAP_COLUMNS, plane.shape[1])
    row_starts = np.arange(rows) * plane.shape[0] // rows
    column_starts = np.arange(columns) * plane.shape[1] // columns
    sums = np.add.reduceat(plane.astype(np.int64), row_starts, axis=0)
    sums = np.add.reduceat(sums, column_starts, axis=1)
    heights = np.diff(row_starts, append=plane.shape[0])
    widths = np.diff(column_starts, append=plane.shape[1])
    sizes = heights[:, None] * widths[None, :]
    marks = np.where(sums == 0, ".", np.where(sums == sizes, "#", "+"))
    return tuple("".join(row) for row in marks)


def _guess(
    got: Array, have: Array, want: Array, wrong: NDArray[np.bool_], spec: TensorSpec, evidence: Evidence
) -> str:
    """The first pattern that explains what is wrong; empty when none does."""
    untouched = None
    if evidence.poison is not None and got.shape == wrong.shape:
        untouched = as_bits(got) == as_bits(evidence.poison)
    if untouched is not None and untouched.all():
        return "nothing was written: every element is as it was before the launch"
    if is_float(spec.dtype) and have.shape == wrong.shape and np.isnan(have[wrong]).all():
        return "every wrong element is NaN"
    if untouched is not None and _share(untouched[wrong]) >= MOST:
        return "not written: " + _where(wrong)
    if not np.any(have):
        return "all zeros"
    stale = evidence.previous
    if stale is not None and stale.shape == have.shape and _fits(have, stale):
        return "the answer of the launch before"
    for name, values in (evidence.inputs or {}).items():
        if values.shape == have.shape and _fits(have, values):
            return f"a copy of input {name}"
    return _geometry(have, want, wrong)


def _geometry(have: Array, want: Array, wrong: NDArray[np.bool_]) -> str:
    if have.ndim >= 2 and have.shape[-1] > 1 and have.shape[-2] > 1 and _share(wrong) > 0.1:
        turned = np.swapaxes(want, -1, -2).reshape(have.shape)
        if _fits(have, turned):
            return "the last two axes are transposed"
    if _share(wrong) > 0.1:
        shift = _shift(have.reshape(-1), want.reshape(-1))
        if shift:
            return f"shifted by {shift} element{'s' if abs(shift) > 1 else ''}"
        factor = _factor(have, want)
        if factor is not None:
            return f"right but for a constant factor of {factor:.4g}"
    where = _where(wrong)
    return f"wrong in {where}" if where else ""


def _fits(have: Array, pattern: Array, share: float = MOST) -> bool:
    near = np.abs(have - pattern) <= 2e-2 * np.abs(pattern) + 1e-12
    return _share(near) >= share and bool(np.any(pattern))


def _share(marks: NDArray[np.bool_]) -> float:
    return float(np.count_nonzero(marks)) / marks.size if marks.size else 0.0


def _shift(have: Array, want: Array) -> int:
    have, want = have[:SHIFT_WINDOW], want[:SHIFT_WINDOW]
    for distance in range(1, min(MAX_SHIFT, have.size // 4) + 1):
        if _fits(have[distance:], want[:-distance], NEARLY):
            return distance
        if _fits(have[:-distance], want[distance:], NEARLY):
            return -distance
    return 0


def _factor(have: Array, want: Array) -> float | None:
    nonzero = (want != 0) & np.isfinite(want) & np.isfinite(have)
    if np.iscomplexobj(have) or np.count_nonzero(nonzero) < 8:
        return None
    ratio = have[nonzero] / want[nonzero]
    factor = float(np.median(ratio))
    same = np.abs(ratio - factor) <= 1e-2 * abs(factor)
    return factor if factor != 0.0 and abs(factor - 1.0) > 1e-2 and _share(same) >= MOST else None


def _where(wrong: NDArray[np.bool_]) -> str:
    """In words: the tail in storage order, or the end of one axis."""
    flat = np.flatnonzero(wrong)
    if flat.size == 0 or wrong.ndim == 0:
        return ""
    if flat[-1] == wrong.size - 1 and flat.size == wrong.size - flat[0] and flat[0] > 0:
        return f"the last {flat.size} of {wrong.size} elements (the tail)"
    for axis, (first, last) in enumerate(_box(wrong)):
        length = wrong.shape[axis]
        if first > 0 and last == length - 1 and first >= length // 2:
            return f"the last tile of axis {axis}: {first} to {last}"
    return ""
