"""The autotune phase: the tuner searches one candidate's [tune] table, for an agent or for a person."""

from __future__ import annotations

from typing import Any

from kda_tui.agents.interface import Desk
from kda_tui.agents.tuner.agent import TunerAgent
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.facts import contract_sha


async def carry_out(clerk: Clerk, desk: Desk, cand: str, limit: int, order: str) -> str:
    """Search until converged or ``limit`` candidates were submitted (0 = the whole grid); in words what came of it."""
    snap = clerk.snap
    claim, attempt = clerk.next_name(), clerk.book.attempts["autotune", cand] + 1
    ordered: dict[str, Any] = {"for": order} if order else {}
    before = set(snap.candidates)
    clerk.event(
        "claim",
        claim=claim,
        op="autotune",
        cand=cand,
        key=f"autotune:{cand}:{limit}",
        attempt=attempt,
        paid=False,
        **ordered,
    )
    from_phase = snap.phase
    if from_phase != "autotune":
        clerk.phase("autotune", f"the tunables of {cand}")
    tuner = TunerAgent(only=cand, limit=limit or None)
    while await tuner.iterate(desk) == "again":
        pass
    made = [c for c in clerk.snap.candidates.values() if c.id not in before]
    passed = [c for c in made if c.validity == "passed" and c.ratio is not None]
    best = max(passed, key=lambda c: c.ratio or 0.0, default=None)
    words = f"{len(made)} candidates from {cand}, {len(passed)} passed"
    if best is not None:
        words += f"; best {best.id}, {best.ratio:.3f} against {best.opponent}"
    clerk.event(
        "result",
        claim=claim,
        cand=cand,
        op="autotune",
        attempt=attempt,
        outcome="ok",
        contract_sha=contract_sha(clerk.snap),
        reason=words,
        **ordered,
    )
    clerk.phase(from_phase if from_phase != "autotune" else "iterate", words)
    return words
