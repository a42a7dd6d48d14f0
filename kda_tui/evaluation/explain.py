"""``kda explain``: one kernel timed in every way that people time kernels, and why the numbers differ. No verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kda_tui.evaluation.devices.interface import Launch
from kda_tui.evaluation.evaluator import device_title
from kda_tui.evaluation.faults import CANDIDATE, InfrastructureFault, Rejected, require_ok
from kda_tui.evaluation.floor import floor_of
from kda_tui.evaluation.inputs import CaseKey
from kda_tui.evaluation.placement import Placement, Poison
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.samples import time_cells
from kda_tui.evaluation.session import Session
from kda_tui.evaluation.statistics import median
from kda_tui.evaluation.verdict import Verdict
from kda_tui.evaluation.workbench import Workbench
from kda_tui.record.contract import WorkloadSpec
from kda_tui.record.paths import Workspace
from kda_tui.text import UserError

ROUNDS = 10
WORD = "an explanation, not a verdict"
WHY = {
    "cold": "L2 flushed by writing and then reading clean data, the start event queued: what the verdict uses",
    "warm": "the same inputs again, nothing flushed: what stays in L2 is not read from memory",
    "graph": "cold, as one CUDA graph: no host between the steps of one call",
    "batch": "all sets back to back, divided by their number: neighbours overlap, launches are hidden",
    "repeat": "warm, one set many times between two events: what a plain loop reports",
}


def explain(request: JudgeRequest, bench: Workbench) -> Verdict:
    """Time a candidate in each way on the wanted workloads; ``extra["rows"]`` has them, with reasons."""
    title = ""
    try:
        stand = bench.stand(Workspace(Path(request.workspace)))
        with stand.device.exclusive(lambda reason: None):
            title = device_title(stand.device.facts)
            arm = bench.arm(stand, CANDIDATE, request.cand_id, Path(request.candidate))
            if not arm.report.ok:
                return Verdict("compile_error", reason=arm.report.log[:300], compile=arm.report, device=title)
            chosen = (
                request.options.get("workloads") or [w.id for w in stand.contract.workloads if w.timed][:1]
            )
            rows: list[dict[str, object]] = []
            stand.device.settle()
            with Session(stand) as session:
                session.load(arm)
                for workload in (w for w in stand.contract.workloads if w.id in chosen):
                    rows += _rows(session, workload, request.seeds[0])
    except Rejected as fault:
        return Verdict(fault.validity, reason=fault.reason, device=title)
    except (UserError, InfrastructureFault) as error:
        return Verdict("infrastructure_error", reason=str(error), device=title)
    return Verdict("passed", reason=WORD, compile=arm.report, device=title, extra={"rows": rows})


def _rows(session: Session, workload: WorkloadSpec, seed: str) -> list[dict[str, object]]:
    stand = session.stand
    sets = stand.contract.benchmark.launches
    placement = session.place(workload, sets)
    for which in range(sets):
        case = stand.oracle.case(workload, CaseKey(workload.id, seed, f"explain{which}"))
        placement.fill(which, case.inputs)
        placement.poison(which, Poison("explain"))
    single = _launches(session, placement, range(sets))
    joined = Launch(tuple(step for launch in single for step in launch.steps))
    repeated = Launch(single[0].steps * sets)
    rows = [
        _row(session, workload, "cold", single * ROUNDS, flush=True),
        _row(session, workload, "warm", single[:1] * (sets * ROUNDS), flush=False),
        _row(session, workload, "batch", [joined] * ROUNDS, flush=True, calls=sets),
        _row(session, workload, "repeat", [repeated] * ROUNDS, flush=False, calls=sets),
    ]
    if stand.contract.task.device == "cuda":
        graphs = [replace(launch, graph=True) for launch in single]
        rows.insert(2, _row(session, workload, "graph", graphs * ROUNDS, flush=True))
    facts = stand.device.facts
    if facts.empty_launch_us:
        rows.append(
            _said(workload, "empty launch", facts.empty_launch_us, "an empty kernel, timed like cold")
        )
    floor = floor_of(stand.contract, workload, facts) if not stand.contract.cost.facts else None
    if floor is not None:
        why = "bytes and operations of the contract at the peaks that this device reaches"
        rows.append(_said(workload, "floor", floor.us, why))
    return rows


def _launches(session: Session, placement: Placement, sets: Sequence[int]) -> list[Launch]:
    resolved = session.stand.resolve(session.arms[CANDIDATE], placement.workload)
    return [resolved.bind(placement.binding(CANDIDATE, which)) for which in sets]


def _row(
    session: Session,
    workload: WorkloadSpec,
    way: str,
    launches: Sequence[Launch],
    flush: bool,
    calls: int = 1,
) -> dict[str, object]:
    report = session.child.time(CANDIDATE, launches, flush, session.stand.timeout_s)
    require_ok(report, CANDIDATE, "launch", f"workload {workload.id}, {way}")
    samples = [v / calls for v in report.samples_us]
    if not samples:
        raise InfrastructureFault(f"workload {workload.id}, {way}: every sample was voided")
    return {**_said(workload, way, median(samples), WHY[way]), **time_cells(samples)}


def _said(workload: WorkloadSpec, way: str, us: float, why: str) -> dict[str, object]:
    return {"workload": workload.id, "way": way, "us": round(us, 3), "why": why}
