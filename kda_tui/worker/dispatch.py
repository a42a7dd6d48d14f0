"""One device, one claim at a time: a claim is journaled before its work starts (claim before dispatch)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from kda_tui.config import load_config
from kda_tui.evaluation.client import JudgeRequest
from kda_tui.evaluation.verdict import Progress, Verdict
from kda_tui.profiling.collect import Collected, Wanted, collect, dump
from kda_tui.record.artifacts import sha256_file
from kda_tui.record.ledger import DiskFull
from kda_tui.record.records import Candidate
from kda_tui.worker import profiler, results
from kda_tui.worker.book import STOPPED
from kda_tui.worker.changed import Signal
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.facts import BASELINE, contract_sha, is_rejected, newest_confirm, promotable
from kda_tui.worker.jobs import Job, is_last_attempt, must_stop, next_job
from kda_tui.worker.live import LiveWriter

PAUSE_S = 0.5


class Judge(Protocol):
    """A judge process (evaluation.client.JudgeProcess), as far as the worker uses it."""

    @property
    def pgid(self) -> int: ...

    @property
    def start_ticks(self) -> int | None: ...

    async def run(self, request: JudgeRequest, on_progress: Callable[[Progress], None]) -> Verdict: ...

    def kill(self) -> None: ...


class StartJudge(Protocol):
    async def __call__(self, cache_dir: Path, log: Path) -> Judge: ...


@dataclass(frozen=True, slots=True)
class Done:
    """How a claim ended; ``verdict`` is None where there is none."""

    outcome: str  # ok | cancelled | infrastructure_error
    claim: str
    why: str = ""
    verdict: Verdict | None = None


@dataclass(slots=True)
class Dispatcher:
    """Serves jobs until closed. ``may_start`` says whether a new claim may be made now (R5, R10)."""

    clerk: Clerk
    live: LiveWriter
    start_judge: StartJudge
    cache_dir: Path
    seeds: Callable[[str], tuple[str, ...]]  # of the run's pool, or fresh ones for a confirm's claim
    may_start: Callable[[], bool]
    changed: Signal
    before: Callable[[], None]  # R3: drains the inbox before each dispatch
    running: str = ""  # the open claim
    failures: tuple[int, str] = (0, "")  # candidates parked in a row, and why the last one
    _stop: str = ""  # why the running claim is being killed
    _judge: Judge | None = None
    _profiling: asyncio.Future[Collected] | None = None
    _closing: bool = False
    _asked: dict[Job, list[asyncio.Future[Done]]] = field(default_factory=dict)

    # --- asking ---

    async def ask(self, job: Job) -> Done:
        """Have a job done for the agent; joins the same job if it is already wanted."""
        future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        self._asked.setdefault(job, []).append(future)
        self.changed.fire()
        try:
            return await future
        finally:
            waiting = self._asked.get(job)
            if waiting is not None and future in waiting:
                waiting.remove(future)
                if not waiting:
                    del self._asked[job]

    # --- serving ---

    async def serve(self) -> None:
        """Do one job after another; returns after :meth:`close`."""
        while not self._closing:
            self.before()
            job = self._next() if self.may_start() else None
            if job is None:
                await self.changed.wait(PAUSE_S)
                continue
            try:
                await self._do(job)
                await asyncio.sleep(0)
            except DiskFull:  # nothing was committed: the job is still there when there is room
                await asyncio.sleep(PAUSE_S)

    def close(self) -> None:
        """No further job; the running claim is stopped and counts as not done."""
        self._closing = True
        self.stop_running(STOPPED)
        self.changed.fire()

    def stop_running(self, why: str) -> None:
        """Kill the judge's process group; the running claim ends cancelled."""
        if self.running and not self._stop:
            self._stop = why
            if self._judge is not None:
                self._judge.kill()
            if self._profiling is not None:
                self._profiling.cancel()

    def look_for_stops(self) -> None:
        """After decisions were taken: does one of them stop the running claim?"""
        claim = self.clerk.book.open_claims.get(self.running)
        if claim is not None and (why := must_stop(self.clerk.snap, self.clerk.book, claim)):
            self.stop_running(why)

    def _next(self) -> Job | None:
        job = next_job(self.clerk.snap, self.clerk.book)
        if job is not None:
            return job
        return next(iter(self._asked), None)

    def _answer(self, job: Job, done: Done) -> None:
        """Everybody who asked for this (whatever ordered it) gets the answer."""
        for asked in [a for a in self._asked if a.key == job.key]:
            for future in self._asked.pop(asked):
                if not future.done():
                    future.set_result(done)

    async def _do(self, job: Job) -> None:
        c = self.clerk.snap.candidates.get(job.cand)
        if job.op == "promote":
            self._promote(job)
            return
        if c is None or is_rejected(c):
            why = f"{job.cand} is {c.decision}" if c is not None else f"there is no candidate {job.cand}"
            self._answer(job, Done("cancelled", "", why))
            return
        if job.op != "compile" and c.validity == "compile_error":
            self._answer(job, Done("ok", c.eval, c.reason))
            return
        if job.op == "profile":
            self._answer(job, await self._profile(job, c))
            return
        await self._judge_it(job, c)

    # --- claims ---

    def _claim(self, job: Job, candidate: Candidate | None, **fields: Any) -> str:
        snap, book = self.clerk.snap, self.clerk.book
        claim = self.clerk.next_name()
        c = snap.candidates[job.cand]
        in_force = snap.plan.in_force
        self.clerk.event(
            "claim",
            candidate=candidate,
            claim=claim,
            op=job.op,
            key=f"{job.op}:{c.sha256[:12]}:{snap.incumbent.cand}:{contract_sha(snap)[:12]}",
            cand=job.cand,
            sha=c.sha256,
            opponent=snap.incumbent.cand if job.op in ("evaluate", "confirm", "promote") else "",
            plan_rev=in_force.rev if in_force else None,
            item=c.item,
            attempt=book.attempts[job.key] + 1,
            paid=False,
            **{"level": job.level, **({"for": job.order} if job.order else {}), **fields},
        )
        self.running = claim
        self.live.set(
            claim=claim, op=job.op, cand=job.cand, stage="", fraction=0.0, waiting=None, waiting_since=None
        )
        return claim

    def _end_claim(self, claim: str, outcome: str, candidate: Candidate | None = None, **fields: Any) -> None:
        opened = self.clerk.book.open_claims.get(claim)
        if opened is None:
            return  # written before the disk was full
        rows = fields.pop("rows", ())
        kept = {k: opened[k] for k in ("cand", "op", "attempt", "opponent", "for") if opened.get(k)}
        self.clerk.event(
            "result",
            candidate=candidate,
            rows=rows,
            claim=claim,
            outcome=outcome,
            contract_sha=contract_sha(self.clerk.snap),
            **kept,
            **fields,
        )
        self.running, self._stop = "", ""
        self.live.idle()

    async def _judge_it(self, job: Job, c: Candidate) -> None:
        try:
            judge = await self._ready_judge()
        except OSError as error:
            self._answer(job, Done("infrastructure_error", "", f"the judge does not start: {error}"))
            return
        taken = replace(c, stage="claimed") if c.stage in ("submitted", "compiled") else None
        claim = self._claim(job, taken, pgid=judge.pgid, start_ticks=judge.start_ticks)
        self.look_for_stops()
        started = time.monotonic()
        verdict = await judge.run(self._request(job, c, claim), self._progress)
        if verdict.validity == "infrastructure_error":
            self._judge = None  # dead or doubtful: the next claim gets a fresh one
            judge.kill()
        verdict = replace(verdict, dur_s=verdict.dur_s or time.monotonic() - started)
        if self._stop:
            self._judge = None
            judge.kill()
            await self._when_there_is_room(lambda: self._cancelled(job, claim))
        elif verdict.validity == "infrastructure_error":
            await self._when_there_is_room(lambda: self._infrastructure(job, claim, verdict))
        else:
            await self._when_there_is_room(lambda: self._finished(job, claim, verdict))

    async def _when_there_is_room(self, write: Callable[[], None]) -> None:
        """A verdict is not lost to a full disk; ``write`` may be called again."""
        while True:
            try:
                write()
                return
            except DiskFull:
                if self._closing:
                    raise
                await asyncio.sleep(PAUSE_S)

    def _finished(self, job: Job, claim: str, verdict: Verdict) -> None:
        if job.op != "compile":
            self.failures = (0, "")
        c = self.clerk.snap.candidates[job.cand]
        contract = self.clerk.snap.contract
        if job.op == "compile" or contract is None:
            after = results.compiled(c, verdict)
        else:
            opened = self.clerk.book.claims[claim]
            opponent, attempt = str(opened.get("opponent") or BASELINE), int(opened.get("attempt") or 1)
            after = results.judged(c, verdict, claim, opponent, attempt, contract)
        self._end_claim(claim, "ok", after, rows=verdict.rows, **results.result_fields(verdict, job.op))
        if job.op != "compile":
            self.clerk.checkpoint()
        self._answer(job, Done("ok", claim, verdict.reason, verdict))

    def _cancelled(self, job: Job, claim: str) -> None:
        """No verdict, the attempt is not charged, samples stay but count for nothing (R7)."""
        why = self._stop
        c = self.clerk.snap.candidates[job.cand]
        self._end_claim(
            claim,
            "cancelled",
            _unclaimed(c, job),
            reason=why,
            **({"stop": STOPPED} if why == STOPPED else {}),
        )
        if why != STOPPED:
            self._answer(job, Done("cancelled", claim, why))

    def _infrastructure(self, job: Job, claim: str, verdict: Verdict) -> None:
        """R9: a new attempt by itself; the second death, or the third fault in a row, parks the candidate."""
        book = self.clerk.book
        c = self.clerk.snap.candidates[job.cand]
        died = bool(verdict.extra.get("died"))
        fields = {**results.result_fields(verdict, job.op), **({"died": True} if died else {})}
        if not is_last_attempt(book, job.op, job.cand, died):
            after = _unclaimed(c, job)
            self._end_claim(claim, "infrastructure_error", after, rows=verdict.rows, retry=True, **fields)
            return
        self.failures = (self.failures[0] + 1, verdict.reason)
        parked = parked_candidate(c, verdict.reason)
        self._end_claim(claim, "infrastructure_error", parked, rows=verdict.rows, **fields)
        self._answer(job, Done("infrastructure_error", claim, verdict.reason, verdict))

    async def _profile(self, job: Job, c: Candidate) -> Done:
        """Run ncu on the candidate; that it could not be profiled is an answer too, with its reason."""
        contract = self.clerk.snap.contract
        claim = self._claim(job, None)
        if contract is None or contract.task.device != "cuda":
            device = contract.task.device if contract else "unknown"
            why = f"nothing was profiled: ncu needs an NVIDIA GPU, and the device is {device}"
            self._end_claim(claim, "ok", reason=why, gates={"profile": "not_evaluated"})
            return Done("ok", claim, why)
        settings = load_config(self.clerk.ws.root).profile
        order = profiler.wanted(self.clerk.ws, self.clerk.snap, c, self.cache_dir, settings, job.workload)
        self._profiling = asyncio.ensure_future(collect(order))
        try:
            found = await self._profiling
        except asyncio.CancelledError:
            if not self._stop:
                raise
            self._end_claim(claim, "cancelled", reason=self._stop)
            return Done("cancelled", claim, self._stop)
        finally:
            self._profiling = None
        files = self._keep_profile(order, found)
        gate = "passed" if found.state == "ok" else "not_evaluated"
        reason = f"{order.workload}: {found.state}" if found.state == "ok" else found.text
        self._end_claim(
            claim, "ok", reason=reason, gates={"profile": gate}, workload=order.workload, files=files
        )
        return Done("ok", claim, found.text)

    def _keep_profile(self, order: Wanted, found: Collected) -> dict[str, str]:
        """Write summary.json; returns the hashes of what the result brings, by path."""
        summary = order.target / "summary.json"
        order.target.mkdir(parents=True, exist_ok=True)
        files = {summary: self.clerk.recorder.artifact(summary, dump(found.summary or {}))}
        if found.report is not None:
            files[found.report] = sha256_file(found.report)
        return {path.relative_to(self.clerk.ws.root).as_posix(): sha for path, sha in files.items()}

    def _promote(self, job: Job) -> None:
        """R8 once more at the last moment: the incumbent may have changed since the approval."""
        snap = self.clerk.snap
        c = snap.candidates.get(job.cand)
        confirm = newest_confirm(snap, job.cand)
        if c is None or promotable(snap, c) or confirm is None or confirm.id != job.eval:
            del self.clerk.book.approvals[job.cand]
            if c is not None and not is_rejected(c):
                self.clerk.change(
                    job.cand, decision="requested", reason="the incumbent changed after the approval"
                )
            return
        claim = self.running or self._claim(job, None)  # the same, if the disk was full on the way
        self.clerk.promote(job.cand, job.order, job.eval)
        self._end_claim(claim, "ok")
        self.clerk.checkpoint()

    # --- the judge ---

    async def _ready_judge(self) -> Judge:
        if self._judge is None:
            self._judge = await self.start_judge(self.cache_dir, self.clerk.paths.root / "judge.log")
        return self._judge

    def drop_judge(self) -> None:
        """End the judge process, at the end of the worker."""
        if self._judge is not None:
            self._judge.kill()
            self._judge = None

    def _request(self, job: Job, c: Candidate, claim: str) -> JudgeRequest:
        snap, ws = self.clerk.snap, self.clerk.ws
        opponent = snap.incumbent.cand
        return JudgeRequest(
            op="compile" if job.op == "compile" else "confirm" if job.op == "confirm" else "evaluate",
            workspace=str(ws.root),
            candidate=str(ws.candidate(c.id)),
            incumbent="" if opponent == BASELINE else str(ws.candidate(opponent)),
            cand_id=c.id,
            incumbent_id=opponent,
            level="confirm" if job.op == "confirm" else job.level,
            k=snap.confirmations + 1,
            attempt=int(self.clerk.book.claims[claim].get("attempt") or 1),
            samples_dir=str(self.clerk.paths.samples / claim),
            cache_dir=str(self.cache_dir),
            seeds=self.seeds(claim if job.op == "confirm" else ""),
            options={},
        )

    def _progress(self, progress: Progress) -> None:
        self.live.set(
            stage=progress.stage, fraction=round(progress.fraction, 3), workload=progress.workload or None
        )


def _unclaimed(c: Candidate, job: Job) -> Candidate | None:
    """What a claimed candidate is again when its claim ends without a verdict."""
    if c.stage != "claimed":
        return None
    return replace(c, stage="submitted" if job.op == "compile" else "compiled")


def parked_candidate(c: Candidate, reason: str) -> Candidate:
    """R9: not the candidate's fault, but nothing more is tried until a person says so (rerun)."""
    if c.validity and c.validity != "infrastructure_error":
        return replace(
            c, stage="judged", decision="" if c.decision == "requested" else c.decision, reason=reason
        )
    return replace(c, stage="judged", validity="infrastructure_error", reason=reason)
