"""Plan, notes, requests and questions: what an agent tells people, and what it asks of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kda_tui.agents.interface import Desk, PlanText
from kda_tui.agents.tools.tool import Answer, Tool, ToolError, inputs, objects, text, texts

MAX_DOCUMENT = 40 << 10  # so that the call stands whole in a line of the transcript
MAX_ITEMS = 60
ITEM_ID = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,15}")
STATES = ("open", "doing", "done", "dropped")


@dataclass(slots=True)
class Desktop:
    """What the writing tools of a conversation brought; ``asked_end``: the agent asked to end the run."""

    draft: str = ""
    plan: PlanText | None = None
    asked_end: bool = False


def draft_tool(desktop: Desktop) -> Tool:
    async def write_draft(args: Mapping[str, Any]) -> Answer:
        desktop.draft = _document(args["markdown"])
        return Answer("the draft is written")

    return Tool(
        "write_draft",
        "Hand in the research draft (docs/draft.md). This ends the draft phase.",
        inputs({"markdown": text("The whole draft as Markdown, with the headings that were asked for.")}),
        write_draft,
        ends=True,
    )


def plan_tool(desktop: Desktop) -> Tool:
    async def write_plan(args: Mapping[str, Any]) -> Answer:
        desktop.plan = plan_text(args)
        return Answer("the plan is proposed; a person decides")

    return Tool(
        "write_plan",
        "Hand in the plan, or its next revision. A person reads it, and approves it or asks for changes.",
        inputs(
            {
                "markdown": text("The whole plan as Markdown, with the headings that were asked for."),
                "items": objects(
                    "Every plan item in order. Keep the ids of items that an earlier revision had.",
                    {"id": text("For example P1."), "title": text("One line.")},
                ),
                "answers": texts("Ids of the change requests that this revision answers; [] if none."),
            }
        ),
        write_plan,
        ends=True,
    )


def plan_text(args: Mapping[str, Any]) -> PlanText:
    """A plan from the arguments of write_plan. Raises ToolError."""
    markdown = _document(args["markdown"])
    items = tuple((item["id"].strip(), " ".join(item["title"].split())) for item in args["items"])
    ids = [ident for ident, _ in items]
    if not items or len(items) > MAX_ITEMS:
        raise ToolError(f"a plan has 1 to {MAX_ITEMS} items")
    if wrong := next((i for i in ids if not ITEM_ID.fullmatch(i)), None):
        raise ToolError(f"{wrong!r} is no item id; use P1, P2, ...")
    if len(set(ids)) < len(ids):
        raise ToolError("two items have the same id")
    if any(not title for _, title in items):
        raise ToolError("an item has no title")
    return PlanText(markdown, items, tuple(dict.fromkeys(args["answers"])))


def _document(markdown: str) -> str:
    if len(markdown.encode()) > MAX_DOCUMENT:
        raise ToolError(f"{len(markdown.encode())} bytes; the limit is {MAX_DOCUMENT}")
    if len(markdown.strip()) < 40:
        raise ToolError("this is nearly empty; write the document")
    return markdown.rstrip() + "\n"


def request_tools(desk: Desk, desktop: Desktop) -> list[Tool]:
    async def item(args: Mapping[str, Any]) -> Answer:
        known = [i.id for i in desk.snapshot.plan.items]
        if args["id"] not in known:
            raise ToolError(f"there is no plan item {args['id']}; there are {', '.join(known)}")
        await desk.item(args["id"], args["state"])
        return Answer(f"{args['id']} is {args['state']}")

    async def request_promotion(args: Mapping[str, Any]) -> Answer:
        said = await desk.request_promotion(args["candidate"], args["reasons"])
        return Answer(said, is_error=said.startswith("refused"), cand=args["candidate"])

    async def request_end(args: Mapping[str, Any]) -> Answer:
        await desk.request_end(args["why"])
        desktop.asked_end = True
        return Answer("asked; only a person, the budget or the contract ends the run")

    async def write_notes(args: Mapping[str, Any]) -> Answer:
        said = await desk.write_notes(args["markdown"])
        return Answer(said, is_error=said.startswith("refused"))

    return [
        Tool(
            "item",
            "Set the state of a plan item.",
            inputs({"id": text("Its id."), "state": text("Its new state.", STATES)}),
            item,
        ),
        Tool(
            "request_promotion",
            "Ask for a promotion. A confirmation with fresh seeds and processes runs first, a reviewer looks at it, "
            "then a person or the written rule decides. Needs a full evaluation with a lower bound above 1.",
            inputs(
                {
                    "candidate": text("Its id."),
                    "reasons": text(
                        "Why it is faster, by which evidence, and what could still be wrong with it."
                    ),
                }
            ),
            request_promotion,
        ),
        ask_tool(desk),
        Tool(
            "write_notes",
            "Replace docs/notes.md, your own memory across iterations: what was learned, what failed and why, what "
            "is next. You see it at the start of every iteration.",
            inputs({"markdown": text("The whole notes, at most 16 KB.")}),
            write_notes,
        ),
        Tool(
            "request_end",
            "Ask to end the run because nothing worth trying is left. You do not end it yourself.",
            inputs({"why": text("What was tried, what is left, why it is not worth its cost.")}),
            request_end,
        ),
    ]


def ask_tool(desk: Desk) -> Tool:
    async def ask_human(args: Mapping[str, Any]) -> Answer:
        options, default = tuple(args["options"]), args["default"]
        if not args["question"].strip():
            raise ToolError("the question is empty")
        if default and options and default not in options:
            raise ToolError("default must be one of the options, or an empty text")
        said = await desk.ask(args["question"], options, default)
        return Answer(said or "nobody answered")

    return Tool(
        "ask_human",
        "Ask a person and wait for the answer. With a default the run goes on by itself after the contract's "
        "timeout; without one everything waits. Ask only what the contract and the record cannot tell.",
        inputs(
            {
                "question": text("The question, with what depends on it."),
                "options": texts("Answers to choose from; [] for a free answer."),
                "default": text("The answer that applies if nobody answers; an empty text if there is none."),
            }
        ),
        ask_human,
    )
