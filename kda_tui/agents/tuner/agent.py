"""The tuner as an agent: draft, plan, one measurement per iteration, a request when it has converged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from kda_tui.agents.interface import Desk, Evaluated, PlanText, Proposal, Submitted
from kda_tui.agents.tuner.scores import Standing, best_candidate, standing
from kda_tui.agents.tuner.search import RESTARTS, Next, descended, propose
from kda_tui.agents.tuner.space import Point, Space, read_space, words
from kda_tui.agents.tuner.texts import draft_text, plan_items, plan_text
from kda_tui.record.contract import Contract
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Snapshot
from kda_tui.text import UserError

MAX_MEASURED = 3  # times that an inconclusive best candidate is measured before it counts as it is
Outcome = Literal["again", "converged"]


@dataclass(slots=True)
class TunerAgent:
    """Searches the ``[tune]`` tables of seeds/*, or of one candidate if ``only`` names it."""

    only: str = ""
    restarts: int = RESTARTS
    limit: int | None = None  # candidates that one autotune may submit
    name: str = "tuner"
    model: str = ""
    _refused: set[tuple[str, Point]] = field(default_factory=set)  # not admitted in this process
    _submitted: int = 0
    _asked: set[str] = field(default_factory=set)  # evaluations that a promotion was asked for with

    def prompts(self) -> Mapping[str, str]:
        return {}

    # --- draft and plan ---

    async def draft(self, desk: Desk) -> str:
        contract = _contract(desk.snapshot)
        spaces = self._spaces(desk)
        if not spaces:
            raise UserError(
                f"the tuner has nothing to tune: put a candidate with a [tune] table under {desk.root}/seeds/NAME/"
            )
        text = draft_text(desk.snapshot, contract, spaces)
        await desk.say("text", f"Read {len(spaces)} seed(s): {', '.join(s.name for s in spaces)}.")
        return text

    async def plan(self, desk: Desk, comments: Sequence[Mapping[str, Any]]) -> PlanText:
        contract = _contract(desk.snapshot)
        spaces = self._spaces(desk, _wishes(comments))
        text = plan_text(desk.snapshot, contract, spaces, self.restarts, comments)
        answers = tuple(dict.fromkeys(str(c["decision"]) for c in comments if c.get("decision")))
        return PlanText(text, tuple(plan_items(spaces, self.restarts)), answers)

    # --- iterate ---

    async def iterate(self, desk: Desk) -> Outcome:
        """Measure one point; ask for a promotion where a descent has ended; converge at the end."""
        await self._answer_notes(desk)
        for space in self._spaces(desk):
            found = standing(desk.snapshot, space)
            if found.open:
                await self._measure(desk, found.open[0].id)
                return "again"
            measured = self._with_refused(space, found)
            if descended(space, measured) is not None and await self._request(desk, found):
                return "again"
            step = propose(space, measured, self.restarts)
            if isinstance(step, Next) and not self._spent():
                await self._mark(desk, space, step)
                await self._try(desk, space, found, step)
                return "again"
            await self._finish_items(desk, space)
        return await self._converged(desk)

    async def _answer_notes(self, desk: Desk) -> None:
        for note in desk.snapshot.steering:
            if note.pinned and note.seen_turn is None:
                await desk.say(
                    "text",
                    f"{note.who} says: {note.text}. The tuner cannot act on notes; ask for changes of the plan "
                    "(`only NAME`, `skip NAME`), or change the grids under seeds/ for the next run.",
                )

    async def _try(self, desk: Desk, space: Space, found: Standing, step: Next) -> None:
        origin = found.by_point.get(step.origin)
        parents = (origin.id,) if origin else tuple(p for p in space.parents if _exists(desk.snapshot, p))
        hypothesis = f"{space.hypothesis}: {step.why}" if step.origin != step.point else space.hypothesis
        await desk.say("text", f"{space.name}: next {words(step.point)} ({step.why}).")
        await desk.say(
            "tool_call", words(step.point), tool="submit", args={"family": space.name, **dict(step.point)}
        )
        proposal = Proposal(
            files={**space.files, "launch.toml": space.launch(step.point, hypothesis, parents)},
            hypothesis=hypothesis,
            parents=parents,
            item=_item_of(desk.snapshot, space, step),
            family=space.name,
            defines=dict(step.point),
            author="tuner",
        )
        submitted = await desk.submit(proposal)
        self._submitted += 1
        said = _submitted_words(submitted)
        await desk.say("tool_result", said, tool="submit", cand=submitted.cand, is_error=not submitted.ok)
        if not submitted.ok:
            self._refused.add((space.name, step.point))
            return
        await self._measure(desk, submitted.cand)

    async def _measure(self, desk: Desk, cand: str) -> None:
        await desk.say("tool_call", cand, tool="evaluate", cand=cand, args={"level": "time"})
        result = await desk.evaluate(cand, "time")
        await desk.say(
            "tool_result", _result_words(result), tool="evaluate", cand=cand, is_error=result.outcome != "ok"
        )

    async def _request(self, desk: Desk, found: Standing) -> bool:
        """Ask for the best one's promotion once its lower bound is above 1 against the incumbent."""
        snap = desk.snapshot
        best = best_candidate(snap, found)
        if best is None or best.decision or best.id == snap.incumbent.cand:
            return False
        if best.opponent != snap.incumbent.cand or (
            best.speed == "inconclusive" and best.attempt < MAX_MEASURED
        ):
            await self._measure(desk, best.id)
            return True
        if best.lo is None or best.lo <= 1.0 or best.eval in self._asked:
            return False
        share = f", {best.floor_share:.0%} of the floor" if best.floor_share is not None else ""
        reasons = (
            f"fastest of {len(found.by_point)} measured points: {best.ratio or 0:.3f} "
            f"[{best.lo:.3f} {best.hi or 0:.3f}] against {best.opponent}{share}; {words(tuple(best.defines.items()))}"
        )
        self._asked.add(best.eval)
        answer = await desk.request_promotion(best.id, reasons)
        await desk.say("text", f"Asked for the promotion of {best.id} ({reasons}): {answer}", cand=best.id)
        return desk.snapshot.candidates[best.id].decision == "requested"

    async def _converged(self, desk: Desk) -> Outcome:
        if self.only:
            return "converged"
        snap = desk.snapshot
        waiting = [c.id for c in snap.candidates.values() if c.decision == "requested"]
        if waiting:
            return "converged"
        for item in snap.plan.items:
            if item.state in ("open", "doing"):
                await desk.item(item.id, "done")
        best = snap.incumbent.cand
        await desk.request_end(f"the search has converged; the incumbent is {best}")
        return "converged"

    # --- plan items ---

    async def _mark(self, desk: Desk, space: Space, step: Next) -> None:
        """The item of this step is being done; those of the space before it are done."""
        wanted = _item_of(desk.snapshot, space, step)
        for item in desk.snapshot.plan.items:
            if item.id == wanted and item.state == "open":
                await desk.item(item.id, "doing")
            elif item.id != wanted and item.state == "doing":
                await desk.item(item.id, "done")

    async def _finish_items(self, desk: Desk, space: Space) -> None:
        for item in desk.snapshot.plan.items:
            if item.state == "doing" and space.name in item.title:
                await desk.item(item.id, "done")

    # --- spaces ---

    def _spaces(self, desk: Desk, wishes: Mapping[str, str] | None = None) -> list[Space]:
        if self.only:
            c = desk.snapshot.candidates.get(self.only)
            space = read_space(desk.root / "candidates" / self.only, (c.family if c else "") or self.only)
            return [_from_candidate(space, c)]
        spaces = [read_space(folder, folder.name) for folder in _seed_folders(desk.root / "seeds")]
        wanted = wishes if wishes is not None else _wishes(_taken_comments(desk.snapshot))
        return [_restricted(space, wanted) for space in spaces if _kept(space, wanted)]

    def _with_refused(self, space: Space, found: Standing) -> dict[Point, float | None]:
        refused: dict[Point, float | None] = {p: None for name, p in self._refused if name == space.name}
        return {**refused, **found.measured}

    def _spent(self) -> bool:
        return self.limit is not None and self._submitted >= self.limit


def _contract(snap: Snapshot) -> Contract:
    if snap.contract is None:
        raise UserError(snap.contract_error or "contract.toml is missing")
    return snap.contract


def _seed_folders(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.iterdir() if (p / "launch.toml").is_file())
    except OSError:
        return []


def _exists(snap: Snapshot, cand: str) -> bool:
    return cand == "baseline" or cand in snap.candidates


def _from_candidate(space: Space, c: Candidate | None) -> Space:
    """The same grid, with the search starting at the candidate's own values."""
    if c is None:
        return space
    return replace(space, name=c.family or space.name, parents=(c.id,))


def _item_of(snap: Snapshot, space: Space, step: Next) -> str:
    """The plan item that a step belongs to, found by what its title says."""
    if step.descent > 0:
        start = f"restart the search of {space.name} "
    elif step.axis:
        start = f"vary {step.axis} of {space.name} "
    else:
        start = f"measure {space.name} "
    return next((item.id for item in snap.plan.items if item.title.startswith(start)), "")


def _submitted_words(s: Submitted) -> str:
    if not s.ok:
        return s.text.splitlines()[0] if s.text else "refused"
    registers = f", {s.registers} registers, {s.spills or 0} spilled" if s.registers is not None else ""
    return f"{s.cand} compiles{registers}" + (f"; warnings: {'; '.join(s.warnings)}" if s.warnings else "")


def _result_words(e: Evaluated) -> str:
    if e.outcome != "ok":
        return f"{e.cand}: {e.outcome}" + (f" ({e.reason})" if e.reason else "")
    if e.validity != "passed":
        return f"{e.cand}: {e.validity}" + (f" ({e.reason})" if e.reason else "")
    if e.ratio is None or e.lo is None or e.hi is None:
        return f"{e.cand}: passed, {e.speed}"
    return f"{e.cand}: passed, {e.speed}, {e.ratio:.3f} [{e.lo:.3f} {e.hi:.3f}]"


# --- what people may ask of a tuner's plan ---


def _taken_comments(snap: Snapshot) -> list[dict[str, Any]]:
    """Change requests that the plan in force answers: they bind the search."""
    plan = snap.plan.in_force
    answered = {a for rev in snap.plan.revisions if plan and rev.rev <= plan.rev for a in rev.answers}
    found: list[dict[str, Any]] = []
    for d in snap.decisions:
        if d.id in answered:
            found += [{"text": d.text or d.reason}, *({"text": line.get("text", "")} for line in d.lines)]
    return found


def _wishes(comments: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """``only NAME`` and ``skip NAME`` out of comments; later ones win."""
    wishes: dict[str, str] = {}
    for comment in comments:
        tokens = str(comment.get("text") or "").replace(",", " ").split()
        for word, name in pairwise(tokens):
            if word.lower() in ("only", "skip"):
                wishes[name.strip("`'\".;:")] = word.lower()
    return wishes


def _kept(space: Space, wishes: Mapping[str, str]) -> bool:
    return wishes.get(space.name) != "skip"


def _restricted(space: Space, wishes: Mapping[str, str]) -> Space:
    """Without the tunables that people excluded; those keep their declared default."""
    names = [name for name, _ in space.axes]
    only = [name for name in names if wishes.get(name) == "only"]
    kept = only or [name for name in names if wishes.get(name) != "skip"]
    return replace(
        space,
        axes=tuple((n, v if n in kept else (dict(space.start)[n],)) for n, v in space.axes),
    )
