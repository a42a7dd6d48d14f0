"""Decisions where no worker is alive: the free lock is taken, the same rules are applied, it is given back."""

from __future__ import annotations

import os

from kda_tui.record.inbox import pending
from kda_tui.record.journal import Recorder
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Decision
from kda_tui.text import Redactor
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.ending import end_run
from kda_tui.worker.facts import newest_confirm, promotable
from kda_tui.worker.resume import cancel_open_claims, read_book, run_secret


def apply_pending(ws: Workspace) -> list[Decision]:
    """Take what waits in the inbox and write down what became of it; what needs a device waits for a worker.

    Raises LockHeld where a worker is alive. Without any run there is no journal, so nothing is taken.
    """
    names = ws.run_names()
    if not names or not pending(ws):
        return []
    with WorkspaceLock.acquire(ws, role="command") as lock:
        redactor = Redactor.from_environment(os.environ)
        book = read_book(ws, names[-1])
        clerk = Clerk(ws, Recorder.open(ws, lock, names[-1], redactor), redactor, book)
        try:
            taken = clerk.drain()
            _promote_approved(clerk)
            clerk.settle_outputs()
            if book.ending and not book.ended:
                cancel_open_claims(clerk, "the run was ended while no worker was alive")
                end_run(clerk, run_secret(book))
            elif taken:
                clerk.checkpoint()
        finally:
            clerk.close()
    return taken


def _promote_approved(clerk: Clerk) -> None:
    """A promotion that is confirmed and approved needs no device; while held nothing is started (R5)."""
    for approval in list(clerk.book.approvals.values()):
        c = clerk.snap.candidates.get(approval.cand)
        confirm = newest_confirm(clerk.snap, approval.cand)
        if clerk.snap.hold or c is None or promotable(clerk.snap, c):
            continue
        if confirm is not None and confirm.id == approval.eval:
            clerk.promote(approval.cand, approval.decision, approval.eval)
