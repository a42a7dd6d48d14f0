"""Simulated campaigns through the real decision code: how often a candidate without gain is promoted.

The error model: a session drift of 1.5 % that both arms share, a sample noise of 1 % (medians of ten
launches a slot), a drift of 0.3 % between the slots of a block, and a process spread: each fresh child
shifts the candidate against the incumbent by 0.3 %. A campaign is 20 candidates against one incumbent;
a candidate is confirmed when its evaluation (8 blocks) has a lower bound above 1.

    python tests/bench/campaigns.py [--campaigns 10000] [--workloads 4] [--spread 0.003] [--seed 1]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from kda_tui.evaluation.confirm import CHILDREN
from kda_tui.evaluation.statistics import (
    MAX_LOOKS,
    Block,
    PromotionNumbers,
    block_means,
    decide_confirm,
    interval,
)

BLOCKS = 8
CANDIDATES = 20
LAUNCHES = 10
MEDIAN_NOISE = 0.01 * 1.253 / math.sqrt(LAUNCHES)
SLOT_DRIFT = 0.003


@dataclass(frozen=True)
class Model:
    workloads: int
    spread: float
    numbers: PromotionNumbers

    def blocks(self, rng: np.random.Generator, gain: float, children: int) -> NDArray[np.float64]:
        """Log ratios [child, block, workload]; a pair of slots per load of the incumbent, as the judge takes them.

        The session's drift is common to the slots of a visit and cancels in the ratio.
        """
        shape = (children, BLOCKS, self.workloads, 4)
        slots = rng.normal(0.0, math.hypot(MEDIAN_NOISE, SLOT_DRIFT), shape)
        process = rng.normal(0.0, self.spread, (children, 1, 1))
        return gain + process + (slots[..., 0] + slots[..., 1] - slots[..., 2] - slots[..., 3]) / 2.0

    def named(self, blocks: NDArray[np.float64]) -> list[Block]:
        names = list(self.numbers.weights)
        return [dict(zip(names, row, strict=True)) for row in blocks.tolist()]


def holds_ticket(model: Model, rng: np.random.Generator, gain: float) -> bool:
    """A full evaluation with a lower bound above 1 may ask for a confirmation."""
    blocks = model.named(model.blocks(rng, gain, 1)[0])
    found = interval(block_means(blocks, model.numbers.weights))
    return found is not None and found.lo > 0.0


def confirms(model: Model, rng: np.random.Generator, gain: float, k: int) -> bool:
    """One confirmation, with extra blocks where only floors are unclear."""
    by_child = [model.named(child) for child in model.blocks(rng, gain, CHILDREN)]
    decision = decide_confirm(by_child, model.numbers, k)
    extra: list[Block] = []
    for _ in range(MAX_LOOKS - 1):
        if not decision.wants_more:
            break
        extra += model.named(model.blocks(rng, gain, 1)[0])
        decision = decide_confirm(by_child, model.numbers, k, extra)
    return decision.promote


def campaign(model: Model, rng: np.random.Generator, ticket: bool) -> tuple[int, int]:
    """Confirmations and promotions among 20 candidates that are no better than the incumbent."""
    confirmations = promotions = 0
    for _ in range(CANDIDATES):
        if ticket and not holds_ticket(model, rng, 0.0):
            continue
        confirmations += 1
        promotions += confirms(model, rng, 0.0, confirmations)
    return confirmations, promotions


def power(model: Model, rng: np.random.Generator, gain: float, k: int, trials: int) -> float:
    """How often a true gain is promoted, ticket included."""
    found = sum(holds_ticket(model, rng, gain) and confirms(model, rng, gain, k) for _ in range(trials))
    return found / trials


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--campaigns", type=int, default=10_000)
    parser.add_argument("--workloads", type=int, default=4)
    parser.add_argument("--spread", type=float, default=0.003)
    parser.add_argument("--min-speedup", type=float, default=1.01)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    names = [f"w{i}" for i in range(chosen.workloads)]
    numbers = PromotionNumbers(chosen.min_speedup, dict.fromkeys(names, 1.0), dict.fromkeys(names, 0.98))
    model = Model(chosen.workloads, chosen.spread, numbers)
    rng = np.random.default_rng(chosen.seed)
    print(
        f"{chosen.campaigns} campaigns of {CANDIDATES} candidates without gain, {chosen.workloads} workloads, "
        f"process spread {chosen.spread:.2%}, margin {chosen.min_speedup - 1:.1%}"
    )
    rates = []
    for label, ticket, count in (
        ("with the entry ticket", True, chosen.campaigns),
        ("every candidate confirmed", False, max(1, chosen.campaigns // 20)),
    ):
        started = time.monotonic()
        results = [campaign(model, rng, ticket) for _ in range(count)]
        bogus = sum(promotions > 0 for _, promotions in results) / count
        asked = sum(confirmations for confirmations, _ in results) / count
        rates.append(bogus)
        print(
            f"  {label:27s} {count:6d} campaigns, {asked:5.2f} confirmations each: "
            f"bogus promotion in {bogus:.3%} of them ({time.monotonic() - started:.1f} s)"
        )
    for gain in (1.015, 1.03):
        for k in (1, 20, 500):
            found = power(model, rng, math.log(gain), k, 1000)
            print(f"  a true gain of {gain - 1:.1%}, confirmation number {k:3d}: promoted in {found:.1%}")
    return 0 if max(rates) <= 0.01 else 1


if __name__ == "__main__":
    raise SystemExit(main())
