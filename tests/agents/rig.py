"""Agents that talk to the stand-in API, and the documents that its scripts hand in."""

from __future__ import annotations

from typing import Any

from kda_tui.agents.anthropic.agent import AnthropicAgent
from kda_tui.config import AgentConfig, Price
from kda_tui.record.records import TranscriptBlock
from kda_tui.record.transcript import TranscriptFile
from tests.agents.fake_api import FakeApi, Request, Say, say, text, tool
from tests.worker.stage import Stage, journal

MODEL = "test-model"
PRICES = {MODEL: Price(input=10.0, output=100.0, cache_write=12.5, cache_read=1.0)}
TURN_USD = (100 * 10.0 + 50 * 100.0 + 20 * 12.5 + 1000 * 1.0) / 1e6  # what a reply of the stand-in costs

DRAFT = "# Draft: scale\n\n## Baseline and how it is validated\n\nEight rounds where one would do.\n"
PLAN = "# Plan: scale\n\n## First steps\n\nP1 one round instead of eight, then P2 more threads.\n"
ITEMS = [{"id": "P1", "title": "one round"}, {"id": "P2", "title": "more threads"}]


def agent_of(api: FakeApi, **settings: Any) -> AnthropicAgent:
    given = {"base_url": api.url, "prices": PRICES, "max_tokens": 2048, **settings}
    return AnthropicAgent(AgentConfig(**given), model=MODEL)


def planner(request: Request) -> Say | None:
    """Hands in draft and plan at once; None for an iteration."""
    names = {t["name"] for t in request.body["tools"]}
    if "write_draft" in names:
        return say(text("Reading done."), tool("write_draft", markdown=DRAFT))
    if "write_plan" in names:
        return say(tool("write_plan", markdown=PLAN, items=ITEMS, answers=[]))
    return None


def blocks(stage: Stage, kind: str = "") -> list[TranscriptBlock]:
    found = TranscriptFile(stage.worker.clerk.paths.transcript).tail(1000)
    return [b for b in found if isinstance(b, TranscriptBlock) and kind in ("", b.kind)]


def events(stage: Stage, kind: str, **wanted: Any) -> list[dict[str, Any]]:
    lines = journal(stage.worker.clerk.paths.events)
    return [x for x in lines if x["kind"] == kind and all(x.get(k) == v for k, v in wanted.items())]
