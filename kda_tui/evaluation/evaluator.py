"""One evaluation: build, smoke, screen, correct, time or confirm, as far as the level says, to a verdict."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kda_tui.evaluation.arrays import random_stream
from kda_tui.evaluation.confirm import ConfirmResult, hidden_workloads, numbers_of, run_confirm, void_reason
from kda_tui.evaluation.correctness import Correctness, smallest_of_each_path
from kda_tui.evaluation.devices.interface import DeviceFacts
from kda_tui.evaluation.faults import CANDIDATE, Inconclusive, InfrastructureFault, Rejected
from kda_tui.evaluation.findings import Measured, benchmark_rows, bounds, workload_results
from kda_tui.evaluation.floor import Floor, cost_facts, floor_of
from kda_tui.evaluation.inputs import CaseKey
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.samples import SampleLog
from kda_tui.evaluation.sanitizer import sanitize
from kda_tui.evaluation.session import BASELINE, INCUMBENT, INCUMBENT_AGAIN, Arm, Stand
from kda_tui.evaluation.stages import Stages, gates_of, stages_of
from kda_tui.evaluation.statistics import (
    SCREEN_STOP,
    Interval,
    block_means,
    broken_floors,
    interval,
    median,
    speed_word,
)
from kda_tui.evaluation.timing import ChildTimes, Timer
from kda_tui.evaluation.verdict import Progress, SampleFile, Verdict
from kda_tui.evaluation.workbench import Workbench, baseline_folder, fingerprint
from kda_tui.record.contract import WorkloadSpec
from kda_tui.record.launch_plan import LaunchPlanError
from kda_tui.record.paths import Workspace
from kda_tui.text import UserError

SCREEN_BLOCKS = 2
OnProgress = Callable[[Progress], None]


def evaluate(request: JudgeRequest, bench: Workbench, on_progress: OnProgress) -> Verdict:
    """Judge one candidate. Never raises for a fault of candidate, contract or machine: the verdict says it."""
    started = time.monotonic()
    level = "build" if request.op == "compile" else "confirm" if request.op == "confirm" else request.level
    stages = Stages(level, on_progress)
    try:
        evaluation = Evaluation(request, bench, stages)
        with evaluation.stand.device.exclusive(lambda reason: stages.report(Progress("build", 0.0, reason))):
            verdict = evaluation.run()
    except (UserError, InfrastructureFault) as error:
        # The contract, the reference, the rivals or the machine: never the candidate's fault.
        verdict = Verdict("infrastructure_error", stage_reached=stages.reached, reason=str(error))
    stages.leave()
    return replace(verdict, stage_seconds=dict(stages.seconds), dur_s=time.monotonic() - started)


def device_title(facts: DeviceFacts) -> str:
    """The device as records name it; times of a cpu are labelled by its first word."""
    return facts.name if facts.kind == "cuda" else f"cpu: {facts.name}"


class Evaluation:
    """The state of one evaluation, filled stage by stage and turned into a verdict at the end."""

    def __init__(self, request: JudgeRequest, bench: Workbench, stages: Stages) -> None:
        self.request = request
        self.bench = bench
        self.stages = stages
        self.ws = Workspace(Path(request.workspace))
        self.stand: Stand = bench.stand(self.ws)
        self.contract = self.stand.contract
        self.gates = gates_of(self.contract, stages.level)
        only = request.options.get("workloads")
        self.workloads = [w for w in self.contract.workloads if not only or w.id in only]
        self.timed = [w for w in self.workloads if w.timed]
        path = Path(request.samples_dir) / f"{request.cand_id}-{stages.level}.jsonl"
        self.log = SampleLog(path if request.samples_dir else None)
        self.candidate: Arm | None = None
        self.incumbent: Arm | None = None
        self.baseline: Arm | None = None
        self.correctness: Correctness | None = None
        self.floors: dict[str, Floor] = {}
        self.measured: Measured | None = None
        self.overall: Interval | None = None
        self.fields: dict[str, Any] = {}

    def run(self) -> Verdict:
        before = fingerprint(self.ws, Path(self.request.candidate))
        try:
            self._build()
            for stage in stages_of(self.stages.level)[1:]:
                self.stages.enter(stage)
                if self._stage(stage):
                    break
            verdict = Verdict("passed")
        except Rejected as fault:
            self.gates[fault.gate] = "failed"
            verdict = Verdict(fault.validity, reason=fault.reason, mismatch=fault.mismatch)
        except Inconclusive as doubt:
            self.fields |= {"speed": "inconclusive", "reason": str(doubt)}
            verdict = Verdict("passed")
        if fingerprint(self.ws, Path(self.request.candidate)) != before:
            raise InfrastructureFault("contract, reference or candidate changed during the evaluation")
        return self._verdict(verdict)

    def _stage(self, stage: str) -> bool:
        """Run one stage; True stops the evaluation early."""
        candidate, correctness = self._ready()
        if stage == "smoke":
            correctness.smoke(self.workloads, self.request.seeds[0])
        elif stage == "screen":
            return self._screen(candidate)
        elif stage == "correct":
            correctness.correct(self.workloads, self._seeds)
            if self.stages.level == "confirm":
                correctness.judge_hidden(
                    hidden_workloads(self.contract, self.request.seeds[0]), self._seeds[0]
                )
        elif stage == "time":
            self._time(candidate)
        else:
            self._confirm(candidate)
        return False

    @property
    def _seeds(self) -> tuple[str, ...]:
        """As many seeds as the contract judges; the pool is stretched if it is smaller."""
        pool, wanted = self.request.seeds, self.contract.correctness.seeds
        return tuple(pool[i] if i < len(pool) else f"{pool[i % len(pool)]}+{i}" for i in range(wanted))

    def _ready(self) -> tuple[Arm, Correctness]:
        if self.candidate is None or self.correctness is None:
            raise InfrastructureFault("no candidate was built")
        return self.candidate, self.correctness

    # --- build ---

    def _build(self) -> None:
        self.stages.enter("build")
        try:
            arm = self.bench.arm(self.stand, CANDIDATE, self.request.cand_id, Path(self.request.candidate))
        except LaunchPlanError as error:
            raise Rejected("launch_error", "build", str(error)) from error
        self.candidate = arm
        if not arm.report.ok:
            said = arm.report.not_possible or _first_error(arm.report.log) or "the compiler failed"
            raise Rejected("compile_error", "build", said)
        for workload in self.workloads:
            self.stand.resolve(arm, workload)
        self.gates["build"] = "passed"
        if self.stages.level == "build":
            return
        self.baseline = self._rival(BASELINE, BASELINE, baseline_folder(self.ws, self.contract))
        self.incumbent = self.baseline.called(INCUMBENT)
        if self.request.incumbent:
            folder = Path(self.request.incumbent)
            self.incumbent = self._rival(INCUMBENT, self.request.incumbent_id, folder)
        self.floors = {w.id: floor for w in self.workloads if (floor := self._floor(w)) is not None}
        self.correctness = Correctness(self.stand, arm, self.baseline, self.gates, self.stages.tick)

    def _rival(self, name: str, cand: str, folder: Path) -> Arm:
        arm = self.bench.arm(self.stand, name, cand, folder)
        if not arm.report.ok:
            said = arm.report.not_possible or _first_error(arm.report.log)
            raise InfrastructureFault(f"the {name} ({folder}) does not compile: {said}")
        return arm

    # --- speed ---

    @property
    def _third_arm(self) -> Arm | None:
        """The baseline where it is not the incumbent itself."""
        assert self.baseline is not None and self.incumbent is not None
        return None if self.baseline.sha256 == self.incumbent.sha256 else self.baseline

    def _timer(self, candidate: Arm, log: SampleLog, child: int) -> Timer:
        assert self.incumbent is not None
        seed, label = self.request.seeds[0], self.stages.reached
        words = ("order", label, str(child), candidate.sha256, str(self.request.attempt))
        return Timer(
            self.stand, candidate, self.incumbent, self._third_arm, self.timed, seed,
            random_stream(seed, *words), log, self.stages.tick, child=child, label=label,
        )  # fmt: skip

    def _screen(self, candidate: Arm) -> bool:
        """Two blocks that are never pooled with others; clearly slower everywhere ends the evaluation."""
        if not self.timed:
            return False
        log = SampleLog(None)
        times = self._timer(candidate, log, 0).measure(SCREEN_BLOCKS, alone=False)
        self._take(times.ratios, times.over_baseline, log)
        if all(block.get(w.id, 0.0) < SCREEN_STOP for block in times.ratios for w in self.timed):
            self.fields |= {
                "speed": "slower",
                "reason": "slower than the incumbent on every workload; stopped after two blocks",
            }
            return True
        self.fields["speed"] = "not_measured"
        return False

    def _time(self, candidate: Arm) -> None:
        if not self.timed:
            return
        numbers = numbers_of(self.contract, self.timed)
        times = self._timer(candidate, self.log, 0).measure(self.contract.benchmark.blocks, alone=True)
        if void_reason(times, numbers):
            self.log.void.add(0)
            times = self._timer(candidate, self.log, 1).measure(self.contract.benchmark.blocks, alone=True)
        self._take(times.ratios, times.over_baseline, self.log)
        self.gates["timed_outputs"] = "passed"
        self._judge_floor()
        self.fields["aa"] = times.aa_mean if times.aa_mean is None else abs(times.aa_mean)
        self._judge_quiet([times])
        word = speed_word(self.overall, numbers.margin, broken_floors(times.ratios, numbers))
        self.fields["speed"] = word

    def _judge_quiet(self, children: Sequence[ChildTimes]) -> None:
        """The controls: the incumbent against itself, and beside the candidate against alone."""
        numbers = numbers_of(self.contract, self.timed)
        for times in children:
            noisy = void_reason(times, numbers)
            if noisy:
                raise Inconclusive(noisy)
        self.gates["aa"] = "passed"
        for times in children:
            if times.beside is not None and not times.beside <= times.beside_allowed:
                raise Inconclusive(
                    f"the incumbent is {math.expm1(times.beside):.1%} slower beside the candidate than alone "
                    f"(allowed {math.expm1(times.beside_allowed):.1%}): the two disturb each other or the machine does"
                )
        self.gates["alone"] = "passed"

    def _confirm(self, candidate: Arm) -> None:
        assert self.incumbent is not None
        if not self.timed:
            raise InfrastructureFault("contract.toml: no workload is timed, so nothing can be confirmed")
        unchecked = self._sanitize(candidate)
        result = run_confirm(
            self.stand, candidate, self.incumbent, self._third_arm, self.timed, self.request.seeds[0],
            self.request.k, self.log, self.stages.tick,
        )  # fmt: skip
        self._take(result.blocks, [b for c in result.children for b in c.over_baseline], self.log)
        self.gates["timed_outputs"] = "passed"
        self._judge_floor()
        self._note_confirm(result, unchecked)
        self._judge_quiet(result.children)
        self.gates["confirm"] = "passed" if result.decision.promote else "failed"
        open_gates = [name for name, word in self.gates.items() if word != "passed"]
        self.fields["rule_passed"] = result.decision.promote and not open_gates

    def _sanitize(self, candidate: Arm) -> str:
        """Run compute-sanitizer where the contract's device has one; why that was not possible, or empty."""
        if "sanitizer" not in self.gates:
            return ""
        paths = smallest_of_each_path(self.stand, candidate, self.workloads)
        found = sanitize(self.stand, candidate, paths, self.request.seeds[0])
        self.gates["sanitizer"] = found.word
        return found.why

    def _note_confirm(self, result: ConfirmResult, unchecked: str) -> None:
        decision = result.decision
        aa = [abs(m) for c in result.children if (m := c.aa_mean) is not None]
        reasons = [*decision.reasons]
        if decision.broken:
            reasons.append(f"below its floor: {', '.join(decision.broken)}")
        if decision.unclear:
            reasons.append(f"not surely above its floor: {', '.join(decision.unclear)}")
        self.fields |= {
            "speed": decision.speed,
            "reason": "; ".join(reasons),
            "k": self.request.k,
            "alpha_spent": decision.alpha,
            "aa": max(aa, default=None),
            "extra": {
                "bound": decision.bound,
                "child_means": list(decision.child_means),
                "floor_bounds": dict(decision.floors),
                "blocks": len(result.blocks),
                "extra_blocks": len(result.extra),
                "voided_children": result.voided,
                **({"sanitizer": unchecked} if unchecked else {}),
            },
        }

    def _take(self, ratios: Sequence[Any], over_baseline: Sequence[Any], log: SampleLog) -> None:
        self.measured = Measured(ratios, over_baseline, log, self._third_arm is None)
        self.overall = interval(block_means(ratios, numbers_of(self.contract, self.timed).weights))

    def _judge_floor(self) -> None:
        """Faster than the speed of light is impossible: never promotable."""
        assert self.measured is not None
        if "floor" in self.gates:
            for workload in self.timed:
                floor = self.floors.get(workload.id)
                samples = self.measured.log.of(workload.id, CANDIDATE)
                if (
                    floor is not None
                    and samples
                    and floor.is_beaten_by(median(samples), self.contract.task.device)
                ):
                    reason = f"{median(samples):.3g} us for {workload.id} is under its floor of {floor.least_us:.3g} us"
                    raise Rejected("impossible", "floor", reason)
            self.gates["floor"] = "passed"

    def _floor(self, workload: WorkloadSpec) -> Floor | None:
        numbers = None
        if self.contract.cost.facts:
            case = self.stand.oracle.case(workload, CaseKey(workload.id, self.request.seeds[0]))
            numbers = cost_facts(self.stand.oracle, case.inputs)
        return floor_of(self.contract, workload, self.stand.device.facts, numbers)

    # --- the verdict ---

    def _verdict(self, verdict: Verdict) -> Verdict:
        errors = self.correctness.errors if self.correctness else {}
        names = [w.id for w in self.workloads]
        results = workload_results(names, errors, self.floors, self.measured)
        ratio, low, high = bounds(self.overall)
        over = None
        if self.measured is not None:
            weights = numbers_of(self.contract, self.timed).weights
            over = interval(block_means(self.measured.over_baseline, weights))
        samples = tuple(
            replace(s, path=f"{_samples_root(self.request.samples_dir)}{s.path}") for s in self.log.write()
        )
        fields = dict(self.fields)
        if self.stand.oracle.note:
            fields["extra"] = {**fields.get("extra", {}), "oracle": self.stand.oracle.note}
        if verdict.validity != "passed":
            fields = {k: v for k, v in fields.items() if k not in ("reason", "rule_passed")}
            fields["speed"] = "not_measured"
        verdict = replace(
            verdict,
            stage_reached=self.stages.reached,
            gates=dict(self.gates),
            workloads=results,
            ratio=ratio,
            lo=low,
            hi=high,
            vs_baseline=None if over is None else over.ratio,
            device=device_title(self.stand.device.facts),
            compile=self.candidate.report if self.candidate else None,
            samples=samples,
            **fields,
        )
        return replace(verdict, rows=self._rows(verdict, samples))

    def _rows(self, verdict: Verdict, samples: Sequence[SampleFile]) -> tuple[dict[str, Any], ...]:
        if self.measured is None or self.incumbent is None or self.candidate is None:
            return ()
        benchmark = self.contract.benchmark
        blocks = len(self.measured.ratios)
        opponent = self.request.incumbent_id or BASELINE
        common = {
            "opponent": opponent,
            "protocol": f"{self.stages.reached} {blocks}x{benchmark.launches} {benchmark.cache} {benchmark.launch}",
            "device": verdict.device,
            "trust": verdict.trust,
            "aa_spread": verdict.aa if verdict.aa is None else round(verdict.aa, 6),
            "admissible": "yes" if verdict.validity == "passed" else "no",
            "why": "" if verdict.validity == "passed" else verdict.validity,
            "samples": samples[0].path if samples else "",
        }
        names = {
            CANDIDATE: self.request.cand_id,
            INCUMBENT: opponent,
            INCUMBENT_AGAIN: opponent,
            BASELINE: BASELINE,
        }
        shas = {CANDIDATE: self.candidate.sha256, INCUMBENT: self.incumbent.sha256}
        shas |= {
            INCUMBENT_AGAIN: self.incumbent.sha256,
            BASELINE: self.baseline.sha256 if self.baseline else "",
        }
        return benchmark_rows(verdict.workloads, self.measured.log, common, names, shas)


def _samples_root(samples_dir: str) -> str:
    """What stands before the sample file's folder in a path relative to the run folder."""
    parents = Path(samples_dir).parts[:-1]
    if "samples" not in parents:
        return ""
    at = len(parents) - 1 - parents[::-1].index("samples")
    return "/".join(parents[at:]) + "/"


def _first_error(log: str) -> str:
    """The line of a compiler's log that a person needs first."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[0] if lines else "")[:300]
