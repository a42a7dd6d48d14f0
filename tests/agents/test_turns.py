"""Turns in a run: money, pauses, notes from people, what a death leaves behind, fresh conversations."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any
from unittest.mock import Mock

import pytest

from kda_tui.record.journal import Recorder
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.verify import verify
from kda_tui.text import Redactor
from tests.agents.fake_api import FakeApi, Fault, Request, Say, say, text, tool
from tests.agents.rig import DRAFT, ITEMS, MODEL, PLAN, TURN_USD, agent_of, blocks, events, planner
from tests.worker.make import CONTRACT, KERNEL, launch, make_workspace
from tests.worker.stage import stage


def candidate(threads: int = 32, work: int = 1, **more: Any) -> dict[str, Any]:
    given = {
        "kernel": KERNEL,
        "launch": launch(threads, work),
        "hypothesis": f"{work} rounds on {threads} threads",
        "family": "rounds",
        "parents": ["baseline"],
        "item": "P1",
    }
    return tool("submit_candidate", **{**given, **more})


async def test_turns_are_booked_and_the_budget_warns_and_stops(tmp_path: Any) -> None:
    limit = 4.5 * TURN_USD
    ws = make_workspace(
        tmp_path / "money", CONTRACT.replace("candidates = 50", f"candidates = 50\nusd = {limit}")
    )

    def script(request: Request) -> Say:
        return planner(request) or say(tool("item", id="P1", state="doing"))

    with FakeApi(script) as api:
        async with stage(ws, agent=agent_of(api), yes=("plan",)) as s:
            await s.until(lambda x: x.hold == "budget")
            levels = [(e["level"], e["used"]) for e in events(s, "budget", axis="usd")]
            assert levels == [
                ("notice", pytest.approx(4 * TURN_USD, abs=1e-4)),
                ("reached", pytest.approx(5 * TURN_USD, abs=1e-4)),
            ]
            assert s.snap.transcript.turns == 5 and s.snap.transcript.usd == pytest.approx(5 * TURN_USD)
            assert s.snap.transcript.tokens["cache_read"] == 5000
            sent = len(api.requests)
            await asyncio.sleep(0.3)
            assert len(api.requests) == sent == 5
            assert (await s.decide("resume")).outcome == "refused"
            await s.decide("set_budget", amount={"axis": "usd", "value": 1.0})
            await s.until(lambda x: len(api.requests) > 5)


async def test_a_budget_in_money_needs_a_price(tmp_path: Any) -> None:
    ws = make_workspace(tmp_path / "money", CONTRACT.replace("candidates = 50", "usd = 3.0"))
    with FakeApi(lambda r: planner(r) or say(text("."))) as api:
        async with stage(ws, agent=agent_of(api, prices={})) as s:
            await s.until(lambda x: x.hold == "budget")
            assert MODEL in s.snap.hold_why and "prices" in s.snap.hold_why and not api.requests


async def test_without_a_price_the_cost_is_unknown_not_zero(ws: Workspace) -> None:
    with FakeApi(lambda r: planner(r) or say(text("."))) as api:
        async with stage(ws, agent=agent_of(api, prices={})) as s:
            await s.gate("plan")
            assert all("usd" not in e and e["tokens"]["out"] == 50 for e in events(s, "result", op="turn"))
            assert all(b.usd is None and b.usage for b in blocks(s, "usage"))


async def test_a_pause_cancels_the_stream_keeps_what_came_and_goes_on_where_it_was(ws: Workspace) -> None:
    slow = say(text("I look at the baseline, line by line, slowly. " * 20), delay_s=0.05)

    def script(request: Request) -> Say:
        return (
            slow
            if request.number == 1
            else say(tool("list_files"))
            if not request.number
            else planner(request) or slow
        )

    with FakeApi(script) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.until(lambda x: "baseline" in s.worker.live.state.get("streaming", ""))
            await s.decide("pause", reason="lunch")
            await s.until(lambda x: not x.claims)
            result = events(s, "result", op="turn")[-1]
            assert result["outcome"] == "cancelled" and "paused" in result["reason"] and result["usd"] > 0
            part = blocks(s, "text")[-1]
            assert part.partial and part.text and slow.blocks[0]["text"].startswith(part.text)
            held = len(api.requests)
            await asyncio.sleep(0.4)
            assert len(api.requests) == held == 2
            await s.decide("resume")
            await s.gate("plan")
            assert api.requests[2].body["messages"] == api.requests[1].body["messages"]
    assert verify(ws).ok


async def test_notes_reach_a_running_conversation_and_are_marked_as_seen(ws: Workspace) -> None:
    waiting, go = threading.Event(), threading.Event()

    def script(request: Request) -> Say:
        planned = planner(request)
        if planned is not None:
            return planned
        if request.turn == 0 and not waiting.is_set():
            waiting.set()
            go.wait(10)
            return say(tool("list_files", folder="baseline"))
        return say(text("understood"))

    with FakeApi(script) as api:
        async with stage(ws, agent=agent_of(api), yes=("plan",)) as s:
            await s.until(lambda x: waiting.is_set())
            note = await s.decide("steer", text="leave THREADS alone")
            assert s.snap.steering[0].seen_turn is None
            go.set()
            await s.until(lambda x: x.steering[0].seen_turn is not None)
            asked = api.requests[3].messages[-1]["content"]
            assert asked[0]["type"] == "tool_result"
            assert "leave THREADS alone" in asked[1]["text"] and "kl" in asked[1]["text"]
            assert [e["decision"] for e in events(s, "steer_seen")] == [note.id]
            assert s.snap.steering[0].seen_turn == 4
            assert not api.problems


async def test_each_iteration_is_a_fresh_conversation_with_what_is_recorded(ws: Workspace) -> None:
    def script(request: Request) -> Say:
        planned = planner(request)
        if planned is not None:
            return planned
        if "candidates so far: 0" in request.opening:
            return (
                say(text("One round."), tool("item", id="P1", state="doing"), candidate()),
                say(tool("evaluate", candidate="c0001")),
                say(tool("write_notes", markdown="One round is twice as fast.")),
                say(text("Done with P1.")),
            )[request.turn]
        return say(text("Nothing is left."))

    with FakeApi(script) as api:
        async with stage(ws, agent=agent_of(api), yes=("plan",)) as s:
            await s.until(lambda x: "nothing left to try" in s.worker.live.state.get("waiting", ""))
            assert s.snap.candidates["c0001"].speed == "faster"
            opening = api.requests[-1].opening
            assert api.requests[-1].turn == 0
            for part in (
                PLAN.strip(),
                "P1 [doing]",
                "c0001 P1 rounds: passed faster",
                "One round is twice as fast",
                "#define" if "#define" in KERNEL else KERNEL.strip(),
                "rounds: 1 judged",
                "n256: c0001",
            ):
                assert part in opening, part
            assert "[task]" in api.requests[-1].system and "def reference" in api.requests[-1].system
            assert api.requests[-1].system == api.requests[0].system  # stays in the prompt cache
            sent = len(api.requests)
            await asyncio.sleep(0.3)
            assert len(api.requests) == sent  # an iteration without news costs nothing more
            assert not api.problems
            started = s.worker.clerk.book.started or {}
            assert len(started["prompts_sha"]) == 64 and started["model"] == MODEL
    assert verify(ws).ok


async def test_a_change_request_is_answered_by_a_revision_that_says_so(ws: Workspace) -> None:
    def script(request: Request) -> Say:
        if "# Comments to answer\n\n*" in request.opening:
            answered = request.opening.split("[")[1].split("]")[0]
            return say(
                tool(
                    "write_plan",
                    markdown=f"{PLAN}\nSmaller steps, as asked.\n",
                    items=ITEMS[:1],
                    answers=[answered],
                )
            )
        return planner(request) or say(text("."))

    with FakeApi(script) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            gate = await s.gate("plan")
            line = {"item": "P2", "line": 5, "quote": "more threads", "text": "leave this out"}
            asked = await s.decide(
                "request_changes",
                target={"gate": gate.id, **gate.target},
                expect={"plan_sha": gate.sha},
                lines=(line,),
            )
            await s.gate("plan", {"plan_rev": 2})
            newest = s.snap.plan.newest
            assert newest is not None and newest.answers == (asked.id,)
            assert [i.id for i in newest.items] == ["P1"]
            opening = api.requests[-1].opening
            assert (
                "item P2" in opening
                and '"more threads": leave this out' in opening
                and PLAN.strip() in opening
            )
            assert (ws.plans / "r001.md").read_text() == PLAN  # immutable
            stale = await s.decide("approve_plan", expect={"plan_sha": gate.sha})
            assert stale.outcome == "refused"
            assert (await s.approve_plan()).outcome == "taken"


async def test_what_a_worker_had_finished_is_not_paid_again(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeApi(lambda r: planner(r) or say(text("."))) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            monkeypatch.setattr(s.worker.clerk, "phase", Mock(side_effect=RuntimeError("dies here")))
            await asyncio.wait({s.task})  # the draft was handed in, and never came into the record
        assert len(api.requests) == 1
        async with stage(ws, agent=agent_of(api), resume=True) as s:
            await s.gate("plan")
            assert ws.draft.read_text() == DRAFT
            assert len(api.requests) == 2 and "write_plan" in str(api.requests[1].body["tools"])


async def test_a_turn_that_died_is_booked_and_asked_about(ws: Workspace) -> None:
    def script(request: Request) -> Say | Fault:
        planned = planner(request)
        if planned is not None:
            return planned
        if "# What you had done" in request.opening:
            return say(text("ok"))
        return say(text("Reading it slowly. " * 50), delay_s=0.1) if request.turn else say(candidate())

    with FakeApi(script) as api:
        async with stage(ws, agent=agent_of(api), yes=("plan",)) as s:
            await s.until(lambda x: x.candidates)
        await leave_open_claim(ws)
        sent = len(api.requests)
        async with stage(ws, agent=agent_of(api), resume=True) as s:
            gate = await s.gate("ambiguous")
            await asyncio.sleep(0.3)
            assert len(api.requests) == sent, "nothing that costs money is repeated by itself"
            booked = events(s, "result", op="turn")[-1]
            assert booked["usd"] == 0.25 and booked["outcome"] == "infrastructure_error"
            await s.decide("rerun", target={"gate": gate.id, **gate.target})
            await s.until(lambda x: len(api.requests) > sent)
            assert "# What you had done already" in api.requests[sent].opening
            assert "you called submit_candidate" in api.requests[sent].opening
    assert verify(ws).ok


async def test_a_turn_that_died_may_be_tried_once_more_by_setting(ws: Workspace) -> None:
    with FakeApi(lambda r: planner(r) or say(text("."))) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.gate("plan")
        await leave_open_claim(ws, priced=False)
        async with stage(ws, agent=agent_of(api), resume=True, ambiguous="retry-once") as s:
            await s.until(lambda x: x.phase == "plan_review")
            assert "usd" not in events(s, "result", op="turn")[-1], "an unknown cost is not 0"
            assert not [g for g in s.snap.gates if g.kind == "ambiguous"]


async def leave_open_claim(ws: Workspace, priced: bool = True) -> None:
    """A claim without a result, as a worker leaves it that was killed while a reply came."""
    with (
        WorkspaceLock.acquire(ws) as lock,
        Recorder.open(ws, lock, "r001", Redactor.from_environment(os.environ)) as r,
    ):
        price = {"est_usd": 0.25} if priced else {}
        r.event("claim", claim="r001-dead", op="turn", key="turn:9", attempt=1, paid=True, **price)
