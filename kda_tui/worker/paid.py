"""Paid requests: claimed before they are sent, booked after they ended, waited with while the run is held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kda_tui.agents.interface import Interrupted, Turn
from kda_tui.record.ledger import DiskFull
from kda_tui.text import clean_line
from kda_tui.worker.changed import Signal
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.facts import open_gate
from kda_tui.worker.live import LiveWriter

LOOK_S = 0.25
T = TypeVar("T")


@dataclass(slots=True)
class PaidWork:
    """Claims and books what costs money. ``may_start`` says whether a new claim may be made now (R5, R10)."""

    clerk: Clerk
    live: LiveWriter
    changed: Signal
    may_start: Callable[[], bool]
    before: Callable[[], None]  # R3: drains the inbox, and looks at the budget, before each claim

    async def do(
        self,
        work: Callable[[Turn], Awaitable[T]],
        op: str,
        key: str,
        model: str,
        est_usd: float | None,
        cand: str,
    ) -> T:
        """Run ``work`` under a claim. A pause cancels it and raises Interrupted; its cost so far is booked."""
        await self._until_allowed()
        turn = self._claim(op, key, model, est_usd, cand)
        task = asyncio.ensure_future(work(turn))
        outcome, reason = "cancelled", "the worker was stopped"
        try:
            paused = await self._watch(task)
            if paused:
                reason = paused
                raise Interrupted(paused)
            result = task.result()
            outcome, reason = ("infrastructure_error", turn.fault) if turn.fault else ("ok", "")
            return result
        except (Interrupted, asyncio.CancelledError):
            raise
        except BaseException as error:
            outcome, reason = "infrastructure_error", turn.fault or str(error) or type(error).__name__
            raise
        finally:
            await _ended(task)
            await self._book(op, cand, turn, outcome, reason)

    async def _until_allowed(self) -> None:
        while True:
            self.before()
            if self.may_start() and open_gate(self.clerk.snap, "ambiguous") is None:
                return
            await self.changed.wait(LOOK_S)

    async def _watch(self, task: asyncio.Future[Any]) -> str:
        """Wait for the task; in words why it has to stop, if a person pauses the run first."""
        while not task.done():
            if self.clerk.snap.hold == "person":
                return "the run was paused"
            await asyncio.wait({task}, timeout=LOOK_S)
        return ""

    def _claim(self, op: str, key: str, model: str, est_usd: float | None, cand: str) -> Turn:
        snap = self.clerk.snap
        claim, number = self.clerk.next_name(), snap.transcript.turns + 1
        work = key or str(number)
        in_force = snap.plan.in_force
        fields: dict[str, Any] = {"cand": cand} if cand else {}
        if est_usd is not None:
            fields["est_usd"] = round(est_usd, 6)
        self.clerk.event(
            "claim",
            claim=claim,
            op=op,
            key=f"{op}:{work}",
            plan_rev=in_force.rev if in_force else None,
            attempt=self.clerk.book.faults[op, cand] + 1,
            paid=True,
            model=model,
            **fields,
        )
        return Turn(number, claim)

    async def _book(self, op: str, cand: str, turn: Turn, outcome: str, reason: str) -> None:
        fields: dict[str, Any] = {"cand": cand} if cand else {}
        if reason:
            fields["reason"] = clean_line(reason, 300)
        if turn.usage:
            fields["tokens"] = dict(turn.usage)
        if turn.usd is not None:
            fields["usd"] = round(turn.usd, 6)
        if turn.stop_reason:
            fields["stop_reason"] = turn.stop_reason
        while True:
            try:
                self.clerk.event("result", claim=turn.claim, op=op, outcome=outcome, **fields)
                break
            except DiskFull:
                await asyncio.sleep(LOOK_S)
        self.live.set(streaming=None)


async def _ended(task: asyncio.Future[Any]) -> None:
    """Cancel what is left of a task and let it write down what it has."""
    if not task.done():
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)
