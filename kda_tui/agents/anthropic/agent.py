"""The agent: draft, plan and one hypothesis per iteration, each in a fresh conversation built from the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from kda_tui.agents.anthropic.connection import Connection
from kda_tui.agents.anthropic.prices import price_of
from kda_tui.agents.anthropic.talk import Talk, hold_until_mended
from kda_tui.agents.context import SOURCES, Context, comment_text, shelf_of
from kda_tui.agents.interface import Desk, PlanText
from kda_tui.agents.so_far import blocks_of, cut_off, handed_in, recap
from kda_tui.agents.templates import fill, templates
from kda_tui.agents.tools.bench import bench_tools
from kda_tui.agents.tools.files import Shelf, reading_tools, wiki_tool
from kda_tui.agents.tools.people import (
    Desktop,
    ask_tool,
    draft_tool,
    plan_text,
    plan_tool,
    request_tools,
)
from kda_tui.agents.tools.tool import Tool, ToolError
from kda_tui.config import AgentConfig, load_config
from kda_tui.record.families import families
from kda_tui.skills.skill import Skill
from kda_tui.text import UserError

ACTING = frozenset(
    {"submit_candidate", "evaluate", "profile", "autotune", "request_promotion", "item", "ask_human"}
)
REMINDERS = 2
WRITE_PLAN, REVISE_PLAN = (
    "Write the plan for this task.",
    "Write the next revision of the plan; answer every comment.",
)


@dataclass(slots=True)
class AnthropicAgent:
    """Talks to a model through the Messages API. State lives in the record: a new process goes on from there."""

    settings: AgentConfig
    skills: Sequence[Skill] = ()
    name: str = "anthropic"
    model: str = ""
    _tightness: int = 0
    _said: set[int] = field(default_factory=set)  # system prompts that stand in the transcript
    _told_stale: set[tuple[str, str]] = field(default_factory=set)
    _connection: Connection | None = None

    def prompts(self) -> Mapping[str, str]:
        return templates()

    # --- phases ---

    async def draft(self, desk: Desk) -> str:
        blocks = blocks_of(desk.snapshot.transcript.path)
        if (done := handed_in(blocks, "draft", "write_draft")) is not None:
            return str(done["markdown"])
        desktop = Desktop()
        values = {"so_far": recap(cut_off(blocks, "draft"))}
        await self._until_handed_in(desk, "draft", "draft", [draft_tool(desktop)], values, "write_draft")
        return desktop.draft

    async def plan(self, desk: Desk, comments: Sequence[Mapping[str, Any]]) -> PlanText:
        """Comments that another revision answered meanwhile make another conversation."""
        blocks = blocks_of(desk.snapshot.transcript.path)
        newest = desk.snapshot.plan.newest
        asked = dict.fromkeys(str(c["decision"])[-6:] for c in comments if c.get("decision"))
        name = "-".join((f"plan-r{newest.rev + 1 if newest else 1}", *asked))
        if (done := handed_in(blocks, name, "write_plan")) is not None:
            try:
                return plan_text(done)
            except ToolError:
                pass  # too long for one line of the transcript: it is written again
        desktop = Desktop()
        values = {
            "task": REVISE_PLAN if comments else WRITE_PLAN,
            "comments": comment_text(comments),
            "so_far": recap(cut_off(blocks, name)),
        }
        tools = [plan_tool(desktop), ask_tool(desk)]
        await self._until_handed_in(desk, name, "plan", tools, values, "write_plan")
        assert desktop.plan is not None
        return desktop.plan

    async def iterate(self, desk: Desk) -> Literal["again", "converged"]:
        """One hypothesis. Converged: the model asked for the end, or did nothing that could bring news."""
        blocks = blocks_of(desk.snapshot.transcript.path)
        desktop = Desktop()
        context = await self._context(desk)
        await self._tell_stagnation(desk, context)
        tools = [
            *self._reading(context.shelf),
            *bench_tools(desk, context.shelf),
            *request_tools(desk, desktop),
        ]
        talk = await self._talk(desk, f"iterate-{desk.iteration}", context, tools)
        how = await talk.run(fill("iterate", _state(context, {"so_far": recap(cut_off(blocks, "iterate"))})))
        if how == "too_long":
            await self._tighten(desk)
        elif how == "refused":
            await self._refused(desk, talk)
        elif desktop.asked_end or (how == "ended" and not ACTING & set(talk.used)):
            return "converged"
        return "again"

    async def _tell_stagnation(self, desk: Desk, context: Context) -> None:
        """Say once of each family that nothing in it gets better, and what was never tried instead."""
        for f in families(context.snap.candidates.values()):
            key = (f.name, f.best_cand)
            if not f.is_stale or key in self._told_stale:
                continue
            self._told_stale.add(key)
            best = f"since {f.best_cand}" if f.best_cand else "and none passed"
            never = "; ".join(context.never_tried()[:6])
            await desk.say(
                "notice",
                f"the family {f.name} stagnates: {f.since_best} judged {best}"
                + (f"; never tried: {never}" if never else ""),
            )

    async def _until_handed_in(
        self,
        desk: Desk,
        name: str,
        template: str,
        tools: Sequence[Tool],
        values: Mapping[str, str],
        wanted: str,
    ) -> None:
        """Talk until the document was handed in; a model that forgets is reminded, then people are told."""
        while True:
            context = await self._context(desk)
            talk = await self._talk(desk, name, context, [*self._reading(context.shelf), *tools])
            how = await talk.run(fill(template, _state(context, values)))
            for _ in range(REMINDERS):
                if how != "ended":
                    break
                how = await talk.run(f"Nothing was handed in. Hand it in now with `{wanted}`.")
            if how == "handed_in":
                return
            if how == "too_long":
                await self._tighten(desk)
            elif how == "refused":
                await self._refused(desk, talk)
            else:
                await desk.hold(
                    "api", f"{self.model} did not call {wanted}; choose another model, or resume to try again"
                )

    async def _tighten(self, desk: Desk) -> None:
        """The next conversation gets fewer sources; at the least there is nothing left to leave out."""
        if self._tightness + 1 < len(SOURCES):
            self._tightness += 1
        else:
            await desk.hold(
                "api", f"the prompt does not fit into the context of {self.model}; choose another model"
            )

    async def _refused(self, desk: Desk, talk: Talk) -> None:
        await desk.hold(
            "api",
            f"{self.model} refused to go on ({talk.refusal}); steer it and resume, or restart with another --model",
        )

    # --- what a conversation needs ---

    async def _context(self, desk: Desk) -> Context:
        await self._until_priced(desk)
        snap = desk.snapshot
        if snap.contract is None:
            raise UserError(snap.contract_error or "contract.toml is missing")
        return Context(snap, shelf_of(desk.root, snap, self.skills), self._tightness)

    async def _until_priced(self, desk: Desk) -> None:
        """A limit in usd means nothing while the price is unknown."""
        while True:
            line = desk.snapshot.budget.get("usd")
            if line is None or line.limit is None or price_of(self.settings.prices, self.model) is not None:
                return
            await desk.hold(
                "budget",
                f"the run has a budget of {line.limit:g} usd and {self.model} has no price: "
                "add it to [agent.prices] of kda.toml, then resume",
            )
            self.settings = load_config(desk.root).agent

    async def _talk(self, desk: Desk, name: str, context: Context, tools: Sequence[Tool]) -> Talk:
        if not self.model:
            raise UserError("no model is named: set agent.model in kda.toml, or give --model")
        if self._connection is None or self._connection.settings is not self.settings:
            self._connection = Connection(self.settings)
        system = fill("system", context.fixed())
        if hash(system) not in self._said:
            self._said.add(hash(system))
            await desk.say("user", system, role="system")
        return Talk(
            desk=desk,
            connection=self._connection,
            settings=self.settings,
            model=self.model,
            system=system,
            tools=tools,
            name=name,
            stuck=partial(hold_until_mended, desk),
        )

    def _reading(self, shelf: Shelf) -> list[Tool]:
        return [*reading_tools(shelf), wiki_tool(self.skills)]


def _state(context: Context, values: Mapping[str, str]) -> dict[str, str]:
    """Every slot that a template of this agent may have."""
    return {
        "files": context.files(),
        "notes": context.notes(),
        "decisions": context.decisions(),
        "draft": context.document("docs/draft.md"),
        "plan": context.plan(),
        "items": context.items(),
        "state": context.state(),
        "results": context.results(),
        "workloads": context.workloads(),
        "families": context.families(),
        "sources": context.sources(),
        "own_notes": context.document("docs/notes.md"),
        **values,
    }
