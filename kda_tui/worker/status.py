"""Facts about a workspace as plain values, for ``kda status --json``."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from kda_tui.record.records import to_line
from kda_tui.record.snapshot import Snapshot

RECENT = 20


def facts(snap: Snapshot) -> dict[str, Any]:
    """Phase, hold and liveness apart, what waits and since when, the incumbent, counts, budget, findings."""
    best = snap.candidates.get(snap.incumbent.cand)
    return {
        "workspace": str(snap.workspace),
        "name": snap.name,
        "run": _plain(snap.run),
        "phase": snap.phase,
        "phase_since": snap.phase_since,
        "hold": snap.hold,
        "hold_since": snap.hold_since,
        "hold_why": snap.hold_why,
        "liveness": snap.liveness,
        "last_activity": snap.last_activity,
        "contract_sha": snap.contract_sha,
        "contract_error": snap.contract_error,
        "waits": [_plain(g) for g in snap.gates],
        "pending": [to_line(d) for d in snap.pending],
        "plan": {
            "in_force": _plain(snap.plan.in_force),
            "proposed": _plain(snap.plan.proposed),
            "items": [_plain(i) for i in snap.plan.items],
        },
        "reviews": [_plain(r) for r in snap.reviews[-RECENT:]],
        "incumbent": {**_plain(snap.incumbent), "candidate": to_line(best) if best else None},
        "running": [_plain(c) for c in snap.claims],
        "live": _plain(snap.live),
        "counts": dict(snap.counts),
        "confirmations": snap.confirmations,
        "budget": {axis: _plain(line) for axis, line in snap.budget.items()},
        "decisions": [to_line(d) for d in snap.decisions[-RECENT:]],
        "findings": [_plain(f) for f in snap.findings[-RECENT:]],
        "head": snap.head,
    }


def _plain(value: Any) -> Any:
    """A record as a mapping; None stays None."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
