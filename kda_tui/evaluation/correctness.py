"""Is it right? Every launch is poisoned before and judged after; memory and history are judged too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kda_tui.evaluation.compare import Comparison, compare
from kda_tui.evaluation.dtypes import decode, unit_roundoff
from kda_tui.evaluation.faults import CANDIDATE, Rejected
from kda_tui.evaluation.inputs import CaseKey
from kda_tui.evaluation.launches import (
    Outputs,
    judge_globals,
    judge_memory,
    judge_unwritten,
    launch_chain,
    written_bytes,
)
from kda_tui.evaluation.mismatch import Evidence, describe
from kda_tui.evaluation.oracle import Case, NotANumber
from kda_tui.evaluation.placement import Bytes, Placement, Poison
from kda_tui.evaluation.probes import PROBES
from kda_tui.evaluation.session import BASELINE, Arm, Session, Stand
from kda_tui.record.contract import TensorSpec, WorkloadSpec

HIDDEN = "hidden"  # the id of every shape that the contract does not list
REPLAY_CALLS = 32  # how many calls are replayed to tell state from chance
PROBE_ALLOWANCE = 2.0  # on a probe, an error within this factor of the baseline's is right too
ALWAYS = ("oracle", "unwritten", "inputs", "bounds", "determinism", "state")

Comparisons = Mapping[str, Comparison]
Tick = Callable[[str, float], None]


@dataclass(slots=True)
class WorstError:
    """The largest error of one workload, over its tolerance, and over the baseline's error."""

    error: float = 0.0
    tensor: str = ""
    tile: str = ""
    over_baseline: float | None = None

    def note(self, comparison: Comparison, tensor: str) -> None:
        if comparison.error >= self.error:
            self.error, self.tensor, self.tile = comparison.error, tensor, str(comparison.tile)


@dataclass(slots=True)
class Correctness:
    """The smoke and correct stages for one candidate. ``gates`` is filled as they are passed."""

    stand: Stand
    candidate: Arm
    baseline: Arm | None
    gates: dict[str, str]
    tick: Tick
    errors: dict[str, WorstError] = field(default_factory=dict)
    _history: list[tuple[Case, Poison]] = field(default_factory=list)  # what the current child was asked

    def smoke(self, workloads: Sequence[WorkloadSpec], seed: str) -> None:
        """The smallest workload of each launch path, one seed, two launches; raises Rejected."""
        chosen = smallest_of_each_path(self.stand, self.candidate, workloads)
        for i, workload in enumerate(chosen):
            self.tick(workload.id, i / len(chosen))
            with self._session() as session:
                self._judge_case(session, session.place(workload, 1), self._case(workload, seed), repeats=2)
        self.gates["smoke"] = "passed"

    def correct(self, workloads: Sequence[WorkloadSpec], seeds: Sequence[str]) -> None:
        """All seeds, history and probes; raises Rejected at the first gate that fails."""
        rules = self.stand.contract.correctness
        ordered = sorted(workloads, key=lambda w: (not w.timed, _size(w)))
        for i, workload in enumerate(ordered):
            self.tick(workload.id, i / len(ordered))
            with self._session() as session:
                placement = session.place(workload, 1)
                cases = [self._case(workload, seed) for seed in seeds]
                first = [self._judge_case(session, placement, case, rules.repeats) for case in cases]
                self._judge_history(session, placement, cases, first)
                if rules.probes and workload.timed:
                    self._judge_probes(session, placement, seeds[0])
        self.gates.update(dict.fromkeys(ALWAYS, "passed"))
        if "probes" in self.gates:
            self.gates["probes"] = "passed"
        if "vs_baseline" in self.gates:
            self.gates["vs_baseline"] = "passed"

    def judge_hidden(self, workloads: Sequence[WorkloadSpec], seed: str) -> None:
        """Shapes that the contract does not list; a verdict names the gate, never the shape."""
        for i, workload in enumerate(workloads):
            self.tick(HIDDEN, i / len(workloads))
            with self._session() as session:
                self._judge_case(session, session.place(workload, 1), self._case(workload, seed), repeats=2)
        self.gates[HIDDEN] = "passed"

    def _session(self) -> Session:
        self._history = []
        session = Session(self.stand)
        try:
            session.load(self.candidate)
        except BaseException:
            session.close()
            raise
        return session

    def _case(self, workload: WorkloadSpec, seed: str, probe: str = "") -> Case:
        return self.stand.oracle.case(workload, CaseKey(workload.id, seed, probe=probe))

    def _judge_case(self, session: Session, placement: Placement, case: Case, repeats: int) -> Outputs:
        """Launch a case ``repeats`` times, at least twice for the two poisons; returns the first outputs."""
        launches: list[Outputs] = []
        comparisons: Comparisons = {}
        for i in range(max(2, repeats)):
            poison = Poison(str(case.key), complement=i % 2 == 1)
            outputs = self._launch(session, placement, case, poison)
            if i == 0 or not _same(outputs[max(outputs)], launches[0]):
                found = self._judge_outputs(placement, case, outputs, poison)
                comparisons = comparisons or found
            launches.append(outputs[max(outputs)])
        for spec in self.stand.oracle.outputs:
            if spec.role == "out":
                judge_unwritten(placement, spec, case, launches, Poison(str(case.key)))
            self._judge_repeats(placement, spec, case, launches)
        judge_globals(session, CANDIDATE)
        self._judge_against_baseline(placement, case, comparisons)
        return launches[0]

    def _judge_outputs(
        self,
        placement: Placement,
        case: Case,
        outputs: Mapping[int, Outputs],
        poison: Poison,
    ) -> Comparisons:
        """Compare every judged call with the oracle; returns the comparisons of the last."""
        comparisons: dict[str, Comparison] = {}
        for call, expected in case.expected.items():
            for spec in self.stand.oracle.outputs:
                got = placement.elements(spec.name, outputs[call][spec.name])
                comparison = comparisons[spec.name] = compare(got, expected[spec.name], spec)
                if not comparison.ok and not self._baseline_fares_no_better(
                    placement, case, spec, comparison
                ):
                    self._reject(placement, case, spec, call, outputs[call], poison, comparison)
                if not case.key.probe:
                    self.errors.setdefault(placement.workload.id, WorstError()).note(comparison, spec.name)
        return comparisons

    def _reject(
        self,
        placement: Placement,
        case: Case,
        spec: TensorSpec,
        call: int,
        outputs: Outputs,
        poison: Poison,
        comparison: Comparison,
    ) -> None:
        got = placement.elements(spec.name, outputs[spec.name])
        laid = placement.pattern(poison, spec.name, 0)
        evidence = Evidence(
            poison=placement.elements(spec.name, laid) if spec.role == "out" else None,
            inputs=case.inputs.values(),
        )
        workload = placement.workload
        found = describe(
            got, case.expected[call][spec.name], spec, workload.id, str(case.key), comparison, evidence
        )
        validity, why = self._blame(placement)
        gate = HIDDEN if workload.id == HIDDEN else "probes" if case.key.probe else "oracle"
        gate = {"stateful": "state", "nondeterministic": "determinism"}.get(validity, gate)
        probe = f", probe {case.key.probe}" if case.key.probe else ""
        guess = f": {found.guess}" if found.guess else ""
        reason = f"{spec.name} is wrong for {workload.id}{probe}: {comparison.reason}{guess}{why}"
        raise Rejected(validity, gate, reason, None if workload.id == HIDDEN else found)

    def _blame(self, placement: Placement) -> tuple[str, str]:
        """Wrong in a fresh process too: incorrect. Else state, if the same history fails again, or chance."""
        history = self._history[-REPLAY_CALLS:]
        if len(history) == 1 or not all(self._right_at_the_end(placement, history[-1:]) for _ in range(2)):
            return "incorrect", ""
        if not self._right_at_the_end(placement, history):
            return "stateful", f"; right in a fresh process, wrong after {len(history) - 1} other launches"
        return (
            "nondeterministic",
            f"; wrong at launch {len(history)}, right when the same launches are repeated",
        )

    def _right_at_the_end(self, placement: Placement, history: Sequence[tuple[Case, Poison]]) -> bool:
        """Whether the last of some launches in a fresh child is right."""
        with Session(self.stand) as session:
            session.load(self.candidate)
            fresh = session.place(placement.workload, 1)
            for case, poison in history:
                outputs = launch_chain(session, CANDIDATE, fresh, case, poison)
            return all(c.ok for c in _compare_all(self.stand, fresh, case, outputs))

    def _launch(
        self, session: Session, placement: Placement, case: Case, poison: Poison
    ) -> dict[int, Outputs]:
        """One judged launch of the candidate; what it did to memory is judged at once."""
        self._history.append((case, poison))
        outputs = launch_chain(session, CANDIDATE, placement, case, poison)
        judge_memory(placement, {0: case})
        return outputs

    def _judge_repeats(
        self, placement: Placement, spec: TensorSpec, case: Case, launches: Sequence[Outputs]
    ) -> None:
        rules = self.stand.contract.correctness
        first = launches[0][spec.name]
        must, _ = written_bytes(placement, spec, next(iter(case.expected.values()))[spec.name], first)
        for i, outputs in enumerate(launches[1:], start=2):
            differ = int(np.count_nonzero((outputs[spec.name] != first) & must))
            if differ and rules.deterministic:
                reason = f"{differ} bytes of {spec.name} differ between launches 1 and {i} of one input ({case.key})"
                raise Rejected("nondeterministic", "determinism", reason)
            if differ and rules.spread is not None:
                spread = _spread(placement, spec, first, outputs[spec.name])
                if not spread <= rules.spread:
                    reason = (
                        f"{spec.name} spreads by {spread:.3g} between two launches, allowed {rules.spread:g}"
                    )
                    raise Rejected("nondeterministic", "determinism", reason)

    def _judge_history(
        self, session: Session, placement: Placement, cases: Sequence[Case], first: Sequence[Outputs]
    ) -> None:
        """After other launches, an input must give the answer that it gave at first."""
        for i in range(self.stand.contract.correctness.prior_calls):
            which = i % len(cases)
            poison = Poison(f"{cases[which].key}/history/{i}")
            outputs = self._launch(session, placement, cases[which], poison)
            if not _same(outputs[max(outputs)], first[which]):
                self._judge_outputs(placement, cases[which], outputs, poison)
        judge_globals(session, CANDIDATE)

    def _judge_probes(self, session: Session, placement: Placement, seed: str) -> None:
        for probe in PROBES:
            try:
                case = self._case(placement.workload, seed, probe)
            except NotANumber:
                continue  # the task is not defined there
            poison = Poison(str(case.key))
            outputs = self._launch(session, placement, case, poison)
            self._judge_outputs(placement, case, outputs, poison)

    def _baseline_fares_no_better(
        self, placement: Placement, case: Case, spec: TensorSpec, mine: Comparison
    ) -> bool:
        """On a probe the honest baseline may miss the tolerance too; nobody is asked to be better."""
        if not case.key.probe or self.baseline is None:
            return False
        theirs = self._of_baseline(placement.workload, case)[spec.name]
        if mine.wrong_class:
            return theirs.wrong_class >= mine.wrong_class
        return mine.error <= PROBE_ALLOWANCE * theirs.error

    def _judge_against_baseline(self, placement: Placement, case: Case, mine: Comparisons) -> None:
        """The error may be at most ``vs_baseline`` times the baseline's on the same input."""
        workload = placement.workload
        if "vs_baseline" not in self.gates or workload.id == HIDDEN:
            return
        worst = self.errors.setdefault(workload.id, WorstError())
        for spec in self.stand.oracle.outputs:
            if spec.check is None or spec.check.vs_baseline is None or spec.check.exact:
                continue
            theirs = self._of_baseline(workload, case)[spec.name]
            over = mine[spec.name].rel_l2 / max(theirs.rel_l2, unit_roundoff(spec.dtype))
            worst.over_baseline = max(worst.over_baseline or 0.0, over)
            if not over <= spec.check.vs_baseline:
                allowed = f"allowed {spec.check.vs_baseline:g} ({case.key})"
                reason = f"the error of {spec.name} is {over:.3g} times the baseline's, {allowed}"
                raise Rejected("incorrect", "vs_baseline", reason)

    def _of_baseline(self, workload: WorkloadSpec, case: Case) -> Comparisons:
        """How far the baseline is from the oracle on one case, kept for later evaluations."""
        assert self.baseline is not None
        key = (self.baseline.sha256, workload.id, case.key)
        if key not in self.stand.baseline_errors:
            with Session(self.stand) as session:
                session.load(self.baseline.called(BASELINE))
                placement = session.place(workload, 1)
                outputs = launch_chain(session, BASELINE, placement, case, Poison(str(case.key)))
                found = _compare_all(self.stand, placement, case, outputs)[-len(self.stand.oracle.outputs) :]
            names = [spec.name for spec in self.stand.oracle.outputs]
            self.stand.baseline_errors[key] = dict(zip(names, found, strict=True))
        return self.stand.baseline_errors[key]


def smallest_of_each_path(stand: Stand, arm: Arm, workloads: Sequence[WorkloadSpec]) -> list[WorkloadSpec]:
    """For every set of steps that some workload takes, the smallest workload that takes it."""
    best: dict[tuple[str, ...], WorkloadSpec] = {}
    for workload in sorted(workloads, key=_size):
        best.setdefault(stand.resolve(arm, workload).signature, workload)
    return sorted(best.values(), key=_size)


def _compare_all(
    stand: Stand, placement: Placement, case: Case, outputs: Mapping[int, Outputs]
) -> list[Comparison]:
    return [
        compare(placement.elements(spec.name, outputs[call][spec.name]), expected[spec.name], spec)
        for call, expected in case.expected.items()
        for spec in stand.oracle.outputs
    ]


def _same(outputs: Outputs, first: Outputs) -> bool:
    return all(np.array_equal(outputs[name], first[name]) for name in first)


def _spread(placement: Placement, spec: TensorSpec, first: Bytes, other: Bytes) -> float:
    a = decode(placement.elements(spec.name, first), spec.dtype)
    b = decode(placement.elements(spec.name, other), spec.dtype)
    return float(np.linalg.norm((a - b).ravel()) / max(float(np.linalg.norm(a.ravel())), 1e-300))


def _size(workload: WorkloadSpec) -> float:
    return float(np.prod(list(workload.axes.values()), dtype=float))
