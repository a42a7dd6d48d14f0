"""What becomes of a decision: one pure rule for every kind, and the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kda_tui.record.records import Decision
from kda_tui.record.snapshot import Snapshot
from kda_tui.worker import decisions_candidates, decisions_plan, decisions_promotion, decisions_run
from kda_tui.worker.facts import by_whom, gate_by_id
from kda_tui.worker.intake import admit
from kda_tui.worker.rulings import Effect, Rule, Ruling, refused, taken

RULES: Mapping[str, Rule] = {
    "approve_plan": decisions_plan.approve_plan,
    "request_changes": decisions_plan.request_changes,
    "approve_promotion": decisions_promotion.approve_promotion,
    "decline": decisions_candidates.decline,
    "promote": decisions_promotion.promote,
    "veto": decisions_candidates.veto,
    "unveto": decisions_candidates.unveto,
    "revoke": decisions_candidates.revoke,
    "measure": decisions_candidates.measure,
    "rerun": decisions_candidates.rerun,
    "abandon": decisions_candidates.abandon,
    "answer": decisions_plan.answer,
    "steer": decisions_plan.steer,
    "unpin": decisions_plan.unpin,
    "pause": decisions_run.pause,
    "resume": decisions_run.resume,
    "end_after": decisions_run.end_after,
    "end_now": decisions_run.end_now,
    "set_budget": decisions_run.set_budget,
    "profile": decisions_candidates.profile,
    "autotune": decisions_candidates.autotune,
    "note": decisions_plan.note,
}  # ``submit`` is ruled by :func:`rule_submit`: it brings files


def rule(snap: Snapshot, d: Decision, holds_secret: Callable[[str], str | None]) -> Ruling:
    """The ruling on one decision at this moment; pure."""
    if d.kind == "submit":
        return rule_submit(snap, d, holds_secret)
    asked = RULES.get(d.kind)
    if asked is None:
        return refused(f"unknown kind of decision: {d.kind!r}")
    if snap.run is None:
        return refused("there is no run in this workspace yet (kda run)")
    ruling = asked(snap, d)
    changed = broken_expectation(snap, d) if ruling.outcome == "taken" else ""
    return refused(changed) if changed else ruling


def broken_expectation(snap: Snapshot, d: Decision) -> str:
    """R4: what is no longer as the person saw it, and who changed it; empty if ``expect`` holds."""
    seen = d.expect.get("incumbent")
    if seen is not None and seen != snap.incumbent.cand:
        last = snap.incumbents[-1] if snap.incumbents else None
        first = next((x for x in snap.decisions if last is not None and x.id == last.decision), None)
        return f"the incumbent is now {snap.incumbent.cand}, you saw {seen}{by_whom(first)}"
    gate = gate_by_id(snap, str(d.target.get("gate") or ""))
    seen = d.expect.get("gate_seq")
    if seen is not None and gate is not None and seen != gate.seq:
        return f"gate {gate.id} was opened anew (seq {gate.seq}, you saw {seen})"
    c = snap.candidates.get(str(d.target.get("cand") or (gate.target.get("cand") if gate else "") or ""))
    seen = d.expect.get("eval")
    if seen and c is not None and seen not in (c.eval, gate.target.get("eval") if gate else c.eval):
        return f"the numbers of {c.id} changed: evaluation {c.eval or 'none'} counts now, you saw {seen}"
    return ""


def known(snap: Snapshot, decision_id: str) -> bool:
    """R3: an id that is in decisions.jsonl already is a no-op."""
    return any(d.id == decision_id for d in snap.decisions)


def rule_submit(snap: Snapshot, d: Decision, holds_secret: Callable[[str], str | None]) -> Ruling:
    """A person's own candidate; its files travel in the inbox file under ``files``."""
    if snap.run is None or snap.phase in ("", "ended"):
        return refused("no run is open to take a candidate; start one first (kda run)")
    files = d.extra.get("files")
    if not isinstance(files, Mapping) or not all(isinstance(v, str) for v in files.values()):
        return refused("a submission brings its files: kernel.cu and launch.toml")
    origin = d.target.get("cand") or d.target.get("from")
    admitted = admit(
        snap,
        {str(k): str(v) for k, v in files.items()},
        snap.contract,
        holds_secret,
        author="person",
        run=snap.run.name,
        hypothesis=d.text or d.reason,
        parents=(str(origin),) if origin else (),
    )
    if isinstance(admitted, str):
        return refused(admitted)
    born = Effect("candidate", {"files": dict(admitted.hashes)}, admitted.candidate)
    ruling = taken(born, why=f"submitted as {admitted.candidate.id}")
    sources = {name: data.decode() for name, data in admitted.files.items()}
    return Ruling(ruling.outcome, ruling.why, ruling.effects, files={admitted.candidate.id: sources})
