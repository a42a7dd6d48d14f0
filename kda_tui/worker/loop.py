"""The loop: phases, holds, the budget, and the agent in between. One asyncio process a workspace."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kda_tui.agents.interface import Agent, Interrupted, Reviewer, Subject
from kda_tui.record import clock
from kda_tui.record.ledger import DiskFull
from kda_tui.record.records import TranscriptBlock
from kda_tui.record.snapshot import BudgetLine, Evaluation
from kda_tui.record.state_folder import RunSecret
from kda_tui.text import UserError, clean_line
from kda_tui.worker import gates, tuning
from kda_tui.worker.bench import WorkerDesk
from kda_tui.worker.budget import Meter, raised
from kda_tui.worker.changed import Signal
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.dispatch import Dispatcher, StartJudge
from kda_tui.worker.ending import end_run
from kda_tui.worker.facts import open_gate, unanswered_comments
from kda_tui.worker.inputs import FixedInputs
from kda_tui.worker.live import LiveWriter
from kda_tui.worker.planning import comment_lines, propose_newest, record_draft, record_plan, unproposed
from kda_tui.worker.reviews import Reviews
from kda_tui.worker.seeds import seed_pool

TICK_S = 0.5
MIN_FREE_BYTES = 64 << 20
MAX_FAILURES = 2  # candidates parked in a row: then it is not the candidates

log = logging.getLogger("kda.worker")
T = TypeVar("T")
Tell = Callable[[str, Mapping[str, Any]], None]


def free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free


class Worker:
    """Drives one run until it ends (:meth:`run` returns "ended") or is asked to stop ("stopped")."""

    def __init__(
        self,
        clerk: Clerk,
        agent: Agent,
        secret: RunSecret,
        start_judge: StartJudge,
        cache_dir: Path,
        yes: Sequence[str] = (),
        tell: Tell = lambda what, facts: None,
        tick_s: float = TICK_S,
        reviewer: Reviewer | None = None,
    ) -> None:
        contract = clerk.snap.contract
        if contract is None:
            raise UserError(clerk.snap.contract_error or f"{clerk.ws.contract}: missing")
        self.clerk = clerk
        self.agent = agent
        self.contract = contract
        self.yes = tuple(yes)
        self._secret = secret
        self._tell = tell
        self._tick_s = tick_s
        self._changed = Signal()
        clerk.on_change = self._changed.fire
        self.live = LiveWriter(clerk.paths.live)
        self.meter = Meter(contract.budget.count_held, clerk.book.hours)
        self.dispatcher = Dispatcher(
            clerk=clerk,
            live=self.live,
            start_judge=start_judge,
            cache_dir=cache_dir,
            seeds=seed_pool(secret.value, contract.correctness.seeds),
            may_start=self._may_start,
            changed=self._changed,
            before=self.settle,
        )
        self.desk = WorkerDesk(
            clerk,
            self.dispatcher,
            self.live,
            self._changed,
            self._may_submit,
            self._tune,
            self._may_start,
            self.settle,
            lambda why: tell("held", {"why": why}),
        )
        self.reviews = Reviews(clerk, self.desk, self._changed, reviewer)
        self._inputs = FixedInputs(clerk.ws, clerk.book.started or {})
        self._idle = False
        self._stopping = False
        self._no_room = False
        self._told: set[str] = set()

    # --- from outside ---

    async def run(self) -> str:
        """Until the end of the run, or :meth:`stop`."""
        serving = asyncio.create_task(self.dispatcher.serve())
        ticking = asyncio.create_task(self._tick())
        driving = asyncio.create_task(self._drive())
        reviewing = asyncio.create_task(self.reviews.serve())
        tasks = (serving, ticking, driving, reviewing)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.dispatcher.close()
            for task in (ticking, driving, reviewing):
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            self.dispatcher.drop_judge()
        for outcome in done:
            if isinstance(outcome, Exception):
                raise outcome
        if self._stopping:
            self.clerk.checkpoint()
            self.live.remove()
            return "stopped"
        await self._end()
        self._tell("ended", {"why": self.clerk.snap.phase_why, "by": self.clerk.book.ending_by})
        self.live.remove()
        return "ended"

    async def _end(self) -> None:
        while True:
            try:
                gates.tend_requests(self.clerk)  # those whose review did not come in time too
                return end_run(self.clerk, self._secret)
            except DiskFull:
                await asyncio.sleep(TICK_S)

    def stop(self) -> None:
        """SIGTERM: the running claim is cancelled, nothing new starts, the run can be resumed."""
        self._stopping = True
        self._changed.fire()

    # --- every half second, and before each dispatch ---

    async def _tick(self) -> None:
        while True:
            self.settle()
            self.live.flush()
            await asyncio.sleep(self._tick_s)

    def settle(self) -> None:
        """Take decisions, let rules and timeouts act, look at budget and disk. Synchronous, idempotent."""
        try:
            self._settle()
            self._no_room = False
        except DiskFull as error:
            self._no_room = True
            log.error("%s", error)
            self.live.waits("room on the disk")

    def _settle(self) -> None:
        self._watch_disk()
        self._watch_inputs()
        self._watch_retry()
        self.clerk.drain()
        self._propose()
        gates.decide_by_rule(self.clerk, self.yes)
        gates.expire(self.clerk)
        gates.tend_requests(self.clerk, self._is_reviewed)
        self.dispatcher.look_for_stops()
        self._watch_judge()
        self._watch_budget()
        self._tell_people()
        if not self.dispatcher.running:
            self.live.waits(self._waiting_words())

    def _watch_retry(self) -> None:
        """A hold for an API that asked to wait ends by itself."""
        until = self.clerk.book.retry_at
        if until and self.clerk.snap.hold and clock.parse(clock.now()) >= clock.parse(until):
            self.clerk.event("hold", on=False, why=self.clerk.snap.hold, text="tries again")

    def _propose(self) -> bool:
        """Put a new plan revision before people once it is reviewed. True if a plan waits."""
        newest = unproposed(self.clerk)
        if newest is not None and not self.reviews.is_done(Subject("plan", rev=newest.rev)):
            return True
        return (newest is not None or self.clerk.snap.phase == "plan") and propose_newest(self.clerk)

    def _is_reviewed(self, confirm: Evaluation) -> bool:
        return self.reviews.is_done(Subject("promotion", cand=confirm.cand, eval=confirm.id))

    def _watch_disk(self) -> None:
        """Hold while there is still room to write down why; go on by itself when there is room again."""
        free = free_bytes(self.clerk.ws.root)
        hold = self.clerk.snap.hold
        if free < MIN_FREE_BYTES and not hold:
            self.clerk.event(
                "hold", on=True, why="disk", text=f"{free >> 20} MiB left, {MIN_FREE_BYTES >> 20} needed"
            )
        elif hold == "disk" and free > 2 * MIN_FREE_BYTES:
            self.clerk.event("hold", on=False, why="disk", text="there is room again")

    def _watch_inputs(self) -> None:
        """Contract and reference are fixed for a run; a changed one holds it before the judge reads it."""
        changed = self._inputs.changed()
        snap = self.clerk.snap
        if changed and not snap.hold and snap.phase != "ended" and not self.clerk.book.ending:
            text = f"{changed} is not what this run started with; put it back, or end the run and amend the contract"
            self.clerk.event("hold", on=True, why="person", text=text)
            self._tell("held", {"why": text})

    def _watch_judge(self) -> None:
        """What breaks every evaluation is not the candidates' fault: hold before all of them are parked."""
        failures, reason = self.dispatcher.failures
        if failures >= MAX_FAILURES and not self.clerk.snap.hold:
            self.dispatcher.failures = (0, "")
            text = f"{failures} candidates in a row could not be judged: {reason}"
            self.clerk.event("hold", on=True, why="crash_loop", text=text)
            self._tell("held", {"why": text})

    def _watch_budget(self) -> None:
        """R10: a notice at 80 %, a hold at 100 %."""
        snap, book = self.clerk.snap, self.clerk.book
        self.meter.usd = book.usd
        self.meter.tick(self._is_working())
        lines = self.meter.lines(snap, self.contract)
        for line in raised(snap.budget, lines):
            self.clerk.event(
                "budget", axis=line.axis, used=round(line.used, 4), limit=line.limit, level=line.level
            )
            self._tell(
                f"budget {line.level}: {line.axis}",
                {"axis": line.axis, "used": line.used, "limit": line.limit},
            )
        book.budget = lines
        for axis in ("hours", "usd"):
            if lines[axis].level == "reached":
                self._hold_for_budget(lines[axis])

    def _hold_for_budget(self, line: BudgetLine) -> None:
        """Held, not ended: a person raises the budget or ends the run."""
        snap = self.clerk.snap
        if not snap.hold and not self.clerk.book.ending:
            self.clerk.event(
                "hold", on=True, why="budget", text=f"{line.axis} {line.used:g} of {line.limit:g}"
            )
            self.clerk.checkpoint()
        gate = open_gate(snap, "budget")
        if gate is None or gate.target.get("axis") != line.axis:
            gates.open_new(self.clerk, "budget", {"axis": line.axis}, blocking=True)

    def _is_working(self) -> bool:
        snap = self.clerk.snap
        return not snap.hold and not self._idle and snap.phase not in ("plan_review", "ended", "")

    def _tell_people(self) -> None:
        for gate in self.clerk.snap.gates:
            if gate.id not in self._told:
                self._told.add(gate.id)
                self._tell(f"waits: {gate.kind}", {"gate": gate.id, **gate.target})

    def _waiting_words(self) -> str:
        snap = self.clerk.snap
        if snap.hold:
            return f"hold: {snap.hold}"
        if self._idle or snap.phase == "plan_review":
            return gates.waits_for(snap) or "a person: the agent has nothing left to try"
        return ""

    # --- what may be started ---

    def _may_start(self) -> bool:
        if self._no_room or self._stopping:
            return False
        return (
            not self.clerk.snap.hold
            and not self.clerk.book.ending
            and self.clerk.snap.phase not in ("", "ended")
        )

    async def _may_submit(self) -> None:
        """Wait while held; the budget of candidates holds when one more is wanted, not before."""
        while True:
            if not self.clerk.snap.hold and not self._no_room:
                line = self.meter.lines(self.clerk.snap, self.contract)["candidates"]
                if line.level != "reached":
                    return
                self._hold_for_budget(line)
            await self._changed.wait(TICK_S)

    # --- phases ---

    async def _drive(self) -> None:
        while not self._over():
            if self.clerk.snap.hold or self._no_room or open_gate(self.clerk.snap, "ambiguous") is not None:
                await self._changed.wait(TICK_S)
                continue
            try:
                await self._phase(self.clerk.snap.phase)
            except DiskFull:
                self._no_room = True

    def _over(self) -> bool:
        return self._stopping or (bool(self.clerk.book.ending) and not self.dispatcher.running)

    async def _phase(self, phase: str) -> None:
        if phase == "draft":
            text = await self._play(self.agent.draft(self.desk))
            if text is not None:
                record_draft(self.clerk, text)
        elif phase == "plan":
            await self._write_plan()
        elif phase == "autotune":  # a worker died in it; its order is still in the book
            self.clerk.phase("iterate", "autotune was cut off")
        elif phase == "iterate":
            await self._iterate()
        else:
            await self._changed.wait(TICK_S)

    async def _write_plan(self) -> None:
        if self._propose():
            await self._changed.wait(TICK_S)
            return
        comments = unanswered_comments(self.clerk.snap)
        plan = await self._play(self.agent.plan(self.desk, comment_lines(comments)))
        if plan is not None:
            record_plan(self.clerk, plan, comments, self.agent.name)
            self._propose()

    async def _iterate(self) -> None:
        if unanswered_comments(self.clerk.snap):
            await self._write_plan()
            return
        order = self.clerk.book.next_autotune()
        if order is not None:
            await self._play(
                tuning.carry_out(self.clerk, self.desk, order.cand, order.amount, order.decision)
            )
            return
        notes = [n.decision for n in self.clerk.snap.steering if n.pinned and n.seen_turn is None]
        self.desk.iteration += 1
        before = self._news()
        outcome = await self._play(self.agent.iterate(self.desk))
        if outcome is not None:
            await self.desk.seen(notes)  # the agent's snapshot had them from the beginning of the iteration
        if outcome == "converged":
            await self._until_news(before)

    async def _until_news(self, before: tuple[Any, ...]) -> None:
        """The agent has nothing to do: wait until a decision or a result changes what it saw before."""
        self._idle = True
        try:
            while self._news() == before and not self._over():
                await self._changed.wait(TICK_S)
        finally:
            self._idle = False

    def _news(self) -> tuple[Any, ...]:
        snap = self.clerk.snap
        newest = max((c.seq for c in snap.candidates.values()), default=0)
        return len(snap.decisions), snap.incumbent.cand, len(snap.candidates), newest

    async def _tune(self, cand: str, limit: int) -> str:
        return await tuning.carry_out(self.clerk, self.desk, cand, limit, "")

    async def _play(self, work: Coroutine[Any, Any, T] | Awaitable[T]) -> T | None:
        """Run the agent until it is done or the run is over; its faults hold the run, they do not end it."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done() and not self._over():
                await asyncio.wait({task}, timeout=TICK_S)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if task.cancelled():
            return None
        if (error := task.exception()) is None:
            return task.result()
        if isinstance(error, DiskFull):
            self._no_room = True
        elif isinstance(error, Interrupted):
            pass  # a person paused the run; the agent is called again when it goes on
        elif isinstance(error, Exception):
            self._agent_failed(error)
        else:
            raise error
        return None

    def _agent_failed(self, error: Exception) -> None:
        words = clean_line(str(error) or type(error).__name__, 300)
        if not isinstance(error, UserError):
            log.exception("the agent failed", exc_info=error)
            words = f"{type(error).__name__}: {words}"
        self.clerk.say(
            TranscriptBlock(kind="notice", text=f"{self.agent.name} failed: {words}", is_error=True)
        )
        self.clerk.event("hold", on=True, why="api", text=f"{self.agent.name} failed: {words}")
        self._tell("held: the agent failed", {"why": words})
