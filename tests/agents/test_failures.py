"""Everything that can go wrong between the agent and the API, through the real SDK: kept, booked, told, mended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kda_tui.agents.anthropic import talk
from kda_tui.record.paths import Workspace
from kda_tui.record.verify import verify
from tests.agents.conftest import KEY
from tests.agents.fake_api import FakeApi, Fault, Request, Say, say, text, thinking, tool
from tests.agents.rig import DRAFT, TURN_USD, agent_of, blocks, events, planner
from tests.worker.stage import stage

LONG = "The baseline sums eight rounds where one product would do. " * 4


def first(*answers: Say | Fault) -> Callable[[Request], Say | Fault]:
    """These answers, then a planner."""

    def script(request: Request) -> Say | Fault:
        if request.number < len(answers):
            return answers[request.number]
        return planner(request) or say(text("nothing to do"))

    return script


MENDED_BY_ITSELF = {
    "the stream just ends": (say(text(LONG), cut=6), "without its end"),
    "the connection breaks": (say(text(LONG), cut=6, chunked=True), "connection to the API failed"),
    "overloaded in the stream": (say(text(LONG), cut=6, error="overloaded_error"), "overloaded_error"),
    "529": (Fault(529, "overloaded_error"), "529"),
    "500": (Fault(500, "api_error"), "500"),
    "429, a moment": (
        Fault(429, "rate_limit_error", headers={"retry-after-ms": "20"}),
        "tries again in 0.0 s",
    ),
}


@pytest.mark.parametrize("name", MENDED_BY_ITSELF)
async def test_what_passes_is_tried_again_and_nothing_is_lost(ws: Workspace, name: str) -> None:
    answer, words = MENDED_BY_ITSELF[name]
    with FakeApi(first(answer)) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.gate("plan")
            assert ws.draft.read_text() == DRAFT
            assert not api.problems
            claims, results = events(s, "claim", op="turn"), events(s, "result", op="turn")
            assert [r["outcome"] for r in results] == ["infrastructure_error", "ok", "ok"]
            assert [c["claim"] for c in claims] == [r["claim"] for r in results]
            assert all(c["paid"] and c["est_usd"] > 0 for c in claims)
            assert any(words in b.text for b in blocks(s, "notice"))
            partial = [b for b in blocks(s, "text") if b.partial]
            if isinstance(answer, Say):
                assert [b.text for b in partial] and LONG.startswith(partial[0].text)
                assert 0 < results[0]["usd"] < TURN_USD and results[0]["tokens"]["in"] == 100
            else:
                assert not partial and "usd" not in results[0]
            assert results[1]["usd"] == pytest.approx(TURN_USD)
            assert s.snap.hold == ""
    assert verify(ws).ok


async def test_an_api_that_stays_overloaded_holds_the_run_which_goes_on_by_itself(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = [Fault(529, "overloaded_error")] * (talk.QUICK_RETRIES + 2)
    with FakeApi(first(*busy)) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.gate("plan")
            holds = [(h["on"], h["why"]) for h in events(s, "hold")]
            assert holds == [(True, "api"), (False, "api")] * 2
            assert all(h["until"] for h in events(s, "hold", on=True))


async def test_an_api_that_asks_to_wait_long_holds_until_then(ws: Workspace) -> None:
    with FakeApi(first(Fault(429, "rate_limit_error", headers={"retry-after": "60"}))) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.until(lambda x: x.hold == "api")
            assert "429" in s.snap.hold_why and len(api.requests) == 1
            await s.decide("resume")
            await s.gate("plan")


@pytest.mark.parametrize(
    ("answer", "hold"),
    [
        (Fault(401, "authentication_error", "invalid x-api-key"), "auth"),
        (Fault(403, "permission_error", "not allowed"), "auth"),
        (Fault(402, "billing_error", "no credit"), "budget"),
        (Fault(400, "invalid_request_error", "Your credit balance is too low"), "budget"),
        (Fault(404, "not_found_error", "model: test-model"), "api"),
        (Fault(400, "invalid_request_error", "thinking: not supported"), "api"),
    ],
)
async def test_what_a_person_must_mend_holds_the_run_with_its_cause(
    ws: Workspace, answer: Fault, hold: str
) -> None:
    with FakeApi(first(answer)) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.until(lambda x: x.hold)
            assert s.snap.hold == hold and answer.message in s.snap.hold_why
            assert len(api.requests) == 1 and not events(s, "hold")[0].get("until")
            assert (await s.decide("resume")).outcome == "taken"
            await s.gate("plan")
            assert len(api.requests) == 3


async def test_a_missing_key_holds_and_a_new_one_is_read_after_the_hold(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    key = tmp_path / "key"
    with FakeApi(first()) as api:
        async with stage(ws, agent=agent_of(api, api_key_file=str(key))) as s:
            await s.until(lambda x: x.hold == "auth")
            assert str(key) in s.snap.hold_why and not api.requests
            key.write_text(f"{KEY}\n")
            await s.decide("resume")
            await s.gate("plan")
            assert api.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    recorded = b"".join(p.read_bytes() for p in ws.root.rglob("*") if p.is_file())
    assert KEY.encode() not in recorded


async def test_a_refusal_is_shown_with_its_category_and_waits_for_a_person(ws: Workspace) -> None:
    refused = say(text("I cannot."), stop="refusal", refusal="frontier_llm")
    with FakeApi(first(refused)) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.until(lambda x: x.hold == "api")
            assert "refused" in s.snap.hold_why and "frontier_llm" in s.snap.hold_why
            assert any("frontier_llm" in b.text for b in blocks(s, "notice"))
            await s.decide("resume")
            await s.gate("plan")
            assert api.requests[1].turn == 0  # a fresh conversation


async def test_tools_of_a_reply_that_hit_max_tokens_are_not_run(ws: Workspace) -> None:
    cut = say(
        thinking("hm"),
        tool("write_draft", markdown="# Draft: cut in the middle of a " * 3),
        stop="max_tokens",
    )
    with FakeApi(first(cut)) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.gate("plan")
            assert ws.draft.read_text() == DRAFT
            told = api.requests[1].results
            assert told[0]["is_error"] and "not run" in told[0]["content"]
            assert not api.problems


async def test_a_thought_that_was_cut_before_its_signature_is_not_sent_back(ws: Workspace) -> None:
    cut = Say(({"type": "thinking", "thinking": "I wonder", "signature": ""},), stop="max_tokens")
    with FakeApi(first(cut)) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.gate("plan")
            assert not api.problems
            assert "smaller steps" in api.requests[1].messages[-1]["content"][0]["text"]


async def test_a_model_that_only_hits_max_tokens_is_stopped(ws: Workspace) -> None:
    with FakeApi(first(*[say(text("and so on"), stop="max_tokens")] * talk.MAX_CUT)) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.until(lambda x: x.hold == "api")
            assert len(api.requests) == talk.MAX_CUT and "write_draft" in s.snap.hold_why


async def test_a_prompt_that_is_too_long_is_built_anew_with_less(ws: Workspace) -> None:
    too_long = Fault(400, "invalid_request_error", "prompt is too long: 1200000 tokens > 1000000 maximum")
    full = say(text("so"), stop="model_context_window_exceeded")
    with FakeApi(first(too_long, full)) as api:
        agent = agent_of(api)
        async with stage(ws, agent=agent) as s:
            await s.gate("plan")
            assert agent._tightness == 2
            assert [r.turn for r in api.requests[:3]] == [0, 0, 0]
            assert not s.snap.hold


async def test_a_model_that_forgets_to_hand_in_is_reminded(ws: Workspace) -> None:
    with FakeApi(first(say(text("Here is what I think.")))) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.gate("plan")
            assert "write_draft" in api.requests[1].messages[-1]["content"][0]["text"]
            assert not api.problems


async def test_requests_follow_the_rules_of_the_api(ws: Workspace) -> None:
    miss = say(thinking("first"), text("Reading."), tool("list_files"), cache_miss="system_changed")
    with FakeApi(first(miss)) as api:
        async with stage(ws, agent=agent_of(api)) as s:
            await s.gate("plan")
            body = api.requests[1].body
            assert not api.problems
            assert body["thinking"]["type"] == "adaptive" and "tool_choice" not in body
            assert not {"thread", "temperature", "top_p", "betas"} & set(body)
            assert body["stream"] is True and body["output_config"] == {"effort": "high"}
            assert body["cache_control"] == {"type": "ephemeral"}
            assert body["diagnostics"] == {"previous_message_id": "msg_0000"}
            sent = list(miss.blocks)
            assert body["messages"][1]["content"] == sent  # echoed as it came, signature and all
            assert [b.cache_miss for b in blocks(s, "usage")] == ["system_changed", "", ""]
            kinds = [b.kind for b in blocks(s) if b.extra.get("talk") == "draft"]
            assert kinds == [
                *("user", "thinking", "text", "tool_call", "usage", "tool_result"),
                *("text", "tool_call", "usage", "tool_result"),
            ]


def strict(schema: object) -> Sequence[str]:
    """Objects of a schema that take fields nobody declared."""
    if not isinstance(schema, dict):
        return []
    inner = [*schema.get("properties", {}).values(), schema.get("items")]
    own = (
        [str(schema)]
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False
        else []
    )
    return [*own, *(found for part in inner for found in strict(part))]


async def test_every_tool_is_declared_strictly(ws: Workspace) -> None:
    with FakeApi(first()) as api:
        async with stage(ws, agent=agent_of(api), yes=("plan",)) as s:
            await s.until(lambda x: len(api.requests) > 2)
            declared = {t["name"]: t for r in api.requests for t in r.body["tools"]}
            assert len(declared) == 16 and all(t["strict"] for t in declared.values())
            assert not [found for t in declared.values() for found in strict(t["input_schema"])]
            assert not {"bash", "shell", "fetch", "write_file"} & set(declared)
