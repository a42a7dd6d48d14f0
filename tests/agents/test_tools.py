"""What an agent can reach and what it cannot, through a whole run and at the tools themselves."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.agents.skillbook import agent_skills
from kda_tui.agents.tools.files import Shelf, reading_tools, wiki_tool
from kda_tui.agents.tools.people import Desktop, plan_tool
from kda_tui.agents.tools.tool import Tool, inputs, misfit, objects, text, texts, whole
from kda_tui.config import Config
from kda_tui.record.paths import Workspace
from tests.agents.fake_api import FakeApi, Request, Say, say, tool
from tests.agents.fake_api import text as words
from tests.agents.rig import ITEMS, PLAN, agent_of, blocks, planner
from tests.agents.test_turns import candidate
from tests.worker.make import KERNEL, launch
from tests.worker.stage import Stage, stage


def tools_of(ws: Workspace) -> dict[str, Tool]:
    skills = agent_skills(Config())
    return {t.name: t for t in [*reading_tools(Shelf(ws.root, skills)), wiki_tool(skills)]}


FORBIDDEN = [
    "runs/r001/events.jsonl", "decisions.jsonl", "candidates.jsonl", "benchmark.csv", "inbox", "workspace.lock",
    "../secret", "docs/../../secret", "/etc/passwd", ".git/config", "docs/.hidden", "seeds/link.txt", "seeds/out/secret",
    "skills/../secret", "skills/kernel-wiki/../../kda.toml", "skills/none/SKILL.md", "seeds/ledger.txt", "seeds/pipe", "baseline", "~/.ssh/id",
]  # fmt: skip


@pytest.mark.parametrize("path", FORBIDDEN)
async def test_nothing_outside_is_read(ws: Workspace, path: str) -> None:
    (ws.root.parent / "secret").write_text("kept elsewhere")
    (ws.seeds / "link.txt").symlink_to(ws.root.parent / "secret")
    (ws.root / "candidates.jsonl").write_text("kept elsewhere")
    (ws.seeds / "ledger.txt").symlink_to(ws.root / "candidates.jsonl")
    (ws.seeds / "out").symlink_to(ws.root.parent)
    os.mkfifo(ws.seeds / "pipe")
    (ws.root / "docs").mkdir(exist_ok=True)
    (ws.root / "docs" / ".hidden").write_text("kept elsewhere")
    tools = tools_of(ws)
    answer = await tools["read_file"].call({"path": path})
    assert answer.is_error and "kept elsewhere" not in answer.text
    listed = (await tools["list_files"].call({})).text
    assert (
        "link.txt" not in listed and "secret" not in listed and "pipe" not in listed and "runs/" not in listed
    )
    assert "kept elsewhere" not in (await tools["search_files"].call({"text": "kept elsewhere"})).text


async def test_reading_is_bounded_and_says_what_is_left_out(ws: Workspace) -> None:
    (ws.seeds / "long.cu").write_text("\n".join(f"line {n}" for n in range(1, 2001)))
    (ws.seeds / "huge.cu").write_bytes(b"x" * (1 << 20))
    (ws.seeds / "binary.cu").write_bytes(b"\0\1\2")
    tools = tools_of(ws)
    part = await tools["read_file"].call({"path": "seeds/long.cu", "first_line": 1990})
    assert part.text.splitlines()[0] == "1990\tline 1990" and part.text.endswith("line 2000")
    whole_file = await tools["read_file"].call({"path": "seeds/long.cu"})
    assert "lines 1 to 600 of 2000" in whole_file.text
    assert (await tools["read_file"].call({"path": "seeds/huge.cu"})).is_error
    assert "not text" in (await tools["read_file"].call({"path": "seeds/binary.cu"})).text
    hits = (await tools["search_files"].call({"text": "LINE", "folder": "seeds"})).text.splitlines()
    assert len(hits) == 61 and "may be more" in hits[-1]


async def test_the_wiki_is_found_and_its_pages_are_read(ws: Workspace) -> None:
    tools = tools_of(ws)
    hits = json.loads((await tools["search_wiki"].call({"words": "bank conflicts swizzle"})).text)["hits"]
    assert hits[0]["page"].startswith("skills/kernel-wiki/")
    page = await tools["read_file"].call({"path": hits[0]["page"]})
    assert not page.is_error and page.text.startswith("1\t")


SCHEMA = inputs({"a": text("."), "n": whole(".")}, b=texts("."), c=objects(".", {"d": text(".", ["x", "y"])}))


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ({"a": "x", "n": 1}, ""),
        ({"a": "x", "n": 1, "b": [], "c": [{"d": "y"}]}, ""),
        ({"a": "x"}, "lacks n"),
        ({"a": 1, "n": 1}, "a must be of type string"),
        ({"a": "x", "n": True}, "n must be of type integer"),
        ({"a": "x", "n": 1, "z": 1}, "no field z"),
        ({"a": "x", "n": 1, "b": ["x", 1]}, "b[1] must be of type string"),
        ({"a": "x", "n": 1, "c": [{"d": "z"}]}, "c[0].d must be one of x, y"),
        ("text", "of type object"),
        (None, "of type object"),
    ],
)
def test_arguments_are_checked_against_the_schema(value: Any, word: str) -> None:
    found = misfit(value, SCHEMA, "")
    assert word in found if word else found == ""


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_no_argument_breaks_the_check(value: Any) -> None:
    assert isinstance(misfit(value, SCHEMA, ""), str)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"items": []}, "1 to 60 items"),
        ({"items": [*ITEMS, ITEMS[0]]}, "same id"),
        ({"items": [{"id": "no spaces", "title": "t"}]}, "no item id"),
        ({"items": [{"id": "P1", "title": " "}]}, "no title"),
        ({"markdown": "short"}, "nearly empty"),
        ({"markdown": "x" * 50_000}, "limit"),
    ],
)
async def test_a_plan_that_is_none_is_sent_back(change: dict[str, Any], word: str) -> None:
    desktop = Desktop()
    answer = await plan_tool(desktop).call({"markdown": PLAN, "items": ITEMS, "answers": [], **change})
    assert answer.is_error and word in answer.text and desktop.plan is None


def scripted(*calls: dict[str, Any]) -> Any:
    """An agent that calls these tools, one a turn, in its first iteration."""

    def script(request: Request) -> Say:
        planned = planner(request)
        if planned is not None:
            return planned
        if "candidates so far: 0" in request.opening and request.turn < len(calls):
            return say(calls[request.turn])
        return say(words("That is all."))

    return script


async def answers(s: Stage, count: int) -> list[Any]:
    """What the tools of the iteration answered."""

    def found() -> list[Any]:
        return [b for b in blocks(s, "tool_result") if b.extra.get("talk", "").startswith("iterate")]

    await s.until(lambda x: len(found()) >= count)
    return found()


async def test_a_candidate_is_compiled_at_once_and_results_are_short_words(ws: Workspace) -> None:
    calls = (
        candidate(launch="[[step"),
        candidate(launch=launch(32, 1).replace('"scale"', '"scale"').replace("grid", "gridd")),
        candidate(),
        candidate(),
        tool("evaluate", candidate="c0001"),
        tool("evaluate", candidate="c0001", level="confirm"),
        tool("evaluate", candidate="c0099"),
        candidate(threads=64, copy_from="c0001", hypothesis=" "),
        tool("submit_candidate", launch=launch(64, 1), copy_from="c0001", hypothesis="more threads", family="rounds", parents=["c0001"], item="P2"),
        tool("compare", first="baseline", second="c0002"),
        tool("profile", candidate="c0001"),
        tool("profile", candidate="c0001", workload="n1"),
        tool("item", id="P9", state="done"),
        tool("autotune", candidate="c0001", max_candidates=0),
        tool("request_promotion", candidate="c0002", reasons="it must be faster"),
        tool("nonsense"),
        tool("write_notes", markdown="x" * 20_000),
    )  # fmt: skip
    with FakeApi(scripted(*calls)) as api:
        async with stage(ws, agent=agent_of(api), yes=("plan",)) as s:
            found = await answers(s, len(calls))
            said = [b.text for b in found]
            wrong = [n for n, b in enumerate(found) if b.is_error]
            assert wrong == [0, 1, 3, 5, 6, 7, 11, 12, 13, 14, 15, 16]
            assert "launch.toml" in said[0] and "gridd" in said[1]
            assert json.loads(said[2]) == {
                "candidate": "c0001",
                "compiled": True,
                "registers": 16,
                "spills": 0,
            }
            assert "the same source is c0001" in said[3]
            verdict = json.loads(said[4])
            assert (
                verdict["speed"] == "faster" and verdict["against"] == "baseline" and verdict["ratio"] > 1.5
            )
            assert not {"error", "worst", "rows", "samples"} & set(verdict)
            assert "must be one of smoke, correct, time" in said[5] and "no candidate c0099" in said[6]
            assert (ws.candidate("c0002") / "kernel.cu").read_text() == KERNEL
            assert (
                "-defines = {THREADS = 16, WORK = 8}" in said[9]
                and "+defines = {THREADS = 64, WORK = 1}" in said[9]
            )
            assert "needs an NVIDIA GPU" in said[10]
            assert "there are n256" in said[11] and "there are P1, P2" in said[12] and "1 to 200" in said[13]
            assert "refused: c0002 has no verdict yet" in said[14]
            assert "no tool nonsense" in said[15] and "limit is 16384" in said[16]
            assert not api.problems


async def test_a_question_waits_for_a_person_and_the_answer_goes_to_the_model(ws: Workspace) -> None:
    question = tool("ask_human", question="May WORK be 1?", options=["yes", "no"], default="")
    with FakeApi(scripted(question)) as api:
        async with stage(ws, agent=agent_of(api), yes=("plan",)) as s:
            gate = await s.gate("question")
            assert gate.blocking and s.snap.questions[str(gate.target["question"])].options == ("yes", "no")
            await s.decide("answer", target={"gate": gate.id, **gate.target}, text="yes, it may")
            found = await answers(s, 1)
            assert found[0].text == "yes, it may"


async def test_submitted_candidates_and_the_contract_cannot_be_changed(ws: Workspace, tmp_path: Path) -> None:
    names = ["../../contract.toml", "../c0001/kernel.cu", "/tmp/x.cu", ".hidden.cu", "a/b.cu", "run.sh"]
    calls = [candidate(), *(candidate(files=[{"name": n, "text": "x"}]) for n in names)]
    before = (ws.root / "contract.toml").read_bytes()
    with FakeApi(scripted(*calls)) as api:
        async with stage(ws, agent=agent_of(api), yes=("plan",)) as s:
            found = await answers(s, len(calls))
            assert [b.is_error for b in found] == [False] + [True] * len(names)
            assert all("not a file of a candidate" in b.text for b in found[1:])
    assert (ws.root / "contract.toml").read_bytes() == before
    assert sorted(p.name for p in ws.candidates.iterdir()) == ["c0001"]


async def test_a_tunable_candidate_is_searched_without_a_token(ws: Workspace) -> None:
    calls = (candidate(threads=16, work=8), tool("autotune", candidate="c0001", max_candidates=3))
    with FakeApi(scripted(*calls)) as api:
        async with stage(ws, agent=agent_of(api), yes=("plan",)) as s:
            found = await answers(s, 2)
            assert "candidates from c0001" in found[1].text and "best c000" in found[1].text
            tuned = [c for c in s.snap.candidates.values() if c.author == "tuner"]
            assert 1 <= len(tuned) <= 3
            await s.until(lambda x: x.phase == "iterate" and len(api.requests) > 4)
            assert not api.problems


async def test_stagnation_is_counted_and_told_once_with_what_was_never_tried(ws: Workspace) -> None:
    def script(request: Request) -> Say:
        planned = planner(request)
        if planned is not None:
            return planned
        born = int(request.opening.split("candidates so far: ")[1].split("\n")[0])
        if born >= 6 or request.turn == 2:
            return say(words("Enough."))
        if request.turn == 1:
            return say(tool("evaluate", candidate=f"c{born + 1:04d}"))
        worse = launch(32 - born, 1).replace("[16, 32, 64]", f"[{32 - born}]")
        return say(candidate(launch=worse))

    with FakeApi(script) as api:
        async with stage(ws, agent=agent_of(api), yes=("plan",)) as s:
            await s.until(lambda x: "nothing left to try" in s.worker.live.state.get("waiting", ""))
            told = [b.text for b in blocks(s, "notice") if "stagnates" in b.text]
            assert len(told) == 1 and "family rounds" in told[0] and "since c0001" in told[0]
            assert "never tried: P1 one round; P2 more threads" in told[0]
            assert "STAGNATES" in api.requests[-1].opening and "Never tried" in api.requests[-1].opening
