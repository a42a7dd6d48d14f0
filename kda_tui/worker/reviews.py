"""The reviewer's part of a run: what is to be reviewed, and what becomes of an opinion (docs/reviews/NNN.md)."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from typing import Any

from kda_tui.agents.interface import Desk, Interrupted, Opinion, Reviewer, Subject
from kda_tui.record.ledger import DiskFull
from kda_tui.record.records import TranscriptBlock
from kda_tui.text import UserError, clean, clean_line
from kda_tui.worker.changed import Signal
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.decisions_promotion import objections
from kda_tui.worker.facts import newest_confirm, promotable
from kda_tui.worker.jobs import is_asked_for
from kda_tui.worker.planning import unproposed

LOOK_S = 0.5
NO_PAID_WORK = (
    "budget",
    "auth",
    "api",
)  # holds under which no opinion will come; people are asked without one
log = logging.getLogger("kda.worker")


@dataclass(slots=True)
class Reviews:
    """Reviews each plan revision and each confirmed request before its gate opens. Without reviewer: nothing."""

    clerk: Clerk
    desk: Desk
    changed: Signal
    reviewer: Reviewer | None = None

    def is_done(self, subject: Subject) -> bool:
        """Whether the gate may open: there is an opinion, or none is to be had as things stand."""
        if self.reviewer is None or subject.key in self.clerk.book.reviews:
            return True
        return self.clerk.snap.hold in NO_PAID_WORK

    def wanted(self) -> Subject | None:
        """The next subject; plans first. Deterministic gates come before: what they refuse is not reviewed."""
        if self.reviewer is None:
            return None
        subjects = [*self._plans(), *self._requests()]
        return next((s for s in subjects if not self.is_done(s)), None)

    def _plans(self) -> list[Subject]:
        newest = unproposed(self.clerk)
        return [Subject("plan", rev=newest.rev)] if newest is not None else []

    def _requests(self) -> list[Subject]:
        snap, book = self.clerk.snap, self.clerk.book
        found = []
        for c in snap.candidates.values():
            confirm = newest_confirm(snap, c.id) if is_asked_for(snap, book, c) else None
            if confirm is None or promotable(snap, c) or objections(snap, confirm)[1]:
                continue
            found.append(Subject("promotion", cand=c.id, eval=confirm.id))
        return found

    async def serve(self) -> None:
        """Review whatever wants it, one after another, until cancelled."""
        while True:
            subject = self.wanted()
            if subject is None:
                await self.changed.wait(LOOK_S)
                continue
            try:
                await self._review(subject)
            except (Interrupted, DiskFull):
                await self.changed.wait(LOOK_S)

    async def _review(self, subject: Subject) -> None:
        assert self.reviewer is not None
        try:
            opinion = await self.reviewer.review(self.desk, subject)
        except (Interrupted, DiskFull, asyncio.CancelledError):
            raise
        except Exception as error:  # whatever it is: people are not kept waiting for an opinion
            if not isinstance(error, UserError):
                log.exception("the review of %s failed", subject.key, exc_info=error)
            self._write(subject, None, clean_line(str(error) or type(error).__name__, 300))
        else:
            self._write(subject, opinion, "")

    def _write(self, subject: Subject, opinion: Opinion | None, why_none: str) -> None:
        target: dict[str, Any] = (
            {"plan_rev": subject.rev}
            if subject.kind == "plan"
            else {"cand": subject.cand, "eval": subject.eval}
        )
        fields: dict[str, Any] = {"subject": subject.key, "about": subject.kind, "target": target}
        if opinion is None:
            self.clerk.event("review", **fields, verdict="none", summary=why_none)
            words = f"no review of {_called(subject)}: {why_none}"
        else:
            number = self._next_number()
            path = self.clerk.ws.reviews / f"{number}.md"
            sha = self.clerk.artifact(path, page(number, subject, opinion))
            file = path.relative_to(self.clerk.ws.root).as_posix()
            self.clerk.event(
                "review",
                **fields,
                review=number,
                verdict=opinion.verdict,
                summary=clean_line(opinion.summary, 300),
                findings=[dict(f) for f in opinion.findings],
                model=opinion.model,
                file=file,
                sha=sha,
                files={file: sha},
            )
            words = f"review {number} of {_called(subject)}: {opinion.verdict}; {clean_line(opinion.summary, 200)}"
        self.clerk.say(TranscriptBlock(kind="notice", text=words, cand=subject.cand))

    def _next_number(self) -> str:
        taken = [int(str(r["review"])) for r in self.clerk.book.reviews.values() if r.get("review")]
        try:
            names = [p.name for p in self.clerk.ws.reviews.iterdir()]
        except OSError:
            names = []
        taken += [int(m[1]) for name in names if (m := re.fullmatch(r"(\d+)\.md", name))]
        return f"{max(taken, default=0) + 1:03d}"


def page(number: str, subject: Subject, opinion: Opinion) -> str:
    """docs/reviews/NNN.md"""
    lines = [
        f"# Review {number}: {_called(subject)}",
        "",
        f"Verdict: **{opinion.verdict}**" + (f", by {opinion.model}" if opinion.model else ""),
        "",
        clean(opinion.summary).strip(),
        "",
        "Advice to the person at the gate; it decides nothing.",
        "",
    ]
    if opinion.findings:
        lines += ["## Findings", ""]
    for n, finding in enumerate(opinion.findings, 1):
        lines += [
            f"{n}. **{clean_line(finding.get('severity', ''))}**: {clean_line(finding.get('text', ''))}"
        ]
        if evidence := finding.get("evidence"):
            lines += [f"   Evidence: {clean_line(evidence)}"]
    return "\n".join(lines).rstrip() + "\n"


def _called(subject: Subject) -> str:
    return f"plan r{subject.rev}" if subject.kind == "plan" else f"the promotion of {subject.cand}"
