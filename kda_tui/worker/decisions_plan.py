"""Rules for plans: approval binds to a revision's hash, change requests go to the agent (R6)."""

from __future__ import annotations

from kda_tui.record.records import Decision
from kda_tui.record.snapshot import Gate, Snapshot
from kda_tui.worker.facts import by_whom, open_gate, revision, taken_for
from kda_tui.worker.rulings import Effect, Ruling, moot, refused, superseded, taken

PLAN_WORDS = ("approve_plan", "request_changes")


def _plan_gate(snap: Snapshot, d: Decision) -> Gate | Ruling:
    """The open plan gate that a decision means, or why there is none."""
    wanted = str(d.target.get("gate") or "")
    gate = open_gate(snap, "plan", gate=wanted)
    if gate is None:
        if wanted and (first := taken_for(snap, gate=wanted)) is not None:
            return superseded(f"gate {wanted} is closed{by_whom(first)}")
        rev = d.target.get("plan_rev")
        first = next(
            (
                x
                for x in reversed(snap.decisions)
                if x.kind in PLAN_WORDS and x.outcome == "taken" and rev and x.target.get("plan_rev") == rev
            ),
            None,
        )
        if first is not None:
            return superseded(f"plan r{rev} was decided before{by_whom(first)}")
        return refused("no plan waits for a decision")
    rev = d.target.get("plan_rev")
    if rev is not None and rev != gate.target.get("plan_rev"):
        return refused(f"plan r{rev} is not the one that waits; r{gate.target.get('plan_rev')} is")
    return gate


def _sha_matches(d: Decision, sha: str) -> bool:
    """A prefix of at least six hex digits is enough for a person at a keyboard."""
    expected = str(d.expect.get("plan_sha") or "")
    return len(expected) >= 6 and sha.startswith(expected)


def approve_plan(snap: Snapshot, d: Decision) -> Ruling:
    gate = _plan_gate(snap, d)
    if isinstance(gate, Ruling):
        return gate
    if not d.expect.get("plan_sha"):
        return refused(f"an approval names the plan it approves: expect plan_sha {gate.sha[:12]}")
    if not _sha_matches(d, gate.sha):
        newest = revision(snap, gate.target.get("plan_rev"))
        author = f" by {newest.author}" if newest and newest.author else ""
        return refused(
            f"the plan changed: r{gate.target.get('plan_rev')}{author} is {gate.sha[:12]}, "
            f"you saw {str(d.expect['plan_sha'])[:12]}"
        )
    effects = [
        Effect("gate_close", {"gate": gate.id, "outcome": "approved", "gate_kind": "plan", **gate.target})
    ]
    if snap.phase in ("plan_review", "plan"):
        effects.append(
            Effect(
                "phase",
                {"from": snap.phase, "to": "iterate", "why": f"plan r{gate.target.get('plan_rev')} approved"},
            )
        )
    return taken(*effects)


def request_changes(snap: Snapshot, d: Decision) -> Ruling:
    """Comments on a plan. On the one that waits they close its gate; on the one in force they just go out."""
    if not d.lines and not (d.text or d.reason).strip():
        return refused("say what should change: a text, or comments on lines")
    gate = open_gate(snap, "plan", gate=str(d.target.get("gate") or ""))
    rev = d.target.get("plan_rev")
    in_force = snap.plan.in_force
    if in_force is not None and (rev == in_force.rev or (gate is None and not d.target.get("gate"))):
        if d.expect.get("plan_sha") and not _sha_matches(d, in_force.sha):
            return refused(f"the plan in force is r{in_force.rev}, {in_force.sha[:12]}")
        return taken(why=f"comments on r{in_force.rev}, which stays in force until a revision is approved")
    found = _plan_gate(snap, d)
    if isinstance(found, Ruling):
        return found
    if d.expect.get("plan_sha") and not _sha_matches(d, found.sha):
        return refused(f"the plan changed: r{found.target.get('plan_rev')} is {found.sha[:12]}")
    effects = [
        Effect("gate_close", {"gate": found.id, "outcome": "changes", "gate_kind": "plan", **found.target})
    ]
    if snap.phase == "plan_review":
        effects.append(Effect("phase", {"from": snap.phase, "to": "plan", "why": "changes requested"}))
    return taken(*effects)


def answer(snap: Snapshot, d: Decision) -> Ruling:
    """The answer to an agent's question."""
    wanted = str(d.target.get("question") or d.target.get("gate") or "")
    gate = next(
        (
            g
            for g in snap.gates
            if g.kind == "question" and (not wanted or wanted in (g.id, str(g.target.get("question"))))
        ),
        None,
    )
    if gate is None:
        first = next(
            (
                x
                for x in reversed(snap.decisions)
                if x.kind == "answer" and x.outcome == "taken" and wanted and wanted in x.target.values()
            ),
            None,
        )
        if first is not None:
            return superseded(f"{wanted} was answered before{by_whom(first)}")
        return refused(f"no question {wanted or ''} waits for an answer".replace("  ", " "))
    if not (d.text or d.reason).strip():
        return refused("the answer is empty")
    return taken(
        Effect("gate_close", {"gate": gate.id, "outcome": "answered", "gate_kind": "question", **gate.target})
    )


def steer(snap: Snapshot, d: Decision) -> Ruling:
    if not d.text.strip():
        return refused("the note is empty")
    if snap.phase == "ended":
        return refused("the run has ended; nobody would read it")
    return taken()


def unpin(snap: Snapshot, d: Decision) -> Ruling:
    """Take a steering note off the board before the agent has seen it."""
    wanted = str(d.target.get("decision") or d.target.get("steer") or d.text or "").strip()
    note = next((s for s in snap.steering if s.decision == wanted and s.pinned), None)
    return taken() if note is not None else moot("that note is not pinned")


def note(snap: Snapshot, d: Decision) -> Ruling:
    return taken() if (d.text or d.reason).strip() else refused("the note is empty")
