"""Student t against published tables, intervals, and the rule of a confirmation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.evaluation.statistics import (
    CONFIRM_ALPHA,
    PromotionNumbers,
    alpha_at,
    block_mean,
    broken_floors,
    decide_confirm,
    incomplete_beta,
    interval,
    lower_bound,
    quantile,
    speed_word,
    t_quantile,
    t_upper_tail,
    upper_bound,
)

# NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2 (upper critical values).
NIST = [
    (0.10, 1, 3.078), (0.05, 1, 6.314), (0.025, 1, 12.706), (0.01, 1, 31.821), (0.005, 1, 63.657),
    (0.10, 7, 1.415), (0.05, 7, 1.895), (0.025, 7, 2.365), (0.01, 7, 2.998), (0.001, 7, 4.785),
    (0.05, 23, 1.714), (0.025, 23, 2.069), (0.005, 23, 2.807), (0.001, 23, 3.485),
    (0.025, 100, 1.984), (0.001, 100, 3.174),
]  # fmt: skip


@pytest.mark.parametrize(("alpha", "df", "value"), NIST)
def test_quantiles_are_those_of_the_table(alpha: float, df: int, value: float) -> None:
    assert t_quantile(alpha, df) == pytest.approx(value, abs=6e-4)


def test_one_and_two_degrees_of_freedom_have_closed_forms() -> None:
    for t in (0.1, 1.0, 5.0, 300.0):
        assert t_upper_tail(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, rel=1e-9)
        assert t_upper_tail(t, 2) == pytest.approx(0.5 - t / (2 * math.sqrt(2 + t * t)), rel=1e-7)


@given(st.floats(1e-9, 0.5 - 1e-9), st.integers(1, 200))
def test_the_quantile_inverts_the_tail(alpha: float, df: int) -> None:
    assert t_upper_tail(t_quantile(alpha, df), df) == pytest.approx(alpha, rel=1e-6)
    assert t_quantile(1 - alpha, df) == pytest.approx(-t_quantile(alpha, df), rel=1e-5, abs=1e-6)


@given(st.floats(0.5, 40), st.floats(0.5, 40), st.floats(0, 1))
def test_incomplete_beta_is_symmetric_and_bounded(a: float, b: float, x: float) -> None:
    value = incomplete_beta(a, b, x)
    assert 0.0 <= value <= 1.0 + 1e-12
    assert value == pytest.approx(1.0 - incomplete_beta(b, a, 1.0 - x), abs=1e-9)


def test_arguments_outside_their_domain_are_refused() -> None:
    for bad in (lambda: incomplete_beta(1, 1, 1.5), lambda: t_quantile(0.0, 3), lambda: alpha_at(0)):
        with pytest.raises(ValueError):
            bad()


def test_interval_is_student_t() -> None:
    found = interval([0.01, 0.02, 0.03, 0.02])
    assert found is not None
    assert found.mean == pytest.approx(0.02)
    assert found.hi - found.mean == pytest.approx(3.182 * 0.00816497 / 2, rel=1e-3)
    assert interval([]) is None
    single = interval([0.1])
    assert single is not None and single.lo == -math.inf and single.hi == math.inf
    assert lower_bound([0.1], 0.05) == -math.inf and upper_bound([], 0.05) == math.inf


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.floats(0.001, 0.4))
def test_bounds_mirror_each_other(values: list[float], alpha: float) -> None:
    assert upper_bound(values, alpha) == pytest.approx(-lower_bound([-v for v in values], alpha))
    assert lower_bound(values, alpha) <= upper_bound(values, alpha) + 1e-12


def test_an_incomplete_block_has_no_mean() -> None:
    weights = {"a": 1.0, "b": 3.0}
    assert block_mean({"a": 0.4, "b": 0.0}, weights) == pytest.approx(0.1)
    assert block_mean({"a": 0.4}, weights) is None


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([0.03, 0.031, 0.029, 0.03], "faster"),
        ([0.002, 0.0021, 0.0019, 0.002], "same"),  # surely above 1, and surely below the margin
        ([-0.03, -0.031, -0.029, -0.03], "slower"),
        ([0.1, -0.1, 0.05, 0.0], "inconclusive"),
        ([0.02], "inconclusive"),
        ([], "inconclusive"),
    ],
)
def test_speed_words(values: list[float], word: str) -> None:
    assert speed_word(interval(values), math.log(1.01)) == word


def test_a_gain_that_costs_another_workload_is_mixed() -> None:
    blocks = [{"a": 0.20 + d, "b": -0.10 + d} for d in (0.0, 0.001, -0.001, 0.002)]
    broken = broken_floors(blocks, NUMBERS)
    assert broken == ("b",)
    assert speed_word(interval([0.05, 0.051, 0.049]), math.log(1.01), broken) == "mixed"


NUMBERS = PromotionNumbers(1.01, {"a": 1.0, "b": 1.0}, {"a": 0.98, "b": 0.98})
WIGGLE = (0.001, -0.001, 0.002, -0.002, 0.0, 0.001, -0.001, 0.0)


def child(a: float, b: float, noise: float = 1.0) -> list[dict[str, float]]:
    return [{"a": a + noise * d, "b": b - noise * d / 2} for d in WIGGLE]


def test_a_clear_gain_is_promoted() -> None:
    found = decide_confirm([child(0.03, 0.03)] * 3, NUMBERS, 1)
    assert found.promote and found.speed == "faster" and found.alpha == 0.005
    assert found.bound > 1.01 and set(found.floors) == {"a", "b"}


def test_the_later_the_confirmation_the_stricter() -> None:
    noisy = [[{"a": 0.014 + 4 * d, "b": 0.014 + 4 * d} for d in WIGGLE]] * 3
    assert decide_confirm(noisy, NUMBERS, 1).promote
    assert not decide_confirm(noisy, NUMBERS, 2000).promote
    assert sum(alpha_at(k) for k in range(1, 5000)) < CONFIRM_ALPHA


def test_one_weak_child_is_enough_to_decline() -> None:
    found = decide_confirm([child(0.05, 0.05), child(0.05, 0.05), child(0.004, 0.004)], NUMBERS, 1)
    assert not found.promote
    assert any("child 3" in reason for reason in found.reasons)


def test_a_broken_floor_declines_whatever_the_rest_gains() -> None:
    found = decide_confirm([child(0.2, -0.05)] * 3, NUMBERS, 1)
    assert (found.promote, found.speed, found.broken) == (False, "mixed", ("b",))
    assert not found.wants_more


def test_an_unclear_floor_asks_for_more_blocks_and_they_decide() -> None:
    rough = [[{"a": 0.06, "b": 0.02 + 40 * d} for d in WIGGLE]] * 3
    first = decide_confirm(rough, PromotionNumbers(1.001, {"a": 1.0}, {"a": 0.98, "b": 1.0}), 1)
    assert not first.promote and first.unclear == ("b",) and first.wants_more
    assert first.speed == "inconclusive"
    steady = [{"b": 0.03} for _ in range(16)]
    again = decide_confirm(rough, PromotionNumbers(1.001, {"a": 1.0}, {"a": 0.98, "b": 1.0}), 1, steady)
    assert again.promote


def test_extra_blocks_never_decide_the_gain() -> None:
    found = decide_confirm([child(0.005, 0.005)] * 3, NUMBERS, 1, extra=[{"a": 1.0, "b": 1.0}] * 16)
    assert not found.promote and found.reasons


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(0, 1))
def test_quantiles_stay_between_the_extremes(values: list[float], q: float) -> None:
    assert min(values) <= quantile(values, q) <= max(values)
