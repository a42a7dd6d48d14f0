"""The desk that an agent is given: the bench before the judge, the transcript, questions, requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from kda_tui.agents.interface import Evaluated, Proposal, Submitted, T, Turn
from kda_tui.record import clock
from kda_tui.record.records import Candidate, TranscriptBlock
from kda_tui.record.snapshot import Snapshot
from kda_tui.record.transcript import TranscriptFile
from kda_tui.worker import gates
from kda_tui.worker.changed import Signal
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.dispatch import Dispatcher, Done
from kda_tui.worker.facts import is_rejected, open_gate, promotable
from kda_tui.worker.intake import admit
from kda_tui.worker.jobs import Job, has_ticket
from kda_tui.worker.live import LiveWriter
from kda_tui.worker.paid import PaidWork

BLOCK_FIELDS = frozenset(
    {"iter", "turn", "msg", "block", "call", "tool", "args", "is_error", "partial", "dur_s", "claim"}
    | {"cand", "item", "model", "stop_reason", "usage", "usd", "cache_miss"}
)
MAX_BROKEN_OFF = 2  # confirms of one pair that ended without a verdict, before the agent may ask no more
NOTES = "docs/notes.md"
MAX_NOTES = 16 << 10
STREAM_TAIL = 4000  # characters of unfinished text that live.json shows


class WorkerDesk:
    """Implements agents.interface.Desk on the record and the dispatcher."""

    def __init__(
        self,
        clerk: Clerk,
        dispatcher: Dispatcher,
        live: LiveWriter,
        changed: Signal,
        may_submit: Callable[[], Awaitable[None]],
        tune: Callable[[str, int], Awaitable[str]],
        may_start: Callable[[], bool] = lambda: True,
        before: Callable[[], None] = lambda: None,
        held: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._clerk = clerk
        self._dispatcher = dispatcher
        self._live = live
        self._changed = changed
        self._may_submit = may_submit
        self._tune = tune
        self._held = held
        self._paid = PaidWork(clerk, live, changed, may_start, before)
        self.iteration = _newest_iteration(clerk)

    @property
    def root(self) -> Path:
        return self._clerk.ws.root

    @property
    def snapshot(self) -> Snapshot:
        return self._clerk.snap

    # --- bench ---

    async def submit(self, proposal: Proposal) -> Submitted:
        """Record a candidate and compile it; a twin, a secret or a bad launch plan is refused before that."""
        await self._may_submit()
        admitted = admit(
            self._clerk.snap,
            proposal.files,
            self._clerk.snap.contract,
            self._clerk.redactor.holds_secret,
            author=proposal.author,
            run=self._clerk.run,
            hypothesis=proposal.hypothesis,
            parents=proposal.parents,
            item=proposal.item,
            family=proposal.family,
            defines=proposal.defines,
        )
        if isinstance(admitted, str):
            return Submitted(cand="", ok=False, text=admitted)
        c = admitted.candidate
        self._clerk.write_candidate(c.id, admitted.files)
        self._clerk.event("candidate", candidate=c, files=dict(admitted.hashes))
        done = await self._dispatcher.ask(Job("compile", c.id))
        return _submitted(self._clerk.snap.candidates[c.id], done)

    async def evaluate(self, cand: str, level: str = "time") -> Evaluated:
        """The verdict on a candidate against the incumbent, up to ``level``."""
        c = self._clerk.snap.candidates.get(cand)
        if c is None:
            return Evaluated(cand, "", "cancelled", reason=f"there is no candidate {cand}")
        if is_rejected(c):
            return Evaluated(
                cand, c.eval, "cancelled", reason=f"{cand} is {c.decision}: {c.reason}".rstrip(": ")
            )
        if c.validity == "compile_error":
            return _evaluated(c, Done("ok", c.eval, c.reason))
        done = await self._dispatcher.ask(Job("evaluate", cand, level))
        return _evaluated(self._clerk.snap.candidates[cand], done)

    async def profile(self, cand: str, workload: str | None = None) -> str:
        if cand not in self._clerk.snap.candidates:
            return f"there is no candidate {cand}"
        return (await self._dispatcher.ask(Job("profile", cand, workload=workload or ""))).why

    async def autotune(self, cand: str, max_candidates: int) -> str:
        """Search the [tune] table of a candidate; returns what came of it, in words."""
        if cand not in self._clerk.snap.candidates:
            return f"there is no candidate {cand}"
        return await self._tune(cand, max_candidates)

    # --- transcript ---

    async def say(self, kind: str, text: str, **fields: Any) -> None:
        known = {k: v for k, v in fields.items() if k in BLOCK_FIELDS}
        known.setdefault("iter", self.iteration)
        extra = {k: v for k, v in fields.items() if k not in BLOCK_FIELDS}
        self._clerk.say(TranscriptBlock(kind=kind, text=text, **known, extra=extra))
        self._live.set(streaming=None)

    def stream(self, text: str) -> None:
        redactor = self._clerk.redactor
        shown, _ = redactor.split_stream(text[-STREAM_TAIL - 2 * redactor.longest :])
        self._live.set(streaming=shown[-STREAM_TAIL:] or None)

    # --- paid turns ---

    async def turn(
        self,
        work: Callable[[Turn], Awaitable[T]],
        *,
        op: Literal["turn", "review"] = "turn",
        key: str = "",
        model: str = "",
        est_usd: float | None = None,
        cand: str = "",
    ) -> T:
        return await self._paid.do(work, op, key, model, est_usd, cand)

    async def hold(
        self, why: Literal["auth", "api", "budget"], text: str, retry_s: float | None = None
    ) -> None:
        """Hold the run with its cause, say so, and wait; a hold by somebody else is waited for too."""
        await self.say("notice", text, is_error=True)
        if not self._clerk.snap.hold:
            until: dict[str, Any] = (
                {"until": clock.stamp(clock.parse(clock.now()) + retry_s)} if retry_s is not None else {}
            )
            self._clerk.event("hold", on=True, why=why, text=text, **until)
            self._held(text)
        while self._clerk.snap.hold:
            await self._changed.wait(1.0)

    async def seen(self, notes: Sequence[str]) -> None:
        pinned = {n.decision for n in self._clerk.snap.steering if n.pinned and n.seen_turn is None}
        for note in notes:
            if note in pinned:
                turn = self._clerk.snap.transcript.turns or self.iteration
                self._clerk.event("steer_seen", decision=note, turn=turn)

    async def write_notes(self, text: str) -> str:
        """docs/notes.md is the newest copy; the transcript keeps every version."""
        size = len(text.encode())
        if size > MAX_NOTES:
            return f"refused: {size} bytes; the limit is {MAX_NOTES}. Shorten them."
        if secret := self._clerk.redactor.holds_secret(text):
            return f"refused: the notes hold the value of {secret}"
        self._clerk.artifact(self._clerk.ws.root / NOTES, text)
        return f"written to {NOTES}"

    # --- plan, promotion, questions, the end ---

    async def item(self, item: str, state: Literal["open", "doing", "done", "dropped"]) -> None:
        now = next((i for i in self._clerk.snap.plan.items if i.id == item), None)
        if now is not None and now.state != state:
            self._clerk.event("item", id=item, state=state)

    async def request_promotion(self, cand: str, reasons: str) -> str:
        """R8: the entry ticket is a full evaluation above 1; one open request a family, ``gates.max_open`` in all."""
        snap = self._clerk.snap
        c = snap.candidates.get(cand)
        if c is None:
            return f"refused: there is no candidate {cand}"
        if (stopped := promotable(snap, c) or has_ticket(snap, cand)) != "":
            return f"refused: {stopped}"
        if c.decision in ("requested", "promoted", "declined"):
            return f"refused: {cand} is {c.decision} already"
        if self._clerk.book.broken_off[cand, snap.incumbent.cand] >= MAX_BROKEN_OFF:
            return (
                f"refused: the confirm of {cand} broke off too often; a person may still ask for it (promote)"
            )
        waiting = [x for x in snap.candidates.values() if x.decision == "requested"]
        limit = snap.contract.gates.max_open if snap.contract else 0
        if len(waiting) >= limit:
            return f"refused: {len(waiting)} requests wait already (gates.max_open = {limit})"
        rival = next((x for x in waiting if x.family and x.family == c.family), None)
        if rival is not None:
            return f"refused: {rival.id} of the same family ({c.family}) waits already"
        asked = {**c.extra, "asked": reasons}  # ``reason`` will be the confirm's
        self._clerk.event(
            "candidate", candidate=replace(c, decision="requested", reason=reasons, extra=asked)
        )
        return (
            "queued: a confirm against the incumbent comes first, then a person or the written rule decides"
        )

    async def ask(self, text: str, options: Sequence[str] = (), default: str = "") -> str:
        """Ask people and wait; the default applies after ``gates.question_timeout_s``."""
        question = self._clerk.next_name("q")
        self._clerk.event("question", q=question, text=text, options=list(options))
        self._clerk.say(
            TranscriptBlock(kind="question", text=text, iter=self.iteration, extra={"question": question})
        )
        contract = self._clerk.snap.contract
        timeout = contract.gates.question_timeout_s if contract else None
        gate = gates.open_new(
            self._clerk,
            "question",
            {"question": question},
            blocking=not default,
            default=default,
            timeout_s=timeout,
        )
        while (closed := self._clerk.book.closed.get(gate)) is None:
            await self._changed.wait(1.0)
        answer = next((d for d in self._clerk.snap.decisions if d.id == closed.get("decision")), None)
        return (answer.text or answer.reason) if answer is not None else default

    async def request_end(self, why: str) -> None:
        """Only budget, contract or a person ends a run; the default after the timeout is to end."""
        if open_gate(self._clerk.snap, "end") is not None or self._clerk.book.end_was_declined():
            return
        contract = self._clerk.snap.contract
        timeout = contract.gates.question_timeout_s if contract else None
        default = "end" if timeout is not None else ""
        gates.open_new(
            self._clerk, "end", {"why": why}, blocking=not default, default=default, timeout_s=timeout
        )
        self._clerk.say(
            TranscriptBlock(kind="notice", text=f"asks to end the run: {why}", iter=self.iteration)
        )


def _newest_iteration(clerk: Clerk) -> int:
    """The iteration that a former worker was in."""
    blocks = TranscriptFile(clerk.paths.transcript).tail(200)
    return max((b.iter for b in blocks if isinstance(b, TranscriptBlock)), default=0)


def _submitted(c: Candidate, done: Done) -> Submitted:
    report = done.verdict.compile if done.verdict is not None else None
    ok = done.outcome == "ok" and c.stage in ("compiled", "claimed", "judged") and not c.validity
    text = c.reason or done.why
    if report is not None and not ok:
        text = report.log or report.not_possible or text
    return Submitted(
        cand=c.id,
        ok=ok,
        text="" if ok else text,
        registers=c.registers,
        spills=c.spills,
        warnings=report.warnings if report is not None else (),
    )


def _evaluated(c: Candidate, done: Done) -> Evaluated:
    if done.outcome != "ok":
        return Evaluated(c.id, done.claim, done.outcome, validity=c.validity, reason=done.why)
    return Evaluated(
        cand=c.id,
        eval=c.eval,
        outcome="ok",
        validity=c.validity,
        speed=c.speed,
        stage_reached=c.stage_reached,
        reason=c.reason,
        gates=dict(done.verdict.gates) if done.verdict is not None else {},
        time_us=c.time_us,
        ratio=c.ratio,
        lo=c.lo,
        hi=c.hi,
        floor_share=c.floor_share,
    )
