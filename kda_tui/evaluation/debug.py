"""``kda debug``: one launch with printf and assert, where it differs, and the outputs as .npy. No verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kda_tui.evaluation.arrays import to_host
from kda_tui.evaluation.compare import compare
from kda_tui.evaluation.devices.choose import open_device
from kda_tui.evaluation.dtypes import decode
from kda_tui.evaluation.evaluator import device_title
from kda_tui.evaluation.faults import CANDIDATE, InfrastructureFault, Rejected
from kda_tui.evaluation.inputs import CaseKey
from kda_tui.evaluation.launches import Outputs, judge_memory, launch_chain
from kda_tui.evaluation.mismatch import Evidence, describe
from kda_tui.evaluation.oracle import Case
from kda_tui.evaluation.placement import Placement, Poison
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.session import Session, Stand
from kda_tui.evaluation.verdict import CompileReport, Mismatch, Verdict
from kda_tui.evaluation.workbench import Workbench
from kda_tui.record.contract import WorkloadSpec
from kda_tui.record.paths import Workspace
from kda_tui.text import UserError

WORD = "a look, not a verdict"


@dataclass(slots=True)
class _Look:
    validity: str
    said: list[str]
    mismatch: Mismatch | None = None


def debug(request: JudgeRequest, bench: Workbench) -> Verdict:
    """Launch a candidate once per wanted workload (default: the smallest). ``extra["output"]`` is for a person."""
    looking = Workbench(bench.cache, lambda kind, cache: open_device(kind, cache, mode="debug"))
    report: CompileReport | None = None
    look = _Look("passed", [])
    title = ""
    try:
        stand = looking.stand(Workspace(Path(request.workspace)))
        title = device_title(stand.device.facts)
        arm = looking.arm(stand, CANDIDATE, request.cand_id, Path(request.candidate))
        report = arm.report
        if not report.ok:
            return Verdict("compile_error", reason=report.not_possible or WORD, compile=report, device=title)
        for workload in _wanted(stand, request):
            with Session(stand) as session:
                session.load(arm)
                _launch(session, workload, request, bench.cache, look)
                look.said.append(getattr(session.child, "output", ""))
    except Rejected as fault:
        look.validity, look.mismatch = fault.validity, fault.mismatch
        look.said.append(fault.reason)
    except (UserError, InfrastructureFault) as error:
        return Verdict("infrastructure_error", reason=str(error), compile=report, device=title)
    finally:
        looking.close()
    output = "\n".join(text.rstrip() for text in look.said if text.strip())
    return Verdict(
        look.validity, reason=WORD, stage_reached="smoke", mismatch=look.mismatch, compile=report,
        device=title, extra={"output": output},
    )  # fmt: skip


def _wanted(stand: Stand, request: JudgeRequest) -> list[WorkloadSpec]:
    chosen = request.options.get("workloads")
    workloads = stand.contract.workloads
    if chosen:
        return [w for w in workloads if w.id in chosen]
    return [min(workloads, key=lambda w: float(np.prod(list(w.axes.values()), dtype=float)))]


def _launch(
    session: Session, workload: WorkloadSpec, request: JudgeRequest, cache: Path, look: _Look
) -> None:
    placement = session.place(workload, 1)
    case = session.stand.oracle.case(workload, CaseKey(workload.id, request.seeds[0]))
    poison = Poison(str(case.key))
    try:
        outputs = launch_chain(session, CANDIDATE, placement, case, poison)
    except Rejected:
        look.said.append(getattr(session.child, "output", ""))
        raise
    last = outputs[max(outputs)]
    folder = cache / "debug" / (request.cand_id or "candidate") / workload.id
    look.said.append(f"{workload.id}: outputs and inputs are in {_dump(folder, placement, case, last)}")
    judge_memory(placement, {0: case})
    for spec in session.stand.oracle.outputs:
        expected = case.expected[max(outputs)][spec.name]
        got = placement.elements(spec.name, last[spec.name])
        found = compare(got, expected, spec)
        words = "right" if found.ok else f"wrong: {found.reason}"
        look.said.append(f"{workload.id}: {spec.name} is {words} (error over limit {found.error:.3g})")
        if not found.ok and look.mismatch is None:
            look.validity = "incorrect"
            laid = placement.pattern(poison, spec.name, 0)
            evidence = Evidence(
                placement.elements(spec.name, laid) if spec.role == "out" else None, case.inputs.values()
            )
            look.mismatch = describe(got, expected, spec, workload.id, str(case.key), found, evidence)


def _dump(folder: Path, placement: Placement, case: Case, outputs: Outputs) -> Path:
    """Inputs, outputs and expected values as float64 (or integers): input.NAME.npy, NAME.npy, NAME.expected.npy."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in case.inputs.values().items():
        np.save(folder / f"input.{name}.npy", to_host(values))
    for name, expected in case.expected[max(case.expected)].items():
        dtype = expected.layout.dtype
        np.save(folder / f"{name}.npy", to_host(decode(placement.elements(name, outputs[name]), dtype)))
        wanted = expected.values if expected.bits is None else decode(expected.bits, dtype)
        if wanted is not None:
            np.save(folder / f"{name}.expected.npy", to_host(wanted))
    return folder
