"""What an agent may and may not do through its desk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from kda_tui.agents.interface import Desk, PlanText, Proposal
from kda_tui.record.paths import Workspace
from kda_tui.record.reader import Reader
from kda_tui.worker.start import RunOptions
from tests.worker.make import CONTRACT, KERNEL, launch, make_workspace
from tests.worker.stage import Stage, journal, stage


@dataclass
class Player:
    """An agent that does one thing in its first iteration and then has nothing left to do."""

    act: Callable[[Desk], Awaitable[None]]
    name: str = "player"
    model: str = ""
    done: bool = False
    seen: list[Any] = field(default_factory=list)

    def prompts(self) -> Mapping[str, str]:
        return {"system": "play"}

    async def draft(self, desk: Desk) -> str:
        return "# Draft\n"

    async def plan(self, desk: Desk, comments: Sequence[Mapping[str, Any]]) -> PlanText:
        return PlanText("# Plan\n", (("P1", "play"),))

    async def iterate(self, desk: Desk) -> Literal["again", "converged"]:
        if not self.done:
            await self.act(desk)
            self.done = True
        return "converged"


def proposal(
    threads: int = 64, work: int = 1, family: str = "loop", extra: str = "", **fields: Any
) -> Proposal:
    files = {"kernel.cu": KERNEL + extra, "launch.toml": launch(threads, work, family=family)}
    return Proposal(files=files, hypothesis="h", family=family, **fields)


async def played(s: Stage, player: Player) -> None:
    await s.until(lambda x: player.done, "the player")


async def test_a_submission_is_compiled_and_its_twin_refused(ws: Workspace) -> None:
    answers = []

    async def act(desk: Desk) -> None:
        answers.append(await desk.submit(proposal(item="P1", parents=("baseline",))))
        answers.append(await desk.submit(proposal()))
        answers.append(await desk.submit(proposal(parents=("c0042",), threads=32)))
        answers.append(await desk.submit(Proposal({"kernel.cu": KERNEL}, "h")))
        answers.append(await desk.evaluate("c0042"))
        answers.append(await desk.evaluate(answers[0].cand))
        answers.append(await desk.profile(answers[0].cand))

    async with stage(ws, yes=("plan",), agent=(player := Player(act))) as s:
        await played(s, player)
        good, twin, orphan, bare, unknown, verdict, profile = answers
        assert good.ok and good.cand == "c0001" and good.registers == 16
        assert not twin.ok and "c0001" in twin.text
        assert not orphan.ok and "c0042" in orphan.text
        assert not bare.ok and "launch.toml" in bare.text
        assert unknown.outcome == "cancelled"
        assert (verdict.outcome, verdict.validity, verdict.speed) == ("ok", "passed", "faster")
        assert set(verdict.gates.values()) == {"passed"} and verdict.ratio is not None
        assert "ncu needs an NVIDIA GPU" in profile
        assert list(s.snap.candidates) == ["c0001"]
        assert s.snap.candidates["c0001"].item == "P1"


async def test_a_source_with_a_secret_is_refused_and_not_written(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-5f0c9d1e7a3b42688c1d")
    answers = []

    async def act(desk: Desk) -> None:
        answers.append(await desk.submit(proposal(extra="// sk-5f0c9d1e7a3b42688c1d")))

    async with stage(ws, yes=("plan",), agent=(player := Player(act))) as s:
        await played(s, player)
        assert not answers[0].ok and "SOME_API_KEY" in answers[0].text
        assert not ws.candidates.exists()


async def test_requests_have_a_ticket_and_a_limit(ws: Workspace) -> None:
    words = {}

    async def act(desk: Desk) -> None:
        cands = {}
        for name, (threads, work) in {"slow": (16, 8), "a": (64, 1), "b": (64, 8), "c": (32, 1)}.items():
            family = "loop" if name in ("slow", "a") else name
            cands[name] = (await desk.submit(proposal(threads, work, family))).cand
            words[name + "0"] = await desk.request_promotion(cands[name], "too early")
            await desk.evaluate(cands[name])
            words[name] = await desk.request_promotion(cands[name], "fast")
        words["again"] = await desk.request_promotion(cands["a"], "please")
        words["nobody"] = await desk.request_promotion("c0099", "x")

    async with stage(ws, yes=("plan",), agent=(player := Player(act))) as s:
        await played(s, player)
        assert "no verdict" in words["a0"] and words["a0"].startswith("refused")
        assert "not above 1" in words["slow"]
        assert words["a"].startswith("queued") and words["b"].startswith("queued")
        assert "gates.max_open = 2" in words["c"]
        assert "requested already" in words["again"]
        assert words["nobody"].startswith("refused")
        gates = await s.until(lambda x: len(x.gates) == 2 and x.gates)
        assert {g.kind for g in gates} == {"promotion"}
        assert all(s.snap.evaluations[g.target["eval"]].op == "confirm" for g in gates)


async def test_one_open_request_a_family(tmp_path: Path) -> None:
    ws = make_workspace(tmp_path / "ten", CONTRACT.replace("max_open = 2", "max_open = 10"))
    words = []

    async def act(desk: Desk) -> None:
        for threads in (32, 64):
            cand = (await desk.submit(proposal(threads))).cand
            await desk.evaluate(cand)
            words.append(await desk.request_promotion(cand, "fast"))

    async with stage(ws, yes=("plan",), agent=(player := Player(act))) as s:
        await played(s, player)
        assert words[0].startswith("queued") and "same family" in words[1]


async def test_questions_wait_for_an_answer_or_their_default(tmp_path: Path) -> None:
    ws = make_workspace(
        tmp_path / "ask", CONTRACT.replace("max_open = 2", "max_open = 2\nquestion_timeout_s = 1")
    )
    answers = []

    async def act(desk: Desk) -> None:
        answers.append(await desk.ask("fp16 or fp32?", ("fp16", "fp32"), default="fp32"))
        answers.append(await desk.ask("and now?", default="stop"))

    async with stage(ws, yes=("plan",), agent=(player := Player(act))) as s:
        gate = await s.gate("question")
        question = str(gate.target["question"])
        assert s.snap.questions[question].options == ("fp16", "fp32") and gate.timeout_s == 1
        await s.decide("answer", target={"question": question}, text="fp16")
        await played(s, player)
        assert answers == ["fp16", "stop"]
        assert [d.by for d in s.snap.decisions if d.kind == "answer"] == ["person", "rule"]
    kinds = [x["kind"] for x in journal(ws.run("r001").transcript)]
    assert kinds.count("question") == 2 and "answer" in kinds


async def test_a_vetoed_candidate_answers_its_evaluation(ws: Workspace) -> None:
    answers = []

    async def act(desk: Desk) -> None:
        cand = (await desk.submit(proposal())).cand
        answers.append(await desk.evaluate(cand))
        answers.append(await desk.evaluate(cand))

    async with stage(ws, yes=("plan",), agent=(player := Player(act)), pause_s=0.5) as s:
        running = await s.running()
        await s.decide("veto", target={"cand": running.id}, reason="no")
        await played(s, player)
        assert [a.outcome for a in answers] == ["cancelled", "cancelled"]
        assert "vetoed" in answers[0].reason and "no" in answers[1].reason


async def test_approving_a_promotion_under_a_hold_promotes_when_the_hold_ends(ws: Workspace) -> None:
    async def act(desk: Desk) -> None:
        cand = (await desk.submit(proposal())).cand
        await desk.evaluate(cand)
        await desk.request_promotion(cand, "fast")

    async with stage(ws, yes=("plan",), agent=Player(act)) as s:
        gate = await s.gate("promotion")
        await s.decide("pause")
        taken = await s.decide("approve_promotion", target={"gate": gate.id, **gate.target})
        assert taken.outcome == "taken"
        await asyncio.sleep(0.1)
        assert s.snap.incumbent.cand == "baseline" and not ws.outputs.exists()
        await s.decide("resume")
        await s.until(lambda x: x.incumbent.cand == gate.target["cand"])


async def test_what_is_streamed_is_shown_and_not_recorded(ws: Workspace) -> None:
    async def act(desk: Desk) -> None:
        desk.stream("half a sen")
        await asyncio.sleep(0.4)
        live = Reader(ws.root).settle().live
        assert live is not None and live.streaming == "half a sen"
        await desk.say("text", "half a sentence.", turn=3, mood="calm")
        await desk.item("P1", "done")
        await desk.item("P9", "done")

    async with stage(ws, yes=("plan",), agent=(player := Player(act))) as s:
        await played(s, player)
        assert [i.state for i in s.snap.plan.items] == ["done"]
    blocks = journal(ws.run("r001").transcript)
    assert [(b["text"], b["turn"], b["mood"]) for b in blocks] == [("half a sentence.", 3, "calm")]


async def test_an_agent_that_fails_holds_the_run_and_is_asked_again(ws: Workspace) -> None:
    calls = []

    async def act(desk: Desk) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("a bug")

    async with stage(ws, yes=("plan",), agent=(player := Player(act))) as s:
        await s.until(lambda x: x.hold == "api")
        assert "ValueError: a bug" in s.snap.hold_why
        await s.decide("resume")
        await played(s, player)
        assert len(calls) == 2


def test_a_worker_after_too_many_deaths_starts_held(ws: Workspace) -> None:
    import subprocess
    import sys

    options = RunOptions(yes=("plan",), hold="crash_loop").to_json()
    process = subprocess.Popen(
        [sys.executable, "-m", "kda_tui.worker", str(ws.root), "--options", options, "--worker"]
    )
    try:
        reader = Reader(ws.root)
        for _ in range(400):
            if (snap := reader.settle()).hold:
                break
            process.poll()
            assert process.returncode is None
            subprocess.run(["sleep", "0.05"], check=True)
        assert snap.hold == "crash_loop" and "three times" in snap.hold_why
        assert snap.liveness == "alive" and not snap.claims
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0
