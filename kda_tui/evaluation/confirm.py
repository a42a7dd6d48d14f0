"""The confirmation: fresh children, seeds, shapes and blocks; the only measurement that spends alpha."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kda_tui.evaluation.arrays import random_stream
from kda_tui.evaluation.correctness import HIDDEN, Tick
from kda_tui.evaluation.faults import InfrastructureFault
from kda_tui.evaluation.samples import SampleLog
from kda_tui.evaluation.session import Arm, Stand
from kda_tui.evaluation.statistics import (
    MAX_LOOKS,
    Block,
    ConfirmDecision,
    PromotionNumbers,
    block_means,
    decide_confirm,
)
from kda_tui.evaluation.timing import ChildTimes, Timer
from kda_tui.record.contract import Contract, WorkloadSpec

CHILDREN = 3
NOISE_FACTOR = 2.0  # how far beyond the A/A difference every block must lie to count in spite of it
SPARE_CHILDREN = 3  # a child that the A/A control voids may be repeated; A/A says nothing about the candidate


@dataclass(slots=True)
class ConfirmResult:
    """The blocks of three admissible children, extra ones for unclear floors, and the decision."""

    decision: ConfirmDecision
    children: list[ChildTimes]
    extra: list[Block] = field(default_factory=list)
    voided: int = 0

    @property
    def blocks(self) -> list[Block]:
        return [block for child in self.children for block in child.ratios]


def numbers_of(contract: Contract, workloads: Sequence[WorkloadSpec]) -> PromotionNumbers:
    """The contract's promotion numbers over the timed workloads among ``workloads``."""
    timed = [w for w in workloads if w.timed]
    return PromotionNumbers(
        min_speedup=contract.promotion.min_speedup,
        weights={w.id: w.weight for w in timed},
        floors={w.id: contract.promotion.floor if w.floor is None else w.floor for w in timed},
    )


def hidden_workloads(contract: Contract, seed: str) -> list[WorkloadSpec]:
    """Shapes drawn from the contract's ranges; all are called ``hidden``."""
    if contract.hidden is None:
        return []
    rng = random_stream(seed, "hidden shapes")
    drawn: list[WorkloadSpec] = []
    for _ in range(contract.hidden.count):
        base = contract.workloads[int(rng.integers(len(contract.workloads)))]
        axes = {
            axis: int(rng.integers(low, high, endpoint=True))
            for axis, (low, high) in sorted(contract.hidden.ranges.items())
        }
        drawn.append(base.model_copy(update={"id": HIDDEN, "axes": {**base.axes, **axes}, "timed": False}))
    return drawn


def void_reason(child: ChildTimes, numbers: PromotionNumbers) -> str:
    """Why a child counts for nothing: the incumbent differs from itself by over half the margin. Else empty.

    A difference that this noise cannot explain still counts: every block beyond the margin by twice the
    noise, all in one direction. On a loaded machine that tells a factor of eight from nothing at all.
    """
    aa = child.aa_mean
    if aa is None:
        return "no valid A/A pair"
    if abs(aa) <= numbers.margin / 2:
        return ""
    levels = block_means(child.ratios, numbers.weights)
    beyond = numbers.margin + NOISE_FACTOR * abs(aa)
    if levels and (min(levels) > beyond or max(levels) < -beyond):
        return ""
    return f"the incumbent differs from itself by {abs(aa):.2%}, over half the margin of {numbers.margin:.2%}"


def run_confirm(
    stand: Stand,
    candidate: Arm,
    incumbent: Arm,
    baseline: Arm | None,
    workloads: Sequence[WorkloadSpec],
    seed: str,
    k: int,
    log: SampleLog,
    tick: Tick,
) -> ConfirmResult:
    """Measure until three children are admissible, then decide; extra children only for unclear floors.

    Raises Rejected, Inconclusive, or InfrastructureFault when too many children are voided (no alpha is spent).
    """
    numbers = numbers_of(stand.contract, workloads)
    blocks = stand.contract.benchmark.blocks

    def measure(child: int, some: Sequence[WorkloadSpec]) -> ChildTimes:
        def part(workload: str, fraction: float) -> None:
            tick(workload, min(1.0, (min(child, CHILDREN) + fraction) / CHILDREN))

        order = random_stream(seed, "order", str(child))
        timer = Timer(
            stand,
            candidate,
            incumbent,
            baseline,
            some,
            seed,
            order,
            log,
            part,
            child=child,
            label="c",
            fresh=True,
        )
        return timer.measure(blocks, alone=True)

    children: list[ChildTimes] = []
    voided = 0
    started = 0
    while len(children) < CHILDREN:
        found = measure(started, workloads)
        reason = void_reason(found, numbers)
        if not reason:
            children.append(found)
        else:
            log.void.add(started)
            voided += 1
        started += 1
        if voided > SPARE_CHILDREN:
            raise InfrastructureFault(f"the machine is too noisy to confirm anything: {reason}")
    by_child = [child.ratios for child in children]
    extra: list[Block] = []
    decision = decide_confirm(by_child, numbers, k)
    for _ in range(MAX_LOOKS - 1):
        if not decision.wants_more:
            break
        unclear = [w for w in workloads if w.id in decision.unclear]
        extra += measure(started, unclear).ratios
        started += 1
        decision = decide_confirm(by_child, numbers, k, extra)
    return ConfirmResult(decision, children, extra, voided)
