"""How fast is it? Paired slots in one child, on inputs that no arm sees twice, every output verified.

A block visits every workload once, in drawn order. A visit has two pairs; a pair is one slot of the
incumbent and one of the candidate on the same fresh inputs, in the order A B, B A or B A, A B. The two
incumbent slots use two loads of it, so that each visit also compares the incumbent with itself (A/A).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from numpy.random import Generator

from kda_tui.evaluation.compare import Comparison, begin_compare
from kda_tui.evaluation.faults import CANDIDATE, Inconclusive, InfrastructureFault, Rejected
from kda_tui.evaluation.inputs import CaseKey
from kda_tui.evaluation.launches import begin_judge_memory, judge_globals
from kda_tui.evaluation.mismatch import describe
from kda_tui.evaluation.oracle import Case, require_numbers
from kda_tui.evaluation.placement import Placement, Poison, total_bytes
from kda_tui.evaluation.samples import SampleLog, Slot
from kda_tui.evaluation.session import BASELINE, INCUMBENT, INCUMBENT_AGAIN, Arm, Session, Stand
from kda_tui.evaluation.statistics import Block, median
from kda_tui.record.contract import TensorSpec, WorkloadSpec

RESIDENT_BYTES = 2 << 30  # buffers of all workloads stay allocated up to this; above, one workload at a time
RESIDENT_SHARE = 0.5  # or up to this share of the device's memory
SPARE_BLOCKS = 4  # that may be measured again
ALONE_MARGIN = 0.01  # the incumbent may be this much slower beside the candidate, plus three deviations

Tick = Callable[[str, float], None]
Drawn = TypeVar("Drawn")


@dataclass(slots=True)
class ChildTimes:
    """What one child measured: per block and workload, logarithms of paired ratios."""

    ratios: list[Block] = field(default_factory=list)  # incumbent / candidate
    over_baseline: list[Block] = field(default_factory=list)  # baseline / candidate
    aa: list[Block] = field(default_factory=list)  # incumbent / the same incumbent, loaded again
    beside: float | None = None  # incumbent beside the candidate / alone
    beside_allowed: float = 0.0
    disturbed: str = ""  # what voided a block

    @property
    def aa_mean(self) -> float | None:
        """Mean of ln(A/A) over blocks and workloads; None without a valid pair."""
        values = [v for block in self.aa for v in block.values()]
        return math.fsum(values) / len(values) if values else None


@dataclass(slots=True)
class Timer:
    """Times the arms in one fresh child. ``order`` draws every order; ``seed`` and ``child`` the inputs."""

    stand: Stand
    candidate: Arm
    incumbent: Arm
    baseline: Arm | None  # None: the incumbent is the baseline
    workloads: Sequence[WorkloadSpec]
    seed: str
    order: Generator
    log: SampleLog
    tick: Tick
    child: int = 0
    label: str = "t"
    fresh: bool = False  # in a process that has never run anything

    def measure(self, blocks: int, alone: bool) -> ChildTimes:
        """Raises Rejected, InfrastructureFault, or Inconclusive when no sample is valid."""
        self.stand.device.settle()
        child = self.stand.new_child() if self.fresh else None
        with Session(self.stand, child) as session:
            visit = _Visit(self, session)
            visit.load(
                self._drawn([self.incumbent.called(INCUMBENT), self.incumbent.called(INCUMBENT_AGAIN)])
            )
            visit.allocate(self._drawn(self.workloads))
            if alone:
                self._time_alone(visit)
            rivals = [self.candidate] + ([self.baseline.called(BASELINE)] if self.baseline else [])
            visit.load(self._drawn(rivals))
            times = ChildTimes()
            self._blocks(visit, times, blocks)
            judge_globals(session, CANDIDATE)
        if not any(times.ratios):
            raise Inconclusive("no valid sample: every launch was voided")
        if alone:
            self._compare_alone(times)
        return times

    def _blocks(self, visit: _Visit, times: ChildTimes, blocks: int) -> None:
        """As many blocks as are wanted; one that heat disturbed is measured again, a few times at most."""
        for block in range(blocks + SPARE_BLOCKS):
            if len(times.ratios) == blocks:
                return
            self._block(visit, block, times, blocks)
            hot = self.stand.device.disturbances()
            if hot:
                self.log.void_blocks.add((self.child, block))
                for found in (times.ratios, times.over_baseline, times.aa):
                    found.pop()
                times.disturbed = ", ".join(hot)
        if len(times.ratios) < blocks:
            raise InfrastructureFault(
                f"the device was disturbed in over {SPARE_BLOCKS} blocks: {times.disturbed}"
            )

    def _drawn(self, items: Sequence[Drawn]) -> list[Drawn]:
        return [items[i] for i in self.order.permutation(len(items))]

    def _time_alone(self, visit: _Visit) -> None:
        for workload in self.workloads:
            for i, arm in enumerate((INCUMBENT, INCUMBENT_AGAIN)):
                visit.slot(arm, workload, block=-1, pair=i, order=i)

    def _block(self, visit: _Visit, block: int, times: ChildTimes, blocks: int) -> None:
        ratios: dict[str, float] = {}
        over: dict[str, float] = {}
        aa: dict[str, float] = {}
        for i, workload in enumerate(self._drawn(self.workloads)):
            self.tick(workload.id, (block + i / len(self.workloads)) / blocks)
            found = self._visit(visit, block, workload)
            pairs = [
                math.log(found[a, p] / found[CANDIDATE, p])
                for a, p in found
                if a in (INCUMBENT, INCUMBENT_AGAIN) and (CANDIDATE, p) in found
            ]
            if pairs:
                ratios[workload.id] = math.fsum(pairs) / len(pairs)
            again = {a: us for (a, _), us in found.items()}
            if INCUMBENT in again and INCUMBENT_AGAIN in again:
                aa[workload.id] = math.log(again[INCUMBENT] / again[INCUMBENT_AGAIN])
            rival = next(((us, p) for (a, p), us in found.items() if a == BASELINE), None)
            if rival is not None and (CANDIDATE, rival[1]) in found:
                over[workload.id] = math.log(rival[0] / found[CANDIDATE, rival[1]])
            elif self.baseline is None and pairs:
                over[workload.id] = ratios[workload.id]
        times.ratios.append(ratios)
        times.over_baseline.append(over)
        times.aa.append(aa)

    def _visit(self, visit: _Visit, block: int, workload: WorkloadSpec) -> dict[tuple[str, int], float]:
        """Median per (arm, pair), in microseconds a call."""
        incumbents = self._drawn((INCUMBENT, INCUMBENT_AGAIN))
        slots = [(incumbents[0], 0), (CANDIDATE, 0), (CANDIDATE, 1), (incumbents[1], 1)]
        if self.order.random() < 0.5:
            slots = [(CANDIDATE, 0), (incumbents[0], 0), (incumbents[1], 1), (CANDIDATE, 1)]
        if self.baseline is not None:
            first = self.order.random() < 0.5
            slots.insert(0 if first else len(slots), (BASELINE, 0 if first else 1))
        found: dict[tuple[str, int], float] = {}
        for order, (arm, pair) in enumerate(slots):
            us = visit.slot(arm, workload, block, pair, order)
            if us:
                found[arm, pair] = median(us)
        return found

    def _compare_alone(self, times: ChildTimes) -> None:
        """How much slower the incumbent is beside the candidate, against its own spread over blocks."""
        levels: list[float] = []
        alone: list[float] = []
        for workload in self.workloads:
            mine = [
                s for s in self.log.slots
                if s.workload == workload.id and s.child == self.child and s.us and s.arm.startswith(INCUMBENT)
            ]  # fmt: skip
            before = [math.log(median(s.us)) for s in mine if s.block < 0]
            beside = [math.log(median(s.us)) for s in mine if s.block >= 0]
            if before and beside:
                alone.append(median(beside) - median(before))
                middle = median(beside)
                levels += [v - middle for v in beside]
        if not alone:
            return
        times.beside = math.fsum(alone) / len(alone)
        deviation = math.sqrt(math.fsum(v * v for v in levels) / max(1, len(levels) - 1))
        times.beside_allowed = ALONE_MARGIN + 3.0 * deviation


class _Visit:
    """The slots of one child: fresh inputs, poison, launches, and the verification of what they wrote."""

    def __init__(self, timer: Timer, session: Session) -> None:
        self.timer = timer
        self.session = session
        self.sets = timer.stand.contract.benchmark.launches
        self.resident = False
        self.placements: dict[str, Placement] = {}

    def load(self, arms: Sequence[Arm]) -> None:
        for arm in arms:
            self.session.load(arm)
        for workload in self.placements:
            self._warm_up(self.placements[workload], [arm.name for arm in arms])

    def allocate(self, workloads: Sequence[WorkloadSpec]) -> None:
        """All workloads at once if they fit; an arm that is loaded later has its scratch already."""
        planned = {w.id: self._planned(w) for w in workloads}
        limit = max(RESIDENT_BYTES, RESIDENT_SHARE * self.timer.stand.device.facts.memory_bytes)
        self.resident = sum(total_bytes(p.specs()) for p in planned.values()) <= limit
        if self.resident:
            self.session.allocate(list(planned.values()))
            self.placements = planned
            for placement in planned.values():
                self._warm_up(placement, list(self.session.arms))

    def _planned(self, workload: WorkloadSpec) -> Placement:
        timer = self.timer
        arms = [timer.candidate, timer.incumbent.called(INCUMBENT), timer.incumbent.called(INCUMBENT_AGAIN)]
        if timer.baseline is not None:
            arms.append(timer.baseline.called(BASELINE))
        return self.session.placement(workload, self.sets, arms)

    def _at(self, workload: WorkloadSpec) -> Placement:
        if workload.id not in self.placements:
            self.placements.clear()
            self.session.child.release()
            placement = self._planned(workload)
            self.session.allocate([placement])
            self.placements[workload.id] = placement
            self._warm_up(placement, list(self.session.arms))
        return self.placements[workload.id]

    def _warm_up(self, placement: Placement, arms: Sequence[str]) -> None:
        """Touch every page and load every program once, on inputs that are not timed."""
        case = self.timer.stand.oracle.case(
            placement.workload, CaseKey(placement.workload.id, self.timer.seed)
        )
        for arm in arms:
            for which in range(self.sets):
                placement.fill(which, case.inputs)
                placement.poison(which, Poison(f"warm/{arm}"))
                self.session.run(arm, placement, which)

    def slot(self, arm: str, workload: WorkloadSpec, block: int, pair: int, order: int) -> tuple[float, ...]:
        """Time one slot and verify it; the samples in microseconds a call, perhaps none."""
        timer, benchmark = self.timer, self.timer.stand.contract.benchmark
        placement = self._at(workload)
        cases = [self._case(workload, block, pair, which) for which in range(self.sets)]
        for which, case in enumerate(cases):
            placement.fill(which, case.inputs)
            placement.poison(which, Poison(f"{case.key}/{arm}"))
        report = self.session.time(arm, placement, range(self.sets), flush=benchmark.cache == "cold")
        self._verify(arm, placement, cases, block)
        us = tuple(v / benchmark.steps for v in report.samples_us)
        if not all(v > 0.0 and math.isfinite(v) for v in us):
            raise InfrastructureFault(f"arm {arm}, workload {workload.id}: a time is not a positive number")
        timer.log.add(
            Slot(timer.child, block, workload.id, arm, pair, order, us, report.voided, report.clock_mhz)
        )
        return us

    def _case(self, workload: WorkloadSpec, block: int, pair: int, which: int) -> Case:
        part = f"{self.timer.label}{self.timer.child}.{block}.{pair}.{which}"
        return self.timer.stand.oracle.case(workload, CaseKey(workload.id, self.timer.seed, part))

    def _verify(self, arm: str, placement: Placement, cases: Sequence[Case], block: int) -> None:
        """Memory is as it was, and what every single launch wrote is right."""
        memory = begin_judge_memory(placement, dict(enumerate(cases)))
        begun = [self._begin(placement, which, case) for which, case in enumerate(cases)]
        try:
            memory()
        except Rejected as fault:
            if block < 0 or arm == BASELINE:
                raise InfrastructureFault(f"arm {arm}: {fault.reason}") from fault
            raise
        for which, case in enumerate(cases):
            for spec, arrived in zip(self.timer.stand.oracle.outputs, begun[which], strict=True):
                comparison = arrived()
                if not comparison.ok:
                    self._wrong(arm, placement, which, case, block, spec, comparison)

    def _begin(self, placement: Placement, which: int, case: Case) -> list[Callable[[], Comparison]]:
        """Begin to compare every output of one set."""
        expected = case.expected[max(case.expected)]
        begun: list[Callable[[], Comparison]] = []
        for spec in self.timer.stand.oracle.outputs:
            written = self.session.child.get(placement.buffer(spec.name, which))
            begun.append(begin_compare(placement.elements(spec.name, written), expected[spec.name], spec))
        return begun

    def _wrong(
        self,
        arm: str,
        placement: Placement,
        which: int,
        case: Case,
        block: int,
        spec: TensorSpec,
        comparison: Comparison,
    ) -> None:
        workload = placement.workload.id
        require_numbers(case.expected[max(case.expected)][spec.name], spec, workload)
        if arm != CANDIDATE and (block < 0 or arm == BASELINE):
            raise InfrastructureFault(f"arm {arm}: {spec.name} is wrong for {workload}: {comparison.reason}")
        got = placement.elements(spec.name, placement.output(spec.name, which))
        expected = case.expected[max(case.expected)][spec.name]
        found = describe(got, expected, spec, workload, str(case.key), comparison)
        if arm != CANDIDATE:
            reason = f"the incumbent's {spec.name} is wrong for {workload} beside the candidate, right alone"
            raise Rejected("tampered", "timed_outputs", reason, found)
        reason = f"{spec.name} of a timed launch is wrong for {workload}: {comparison.reason}"
        raise Rejected(
            "incorrect", "timed_outputs", reason + (f": {found.guess}" if found.guess else ""), found
        )
