"""The independent reviewer: its own prompt, its own model if one is set, and nothing of the agent's conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kda_tui.agents.anthropic.connection import Connection
from kda_tui.agents.anthropic.failures import Failure
from kda_tui.agents.anthropic.prices import price_of
from kda_tui.agents.anthropic.talk import QUICK_RETRIES, Talk
from kda_tui.agents.context import NONE, Context, comment_text, shelf_of
from kda_tui.agents.interface import Desk, Opinion, Subject
from kda_tui.agents.templates import fill
from kda_tui.agents.tools.bench import newest_timed, source_diff
from kda_tui.agents.tools.files import reading_tools, wiki_tool
from kda_tui.agents.tools.tool import Answer, Tool, ToolError, inputs, objects, text
from kda_tui.config import AgentConfig
from kda_tui.record.snapshot import Evaluation
from kda_tui.skills.skill import Skill
from kda_tui.text import UserError

VERDICTS = ("accept", "revise", "reject")
SEVERITIES = ("blocking", "major", "minor")
MAX_FINDINGS = 20


@dataclass(slots=True)
class AnthropicReviewer:
    """Gives one opinion per subject; an API that does not answer means no opinion, never a held run."""

    settings: AgentConfig
    model: str
    skills: Sequence[Skill] = ()
    _connection: Connection | None = field(default=None)

    async def review(self, desk: Desk, subject: Subject) -> Opinion:
        snap = desk.snapshot
        line = snap.budget.get("usd")
        if line is not None and line.limit is not None and price_of(self.settings.prices, self.model) is None:
            raise UserError(f"{self.model} has no price, and the run has a budget in usd")
        context = Context(snap, shelf_of(desk.root, snap, self.skills))
        found: list[Opinion] = []
        if self._connection is None:
            self._connection = Connection(self.settings)
        talk = Talk(
            desk=Aside(desk),
            connection=self._connection,
            settings=self.settings,
            model=self.model,
            system=fill("reviewer", context.fixed()),
            tools=[*reading_tools(context.shelf), wiki_tool(self.skills), review_tool(found, self.model)],
            name=f"review-{subject.key}",
            stuck=_give_up,
            op="review",
            key=subject.key,
            cand=subject.cand,
        )
        question = _plan(context, subject) if subject.kind == "plan" else _promotion(context, subject)
        try:
            how = await talk.run(question)
            if how == "ended":
                how = await talk.run("Nothing was handed in. Hand it in now with `write_review`.")
        except Failure as failure:
            raise UserError(failure.text) from failure
        if not found:
            raise UserError(f"{self.model} handed in no review ({talk.refusal or how})")
        return found[-1]


def review_tool(found: list[Opinion], model: str) -> Tool:
    async def write_review(args: Mapping[str, Any]) -> Answer:
        findings = args["findings"]
        if len(findings) > MAX_FINDINGS:
            raise ToolError(f"at most {MAX_FINDINGS} findings; keep the ones that matter")
        if any(not f["evidence"].strip() for f in findings):
            raise ToolError("each finding cites its evidence; leave out those that have none")
        if args["verdict"] != "accept" and not findings:
            raise ToolError(f"{args['verdict']} needs at least one finding")
        found.append(Opinion(args["verdict"], args["summary"], tuple(findings), model))
        return Answer("the review is recorded")

    fields = {
        "severity": text("How much it matters.", SEVERITIES),
        "text": text("What is wrong or doubtful, in one or two sentences."),
        "evidence": text(
            "File and line, key of the contract, number of the evaluation, or a quoted sentence."
        ),
    }
    return Tool(
        "write_review",
        "Hand in the review.",
        inputs(
            {
                "verdict": text("Your word.", VERDICTS),
                "summary": text("One sentence for the person at the gate."),
                "findings": objects("Most important first.", fields),
            }
        ),
        write_review,
        ends=True,
    )


async def _give_up(failure: Failure, tries: int) -> None:
    raise Failure(failure.kind, f"{failure.text} (after {min(tries, QUICK_RETRIES + 1)} attempts)")


def _plan(context: Context, subject: Subject) -> str:
    snap = context.snap
    revision = next(r for r in snap.plan.revisions if r.rev == subject.rev)
    asked = [d for d in snap.decisions if d.kind == "request_changes" and d.outcome == "taken"]
    comments = [
        {"decision": d.id, "who": d.who, **line}
        for d in asked
        for line in (*d.lines, {"text": d.text or d.reason})
    ]
    return fill(
        "review_plan",
        {
            "rev": str(subject.rev),
            "device": context.device(),
            "comments": comment_text([c for c in comments if c.get("text")]),
            "draft": context.document("docs/draft.md"),
            "plan": context.document(revision.file),
            "results": context.results(),
        },
    )


def _promotion(context: Context, subject: Subject) -> str:
    c = context.snap.candidates[subject.cand]
    confirm = context.snap.evaluations[subject.eval]
    evaluation = newest_timed(context.snap, subject.cand)
    seen = [confirm] + ([evaluation] if evaluation is not None and evaluation.id != confirm.id else [])
    try:
        diff = source_diff(context.shelf, confirm.opponent, subject.cand)
    except ToolError as error:
        diff = f"({error})"
    return fill(
        "review_promotion",
        {
            "cand": subject.cand,
            "opponent": confirm.opponent,
            "hypothesis": c.hypothesis or NONE,
            "reasons": str(c.extra.get("asked") or c.reason or NONE),
            "evidence": "\n\n".join(_evidence(e) for e in seen),
            "profile": context.profile(subject.cand),
            "diff": diff,
            "sources": context.sources([subject.cand]),
        },
    )


def _evidence(e: Evaluation) -> str:
    lines = [
        f"* {e.op} {e.id} against {e.opponent}: {e.validity}, {e.speed}",
        f"* ratio {e.ratio} [{e.lo} {e.hi}], A/A spread {e.aa}, device {e.device}, trust {e.trust or 'kernel'}",
        f"* gates: {', '.join(f'{k} {v}' for k, v in sorted(e.gates.items()))}",
    ]
    rows = e.extra.get("workloads") or ()
    lines += [f"* {json.dumps(dict(r), default=str)}" for r in rows if isinstance(r, Mapping)]
    return "\n".join(lines)


class Aside:
    """A desk for a talk that is no part of the agent's conversation: it pays, and leaves no blocks behind."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def say(self, kind: str, text: str, **fields: Any) -> None:
        """The review itself is recorded under docs/reviews/; its turns stand in the journal."""

    def stream(self, text: str) -> None:
        """Nothing of it is shown while it comes."""

    async def seen(self, notes: Sequence[str]) -> None:
        """Notes are for the agent."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._desk, name)
