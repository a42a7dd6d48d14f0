"""Can this contract tell right from wrong? Every mutant must be rejected, every honest control accepted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from kda_tui.evaluation.compare import compare
from kda_tui.evaluation.correctness import Correctness
from kda_tui.evaluation.devices.interface import Child
from kda_tui.evaluation.dtypes import encode
from kda_tui.evaluation.evaluator import device_title
from kda_tui.evaluation.faults import CANDIDATE, InfrastructureFault, Rejected
from kda_tui.evaluation.inputs import CaseKey
from kda_tui.evaluation.mutants import Mutant, MutantChild, mutants_of
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.session import Arm, Stand
from kda_tui.evaluation.stages import gates_of
from kda_tui.evaluation.verdict import Progress, Verdict
from kda_tui.evaluation.workbench import Workbench, baseline_folder
from kda_tui.record.contract import WorkloadSpec
from kda_tui.record.paths import Workspace
from kda_tui.text import UserError

WORKLOADS = 3  # the smallest timed ones are tried, until one rejects the mutant
SEEDS = ("self-test 1", "self-test 2", "self-test 3")
REJECTED, ACCEPTED = "rejected", "accepted"


class SelfTestError(UserError):
    """The self-test cannot be run: the baseline does not compile or the machine fails."""


@dataclass(frozen=True, slots=True)
class SelfTestRow:
    mutant: str
    what: str
    expected: str
    got: str
    ok: bool


@dataclass(frozen=True, slots=True)
class SelfTestReport:
    rows: tuple[SelfTestRow, ...]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)


OnRow = Callable[[SelfTestRow, float], None]


def run_selftest(
    workspace: Path, cache_dir: Path, bench: Workbench | None = None, on_row: OnRow | None = None
) -> SelfTestReport:
    """Run all mutants and controls of a workspace's contract. Raises UserError if it cannot be run.

    The contract is fit for use only if ``report.ok``.
    """
    own = bench or Workbench(cache_dir)
    try:
        return _SelfTest(Workspace(workspace), own).run(on_row or (lambda row, fraction: None))
    except InfrastructureFault as error:
        raise SelfTestError(str(error)) from error
    finally:
        if bench is None:
            own.close()


def selftest_verdict(
    request: JudgeRequest, bench: Workbench, on_progress: Callable[[Progress], None]
) -> Verdict:
    """The self-test as a verdict: ``extra["rows"]`` has the table, ``incorrect`` refuses the contract."""

    def on_row(row: SelfTestRow, fraction: float) -> None:
        on_progress(Progress("correct", fraction, row.mutant))

    try:
        report = run_selftest(Path(request.workspace), bench.cache, bench, on_row)
    except UserError as error:
        return Verdict("infrastructure_error", reason=str(error))
    wrong = [row for row in report.rows if not row.ok]
    said = "; ".join(f"{row.mutant} ({row.what}): expected {row.expected}, got {row.got}" for row in wrong)
    stand = bench.stand(Workspace(Path(request.workspace)))
    return Verdict(
        validity="incorrect" if wrong else "passed",
        stage_reached="correct",
        reason=f"the contract cannot tell right from wrong: {said}" if wrong else "",
        device=device_title(stand.device.facts),
        extra={"rows": [asdict(row) for row in report.rows]},
    )


class _SelfTest:
    def __init__(self, ws: Workspace, bench: Workbench) -> None:
        self.stand: Stand = bench.stand(ws)
        self.contract = self.stand.contract
        folder = baseline_folder(ws, self.contract)
        self.baseline = bench.arm(self.stand, "baseline", "baseline", folder)
        if not self.baseline.report.ok:
            log = self.baseline.report.not_possible or self.baseline.report.log.strip()
            raise SelfTestError(f"the baseline {folder} does not compile: {log[:300]}")
        timed = [w for w in self.contract.workloads if w.timed] or list(self.contract.workloads)
        self.workloads = sorted(timed, key=lambda w: float(np.prod(list(w.axes.values()), dtype=float)))[
            :WORKLOADS
        ]

    def run(self, on_row: OnRow) -> SelfTestReport:
        mutants = mutants_of(self.contract)
        rows: list[SelfTestRow] = []
        makers: list[Callable[[], SelfTestRow]] = [self._reference, self._honest]
        makers += [lambda mutant=mutant: self._mutant(mutant) for mutant in mutants]  # type: ignore[misc]
        for i, make in enumerate(makers, start=1):
            rows.append(make())
            on_row(rows[-1], i / len(makers))
        return SelfTestReport(tuple(rows))

    def _reference(self) -> SelfTestRow:
        """The reference, rounded to the output's format, must pass its own check."""
        for workload in self.workloads:
            case = self.stand.oracle.case(workload, CaseKey(workload.id, SEEDS[0]))
            for expected in case.expected.values():
                for spec in self.stand.oracle.outputs:
                    want = expected[spec.name]
                    bits = want.bits if want.values is None else encode(want.values, spec.dtype)
                    assert bits is not None
                    found = compare(bits, want, spec)
                    if not found.ok:
                        got = f"{spec.name} of {workload.id}: {found.reason}"
                        return _row("reference", "the reference, rounded", ACCEPTED, got)
        return _row("reference", "the reference, rounded", ACCEPTED, ACCEPTED)

    def _honest(self) -> SelfTestRow:
        fault = self._judge(None, self.workloads)
        got = ACCEPTED if fault is None else f"{fault.validity}: {fault.reason}"
        return _row("baseline", "the honest baseline", ACCEPTED, got)

    def _mutant(self, mutant: Mutant) -> SelfTestRow:
        for workload in self.workloads:
            fault = self._judge(mutant, [workload])
            if fault is not None:
                return SelfTestRow(
                    mutant.name, mutant.what, REJECTED, f"{fault.validity} ({fault.gate})", True
                )
        return SelfTestRow(mutant.name, mutant.what, REJECTED, ACCEPTED, False)

    def _judge(self, mutant: Mutant | None, workloads: list[WorkloadSpec]) -> Rejected | None:
        """The correct stage, as for any candidate; the fault, or None when accepted."""
        stand = self.stand
        arm: Arm = self.baseline.called(CANDIDATE)
        if mutant is not None:
            spoiling = self._spoiling(mutant)
            stand = replace(self.stand, new_child=spoiling, borrow_child=spoiling)
        correctness = Correctness(
            stand, arm, self.baseline, gates_of(self.contract, "correct"), lambda workload, fraction: None
        )
        try:
            correctness.correct(workloads, SEEDS[: max(2, self.contract.correctness.seeds)])
        except Rejected as fault:
            return fault
        return None

    def _spoiling(self, mutant: Mutant) -> Callable[[], Child]:
        return lambda: MutantChild(self.stand.borrow_child(), mutant, self.contract)


def _row(name: str, what: str, expected: str, got: str) -> SelfTestRow:
    return SelfTestRow(name, what, expected, got, got == expected)
