"""A few simulated campaigns; tests/bench/campaigns.py runs ten thousand."""

from __future__ import annotations

import math

import numpy as np

from kda_tui.evaluation.statistics import PromotionNumbers
from tests.bench.campaigns import Model, campaign, power

NUMBERS = PromotionNumbers(1.01, {"a": 1.0, "b": 1.0}, {"a": 0.98, "b": 0.98})


def test_equal_candidates_are_not_promoted_and_real_gains_are() -> None:
    rng = np.random.default_rng(11)
    model = Model(2, 0.003, NUMBERS)
    assert sum(campaign(model, rng, ticket=False)[1] for _ in range(25)) == 0
    assert power(model, rng, math.log(1.03), 500, 100) >= 0.95


def test_without_the_margin_the_process_spread_would_be_promoted() -> None:
    rng = np.random.default_rng(12)
    model = Model(2, 0.003, PromotionNumbers(1.0, NUMBERS.weights, NUMBERS.floors))
    assert sum(campaign(model, rng, ticket=False)[1] for _ in range(25)) > 0
