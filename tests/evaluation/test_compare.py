"""What compares as right, what as wrong, and what a person is told about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kda_tui.evaluation import compare as compare_module
from kda_tui.evaluation.compare import Comparison, compare
from kda_tui.evaluation.layout import TensorLayout
from kda_tui.evaluation.mismatch import Evidence, describe, tile_map
from kda_tui.evaluation.oracle import Expected
from kda_tui.record.contract import Check, TensorSpec


def spec(shape: tuple[int, ...], dtype: str = "float32", **check: Any) -> TensorSpec:
    return TensorSpec(name="y", role="out", dtype=dtype, shape=shape, check=Check(**check))  # type: ignore[arg-type]


def expected(values: np.ndarray, dtype: str = "float32", valid: np.ndarray | None = None) -> Expected:
    layout = TensorLayout("y", dtype, values.shape, (), 0, 0)
    return Expected(layout, values.astype(np.float64), None, valid)


def judge(got: np.ndarray, want: np.ndarray, valid: np.ndarray | None = None, **check: Any) -> Comparison:
    return compare(got, expected(want, valid=valid), spec(want.shape, **check))


RNG = np.random.default_rng(3)
WANT = RNG.standard_normal((37, 300))
GOOD = WANT.astype(np.float32)


def test_rounding_is_within_the_tolerance() -> None:
    assert judge(GOOD, WANT, rel_l2=1e-6, tile=("row",), max_abs_over_rms=1e-6).ok


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_value_of_the_wrong_class_is_wrong(bad: float) -> None:
    got = GOOD.copy()
    got[20, 7] = bad
    found = judge(got, WANT, rel_l2=1e9, nan="match", inf="match")
    assert not found.ok and found.wrong_class == 1 and found.error == np.inf


def test_infinities_must_agree_in_sign_and_place() -> None:
    want = WANT.copy()
    want[0, 0], want[1, 1] = -np.inf, np.inf
    got = want.astype(np.float32)
    assert judge(got, want, rel_l2=1e-6).ok
    got[0, 0] = np.inf
    assert judge(got, want, rel_l2=1e-6).wrong_class == 1
    got[0, 0] = 0.0
    assert judge(got, want, rel_l2=1e-6).wrong_class == 1
    assert judge(want.astype(np.float32), want, rel_l2=1e-6, inf="forbid").wrong_class == 2


def test_nan_matches_only_where_allowed() -> None:
    want = WANT.copy()
    want[3, 3] = np.nan
    assert judge(want.astype(np.float32), want, rel_l2=1e-6, nan="match").ok
    assert not judge(want.astype(np.float32), want, rel_l2=1e-6, nan="forbid").ok


def test_a_lost_tail_shows_in_its_tile_even_if_the_whole_hides_it() -> None:
    got = GOOD.copy()
    got[-1, -15:] = 0.0
    found = judge(got, WANT, rel_l2=0.1, tile=("row",))
    assert found.rel_l2 < 0.1 and not found.ok and found.tile == 36


def test_a_tile_of_tiny_values_is_judged_against_the_whole() -> None:
    want = WANT.copy()
    want[5] *= 1e-9
    got = want.astype(np.float32)
    got[5] += np.float32(1e-8)
    assert judge(got, want, rel_l2=1e-3, tile=("row",)).ok


@given(st.integers(1, 400), st.integers(1, 50), st.integers(0, 10**6))
@settings(max_examples=40)
def test_slices_change_nothing(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    want = rng.standard_normal((rows, columns))
    got = (want * (1 + 1e-3 * rng.standard_normal(want.shape))).astype(np.float32)
    whole = judge(got, want, rel_l2=1e-3, tile=("row",))
    before = compare_module.SLICE
    compare_module.SLICE = 64
    try:
        sliced = judge(got, want, rel_l2=1e-3, tile=("row",))
    finally:
        compare_module.SLICE = before
    diff = np.linalg.norm(got - want) / np.linalg.norm(want)
    assert whole.rel_l2 == pytest.approx(diff, rel=1e-9) == pytest.approx(sliced.rel_l2, rel=1e-9)
    assert whole.tile == sliced.tile and whole.error == pytest.approx(sliced.error)


def test_tiles_over_named_axes() -> None:
    s = TensorSpec(
        name="y", role="out", dtype="float32", shape=("h", "m", "d"), check=Check(rel_l2=0.1, tile=("h", "d"))
    )
    want = np.random.default_rng(1).standard_normal((2, 3, 50))
    got = want.astype(np.float32)
    got[:, 1] *= 1.11
    assert compare(got, expected(want), s).tile == 1


def test_only_valid_elements_count() -> None:
    valid = np.ones(WANT.shape, bool)
    valid[:, 100:] = False
    got = GOOD.copy()
    got[:, 100:] = np.nan
    want = WANT.copy()
    want[:, 100:] = np.nan
    assert judge(got, want, valid=valid, rel_l2=1e-6).ok


def test_exact_is_bit_for_bit() -> None:
    bits = np.array([0.0, 1.0, np.nan], np.float32)
    layout = TensorLayout("y", "float32", (3,), (1,), 0, 12)
    want = Expected(layout, None, bits, None)
    s = spec((3,), exact=True)
    assert compare(bits.copy(), want, s).ok
    assert compare(np.array([-0.0, 1.0, np.nan], np.float32), want, s).wrong_class == 1


def test_a_zero_tolerance_fails_the_smallest_error() -> None:
    want = np.array([1.0, 2.0, 3.0])
    got = want.astype(np.float32)
    assert judge(got, want, rel_l2=1e-300).ok
    got[0] = np.nextafter(np.float32(1.0), np.float32(2.0))
    assert not judge(got, want, rel_l2=1e-300).ok


def looks_like(got: np.ndarray, want: np.ndarray, evidence: Evidence | None = None) -> str:
    s = spec(want.shape, rel_l2=1e-5)
    found = compare(got, expected(want), s)
    assert not found.ok
    return describe(got, expected(want), s, "w", "seed", found, evidence).guess


def test_guesses() -> None:
    poison = RNG.integers(0, 2**32, WANT.shape, dtype=np.uint32).view(np.float32)
    tail = GOOD.copy()
    tail.reshape(-1)[-64:] = poison.reshape(-1)[-64:]
    last = GOOD.copy()
    last[:, 256:] = 0.5
    square = WANT[:, :37]
    assert looks_like(poison, WANT, Evidence(poison=poison)).startswith("nothing was written")
    assert (
        looks_like(tail, WANT, Evidence(poison=poison))
        == "not written: the last 64 of 11100 elements (the tail)"
    )
    assert looks_like(last, WANT) == "wrong in the last tile of axis 1: 256 to 299"
    assert looks_like(np.full_like(GOOD, np.nan), WANT) == "every wrong element is NaN"
    assert looks_like(np.zeros_like(GOOD), WANT) == "all zeros"
    assert looks_like(np.roll(GOOD.reshape(-1), 3).reshape(GOOD.shape), WANT) == "shifted by 3 elements"
    assert looks_like(3 * GOOD, WANT) == "right but for a constant factor of 3"
    assert (
        looks_like(np.ascontiguousarray(square.T).astype(np.float32), square)
        == "the last two axes are transposed"
    )
    assert (
        looks_like((GOOD[::-1]).copy(), WANT, Evidence(previous=WANT[::-1]))
        == "the answer of the launch before"
    )
    assert looks_like((GOOD + 1), WANT, Evidence(inputs={"x": WANT + 1})) == "a copy of input x"
    assert looks_like((GOOD + RNG.standard_normal(GOOD.shape).astype(np.float32)), WANT) == ""


def test_a_mismatch_says_where() -> None:
    got = GOOD.copy()
    got[3:5, 10:20] += 1.0
    s = spec(WANT.shape, rel_l2=1e-5)
    found = describe(got, expected(WANT), s, "w", "seed", compare(got, expected(WANT), s))
    assert (found.wrong, found.total, found.box) == (20, WANT.size, ((3, 4), (10, 19)))
    assert found.index[0] in (3, 4) and found.got == pytest.approx(found.expected + 1, abs=1e-6)  # type: ignore[operator]
    assert len(found.tile_map) == 16 and len(found.tile_map[0]) == 64


@given(st.integers(1, 60), st.integers(1, 200), st.integers(0, 10**6))
def test_tile_maps_are_small_and_complete(rows: int, columns: int, seed: int) -> None:
    wrong = np.random.default_rng(seed).random((rows, columns)) < 0.02
    drawn = tile_map(wrong)
    assert len(drawn) <= 16 and all(len(line) <= 64 for line in drawn)
    assert wrong.any() == any(mark != "." for line in drawn for mark in line)
