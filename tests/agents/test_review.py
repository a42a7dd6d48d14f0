"""The independent reviewer: what it sees, what it may say, and that nobody waits for one that does not come."""

from __future__ import annotations

import asyncio

from kda_tui.agents.anthropic.reviewer import AnthropicReviewer
from kda_tui.agents.interface import Desk, Opinion, Subject
from kda_tui.cli.looking import _status_lines
from kda_tui.config import AgentConfig
from kda_tui.record.paths import Workspace
from kda_tui.record.verify import verify
from tests.agents.fake_api import FakeApi, Fault, Request, Say, say, text, thinking, tool
from tests.agents.rig import PRICES, agent_of, blocks, events, planner
from tests.agents.test_turns import candidate
from tests.worker.stage import stage

FINDING = {"severity": "major", "text": "No tail is handled.", "evidence": "contract.toml: axes n = 256"}


def reviewer_of(api: FakeApi, model: str = "test-reviewer") -> AnthropicReviewer:
    prices = {**PRICES, "test-reviewer": PRICES["test-model"]}
    return AnthropicReviewer(AgentConfig(base_url=api.url, prices=prices, max_tokens=2048), model)


def is_review(request: Request) -> bool:
    return request.system.startswith("You review")


def playing(opinion: Say | Fault, *iteration: Say) -> object:
    """Reviews give ``opinion``; the agent plans, then says ``iteration`` turn by turn, then rests."""

    def script(request: Request) -> Say | Fault:
        if is_review(request):
            return opinion
        planned = planner(request)
        if planned is not None:
            return say(thinking("a thought that stays with the agent"), *planned.blocks)
        if "candidates so far: 0" in request.opening and request.turn < len(iteration):
            return iteration[request.turn]
        return say(text("That is all."))

    return script


async def test_a_review_stands_at_the_gate_and_decides_nothing(ws: Workspace) -> None:
    opinion = say(tool("write_review", verdict="revise", summary="Tails are missing.", findings=[FINDING]))
    request = (say(candidate()), say(tool("evaluate", candidate="c0001")), say(tool("request_promotion", candidate="c0001", reasons="one round")))  # fmt: skip
    with FakeApi(playing(opinion, *request)) as api:  # type: ignore[arg-type]
        async with stage(ws, agent=agent_of(api), reviewer=reviewer_of(api)) as s:
            gate = await s.gate("plan")
            review = s.snap.review_of(gate)
            assert review is not None and (review.verdict, review.file) == ("revise", "docs/reviews/001.md")
            lines = "\n".join(_status_lines(s.snap))
            assert "reviewer: revise; Tails are missing. (1 finding, docs/reviews/001.md)" in lines
            page = (ws.reviews / "001.md").read_text()
            assert "No tail is handled." in page and "Evidence: contract.toml: axes n = 256" in page
            asked = next(r for r in api.requests if is_review(r))
            assert "P1 one round instead of eight" in asked.opening and "[task]" in asked.system
            assert "a thought that stays" not in str(asked.body) and asked.body["model"] == "test-reviewer"
            assert {t["name"] for t in asked.body["tools"]} == {
                *("list_files", "read_file", "search_files", "search_wiki", "write_review")
            }
            assert (await s.approve_plan()).outcome == "taken"
            promotion = await s.gate("promotion")
            found = s.snap.review_of(promotion)
            assert found is not None and found.target["cand"] == "c0001"
            evidence = [r for r in api.requests if is_review(r)][-1].opening
            for part in ("confirm", "ratio", "one round", "+defines = {THREADS = 32, WORK = 1}", "gates: "):
                assert part in evidence, part
            seqs = [events(s, k)[-1]["seq"] for k in ("review", "gate_open")]
            assert seqs == sorted(seqs), "the review is there before people are asked"
            paid = events(s, "claim", op="review")
            assert [c["key"].split(":")[:2] for c in paid] == [["review", "plan"], ["review", "promotion"]]
            assert all(r["usd"] > 0 for r in events(s, "result", op="review"))
            assert not [b for b in blocks(s) if b.tool == "write_review"], "it is no part of the conversation"
            assert not api.problems
    assert verify(ws).ok


async def test_nobody_waits_for_a_reviewer_that_does_not_answer(ws: Workspace) -> None:
    with FakeApi(playing(Fault(529, "overloaded_error"))) as api:  # type: ignore[arg-type]
        async with stage(ws, agent=agent_of(api), reviewer=reviewer_of(api)) as s:
            gate = await s.gate("plan")
            review = s.snap.review_of(gate)
            assert review is not None and review.verdict == "none" and "529" in review.words
            assert not s.snap.hold and not ws.reviews.exists()


class Silent:
    """A reviewer that never comes to an end."""

    async def review(self, desk: Desk, subject: Subject) -> Opinion:
        return await asyncio.get_running_loop().create_future()


async def test_a_run_that_is_held_for_money_asks_people_without_a_review(ws: Workspace) -> None:
    with FakeApi(lambda r: planner(r) or say(text("."))) as api:
        async with stage(ws, agent=agent_of(api), reviewer=Silent()) as s:
            await s.until(lambda x: x.plan.revisions)
            await asyncio.sleep(0.2)
            assert not s.snap.gates
            s.worker.clerk.event("hold", on=True, why="budget", text="spent")
            gate = await s.gate("plan")
            assert s.snap.review_of(gate) is None


async def test_a_finding_without_evidence_goes_back(ws: Workspace) -> None:
    bare = say(
        tool("write_review", verdict="reject", summary="Bad.", findings=[{**FINDING, "evidence": " "}])
    )
    good = say(tool("write_review", verdict="accept", summary="Fine.", findings=[]))

    def script(request: Request) -> Say:
        if is_review(request):
            return good if request.turn else bare
        return planner(request) or say(text("."))

    with FakeApi(script) as api:
        async with stage(ws, agent=agent_of(api), reviewer=reviewer_of(api)) as s:
            gate = await s.gate("plan")
            review = s.snap.review_of(gate)
            assert review is not None and review.verdict == "accept"
            told = [r for r in api.requests if is_review(r)][1].results
            assert told[0]["is_error"] and "evidence" in told[0]["content"]
