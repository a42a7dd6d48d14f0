"""What an agent is, and what it is given. The worker implements :class:`Bench` and :class:`Desk`.

An agent proposes; it never compiles, measures, promotes or writes a ledger by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from kda_tui.record.snapshot import Snapshot

T = TypeVar("T")


class Interrupted(Exception):
    """A person paused the run while a turn was under way; it was booked as cancelled and may be taken again."""


@dataclass(slots=True)
class Turn:
    """One paid request while it runs. The agent fills in what it costs; the result line books it.

    ``usage`` counts tokens: in, out, cache_write, cache_read. ``usd`` stays None where no price is known.
    ``fault`` says why the turn counts as not done.
    """

    number: int
    claim: str
    usage: dict[str, int] = field(default_factory=dict)
    usd: float | None = None
    stop_reason: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate to submit: files by name (kernel.cu, launch.toml, notes.md) and where it came from."""

    files: Mapping[str, str]
    hypothesis: str
    parents: tuple[str, ...] = ()
    item: str = ""
    family: str = ""
    defines: Mapping[str, Any] = field(default_factory=dict)
    author: str = "agent"


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a proposal: ``ok`` means compiled; otherwise ``text`` says what is wrong."""

    cand: str
    ok: bool
    text: str = ""
    registers: int | None = None
    spills: int | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What the player may know of an evaluation: words, gate names and times, no noise ladder."""

    cand: str
    eval: str
    outcome: str  # ok | cancelled | infrastructure_error
    validity: str = ""
    speed: str = ""
    stage_reached: str = ""
    reason: str = ""
    gates: Mapping[str, str] = field(default_factory=dict)
    time_us: float | None = None
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    floor_share: float | None = None


class Bench(Protocol):
    """The only way from an agent to the judge."""

    async def submit(self, proposal: Proposal) -> Submitted: ...

    async def evaluate(self, cand: str, level: str = "time") -> Evaluated: ...

    async def profile(self, cand: str, workload: str | None = None) -> str: ...

    async def autotune(self, cand: str, max_candidates: int) -> str: ...


class Desk(Bench, Protocol):
    """Everything an agent may do besides: read the state, write its own blocks, ask people."""

    @property
    def root(self) -> Path: ...

    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def iteration(self) -> int:
        """Which iteration this is, from 1; 0 before the first."""
        ...

    async def say(self, kind: str, text: str, **fields: Any) -> None:
        """Append one finished block to transcript.jsonl (kinds and fields: RECORD, transcript)."""
        ...

    def stream(self, text: str) -> None:
        """Show text that is being produced (live.json); not recorded."""
        ...

    async def turn(
        self,
        work: Callable[[Turn], Awaitable[T]],
        *,
        op: Literal["turn", "review"] = "turn",
        key: str = "",
        model: str = "",
        est_usd: float | None = None,
        cand: str = "",
    ) -> T:
        """Do one paid request: waits while the run is held, claims before and books after, whatever happens.

        Raises Interrupted where a person paused the run meanwhile; ``work`` was cancelled then.
        """
        ...

    async def hold(
        self, why: Literal["auth", "api", "budget"], text: str, retry_s: float | None = None
    ) -> None:
        """Hold the run and return when it goes on: by a person, or by itself after ``retry_s``."""
        ...

    async def seen(self, notes: Sequence[str]) -> None:
        """The model was given these steering notes (ids of their decisions)."""
        ...

    async def write_notes(self, text: str) -> str:
        """Keep the agent's own notes as docs/notes.md; returns what happened."""
        ...

    async def item(self, item: str, state: Literal["open", "doing", "done", "dropped"]) -> None: ...

    async def request_promotion(self, cand: str, reasons: str) -> str:
        """Ask for a promotion; returns what happened at once (queued, refused and why)."""
        ...

    async def ask(self, text: str, options: Sequence[str] = (), default: str = "") -> str:
        """Ask the human and wait; the default applies after the contract's timeout."""
        ...

    async def request_end(self, why: str) -> None:
        """Ask to stop; only budget, contract or a person ends a run."""
        ...


@dataclass(frozen=True, slots=True)
class PlanText:
    """A plan as Markdown with its items; ``answers`` lists the decisions it responds to."""

    text: str
    items: tuple[tuple[str, str], ...]  # (id, title)
    answers: tuple[str, ...] = ()


class Agent(Protocol):
    """A player. Each method runs in the worker's event loop and may be cancelled at any await."""

    name: str
    model: str

    def prompts(self) -> Mapping[str, str]:
        """Prompt templates by name, hashed into run_started."""
        ...

    async def draft(self, desk: Desk) -> str:
        """The research draft, docs/draft.md, as Markdown."""
        ...

    async def plan(self, desk: Desk, comments: Sequence[Mapping[str, Any]]) -> PlanText:
        """A plan, or its next revision that answers ``comments`` (lines of request_changes decisions)."""
        ...

    async def iterate(self, desk: Desk) -> Literal["again", "converged"]:
        """One iteration; state lives in the record, so a new process can go on after a crash."""
        ...


@dataclass(frozen=True, slots=True)
class Subject:
    """What a reviewer is asked about: a plan revision, or a candidate with its confirm."""

    kind: Literal["plan", "promotion"]
    rev: int | None = None
    cand: str = ""
    eval: str = ""

    @property
    def key(self) -> str:
        """Equal for the same subject; names the claim and the review event."""
        return f"plan:{self.rev}" if self.kind == "plan" else f"promotion:{self.cand}:{self.eval}"


@dataclass(frozen=True, slots=True)
class Opinion:
    """A reviewer's word: advice to the person at the gate. ``findings``: {severity, text, evidence}."""

    verdict: Literal["accept", "revise", "reject"]
    summary: str
    findings: tuple[Mapping[str, str], ...] = ()
    model: str = ""


class Reviewer(Protocol):
    """An independent reader: contract, plan or candidate, evidence and diff, not the agent's conversation."""

    async def review(self, desk: Desk, subject: Subject) -> Opinion:
        """Raises UserError, or any error of its model's API, where there is no opinion to be had."""
        ...
