"""Questions that the decision rules and the loop ask of a snapshot. All pure."""

from __future__ import annotations

from collections.abc import Iterable

from kda_tui.record.records import NEVER_OVERRIDDEN, Candidate, Decision
from kda_tui.record.snapshot import Claim, Evaluation, Gate, Incumbent, PlanRevision, Snapshot

BASELINE = "baseline"
REJECTED = frozenset({"vetoed", "revoked"})


def open_gate(snap: Snapshot, kind: str, *, gate: str = "", cand: str = "") -> Gate | None:
    """The open gate of ``kind``, by id, by candidate, or the newest one."""
    for g in reversed(snap.gates):
        if g.kind != kind or (gate and g.id != gate):
            continue
        if cand and g.target.get("cand") != cand:
            continue
        return g
    return None


def gate_by_id(snap: Snapshot, gate: str) -> Gate | None:
    return next((g for g in snap.gates if g.id == gate), None)


def taken_for(
    snap: Snapshot, *, gate: str = "", cand: str = "", kinds: Iterable[str] = ()
) -> Decision | None:
    """The newest decision taken on a gate or candidate: who got there first."""
    allowed = frozenset(kinds)
    for d in reversed(snap.decisions):
        if d.outcome != "taken" or (allowed and d.kind not in allowed):
            continue
        if gate and d.target.get("gate") == gate:
            return d
        if cand and d.target.get("cand") == cand:
            return d
    return None


def by_whom(d: Decision | None) -> str:
    """``" (veto by jw at 2026-07-01T10:00:00Z)"`` or nothing."""
    if d is None:
        return ""
    who = d.who or d.by
    return f" ({d.kind} by {who} at {d.t})"


def contract_sha(snap: Snapshot) -> str:
    """The contract in force: fixed when the run started."""
    return (snap.run.contract_sha if snap.run else "") or snap.contract_sha


def running(snap: Snapshot, cand: str = "") -> Claim | None:
    """The open claim on a candidate, or any open claim."""
    return next((c for c in snap.claims if not c.outcome and (not cand or c.cand == cand)), None)


def is_rejected(candidate: Candidate) -> bool:
    return candidate.decision in REJECTED


def admissible(snap: Snapshot, evaluation: Evaluation) -> bool:
    """A finished evaluation under the contract in force."""
    return evaluation.outcome == "ok" and evaluation.contract_sha == contract_sha(snap)


def newest_evaluation(snap: Snapshot, cand: str, op: str) -> Evaluation | None:
    """The newest admissible ``evaluate`` or ``confirm`` of a candidate."""
    found = [e for e in snap.evaluations.values() if e.cand == cand and e.op == op and admissible(snap, e)]
    return max(found, key=lambda e: (e.run, e.seq), default=None)


def newest_confirm(snap: Snapshot, cand: str) -> Evaluation | None:
    """The newest admissible confirm against the incumbent of this moment, if there is one."""
    found = newest_evaluation(snap, cand, "confirm")
    return found if found is not None and found.opponent == snap.incumbent.cand else None


def promotable(snap: Snapshot, candidate: Candidate) -> str:
    """Why a candidate can never be promoted as it stands, in words; empty if nothing is in the way."""
    if is_rejected(candidate):
        return f"{candidate.id} is {candidate.decision}{by_whom(taken_for(snap, cand=candidate.id))}; unveto first"
    if candidate.validity in NEVER_OVERRIDDEN:
        return f"{candidate.id} is {candidate.validity}; nobody overrides that"
    if candidate.stage != "judged" or not candidate.validity:
        return f"{candidate.id} has no verdict yet ({candidate.stage}); measure it first"
    if candidate.validity != "passed":
        return f"{candidate.id} did not pass: {candidate.validity}"
    return ""


def fallback_incumbent(snap: Snapshot, revoked: str) -> Incumbent:
    """R7: the last promoted one that is not vetoed and was judged under this contract, else the baseline."""
    for past in reversed(snap.incumbents):
        candidate = snap.candidates.get(past.cand)
        if past.why != "promoted" or past.cand == revoked or candidate is None or is_rejected(candidate):
            continue
        evaluation = snap.evaluations.get(past.eval)
        if evaluation is not None and evaluation.contract_sha != contract_sha(snap):
            continue
        return past
    return Incumbent(BASELINE)


def unanswered_comments(snap: Snapshot) -> tuple[Decision, ...]:
    """Change requests of this run that no plan revision answers yet (R6)."""
    run = snap.run.name if snap.run else ""
    answered = {a for rev in snap.plan.revisions for a in rev.answers}
    return tuple(
        d
        for d in snap.decisions
        if d.kind == "request_changes" and d.outcome == "taken" and d.run == run and d.id not in answered
    )


def revision(snap: Snapshot, rev: int | None) -> PlanRevision | None:
    return next((r for r in snap.plan.revisions if r.rev == rev), None)


def charged(snap: Snapshot) -> int:
    """Candidates of this run that count against the budget: the agent's, but none cancelled or parked."""
    run = snap.run.name if snap.run else ""
    return sum(
        1
        for c in snap.candidates.values()
        if c.author in ("agent", "tuner")
        and str(c.extra.get("born", c.run)) == run
        and c.stage != "cancelled"
        and c.validity != "infrastructure_error"
    )
