"""The end of a run: by a person, a written rule, or an amended contract; never by the agent."""

from __future__ import annotations

from kda_tui.record.state_folder import RunSecret, forget_run_secret
from kda_tui.worker import gates
from kda_tui.worker.clerk import Clerk


def end_run(clerk: Clerk, secret: RunSecret, why: str = "", by: str = "") -> None:
    """Close what nobody needs to decide any more, reveal the secret, chain the last checkpoint.

    Promotion gates stay open: what was confirmed can still be granted. May be called again after a crash.
    """
    book = clerk.book
    asked = book.ending.replace("_", " ") + (f": {book.ending_why}" if book.ending_why else "")
    why, by = why or asked, by or book.ending_by
    for gate in clerk.snap.gates:
        if gate.kind != "promotion":
            gates.close(clerk, gate, "ended")
    if clerk.snap.hold:
        clerk.event("hold", on=False, why=clerk.snap.hold, text="the run ended")
    if clerk.snap.phase != "ended":
        clerk.phase("ended", why)
    clerk.event("run_ended", why=why, by=by, seed=secret.value)
    clerk.checkpoint()
    forget_run_secret(secret.commit)
