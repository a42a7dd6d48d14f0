"""Rules for single candidates: veto, unveto, revoke (R7), and work that a person orders."""

from __future__ import annotations

from dataclasses import replace

from kda_tui.record.records import Candidate, Decision
from kda_tui.record.snapshot import Snapshot
from kda_tui.worker.facts import (
    by_whom,
    fallback_incumbent,
    gate_by_id,
    is_rejected,
    open_gate,
    running,
    taken_for,
)
from kda_tui.worker.rulings import Effect, Ruling, moot, refused, superseded, taken

UNFINISHED = ("submitted", "compiled", "claimed")


def _candidate(snap: Snapshot, d: Decision) -> Candidate | Ruling:
    cand = str(d.target.get("cand") or "")
    found = snap.candidates.get(cand)
    return found if found is not None else refused(f"there is no candidate {cand or '(none named)'}")


def _close_promotion_gates(snap: Snapshot, cand: str, outcome: str) -> list[Effect]:
    return [
        Effect("gate_close", {"gate": g.id, "outcome": outcome, "gate_kind": "promotion", **g.target})
        for g in snap.gates
        if g.kind == "promotion" and g.target.get("cand") == cand
    ]


def _revoke(snap: Snapshot, c: Candidate, d: Decision) -> list[Effect]:
    back = fallback_incumbent(snap, c.id)
    return [
        Effect(
            "candidate",
            candidate=replace(c, decision="revoked", decision_id=d.id, reason=d.reason or d.text),
        ),
        Effect("incumbent", {"cand": back.cand, "prev": c.id, "why": "revoked", "eval": back.eval}),
    ]


def veto(snap: Snapshot, d: Decision) -> Ruling:
    c = _candidate(snap, d)
    if isinstance(c, Ruling):
        return c
    if is_rejected(c):
        return moot(f"{c.id} is already {c.decision}{by_whom(taken_for(snap, cand=c.id))}")
    gates = _close_promotion_gates(snap, c.id, "vetoed")
    if snap.incumbent.cand == c.id:
        return taken(*_revoke(snap, c, d), *gates)
    stage = "cancelled" if c.stage in UNFINISHED else c.stage
    vetoed = replace(c, decision="vetoed", decision_id=d.id, reason=d.reason or d.text, stage=stage)
    why = "its evaluation is stopped, without a verdict" if running(snap, c.id) else ""
    return taken(Effect("candidate", candidate=vetoed), *gates, why=why)


def unveto(snap: Snapshot, d: Decision) -> Ruling:
    """Back to what it was without the veto; never back to promoted."""
    c = _candidate(snap, d)
    if isinstance(c, Ruling):
        return c
    if not is_rejected(c):
        return moot(f"{c.id} is not vetoed")
    compiled = c.cubin or c.compile_s is not None
    stage = "judged" if c.validity else "compiled" if compiled else "submitted"
    restored = replace(c, decision="", decision_id=d.id, reason=d.reason or d.text, stage=stage)
    return taken(Effect("candidate", candidate=restored))


def revoke(snap: Snapshot, d: Decision) -> Ruling:
    c = _candidate(snap, d)
    if isinstance(c, Ruling):
        return c
    if snap.incumbent.cand != c.id:
        return refused(f"{c.id} is not the incumbent; {snap.incumbent.cand} is")
    return taken(*_revoke(snap, c, d), *_close_promotion_gates(snap, c.id, "vetoed"))


def _needs_a_run(snap: Snapshot) -> Ruling | None:
    if snap.run is None or snap.phase in ("", "ended"):
        return refused("no run is open to do this; start one first (kda run)")
    return None


def _orders_work(snap: Snapshot, d: Decision) -> Ruling:
    """A person orders a measurement of a candidate; the worker does it before the agent's next step."""
    if (ended := _needs_a_run(snap)) is not None:
        return ended
    c = _candidate(snap, d)
    if isinstance(c, Ruling):
        return c
    if is_rejected(c):
        return refused(f"{c.id} is {c.decision}{by_whom(taken_for(snap, cand=c.id))}; unveto first")
    if c.validity == "compile_error":
        return refused(f"{c.id} does not compile")
    return taken()


measure = _orders_work
profile = _orders_work


def autotune(snap: Snapshot, d: Decision) -> Ruling:
    value = (d.amount or {}).get("value")  # absent: the whole grid
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        return refused(f"autotune needs a number of candidates, 1 or more, not {value!r}")
    return _orders_work(snap, d)


def rerun(snap: Snapshot, d: Decision) -> Ruling:
    """Do again what ended without a verdict: an ambiguous claim, or a parked candidate."""
    claim = str(d.target.get("claim") or "")
    if not claim and not d.target.get("gate"):
        return _orders_work(snap, d)
    gate = _ambiguous_gate(snap, d)
    if isinstance(gate, Ruling):
        return gate
    return taken(gate)


def abandon(snap: Snapshot, d: Decision) -> Ruling:
    """Give up on a claim: stop it if it runs, forget it if it is ambiguous."""
    claim = str(d.target.get("claim") or "")
    is_open = any(c.id == claim and not c.outcome for c in snap.claims)
    if claim and is_open and not _is_ambiguous(snap, claim):
        return taken(why="the claim is stopped, without a verdict")
    gate = _ambiguous_gate(snap, d)
    return gate if isinstance(gate, Ruling) else taken(gate)


def _is_ambiguous(snap: Snapshot, claim: str) -> bool:
    return any(g.kind == "ambiguous" and g.target.get("claim") == claim for g in snap.gates)


def _ambiguous_gate(snap: Snapshot, d: Decision) -> Effect | Ruling:
    claim, wanted = str(d.target.get("claim") or ""), str(d.target.get("gate") or "")
    outcome = "rerun" if d.kind == "rerun" else "abandoned"
    for g in snap.gates:
        if g.kind == "ambiguous" and (g.id == wanted or (claim and g.target.get("claim") == claim)):
            return Effect(
                "gate_close", {"gate": g.id, "outcome": outcome, "gate_kind": "ambiguous", **g.target}
            )
    for x in reversed(snap.decisions):
        if x.kind in ("rerun", "abandon") and x.outcome == "taken" and x.target == d.target:
            return superseded(f"decided before{by_whom(x)}")
    return refused(f"nothing ambiguous is called {claim or wanted}")


def decline(snap: Snapshot, d: Decision) -> Ruling:
    """No to a promotion request or to an end request."""
    wanted, cand = str(d.target.get("gate") or ""), str(d.target.get("cand") or "")
    gate = gate_by_id(snap, wanted) if wanted else open_gate(snap, "promotion", cand=cand)
    if gate is None and not wanted and not cand:
        gate = open_gate(snap, "end")
    if gate is None:
        first = taken_for(snap, gate=wanted) or taken_for(
            snap, cand=cand, kinds=("approve_promotion", "decline")
        )
        if first is not None:
            return superseded(f"decided before{by_whom(first)}")
        return refused("nothing of that name waits to be declined")
    if gate.kind == "plan":
        return refused("a plan is not declined; request changes and say which")
    if gate.kind not in ("promotion", "end"):
        return refused(f"a {gate.kind} gate cannot be declined")
    effects = [
        Effect("gate_close", {"gate": gate.id, "outcome": "declined", "gate_kind": gate.kind, **gate.target})
    ]
    c = snap.candidates.get(str(gate.target.get("cand") or ""))
    if gate.kind == "promotion" and c is not None:
        declined = replace(c, decision="declined", decision_id=d.id, reason=d.reason or d.text)
        effects.append(Effect("candidate", candidate=declined))
    return taken(*effects)
