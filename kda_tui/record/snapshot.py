"""What a reader knows about a workspace at one moment, as immutable values.

The reader (``record.reader``) builds a :class:`Snapshot`; the screen draws it, the worker decides
from it, ``kda status`` prints it. Nothing here reads a file.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.record.contract import Contract
from kda_tui.record.records import Candidate, Decision


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a reader could not take as it was: where, what was seen, what was done about it."""

    file: str
    line: int
    seen: str
    done: str
    severity: str = "warning"  # note | warning | error


@dataclass(frozen=True, slots=True)
class Gate:
    """A decision that waits (or waited) for a person."""

    id: str
    kind: str
    target: Mapping[str, Any] = field(default_factory=dict)
    sha: str = ""
    blocking: bool = False
    default: str = ""
    timeout_s: float | None = None
    opened: str = ""
    seq: int = 0
    decision: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    options: tuple[str, ...] = ()
    asked: str = ""


@dataclass(frozen=True, slots=True)
class PlanItem:
    id: str
    title: str
    state: str = "open"  # open | doing | done | dropped


@dataclass(frozen=True, slots=True)
class PlanRevision:
    rev: int
    file: str
    sha: str
    author: str = ""
    t: str = ""
    answers: tuple[str, ...] = ()
    items: tuple[PlanItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan in force and the one proposed, if they differ (R6)."""

    in_force: PlanRevision | None = None
    approved_by: str = ""
    approved_t: str = ""
    proposed: PlanRevision | None = None
    revisions: tuple[PlanRevision, ...] = ()
    items: tuple[PlanItem, ...] = ()

    @property
    def newest(self) -> PlanRevision | None:
        return self.revisions[-1] if self.revisions else None


@dataclass(frozen=True, slots=True)
class Review:
    """A reviewer's word on a plan revision or a promotion request; ``verdict`` none: there is no opinion."""

    about: str  # plan | promotion
    verdict: str  # accept | revise | reject | none
    summary: str = ""
    findings: tuple[Mapping[str, Any], ...] = ()
    target: Mapping[str, Any] = field(default_factory=dict)  # plan_rev, or cand and eval
    file: str = ""
    model: str = ""
    t: str = ""

    @property
    def words(self) -> str:
        """``reviewer: revise; no tail is handled (2 findings, docs/reviews/003.md)``."""
        if self.verdict == "none":
            return f"no review: {self.summary or 'given up'}"
        count = len(self.findings)
        where = f" ({count} finding{'' if count == 1 else 's'}, {self.file})" if self.file else ""
        return f"reviewer: {self.verdict}; {self.summary}{where}"


@dataclass(frozen=True, slots=True)
class Claim:
    """Work that was started; ``outcome`` empty means no result yet."""

    id: str
    op: str
    cand: str = ""
    key: str = ""
    t: str = ""
    seq: int = 0
    run: str = ""
    opponent: str = ""
    item: str = ""
    attempt: int = 1
    paid: bool = False
    est_usd: float = 0.0
    pgid: int | None = None
    start_ticks: int | None = None
    outcome: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A ``result`` of op compile, evaluate or confirm, without its rows."""

    id: str  # the claim's id
    op: str
    cand: str
    outcome: str
    seq: int
    t: str
    run: str
    validity: str = ""
    speed: str = ""
    stage_reached: str = ""
    gates: Mapping[str, str] = field(default_factory=dict)
    opponent: str = ""
    contract_sha: str = ""
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    alpha_spent: float | None = None
    aa: float | None = None
    device: str = ""
    trust: str = ""
    dur_s: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)  # compile{}, samples[], mismatch, reason


@dataclass(frozen=True, slots=True)
class Incumbent:
    cand: str  # "baseline" until something was promoted
    prev: str = ""
    why: str = ""
    decision: str = ""
    eval: str = ""
    seq: int = 0
    t: str = ""


@dataclass(frozen=True, slots=True)
class BudgetLine:
    axis: str  # candidates | hours | usd
    used: float
    limit: float | None
    level: str = "ok"  # ok | notice | reached


@dataclass(frozen=True, slots=True)
class Live:
    """live.json: what is going on this second; not a record."""

    claim: str = ""
    op: str = ""
    cand: str = ""
    stage: str = ""
    fraction: float | None = None
    workload: str = ""
    streaming: str = ""
    clocks: Mapping[str, Any] = field(default_factory=dict)
    foreign: tuple[int, ...] = ()
    pid: int | None = None
    t: str = ""
    waiting: str = ""  # what the worker waits for, in words, or ""
    waiting_since: str = ""


@dataclass(frozen=True, slots=True)
class RunInfo:
    name: str
    agent: str = ""
    model: str = ""
    contract_sha: str = ""
    started: str = ""
    ended: str = ""
    end_why: str = ""
    parent_run: str = ""
    device: Mapping[str, Any] = field(default_factory=dict)
    host: str = ""
    pid: int | None = None
    seed_commit: str = ""
    alpha: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BenchTable:
    """benchmark.csv as columns: interned keys (indexes into ``names``) and float arrays, NaN = absent.

    The arrays grow in place as rows are appended; ``rows`` bounds what this snapshot may see.
    """

    rows: int
    names: tuple[str, ...]  # interned strings
    candidate: array[int]
    workload: array[int]
    arm: array[int]
    opponent: array[int]
    eval: array[int]
    protocol: array[int]
    t: list[str]
    seq: array[int]
    median_us: array[float]
    min_us: array[float]
    p95_us: array[float]
    iqr_us: array[float]
    ratio: array[float]
    ratio_lo: array[float]
    ratio_hi: array[float]
    floor_us: array[float]
    admissible: array[int]  # 1 | 0 | -1 unknown


@dataclass(frozen=True, slots=True)
class Steering:
    """A steering note; pinned until the agent has seen it."""

    decision: str
    who: str
    text: str
    t: str
    seen_turn: int | None = None
    pinned: bool = True


@dataclass(frozen=True, slots=True)
class TranscriptState:
    """How far the transcript of the newest run goes; the text is read on demand (record.transcript)."""

    path: Path | None = None
    size: int = 0
    turns: int = 0
    usd: float = 0.0
    tokens: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    workspace: Path
    version: int  # grows with every change; equal versions are equal snapshots
    name: str = ""
    read_only: bool = False
    foreign: bool = False
    contract: Contract | None = None
    contract_error: str = ""
    contract_sha: str = ""
    runs: tuple[RunInfo, ...] = ()
    run: RunInfo | None = None
    phase: str = ""  # "" = no run yet
    phase_since: str = ""
    phase_why: str = ""
    hold: str = ""  # "" = not held, else a HoldCause
    hold_since: str = ""
    hold_why: str = ""
    liveness: str = "none"  # none | alive | gone | foreign_host
    last_activity: str = ""
    gates: tuple[Gate, ...] = ()  # open ones, oldest first
    questions: Mapping[str, Question] = field(default_factory=dict)
    plan: Plan = Plan()
    reviews: tuple[Review, ...] = ()  # of the newest run, oldest first
    draft_sha: str = ""
    candidates: Mapping[str, Candidate] = field(default_factory=dict)  # by id, in order of birth
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)  # by claim id
    claims: tuple[Claim, ...] = ()  # open ones
    incumbent: Incumbent = Incumbent("baseline")
    incumbents: tuple[Incumbent, ...] = ()  # every change, oldest first
    confirmations: int = 0  # under the contract in force, over all runs: the k of alpha_k
    bench: BenchTable | None = None
    decisions: tuple[Decision, ...] = ()
    pending: tuple[Decision, ...] = ()  # sent, not yet in decisions.jsonl
    steering: tuple[Steering, ...] = ()
    budget: Mapping[str, BudgetLine] = field(default_factory=dict)
    live: Live | None = None
    transcript: TranscriptState = TranscriptState()
    head: str = ""  # newest checkpoint head
    findings: tuple[Finding, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    events: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def review_of(self, gate: Gate) -> Review | None:
        """The newest review of what a gate asks about."""
        keys = ("plan_rev",) if gate.kind == "plan" else ("cand", "eval")
        asked = {k: gate.target.get(k) for k in keys}
        return next(
            (
                r
                for r in reversed(self.reviews)
                if r.about == gate.kind and {k: r.target.get(k) for k in keys} == asked
            ),
            None,
        )
