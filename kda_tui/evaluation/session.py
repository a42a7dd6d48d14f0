"""What an evaluation works with: arms, the bench they run on, and one child with arms loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kda_tui.evaluation.compare import Comparison
from kda_tui.evaluation.devices.interface import Child, Device, LaunchReport
from kda_tui.evaluation.faults import CANDIDATE, InfrastructureFault, Rejected, require_ok
from kda_tui.evaluation.inputs import CaseKey
from kda_tui.evaluation.oracle import Oracle
from kda_tui.evaluation.placement import Placement
from kda_tui.evaluation.resolve import ResolvedPlan, ResolveError, device_names, resolve
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.contract import Contract, WorkloadSpec
from kda_tui.record.launch_plan import LaunchPlan

INCUMBENT, INCUMBENT_AGAIN, BASELINE = "incumbent", "incumbent2", "baseline"


@dataclass(frozen=True, slots=True)
class Arm:
    """A compiled program under one of the names of JUDGE: candidate, incumbent, incumbent2, baseline."""

    name: str
    cand: str
    plan: LaunchPlan
    report: CompileReport
    sha256: str  # of the source and launch plan

    def called(self, name: str) -> Arm:
        return Arm(name, self.cand, self.plan, self.report, self.sha256)


BaselineKey = tuple[str, str, CaseKey]


@dataclass(slots=True)
class Stand:
    """The bench: device, contract, oracle. The two makers of children are the device's, or a self-test's."""

    device: Device
    contract: Contract
    oracle: Oracle
    new_child: Callable[[], Child]
    borrow_child: Callable[[], Child]
    scratch: Path = Path()  # where children work
    baseline_errors: dict[BaselineKey, Mapping[str, Comparison]] = field(default_factory=dict)
    _resolved: dict[tuple[str, str, str], ResolvedPlan] = field(default_factory=dict)

    def resolve(self, arm: Arm, workload: WorkloadSpec) -> ResolvedPlan:
        """The arm's plan for one workload; a plan that cannot be launched rejects the candidate."""
        key = (arm.sha256, workload.id, repr(sorted(workload.axes.items())))
        if key not in self._resolved:
            try:
                self._resolved[key] = resolve(
                    arm.plan, self.contract, workload, device_names(self.device.facts)
                )
            except ResolveError as error:
                if arm.name != CANDIDATE:
                    raise InfrastructureFault(f"arm {arm.name}: {error}") from error
                raise Rejected("launch_error", "launch", str(error)) from error
        return self._resolved[key]

    @property
    def timeout_s(self) -> float:
        return self.contract.benchmark.timeout_s


class Session:
    """One child, borrowed unless one is given, and its loaded arms."""

    def __init__(self, stand: Stand, child: Child | None = None) -> None:
        self.stand = stand
        self.child: Child = child or stand.borrow_child()
        self.arms: dict[str, Arm] = {}

    def load(self, arm: Arm) -> None:
        report = self.child.load(arm.name, arm.report, arm.plan)
        require_ok(report, arm.name, "launch", "loading the program")
        self.arms[arm.name] = arm

    def place(self, workload: WorkloadSpec, sets: int) -> Placement:
        """Drop all buffers and allocate those of one workload for the loaded arms."""
        self.child.release()
        placement = self.placement(workload, sets, tuple(self.arms.values()))
        self.allocate([placement])
        return placement

    def placement(self, workload: WorkloadSpec, sets: int, arms: Sequence[Arm]) -> Placement:
        """Buffers of one workload, with scratch for ``arms``; nothing is allocated yet."""
        scratch = {arm.name: self.stand.resolve(arm, workload).scratch for arm in arms}
        stand = self.stand
        return Placement(self.child, stand.oracle.arrays, stand.contract, workload, sets, scratch)

    def allocate(self, placements: Sequence[Placement]) -> None:
        specs = [spec for placement in placements for spec in placement.specs()]
        report = self.child.allocate(specs)
        if report.status != "ok":
            raise InfrastructureFault(f"allocating buffers: {report.status}: {report.text}")
        for placement in placements:
            placement.remember_guards()

    def run(self, arm: str, placement: Placement, which: int) -> None:
        """One untimed call of an arm on one set; raises Rejected or InfrastructureFault."""
        resolved = self.stand.resolve(self.arms[arm], placement.workload)
        launch = resolved.bind(placement.binding(arm, which))
        report = self.child.run(arm, [launch], self.stand.timeout_s)
        require_ok(report, arm, "launch", f"workload {placement.workload.id}")

    def time(self, arm: str, placement: Placement, sets: Sequence[int], flush: bool) -> LaunchReport:
        """Time one launch (a chain of ``steps`` calls) per set, in order."""
        resolved = self.stand.resolve(self.arms[arm], placement.workload)
        benchmark = self.stand.contract.benchmark
        graph = benchmark.launch == "graph"
        launches = [
            resolved.bind(placement.binding(arm, which), calls=benchmark.steps, graph=graph) for which in sets
        ]
        report = self.child.time(arm, launches, flush, self.stand.timeout_s)
        require_ok(report, arm, "launch", f"workload {placement.workload.id}, timed")
        return report

    def close(self) -> None:
        self.child.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
