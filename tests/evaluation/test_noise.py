"""The A/A control: noise voids what it could explain, and only that."""

from __future__ import annotations

import math

from kda_tui.evaluation.confirm import void_reason
from kda_tui.evaluation.statistics import PromotionNumbers
from kda_tui.evaluation.timing import ChildTimes

NUMBERS = PromotionNumbers(min_speedup=1.02, weights={"w": 1.0}, floors={"w": 0.98})


def child(aa: float, *ratios: float) -> ChildTimes:
    times = ChildTimes()
    times.aa = [{"w": aa}] * len(ratios)
    times.ratios = [{"w": math.log(r)} for r in ratios]
    return times


def test_a_quiet_child_counts_whatever_it_shows() -> None:
    assert void_reason(child(0.005, 0.9, 1.0, 1.1), NUMBERS) == ""


def test_noise_voids_a_small_gain_and_no_gain() -> None:
    assert "differs from itself by 3.00%" in void_reason(child(0.03, 1.05, 1.06, 1.05), NUMBERS)
    assert void_reason(child(-0.03, 1.0, 1.01, 0.99), NUMBERS)


def test_noise_does_not_void_what_it_cannot_explain() -> None:
    assert void_reason(child(0.06, 7.5, 8.0, 9.1), NUMBERS) == ""
    assert void_reason(child(0.06, 0.5, 0.6, 0.55), NUMBERS) == ""


def test_one_block_within_the_noise_voids() -> None:
    assert void_reason(child(0.06, 7.5, 8.0, 1.1), NUMBERS)


def test_no_pair_at_all_voids() -> None:
    assert void_reason(ChildTimes(), NUMBERS) == "no valid A/A pair"
