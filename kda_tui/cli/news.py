"""What happened between two snapshots, one plain line each: for logs, dumb terminals and ``kda demo --headless``."""

from __future__ import annotations

from collections.abc import Iterator

from kda_tui.cli.deliver import describe
from kda_tui.cli.output import number
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Gate, Snapshot


def news(before: Snapshot | None, after: Snapshot) -> list[str]:
    """Lines for everything that ``after`` has and ``before`` has not; all of it when ``before`` is None."""
    old = before or Snapshot(after.workspace, 0)
    lines: list[str] = []
    for part in (_run, _plan, _phase, _candidates, _gates, _decisions):
        lines.extend(part(old, after))
    return lines


def verdict(candidate: Candidate) -> str:
    """Validity, speed and the numbers behind it: ``passed, faster: 68.5 us, 1.21 [1.18 1.23] vs baseline``."""
    if candidate.stage == "cancelled":
        return "cancelled"
    if not candidate.validity:
        return candidate.stage
    if candidate.validity != "passed":
        return f"{candidate.validity}: {candidate.reason}" if candidate.reason else candidate.validity
    words = "passed" if candidate.speed in ("", "not_measured") else f"passed, {candidate.speed}"
    if candidate.time_us is None:
        return words
    return f"{words}: {number(candidate.time_us)} us{ratio(candidate)}"


def ratio(candidate: Candidate) -> str:
    """``, 1.21 [1.18 1.23] vs baseline``; nothing where no ratio was measured."""
    if candidate.ratio is None:
        return ""
    interval = f" [{candidate.lo:.2f} {candidate.hi:.2f}]" if candidate.lo and candidate.hi else ""
    return f", {candidate.ratio:.2f}{interval} vs {candidate.opponent or 'baseline'}"


def gate_name(gate: Gate) -> str:
    """``plan r2``, ``promotion c0039``, ``question q3``."""
    rev = gate.target.get("plan_rev")
    subject = f"r{rev}" if rev is not None else gate.target.get("cand") or gate.target.get("question") or ""
    return f"{gate.kind} {subject}".rstrip()


def _run(old: Snapshot, new: Snapshot) -> Iterator[str]:
    if new.run is not None and (old.run is None or old.run.name != new.run.name):
        yield f"run {new.run.name} started by {new.run.agent or 'an agent'}"


def _phase(old: Snapshot, new: Snapshot) -> Iterator[str]:
    if new.phase and new.phase != old.phase:
        yield f"phase {new.phase}" + (f": {new.phase_why}" if new.phase_why else "")
    if new.hold != old.hold:
        yield (
            f"held: {new.hold}" + (f", {new.hold_why}" if new.hold_why else "")
            if new.hold
            else "the hold is lifted"
        )
    if new.liveness == "gone" and old.liveness == "alive" and new.phase != "ended":
        yield "the worker is gone; kda run --resume starts it again"


def _plan(old: Snapshot, new: Snapshot) -> Iterator[str]:
    seen = {rev.rev for rev in old.plan.revisions} if _same_run(old, new) else set()
    for rev in new.plan.revisions:
        if rev.rev not in seen:
            yield f"plan r{rev.rev} proposed, {len(rev.items)} items ({rev.file})"
    if new.plan.in_force is not None and (not _same_run(old, new) or new.plan.in_force != old.plan.in_force):
        yield f"plan r{new.plan.in_force.rev} in force, approved by {new.plan.approved_by or 'a rule'}"


def _candidates(old: Snapshot, new: Snapshot) -> Iterator[str]:
    for cand, now in new.candidates.items():
        was = old.candidates.get(cand)
        if was is None:
            yield f"{cand} submitted by {now.author or 'someone'}: {now.hypothesis or 'no hypothesis'}"
        changed = was is None or (was.validity, was.eval, was.stage) != (now.validity, now.eval, now.stage)
        if changed and (now.validity or now.stage == "cancelled"):
            yield f"{cand} {verdict(now)}"
        if now.decision and (was is None or was.decision != now.decision):
            yield f"{cand} {now.decision}" + (
                f": {now.reason}" if now.reason and now.validity == "passed" else ""
            )
    if new.incumbent.cand != old.incumbent.cand:
        yield f"the incumbent is {new.incumbent.cand} ({new.incumbent.why or 'unknown why'})"


def _gates(old: Snapshot, new: Snapshot) -> Iterator[str]:
    known = {gate.id for gate in old.gates}
    for gate in new.gates:
        if gate.id not in known:
            review = new.review_of(gate)
            yield f"waits for a decision: {gate_name(gate)}" + (f"; {review.words}" if review else "")


def _decisions(old: Snapshot, new: Snapshot) -> Iterator[str]:
    known = {d.id for d in old.decisions}
    for d in new.decisions:
        if d.id not in known and d.by == "person":
            yield f"{d.who or 'someone'}: {describe(d.kind, d.target)}: {d.outcome}" + (
                f"; {d.why}" if d.why else ""
            )


def _same_run(old: Snapshot, new: Snapshot) -> bool:
    return old.run is not None and new.run is not None and old.run.name == new.run.name
