"""Workspaces and snapshots for the worker's tests, and a scripted stand-in for the judge."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.verdict import CompileReport, Progress, Verdict, WorkloadResult
from kda_tui.record import trust
from kda_tui.record.contract import parse_contract
from kda_tui.record.launch_plan import load_launch_plan
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate, Decision
from kda_tui.record.snapshot import (
    BudgetLine,
    Claim,
    Evaluation,
    Gate,
    Incumbent,
    Plan,
    PlanRevision,
    RunInfo,
    Snapshot,
)

CONTRACT = """\
[task]
name = "scale"
objective = "y = 2 x"
device = "cpu"

[[tensor]]
name = "x"
role = "in"
dtype = "float32"
shape = ["n"]

[[tensor]]
name = "y"
role = "out"
dtype = "float32"
shape = ["n"]
check = {rel_l2 = 1e-6}

[[workload]]
id = "n256"
axes = {n = 256}

[correctness]
seeds = 1
repeats = 1
prior_calls = 1
probes = false

[benchmark]
cache = "warm"
launches = 1
blocks = 4
timeout_s = 10

[cost]
bytes = "8 * n"

[baseline]
candidate = "baseline"

[promotion]
min_speedup = 1.02

[budget]
candidates = 50

[gates]
max_open = 2
"""

KERNEL = """\
extern "C" __global__ void scale(const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float sum = 0.0f;
    for (int k = 0; k < WORK; ++k) sum += x[i] * (2.0f / WORK);
    y[i] = WORK == 1 ? 2.0f * x[i] : sum;
  }
}
"""

LAUNCH = """\
hypothesis = "{hypothesis}"
family = "{family}"

[[unit]]
name = "kernel"
file = "kernel.cu"
defines = {{THREADS = {threads}, WORK = {work}}}

[[step]]
kernel = "scale"
grid = [1, 1, 1]
block = ["THREADS", 1, 1]
args = ["x", "y", {{axis = "n"}}]

[tune]
THREADS = [16, 32, 64]
WORK = [8, 1]
"""

REFERENCE = """\
import numpy as np


def reference(inputs, scalars):
    return {"y": 2.0 * inputs["x"].astype(np.float64)}
"""


def launch(threads: int = 16, work: int = 8, hypothesis: str = "fewer rounds", family: str = "loop") -> str:
    return LAUNCH.format(threads=threads, work=work, hypothesis=hypothesis, family=family)


def make_workspace(root: Path, contract: str = CONTRACT) -> Workspace:
    """A small, trusted workspace with a baseline and one seed of six points."""
    for folder, text in (
        ("baseline", launch(hypothesis="the baseline", family="")),
        ("seeds/loop", launch()),
    ):
        (root / folder).mkdir(parents=True)
        (root / folder / "kernel.cu").write_text(KERNEL)
        (root / folder / "launch.toml").write_text(text)
    (root / "contract.toml").write_text(contract)
    (root / "reference.py").write_text(REFERENCE)
    ws = Workspace(root)
    trust.mark_own(ws)
    return ws


# --- a stand-in for the judge ---


@dataclass
class ScriptedJudge:
    """Answers like a judge from a table of speeds by defines: deterministic, in this process, measures nothing.

    It is a stand-in for tests of the worker only. ``speeds`` maps a candidate folder to its speed over the
    baseline, or to a whole verdict.
    """

    speeds: Callable[[str], float | Verdict]
    pause_s: float = 0.0
    pgid: int = 0
    start_ticks: int | None = None
    requests: list[JudgeRequest] = field(default_factory=list)
    _killed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, request: JudgeRequest, on_progress: Callable[[Progress], None]) -> Verdict:
        self.requests.append(request)
        for fraction in (0.0, 0.5):
            on_progress(Progress(request.op, fraction, "n256"))
            if self.pause_s:
                try:
                    await asyncio.wait_for(self._killed.wait(), self.pause_s / 2)
                except TimeoutError:
                    continue
            if self._killed.is_set():
                return Verdict(
                    "infrastructure_error", reason="the judge was ended by signal 9", extra={"died": True}
                )
        return self._verdict(request)

    def kill(self) -> None:
        self._killed.set()

    def _verdict(self, request: JudgeRequest) -> Verdict:
        report = CompileReport(
            True, compiler="scripted", registers=16, spills=0, sha256=_digest(request.candidate)
        )
        if request.op == "compile":
            return Verdict("passed", stage_reached="build", compile=report)
        mine = self.speeds(request.candidate)
        if isinstance(mine, Verdict):
            return mine
        rival = self.speeds(request.incumbent) if request.incumbent else 1.0
        assert isinstance(rival, float)
        ratio = mine / rival
        word = "faster" if ratio > 1.02 else "slower" if ratio < 0.98 else "same"
        confirm = request.op == "confirm"
        gates = {"build": "passed", "aa": "passed", "alone": "passed"}
        row = {
            "workload": "n256", "arm": "candidate", "opponent": request.incumbent_id, "protocol": "scripted",
            "device": "cpu: scripted", "n": 2, "median_us": 100.0 / mine, "ratio": ratio, "admissible": 1,
        }  # fmt: skip
        return Verdict(
            "passed",
            speed=word,
            stage_reached="confirm" if confirm else "time",
            gates={**gates, "confirm": "passed" if ratio >= 1.02 else "failed"} if confirm else gates,
            workloads=(
                WorkloadResult("n256", 100.0 / mine, 100.0 / rival, 100.0, ratio, ratio * 0.99, ratio * 1.01),
            ),
            ratio=ratio,
            lo=ratio * 0.99,
            hi=ratio * 1.01,
            vs_baseline=mine,
            rule_passed=confirm and ratio >= 1.02,
            k=request.k if confirm else None,
            alpha_spent=0.01 / (request.k * (request.k + 1)) if confirm else None,
            device="cpu: scripted",
            compile=report,
            rows=(row,),
        )


def speed_by_defines(folder: str) -> float:
    """More threads and less work are faster; a fixed, tiny wiggle tells equal points apart."""
    plan = load_launch_plan(Path(folder) / "launch.toml")
    defines = plan.units[0].defines
    wiggle = random.Random(_digest(folder)).random() * 1e-4
    return float(defines["THREADS"]) / 16.0 * (1.5 if defines["WORK"] == 1 else 1.0) + wiggle


def starter(judge: Callable[[], ScriptedJudge]) -> Any:
    """What the worker takes to start a judge."""

    async def start(cache_dir: Path, log: Path) -> ScriptedJudge:
        return judge()

    return start


def _digest(folder: str) -> str:
    return hashlib.sha256((Path(folder) / "launch.toml").read_bytes()).hexdigest()


# --- snapshots by hand ---

SHA = "c" * 64


def snapshot(**changes: Any) -> Snapshot:
    """A run in iterate with a judged, a promoted and a queued candidate."""
    contract = parse_contract(CONTRACT.encode())
    base = Snapshot(
        workspace=Path("/nowhere"),
        version=1,
        contract=contract,
        contract_sha=SHA,
        run=RunInfo("r001", contract_sha=SHA),
        runs=(RunInfo("r001", contract_sha=SHA),),
        phase="iterate",
        candidates={
            c.id: c for c in (judged("c0001", decision="promoted"), judged("c0002"), queued("c0003"))
        },
        evaluations={
            "e1": confirm("e1", "c0001", "baseline", seq=10),
            "e2": confirm("e2", "c0002", "c0001", seq=20),
        },
        incumbent=Incumbent("c0001", "baseline", "promoted", "d1", "e1", 11),
        incumbents=(Incumbent("c0001", "baseline", "promoted", "d1", "e1", 11),),
        decisions=(decided("approve_promotion", "d1", target={"cand": "c0001", "gate": "g1"}, who="ann"),),
    )
    return replace(base, **changes)


def judged(cand: str, **changes: Any) -> Candidate:
    number = {"c0001": "e1", "c0002": "e2"}.get(cand, "e9")
    base = Candidate(
        cand, author="tuner", family="loop", stage="judged", validity="passed", eval=number, speed="faster",
        opponent="baseline", ratio=1.2, lo=1.1, hi=1.3, compile_s=0.1, extra={"born": "r001"},
    )  # fmt: skip
    return replace(base, **changes)


def queued(cand: str, **changes: Any) -> Candidate:
    return replace(Candidate(cand, author="tuner", stage="submitted", extra={"born": "r001"}), **changes)


def confirm(ident: str, cand: str, opponent: str, **changes: Any) -> Evaluation:
    base = Evaluation(
        ident, "confirm", cand, "ok", 1, "2026-07-01T10:00:00.000Z", "r001", validity="passed", speed="faster",
        gates={"build": "passed", "aa": "passed", "alone": "passed", "confirm": "passed"}, opponent=opponent,
        contract_sha=SHA, ratio=1.2, lo=1.1, hi=1.3, extra={"rule_passed": True},
    )  # fmt: skip
    return replace(base, **changes)


def decision(kind: str, ident: str = "new", **changes: Any) -> Decision:
    return replace(Decision(ident, kind, t="2026-07-01T10:00:00.000Z", who="jw"), **changes)


def decided(kind: str, ident: str, **changes: Any) -> Decision:
    return decision(kind, ident, **{"outcome": "taken", "run": "r001", **changes})


def plan_gate(rev: int = 1, sha: str = "ab" * 32, **changes: Any) -> Gate:
    return replace(
        Gate("gp", "plan", {"plan_rev": rev}, sha, True, opened="2026-07-01T10:00:00.000Z", seq=5), **changes
    )


def promotion_gate(cand: str = "c0002", evaluation: str = "e2", **changes: Any) -> Gate:
    target: Mapping[str, Any] = {"cand": cand, "eval": evaluation}
    return replace(Gate("g2", "promotion", target, opened="2026-07-01T10:00:00.000Z", seq=21), **changes)


def revision(rev: int, sha: str = "ab" * 32, **changes: Any) -> PlanRevision:
    return replace(PlanRevision(rev, f"docs/plans/r{rev:03d}.md", sha, "tuner"), **changes)


def plan(in_force: PlanRevision | None, *revisions: PlanRevision) -> Plan:
    newest = revisions[-1] if revisions else None
    return Plan(in_force=in_force, proposed=newest if newest is not in_force else None, revisions=revisions)


def open_claim(cand: str, op: str = "evaluate", ident: str = "k1") -> Claim:
    return Claim(ident, op, cand, run="r001")


def budget(axis: str, used: float, limit: float | None, level: str = "ok") -> dict[str, BudgetLine]:
    return {axis: BudgetLine(axis, used, limit, level)}
