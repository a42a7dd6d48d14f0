"""A workspace's ledgers, folded line by line into what a snapshot shows; snapshots share what did not change."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kda_tui.record.fold_run import RESULT_KEYS, RunFold
from kda_tui.record.line_rest import LineRest
from kda_tui.record.records import Candidate, Decision
from kda_tui.record.rough_json import read_object
from kda_tui.record.snapshot import (
    BudgetLine,
    Evaluation,
    Finding,
    Incumbent,
    Plan,
    PlanItem,
    PlanRevision,
    RunInfo,
    Steering,
)
from kda_tui.record.tail import TailLine
from kda_tui.record.typed import candidate_of, decision_of, text
from kda_tui.text import clean_line

Found = Callable[[Finding], None]

_MOST_WAITING = 500
# Events that carry a candidate's whole state, which candidates.jsonl has too; rows follow it.
_CARRIES = re.compile(
    rb'\{"v":\d+,"seq":\d+,"t":"[^"\\]*","run":"[^"\\]*","kind":"(?:candidate|claim|result)"[,}]'
)
_CARRIED = re.compile(rb',"(?:candidate":\{|rows":\[)')


# A line as the worker writes it: its id can be told without parsing the rest.
_OUR_LINE = re.compile(rb'\{"v":1,"seq":\d+,"t":"[^"\\]*","run":"[^"\\]*","id":"([\w.-]{1,80})",')


class CandidatesFold:
    """candidates.jsonl: the newest state of each candidate, in order of birth, and how many there are of each word.

    Only the newest line of a candidate is parsed and becomes a record: most lines are followed by another one before
    anybody looks. (`kda verify` looks at every line.)
    """

    def __init__(self, file: str, found: Found) -> None:
        self._file = file
        self._found = found
        self._states: dict[str, Candidate] = {}
        self._waiting: dict[
            str, tuple[int, dict[str, Any] | bytes]
        ] = {}  # newest lines that are no records yet
        self._misfits: dict[str, tuple[Finding, ...]] = {}  # of the newest states
        self._counts: Counter[str] = Counter()
        self._charged: Counter[str] = Counter()  # by run
        self._shown: Mapping[str, Candidate] = {}

    def take(self, line: TailLine) -> None:
        _, number, data = line
        ours = _OUR_LINE.match(data) if data.endswith(b"}") else None
        if ours is not None:
            self._wait(ours[1].decode("ascii"), number, data)
            return
        body = self._object(number, data)
        if body is None:
            return
        ident = text(body.get("id"))
        if not ident:
            head = clean_line(data.decode("utf-8", "replace"), 60)
            self._found(Finding(self._file, number, f"a candidate without id: {head}", "left out"))
            return
        self._wait(ident, number, body)

    def _wait(self, ident: str, number: int, line: dict[str, Any] | bytes) -> None:
        if ident not in self._waiting and len(self._waiting) >= _MOST_WAITING:
            self._settle()
        self._waiting[ident] = (number, line)

    def _object(self, number: int, data: bytes) -> dict[str, Any] | None:
        body, problem = read_object(data)
        if problem:
            self._found(Finding(self._file, number, problem, "left out" if body is None else "kept"))
        return body

    def _settle(self) -> None:
        if self._waiting:
            self._shown = {}
        for ident, (number, line) in self._waiting.items():
            body = self._object(number, line) if isinstance(line, bytes) else line
            if body is None:
                continue
            problems: list[str] = []
            candidate = candidate_of(body, problems)
            self._count(self._states.get(ident), candidate)
            self._states[ident] = candidate
            self._misfits.pop(ident, None)
            if problems:
                self._misfits[ident] = misfits(self._file, number, problems)
        self._waiting.clear()

    def _count(self, before: Candidate | None, after: Candidate) -> None:
        if before is not None:
            self._counts.subtract(_words(before))
            self._charged[_charged_to(before)] -= 1
        self._counts.update(_words(after))
        self._charged[_charged_to(after)] += 1

    def states(self) -> Mapping[str, Candidate]:
        """By id, in order of birth; the same object until something changes."""
        self._settle()
        if len(self._shown) != len(self._states):
            self._shown = dict(self._states)
        return self._shown

    def counts(self) -> dict[str, int]:
        """Candidates by validity, else stage, and by decision, and ``candidates``: all of them."""
        self._settle()
        return {word: count for word, count in sorted(self._counts.items()) if count}

    def charged(self, run: str) -> int:
        """Those of a run that count against its budget: an agent's, neither cancelled nor parked."""
        self._settle()
        return self._charged[run]

    def misfits(self) -> list[Finding]:
        """What in the states that are shown now is not of the type it should be."""
        self._settle()
        return [finding for found in self._misfits.values() for finding in found]


def misfits(file: str, line: int, problems: list[str]) -> tuple[Finding, ...]:
    return tuple(Finding(file, line, clean_line(problem, 160), "shown as it is") for problem in problems)


def _words(candidate: Candidate) -> tuple[str, ...]:
    decided = (candidate.decision,) if candidate.decision else ()
    return ("candidates", candidate.validity or candidate.stage, *decided)


def _charged_to(candidate: Candidate) -> str:
    """The run whose budget a candidate counts against, or ''."""
    counts = (
        candidate.author in ("agent", "tuner")
        and candidate.stage != "cancelled"
        and candidate.validity != "infrastructure_error"
    )
    return text(candidate.extra.get("born")) or candidate.run if counts else ""


class DecisionsFold:
    """decisions.jsonl, in order; a decision that comes twice keeps its place and its newest line."""

    def __init__(self, file: str, found: Found) -> None:
        self._file = file
        self._found = found
        self._by_id: dict[str, Decision] = {}
        self._all: tuple[Decision, ...] | None = ()

    def take(self, line: TailLine) -> None:
        _, number, data = line
        body, problem = read_object(data)
        if problem:
            self._found(Finding(self._file, number, problem, "left out" if body is None else "kept"))
        if body is None:
            return
        problems: list[str] = []
        decision = decision_of(body, problems)
        for finding in misfits(self._file, number, problems):
            self._found(finding)
        self._by_id[decision.id or f"line {number}"] = decision
        self._all = None

    def all(self) -> tuple[Decision, ...]:
        if self._all is None:
            self._all = tuple(self._by_id.values())
        return self._all

    def __contains__(self, ident: object) -> bool:
        return ident in self._by_id


@dataclass(frozen=True, slots=True)
class Chain:
    """Promotions and revocations of all runs, oldest first, and who is the incumbent now."""

    all: tuple[Incumbent, ...] = ()

    @property
    def now(self) -> Incumbent:
        return self.all[-1] if self.all else Incumbent("baseline")


class JournalsFold:
    """events.jsonl of all runs: a :class:`RunFold` each, and what belongs to the workspace as a whole."""

    def __init__(self, root: Path, found: Found) -> None:
        self._root = root
        self._found = found
        self.runs: dict[str, RunFold] = {}
        self._evaluations: dict[str, Evaluation] = {}
        self._shown: Mapping[str, Evaluation] = {}
        self._dirty = False
        self._confirms: Counter[str] = Counter()  # by contract
        self._incumbents: list[tuple[str, int, int, Incumbent]] = []
        self._chain = Chain()
        self._unknown: dict[tuple[str, str], tuple[int, int]] = {}  # (file, kind) -> first line, count

    def take(self, run: str, path: Path, file: str, line: TailLine) -> None:
        offset, number, data = line
        body, problem = _read_event(data)
        if problem:
            self._found(Finding(file, number, problem, "left out" if body is None else "kept"))
        if body is None:
            return
        fold = self.runs.get(run)
        if fold is None:
            fold = self.runs[run] = RunFold(run, RunInfo(run))
            self.runs = dict(sorted(self.runs.items()))
        kind = body.get("kind")
        if kind == "result" and offset >= 0:
            rest: Mapping[str, Any] = LineRest(self._root, path, offset, len(data), RESULT_KEYS)
        else:
            rest = body
        if not fold.take(body, rest):
            name = text(kind)
            first, count = self._unknown.get((file, name), (number, 0))
            self._unknown[file, name] = (first, count + 1)
        if fold.evaluations or fold.incumbents:
            self._gather(fold)

    def _gather(self, fold: RunFold) -> None:
        for evaluation in fold.evaluations.values():
            before = self._evaluations.get(evaluation.id)
            if before is not None and _spends(before):
                self._confirms[before.contract_sha] -= 1
            if _spends(evaluation):
                self._confirms[evaluation.contract_sha] += 1
            self._evaluations[evaluation.id] = evaluation
            self._dirty = True
        for incumbent in fold.incumbents:
            insort(self._incumbents, (fold.name, incumbent.seq, len(self._incumbents), incumbent))
            self._chain = Chain(tuple(found for *_, found in self._incumbents))
        fold.evaluations.clear()
        fold.incumbents.clear()

    @property
    def newest(self) -> RunFold | None:
        return next(reversed(self.runs.values()), None)

    @property
    def chain(self) -> Chain:
        return self._chain

    def evaluations(self) -> Mapping[str, Evaluation]:
        """By claim id; the same object until something changes."""
        if self._dirty:
            self._shown, self._dirty = dict(self._evaluations), False
        return self._shown

    def confirmations(self, contract_sha: str) -> int:
        return self._confirms[contract_sha]

    def events(self) -> int:
        return sum(run.events for run in self.runs.values())

    def unknown(self) -> list[Finding]:
        """One finding for each kind of event that nobody here knows."""
        return [
            Finding(
                file,
                first,
                f"{count} events of kind {clean_line(kind, 40)!r}",
                "not known; kept in the file",
                "note",
            )
            for (file, kind), (first, count) in sorted(self._unknown.items())
        ]


def _spends(evaluation: Evaluation) -> bool:
    """Whether it counts as a confirmation: one that ended with a verdict (a cancelled or broken one spends nothing)."""
    return evaluation.op == "confirm" and evaluation.outcome == "ok"


def _read_event(data: bytes) -> tuple[dict[str, Any] | None, str]:
    """An event without the candidate and the rows at its end, nine tenths of a journal: the projections have them."""
    if _CARRIES.match(data) and data.endswith(b'"}'):
        # Inside a string every quote has a backslash before it, so what is found is a key and no text.
        carried = _CARRIED.search(data)
        if carried is not None:
            body, problem = read_object(data[: carried.start()] + b"}")
            if body is not None and not problem:
                return body, ""
    return read_object(data)


# --- what follows from several ledgers -----------------------------------------------------------------


def plan_of(run: RunFold, decisions: tuple[Decision, ...]) -> Plan:
    """R6: in force is what the newest approval names; a newer revision is only proposed."""
    revisions = tuple(run.revisions[rev] for rev in sorted(run.revisions))
    approval, in_force = _approval(run, decisions)
    newest = revisions[-1] if revisions else None
    shown = in_force or newest
    items = tuple(
        replace(item, state=run.item_states.get(item.id) or item.state)
        for item in (shown.items if shown else ())
    )
    return Plan(
        in_force=in_force,
        approved_by=(approval.who or approval.by) if approval else "",
        approved_t=approval.t if approval else "",
        proposed=newest if newest is not in_force else None,
        revisions=revisions,
        items=_known_items(items, run),
    )


def _known_items(items: tuple[PlanItem, ...], run: RunFold) -> tuple[PlanItem, ...]:
    """Items with a state that the plan in force does not list are shown too."""
    listed = {item.id for item in items}
    return (
        *items,
        *(PlanItem(ident, "", state) for ident, state in run.item_states.items() if ident not in listed),
    )


def _approval(run: RunFold, decisions: tuple[Decision, ...]) -> tuple[Decision | None, PlanRevision | None]:
    for decision in reversed(decisions):
        if decision.kind != "approve_plan" or decision.outcome != "taken" or decision.run != run.name:
            continue
        rev = decision.target.get("plan_rev")
        gate = run.gates.get(text(decision.target.get("gate")))
        if rev is None and gate is not None:
            rev = gate.target.get("plan_rev")
        revision = run.revisions.get(rev) if isinstance(rev, int) else None
        if revision is not None:
            return decision, revision
    return None, None


def steering_of(run: RunFold, decisions: tuple[Decision, ...]) -> tuple[Steering, ...]:
    """The run's steering notes, oldest first; pinned until the agent has seen them or somebody unpinned them."""
    mine = [d for d in decisions if d.outcome == "taken" and d.run == run.name]
    unpinned = {
        text(d.target.get("decision") or d.target.get("steer") or d.text).strip()
        for d in mine
        if d.kind == "unpin"
    }
    return tuple(
        Steering(
            decision=d.id,
            who=d.who,
            text=d.text or d.reason,
            t=d.t,
            seen_turn=run.steer_seen.get(d.id),
            pinned=d.id not in run.steer_seen and d.id not in unpinned,
        )
        for d in mine
        if d.kind == "steer"
    )


def budget_of(run: RunFold, limits: Mapping[str, float | None], charged: int) -> Mapping[str, BudgetLine]:
    """Limits: set by people, else the contract's. Candidates and money as recorded, hours as the worker last said."""
    used = {**{axis: line.used for axis, line in run.budget.items()}, **run.used}
    for axis, line in run.budget.items():
        used[axis] = max(used[axis], line.used)
    used |= {"candidates": float(charged), "usd": max(run.usd, used.get("usd", 0.0))}
    lines: dict[str, BudgetLine] = {}
    for axis in dict.fromkeys((*limits, *run.budget)):
        known = run.budget.get(axis)
        limit = known.limit if known is not None else limits.get(axis)
        if limit is not None or used.get(axis):
            lines[axis] = BudgetLine(
                axis, used.get(axis, 0.0), limit, known.level if known is not None else "ok"
            )
    return lines
