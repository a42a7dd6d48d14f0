"""What is to be done on the device next, read from the record: people's orders before the agent's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Claim, Snapshot
from kda_tui.worker.book import Book
from kda_tui.worker.facts import is_rejected, newest_confirm, newest_evaluation, open_gate, promotable

MAX_DEATHS = 2  # R9: two deaths of worker or judge on one candidate park it
MAX_FAULTS = 3  # so do three other infrastructure errors in a row (a noisy machine, a broken baseline)


@dataclass(frozen=True, slots=True)
class Job:
    """One claim to make. ``order`` is the decision that asked for it, ``approval`` a gate's."""

    op: str  # compile | evaluate | confirm | profile | promote
    cand: str
    level: str = "time"
    order: str = ""
    eval: str = ""
    workload: str = ""  # of a profile; "" = the one with most to gain

    @property
    def key(self) -> tuple[str, str]:
        return self.op, self.cand


def next_job(snap: Snapshot, book: Book) -> Job | None:
    """The first piece of work that the record asks for, agents' own requests aside."""
    for approval in book.approvals.values():
        return Job("promote", approval.cand, order=approval.decision, eval=approval.eval)
    for c in snap.candidates.values():
        if c.stage == "submitted" and not is_rejected(c) and of_this_run(snap, c):
            return Job("compile", c.id)
    for c in snap.candidates.values():
        if wants_confirm(snap, book, c):
            return Job("confirm", c.id, "confirm")
    for order in book.orders.values():
        if order.op in ("evaluate", "profile") and order.cand in snap.candidates:
            return Job(order.op, order.cand, order=order.decision)
    for (op, cand), claim in book.retries.items():
        found = snap.candidates.get(cand)
        if op in ("evaluate", "profile") and found is not None and not is_rejected(found):
            return Job(op, cand, str(claim.get("level") or "time"), order=str(claim.get("for") or ""))
    for c in snap.candidates.values():
        if (
            c.author in ("person", "import")
            and c.stage == "compiled"
            and not is_rejected(c)
            and of_this_run(snap, c)
        ):
            return Job("evaluate", c.id)
    return None


def of_this_run(snap: Snapshot, c: Candidate) -> bool:
    return snap.run is not None and c.extra.get("born", c.run) == snap.run.name


def is_asked_for(snap: Snapshot, book: Book, c: Candidate) -> bool:
    """A promotion was requested and neither a gate nor an approval stands for it yet."""
    return (
        c.decision == "requested"
        and c.id not in book.approvals
        and open_gate(snap, "promotion", cand=c.id) is None
    )


def wants_confirm(snap: Snapshot, book: Book, c: Candidate) -> bool:
    """R8: a requested candidate without a confirm against the incumbent of this moment."""
    return is_asked_for(snap, book, c) and not promotable(snap, c) and newest_confirm(snap, c.id) is None


def must_stop(snap: Snapshot, book: Book, claim: Mapping[str, Any] | Claim) -> str:
    """Why a running claim must be killed now (R5, R7), or nothing."""
    ident = claim.id if isinstance(claim, Claim) else str(claim.get("claim") or "")
    cand = claim.cand if isinstance(claim, Claim) else str(claim.get("cand") or "")
    if book.ending == "end_now":
        return "the run was ended"
    c = snap.candidates.get(cand)
    if c is not None and is_rejected(c):
        return f"{cand} was {c.decision}"
    for d in reversed(snap.decisions):
        if d.kind == "abandon" and d.outcome == "taken" and d.target.get("claim") == ident:
            return "the claim was abandoned"
    return ""


def is_last_attempt(book: Book, op: str, cand: str, died: bool) -> bool:
    """Whether an infrastructure error now parks the candidate instead of being tried again."""
    return (died and book.deaths[cand] + 1 >= MAX_DEATHS) or book.faults[op, cand] + 1 >= MAX_FAULTS


def has_ticket(snap: Snapshot, cand: str) -> str:
    """Why a candidate may not ask for a confirm: a full evaluation with a lower bound above 1 is needed."""
    found = newest_evaluation(snap, cand, "evaluate")
    if found is None or found.validity != "passed":
        return f"{cand} has no full evaluation under this contract"
    if found.opponent != snap.incumbent.cand:
        return f"{cand} was compared with {found.opponent}; {snap.incumbent.cand} is the incumbent: evaluate it again"
    if any(found.gates.get(gate) == "not_evaluated" for gate in ("aa", "alone")):
        return f"the measurement of {cand} was disturbed; evaluate it again"
    if found.lo is None or found.lo <= 1.0:
        bound = f"{found.lo:.3f}" if found.lo is not None else "unknown"
        return f"the lower bound of {cand} is {bound}, not above 1"
    return ""
