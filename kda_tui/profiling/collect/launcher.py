"""Launch a candidate's plan once, for ncu to watch: python -m kda_tui.profiling.collect.launcher WS FOLDER WORKLOAD CACHE.

The very session, placement and child of the evaluator; only the verdict is missing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kda_tui.evaluation.faults import CANDIDATE, InfrastructureFault, Rejected
from kda_tui.evaluation.inputs import CaseKey, make_inputs
from kda_tui.evaluation.oracle import Oracle
from kda_tui.evaluation.placement import Poison
from kda_tui.evaluation.session import Session
from kda_tui.evaluation.workbench import Workbench
from kda_tui.record.paths import Workspace
from kda_tui.text import UserError


def launch_once(workspace: Path, folder: Path, workload_id: str, cache: Path) -> None:
    """Compile (or take from the cache), place one set of inputs, and run every step once.

    Raises Rejected when the candidate does not run.
    """
    bench = Workbench(cache)
    try:
        stand = bench.stand(Workspace(workspace))
        workload = next(w for w in stand.contract.workloads if w.id == workload_id)
        arm = bench.arm(stand, CANDIDATE, folder.name, folder)
        if not arm.report.ok:
            raise Rejected("compile_error", "build", arm.report.log[:400])
        oracle = Oracle(stand.contract, workspace)
        key = CaseKey(workload.id, "profile")
        inputs = make_inputs(stand.contract, workload, key, oracle.reference.generator, workspace)
        with Session(stand) as session:
            session.load(arm)
            placement = session.place(workload, 1)
            placement.fill(0, inputs)
            placement.poison(0, Poison("profile"))
            session.run(CANDIDATE, placement, 0)
    finally:
        bench.close()


def main() -> int:
    workspace, folder, workload, cache = sys.argv[1:5]
    try:
        launch_once(Path(workspace), Path(folder), workload, Path(cache))
    except Rejected as fault:
        print(f"launch failed: {fault.validity}: {fault.reason}", file=sys.stderr)
        return 3
    except (InfrastructureFault, UserError) as fault:
        print(f"cannot launch: {fault}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
