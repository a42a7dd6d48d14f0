"""compute-sanitizer over a candidate: once each tool, on the smallest workload of each launch path.

What it finds rejects the candidate; what cannot be run is not evaluated, and never passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kda_tui.evaluation.faults import CANDIDATE, InfrastructureFault, Rejected
from kda_tui.evaluation.inputs import CaseKey
from kda_tui.evaluation.placement import Poison
from kda_tui.evaluation.session import Arm, Session, Stand
from kda_tui.record.contract import WorkloadSpec

TOOLS = ("memcheck", "racecheck", "synccheck")


@dataclass(frozen=True, slots=True)
class Sanitized:
    """``word`` is the gate's: passed or not_evaluated; ``why`` says what is missing."""

    word: str
    why: str = ""


def sanitize(stand: Stand, candidate: Arm, workloads: Sequence[WorkloadSpec], seed: str) -> Sanitized:
    """Run every tool on every workload; raises Rejected naming tool, workload and the first finding."""
    for tool in TOOLS:
        for workload in workloads:
            missing = _check(stand, candidate, workload, seed, tool)
            if missing:
                return Sanitized("not_evaluated", missing)
    return Sanitized("passed")


def _check(stand: Stand, candidate: Arm, workload: WorkloadSpec, seed: str, tool: str) -> str:
    """Empty, or why this could not be checked."""
    watched = stand.device.watched_child(stand.scratch, tool)
    if isinstance(watched, str):
        return watched
    fault = ""
    try:
        with Session(stand, watched.child) as session:
            session.load(candidate)
            placement = session.place(workload, 1)
            placement.fill(0, stand.oracle.case(workload, CaseKey(workload.id, seed)).inputs)
            placement.poison(0, Poison(f"sanitizer/{tool}"))
            session.run(CANDIDATE, placement, 0)
    except (Rejected, InfrastructureFault) as error:
        fault = str(error)
    found = watched.findings()
    if found is None:
        return f"compute-sanitizer --tool {tool} left no report ({fault or 'it was ended'})"
    if found:
        raise Rejected("tampered", "sanitizer", f"{tool} on {workload.id}: {found}")
    return f"compute-sanitizer --tool {tool}: {fault}" if fault else ""
