"""Draft and plan revisions in the record (R6): immutable files, a gate for each revision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kda_tui.agents.interface import PlanText
from kda_tui.record.records import Decision
from kda_tui.record.snapshot import PlanRevision
from kda_tui.worker import gates
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.facts import open_gate


def comment_lines(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    """Change requests as the agent gets them: one entry a comment, with the decision it answers."""
    lines: list[dict[str, Any]] = []
    for d in decisions:
        rev = d.target.get("plan_rev")
        lines += [{"rev": rev, **line, "decision": d.id, "who": d.who} for line in d.lines]
        if text := (d.text or d.reason).strip():
            lines.append({"rev": rev, "text": text, "decision": d.id, "who": d.who})
    return lines


def record_draft(clerk: Clerk, text: str) -> None:
    """docs/draft.md, hashed in the line that leaves the draft phase."""
    sha = clerk.artifact(clerk.ws.draft, text)
    files = {clerk.ws.draft.relative_to(clerk.ws.root).as_posix(): sha}
    clerk.phase("plan", "the draft is written", files=files)


def record_plan(clerk: Clerk, plan: PlanText, comments: Sequence[Decision], author: str) -> None:
    """The next revision; :func:`propose_newest` puts it before people."""
    rev = max((r.rev for r in clerk.snap.plan.revisions), default=0) + 1
    while (path := clerk.ws.plans / f"r{rev:03d}.md").exists():
        rev += 1
    sha = clerk.artifact(path, plan.text)
    answers = tuple(dict.fromkeys((*(d.id for d in comments), *plan.answers)))
    file = path.relative_to(clerk.ws.root).as_posix()
    clerk.event(
        "plan",
        rev=rev,
        file=file,
        sha=sha,
        files={file: sha},
        author=author,
        answers=list(answers),
        items=[{"id": ident, "title": title} for ident, title in plan.items],
    )
    clerk.artifact(clerk.ws.plan, plan.text)


def unproposed(clerk: Clerk) -> PlanRevision | None:
    """The newest revision, if nobody was asked about it yet."""
    newest = clerk.snap.plan.newest
    gated = {g["target"].get("plan_rev") for g in clerk.book.gates.values() if g.get("gate_kind") == "plan"}
    return newest if newest is not None and newest.rev not in gated else None


def propose_newest(clerk: Clerk) -> bool:
    """Put the newest revision before people, if nobody did; also after a crash in between. True if it waits.

    Its gate blocks only while no plan is in force.
    """
    if (newest := unproposed(clerk)) is not None:
        in_force = clerk.snap.plan.in_force
        former = open_gate(clerk.snap, "plan")
        if former is not None:
            gates.close(clerk, former, "superseded")
        gates.open_new(clerk, "plan", {"plan_rev": newest.rev}, sha=newest.sha, blocking=in_force is None)
        clerk.checkpoint()
    if open_gate(clerk.snap, "plan") is None:
        return False
    if clerk.snap.phase == "plan":
        waiting = clerk.snap.plan.newest
        clerk.phase("plan_review", f"plan r{waiting.rev if waiting else '?'} is proposed")
    return True
