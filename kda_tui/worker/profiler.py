"""Profiling on order: which workload, what the evaluator knows of it, and what the record keeps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kda_tui.config import ProfileConfig
from kda_tui.expressions import ExpressionError, evaluate
from kda_tui.profiling.collect import Wanted
from kda_tui.record.contract import Contract, workload_names
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Snapshot
from kda_tui.worker.facts import newest_evaluation


def wanted(
    ws: Workspace,
    snap: Snapshot,
    c: Candidate,
    cache: Path,
    settings: ProfileConfig,
    workload: str = "",
    folder: Path | None = None,
) -> Wanted:
    """What to profile: the workload asked for, else the one with most time above its floor by weight.

    ``folder`` is where the source lies; by default the candidate's own.
    """
    contract = snap.contract
    assert contract is not None
    found = newest_evaluation(snap, c.id, "evaluate")
    times = _times(found.extra if found is not None else {})
    chosen = workload or heaviest(contract, times)
    time_us = times.get(chosen, (None, None))[0]
    return Wanted(
        workspace=ws.root,
        folder=folder or ws.candidate(c.id),
        cand=c.id,
        workload=chosen,
        cache=cache,
        target=ws.profile / c.id,
        ncu=settings.ncu,
        timeout_s=settings.timeout_s,
        event_us=time_us,
        registers=c.registers,
        bytes_min=_bytes(contract, chosen),
    )


def _times(extra: Mapping[str, Any]) -> dict[str, tuple[float | None, float | None]]:
    return {
        str(w["workload"]): (w.get("time_us"), w.get("floor_us"))
        for w in extra.get("workloads") or ()
        if isinstance(w, Mapping) and "workload" in w
    }


def heaviest(contract: Contract, times: Mapping[str, tuple[float | None, float | None]]) -> str:
    """The timed workload with the largest weight x (time - floor); the first where nothing was timed."""
    timed = [w for w in contract.workloads if w.timed]

    def lost(weight: float, ident: str) -> float:
        time_us, floor_us = times.get(ident, (None, None))
        return weight * max(0.0, (time_us or 0.0) - (floor_us or 0.0))

    return max(timed, key=lambda w: lost(w.weight, w.id)).id


def _bytes(contract: Contract, workload: str) -> float | None:
    """The contract's bytes of one call, for finding redundant traffic."""
    if contract.cost.bytes is None or contract.cost.facts:
        return None
    chosen = next(w for w in contract.workloads if w.id == workload)
    try:
        return float(evaluate(contract.cost.bytes, workload_names(contract, chosen)))
    except ExpressionError:
        return None
