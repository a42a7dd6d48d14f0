"""A bench for agents outside of the worker: orders go through the inbox, results come out of the record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from kda_tui.agents.interface import Evaluated, Proposal, Submitted
from kda_tui.record.inbox import new_decision, send
from kda_tui.record.paths import Workspace
from kda_tui.record.reader import Reader
from kda_tui.record.records import Candidate, Decision
from kda_tui.record.snapshot import Evaluation, Snapshot

LOOK_S = 0.2
WAIT_S = 300.0
NO_WORKER = "no worker is alive: what you ask for waits until somebody starts one (kda run)"
T = TypeVar("T")


class InboxDesk:
    """Implements agents.interface.Bench on a workspace whose worker is another process."""

    def __init__(self, ws: Workspace, via: str = "mcp", wait_s: float = WAIT_S) -> None:
        self._ws = ws
        self._via = via
        self._wait_s = wait_s
        self._reader = Reader(ws.root, read_only=True)

    @property
    def root(self) -> Path:
        return self._ws.root

    @property
    def snapshot(self) -> Snapshot:
        return self._reader.settle()

    async def submit(self, proposal: Proposal) -> Submitted:
        """Recorded and compiled by the worker, which then measures it by itself."""
        parent = proposal.parents[0] if proposal.parents else ""
        target = {"cand": parent} if parent and parent != "baseline" else {}
        d = await self._order("submit", target=target, text=proposal.hypothesis, files=dict(proposal.files))
        if d is None or d.outcome != "taken":
            return Submitted("", False, _why_not(d))
        cand = d.why.rpartition(" ")[2]
        found = await self._until(lambda s: _compiled(s.candidates.get(cand)))
        if found is None:
            return Submitted(cand, False, f"{cand} is not compiled yet; look again with compare or evaluate")
        ok = found.validity != "compile_error" and found.stage != "cancelled"
        return Submitted(cand, ok, "" if ok else found.reason, found.registers, found.spills)

    async def evaluate(self, cand: str, level: str = "time") -> Evaluated:
        """The worker's own first verdict on a new candidate, else a new measurement."""
        c = self.snapshot.candidates.get(cand)
        if c is None:
            return Evaluated(cand, "", "cancelled", reason=f"there is no candidate {cand}")
        if c.stage == "judged" and c.validity:
            d = await self._order("measure", target={"cand": cand})
            if d is None or d.outcome != "taken":
                return Evaluated(cand, c.eval, "cancelled", validity=c.validity, reason=_why_not(d))
            ordered = d.id
            e = await self._until(lambda s: _result_for(s, ordered, "evaluate"))
            if e is None:
                return Evaluated(
                    cand, c.eval, "cancelled", validity=c.validity, reason="not measured yet; ask again"
                )
        found = await self._until(lambda s: _judged(s.candidates.get(cand)))
        if found is None:
            return Evaluated(cand, "", "cancelled", reason="not judged yet; ask again")
        return _evaluated(self.snapshot, found)

    async def profile(self, cand: str, workload: str | None = None) -> str:
        d = await self._order("profile", target={"cand": cand})
        if d is None or d.outcome != "taken":
            return _why_not(d)
        ordered = d.id
        found = await self._until(lambda s: _result_for(s, ordered, "profile"))
        return (
            str(found.extra.get("reason") or found.outcome)
            if found is not None
            else "not profiled yet; ask again"
        )

    async def autotune(self, cand: str, max_candidates: int) -> str:
        amount = {"axis": "candidates", "value": max_candidates}
        d = await self._order("autotune", target={"cand": cand}, amount=amount)
        if d is None or d.outcome != "taken":
            return _why_not(d)
        return f"ordered; its points appear as candidates of the family of {cand}"

    # --- orders ---

    async def _order(
        self, kind: str, files: Mapping[str, str] | None = None, **fields: Any
    ) -> Decision | None:
        """Send a decision and wait for what becomes of it; None if nothing does in time."""
        sent = new_decision(kind, via=self._via, **fields)
        send(self._ws, replace(sent, extra={"files": dict(files)}) if files else sent)
        return await self._until(lambda s: next((d for d in reversed(s.decisions) if d.id == sent.id), None))

    async def _until(self, find: Callable[[Snapshot], T | None]) -> T | None:
        deadline = time.monotonic() + self._wait_s
        while time.monotonic() < deadline:
            snap = self.snapshot
            if (found := find(snap)) is not None:
                return found
            if snap.liveness != "alive":
                return None
            await asyncio.sleep(LOOK_S)
        return None


def _why_not(d: Decision | None) -> str:
    return NO_WORKER if d is None else f"{d.outcome}: {d.why}"


def _compiled(c: Candidate | None) -> Candidate | None:
    return (
        c
        if c is not None and c.stage != "submitted" and (c.stage != "claimed" or c.compile_s is not None)
        else None
    )


def _judged(c: Candidate | None) -> Candidate | None:
    return c if c is not None and (c.stage == "cancelled" or (c.stage == "judged" and c.validity)) else None


def _result_for(snap: Snapshot, order: str, op: str) -> Evaluation | None:
    """The last word on an order: a result that is not to be tried again."""
    found = [e for e in snap.evaluations.values() if e.op == op and e.extra.get("for") == order and e.outcome]
    return next((e for e in reversed(found) if not e.extra.get("retry")), None)


def _evaluated(snap: Snapshot, c: Candidate) -> Evaluated:
    e = snap.evaluations.get(c.eval)
    return Evaluated(
        cand=c.id,
        eval=c.eval,
        outcome="ok" if c.stage == "judged" else "cancelled",
        validity=c.validity,
        speed=c.speed,
        stage_reached=c.stage_reached,
        reason=c.reason,
        gates=dict(e.gates) if e is not None else {},
        time_us=c.time_us,
        ratio=c.ratio,
        lo=c.lo,
        hi=c.hi,
        floor_share=c.floor_share,
    )
