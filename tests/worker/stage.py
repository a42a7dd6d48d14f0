"""A worker in the test's own event loop, with people who send decisions and a scripted judge."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kda_tui.agents.interface import Agent, Reviewer
from kda_tui.agents.tuner.agent import TunerAgent
from kda_tui.record.inbox import new_decision, send
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate, Decision
from kda_tui.record.snapshot import Gate, Snapshot
from kda_tui.text import Redactor
from kda_tui.worker.loop import Worker
from kda_tui.worker.resume import open_run
from tests.worker.make import ScriptedJudge, speed_by_defines, starter

PATIENCE_S = 20.0


@dataclass
class Stage:
    """What a test sees of a running worker."""

    ws: Workspace
    worker: Worker
    task: asyncio.Task[str]
    judges: list[ScriptedJudge]
    told: list[str] = field(default_factory=list)

    @property
    def snap(self) -> Snapshot:
        return self.worker.clerk.snap

    async def until(self, holds: Callable[[Snapshot], Any], what: str = "") -> Any:
        """Wait until something is true of the record; fails with the state that it is in instead."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            if found := holds(self.snap):
                return found
            if self.task.done() and not holds(self.snap):
                raise AssertionError(f"the worker is done ({self.task}); {what} {state_of(self.snap)}")
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"waited in vain for {what or holds}: {state_of(self.snap)}")
            await asyncio.sleep(0.01)

    async def decide(
        self, kind: str, who: str = "kl", files: Mapping[str, str] | None = None, **fields: Any
    ) -> Decision:
        """Send a decision and wait for what becomes of it."""
        sent = self.send(kind, who, files, **fields)
        return await self.answer(sent)

    def send(
        self, kind: str, who: str = "kl", files: Mapping[str, str] | None = None, **fields: Any
    ) -> Decision:
        d = new_decision(kind, who=who, **fields)
        return send(self.ws, replace(d, extra={"files": dict(files)}) if files else d)

    async def answer(self, sent: Decision) -> Decision:
        found = await self.until(
            lambda s: [d for d in s.decisions if d.id == sent.id], f"an answer to {sent.kind}"
        )
        return found[0]

    async def gate(self, kind: str, target: Mapping[str, Any] | None = None) -> Gate:
        wanted = dict(target or {})
        found = await self.until(
            lambda s: [g for g in s.gates if g.kind == kind and wanted.items() <= dict(g.target).items()],
            f"a {kind} gate",
        )
        return found[0]

    async def approve_plan(self, who: str = "kl") -> Decision:
        gate = await self.gate("plan")
        return await self.decide(
            "approve_plan", who, target={"gate": gate.id, **gate.target}, expect={"plan_sha": gate.sha}
        )

    async def running(self, op: str = "evaluate") -> Candidate:
        """A candidate whose claim of ``op`` is open."""
        claims = await self.until(
            lambda s: [c for c in s.claims if c.op == op and not c.outcome], f"a running {op}"
        )
        return self.snap.candidates[claims[0].cand]

    async def ended(self) -> str:
        return await asyncio.wait_for(self.task, PATIENCE_S)


@asynccontextmanager
async def stage(
    ws: Workspace,
    *,
    yes: Sequence[str] = (),
    agent: Agent | None = None,
    speeds: Callable[[str], Any] = speed_by_defines,
    pause_s: float = 0.0,
    resume: bool = False,
    ambiguous: str = "ask",
    reviewer: Reviewer | None = None,
) -> AsyncIterator[Stage]:
    """Open or begin a run and work on it until the block ends."""
    judges: list[ScriptedJudge] = []

    def judge() -> ScriptedJudge:
        judges.append(ScriptedJudge(speeds, pause_s))
        return judges[-1]

    player = agent or TunerAgent()
    redactor = Redactor.from_environment(os.environ)
    told: list[str] = []
    with WorkspaceLock.acquire(ws) as lock:
        opened = open_run(
            ws, lock, redactor, player, device={"device": "cpu"}, resume=resume, ambiguous=ambiguous
        )
        worker = Worker(
            opened.clerk, player, opened.secret, starter(judge), ws.root / ".cache", yes=yes,
            tell=lambda what, facts: told.append(what), tick_s=0.02, reviewer=reviewer,
        )  # fmt: skip
        task = asyncio.create_task(worker.run())
        try:
            yield Stage(ws, worker, task, judges, told)
        finally:
            worker.stop()
            await asyncio.gather(task, return_exceptions=True)
            opened.clerk.close()


def state_of(snap: Snapshot) -> str:
    gates = [(g.kind, dict(g.target)) for g in snap.gates]
    words = [(c.id, c.stage, c.validity, c.decision) for c in snap.candidates.values()]
    last = [(d.kind, d.outcome, d.why) for d in snap.decisions[-3:]]
    return f"phase {snap.phase}, hold {snap.hold} {snap.hold_why}, gates {gates}, {words}, decisions {last}"


def journal(path: Path) -> list[dict[str, Any]]:
    from kda_tui.worker.resume import journal_lines

    return list(journal_lines(path))
