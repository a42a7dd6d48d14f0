"""From a verdict to what the record keeps: the result event's fields and the candidate's new line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from kda_tui.evaluation.verdict import CompileReport, Verdict, WorkloadResult
from kda_tui.record.contract import Contract
from kda_tui.record.records import Candidate


def result_fields(verdict: Verdict, op: str) -> dict[str, Any]:
    """Fields of a ``result`` event; what is absent is left out."""
    fields: dict[str, Any] = {
        "validity": verdict.validity,
        "speed": verdict.speed,
        "stage_reached": verdict.stage_reached,
        "reason": verdict.reason,
        "gates": dict(verdict.gates),
        "ratio": verdict.ratio,
        "lo": verdict.lo,
        "hi": verdict.hi,
        "vs_baseline": verdict.vs_baseline,
        "aa": verdict.aa,
        "device": verdict.device,
        "trust": verdict.trust,
        "workloads": [_present(asdict(w)) for w in verdict.workloads],
        "samples": [asdict(s) for s in verdict.samples],
        "stage_seconds": {k: round(v, 4) for k, v in verdict.stage_seconds.items()},
        "dur_s": round(verdict.dur_s, 4),
    }
    if op == "confirm":
        fields |= {"rule_passed": verdict.rule_passed, "k": verdict.k, "alpha_spent": verdict.alpha_spent}
    if verdict.compile is not None:
        fields["compile"] = compile_fields(verdict.compile)
    if verdict.mismatch is not None:
        fields["mismatch"] = _present(asdict(verdict.mismatch))
    if verdict.extra:
        fields["extra"] = dict(verdict.extra)
    return {k: v for k, v in fields.items() if v not in (None, "", {}, [])}


def compile_fields(report: CompileReport) -> dict[str, Any]:
    """The compile report without the paths of binaries, which mean nothing elsewhere."""
    kept = asdict(report)
    kept.pop("binaries")
    return _present(kept)


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        k: list(v) if isinstance(v, tuple) else v
        for k, v in fields.items()
        if v is not None and v != "" and v != () and v != {}
    }


def compiled(c: Candidate, verdict: Verdict) -> Candidate:
    """The candidate after op compile: compiled, or judged where it never will be."""
    c = _with_build(c, verdict.compile)
    if verdict.validity == "passed":
        return replace(c, stage="compiled", reason="")
    return replace(c, stage="judged", validity=verdict.validity, stage_reached="build", reason=verdict.reason)


def judged(
    c: Candidate, verdict: Verdict, claim: str, opponent: str, attempt: int, contract: Contract
) -> Candidate:
    """The candidate after an evaluation or a confirm that ended with a verdict."""
    c = _with_build(c, verdict.compile)
    return replace(
        c,
        stage="judged",
        attempt=attempt,
        validity=verdict.validity,
        eval=claim,
        opponent=opponent,
        time_us=overall_time(verdict.workloads, contract),
        ratio=verdict.ratio,
        lo=verdict.lo,
        hi=verdict.hi,
        floor_share=overall_share(verdict.workloads, contract),
        worst=worst(verdict.workloads),
        speed=verdict.speed,
        stage_reached=verdict.stage_reached,
        trust=verdict.trust or c.trust,
        reason=verdict.reason,
    )


def _with_build(c: Candidate, report: CompileReport | None) -> Candidate:
    if report is None:
        return c
    return replace(
        c,
        registers=report.registers if report.registers is not None else c.registers,
        spills=report.spills if report.spills is not None else c.spills,
        shared_bytes=report.shared_bytes if report.shared_bytes is not None else c.shared_bytes,
        compile_s=round(report.seconds, 4) if not report.cached or c.compile_s is None else c.compile_s,
        cubin=report.sha256 or c.cubin,
    )


def _weights(contract: Contract) -> dict[str, float]:
    return {w.id: w.weight for w in contract.workloads}


def _weighted_log_mean(pairs: Sequence[tuple[float, float]]) -> float | None:
    total = sum(weight for weight, _ in pairs)
    if total <= 0.0:
        return None
    return math.exp(sum(weight * math.log(value) for weight, value in pairs) / total)


def overall_time(rows: Sequence[WorkloadResult], contract: Contract) -> float | None:
    """Weighted geometric mean over the workloads, in microseconds; of one workload its time."""
    weights = _weights(contract)
    return _weighted_log_mean(
        [(weights.get(w.workload, 1.0), w.time_us) for w in rows if w.time_us is not None and w.time_us > 0]
    )


def overall_share(rows: Sequence[WorkloadResult], contract: Contract) -> float | None:
    """Weighted geometric mean of the shares of the floor, 0 to 1."""
    weights = _weights(contract)
    return _weighted_log_mean(
        [
            (weights.get(w.workload, 1.0), w.floor_share)
            for w in rows
            if w.floor_share is not None and w.floor_share > 0
        ]
    )


def worst(rows: Sequence[WorkloadResult]) -> dict[str, Any] | None:
    """Where the error is largest, as a share of what is allowed."""
    with_error = [w for w in rows if w.error is not None]
    if not with_error:
        return None
    found = max(with_error, key=lambda w: w.error or 0.0)
    return {"workload": found.workload, "tile": found.error_tile, "err": found.error}
