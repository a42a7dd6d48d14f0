"""The records of a workspace as plain frozen dataclasses. RECORD fields, one class a ledger line.

Lines are read with :func:`from_line`, which keeps unknown keys in ``extra`` and never raises on
a missing one: a record that somebody else wrote is shown, not refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, TypeVar

FORMAT_VERSION = 1

Phase = Literal["draft", "plan", "plan_review", "iterate", "autotune", "ended"]
HoldCause = Literal["person", "disk", "gpu_busy", "auth", "api", "budget", "crash_loop"]
Validity = Literal[
    "passed",
    "incorrect",
    "compile_error",
    "launch_error",
    "timeout",
    "out_of_memory",
    "nondeterministic",
    "stateful",
    "tampered",
    "impossible",
    "infrastructure_error",
]
Speed = Literal["faster", "same", "slower", "mixed", "inconclusive", "not_measured"]
GateWord = Literal["passed", "failed", "not_evaluated"]
Stage = Literal["build", "smoke", "screen", "correct", "time", "confirm"]
GateKind = Literal["plan", "promotion", "question", "ambiguous", "end", "budget"]
DecisionKind = Literal[
    "approve_plan",
    "request_changes",
    "approve_promotion",
    "decline",
    "promote",
    "veto",
    "unveto",
    "revoke",
    "measure",
    "rerun",
    "abandon",
    "answer",
    "steer",
    "unpin",
    "pause",
    "resume",
    "end_after",
    "end_now",
    "set_budget",
    "profile",
    "autotune",
    "submit",
    "note",
]
Outcome = Literal["taken", "refused", "superseded", "moot"]

NEVER_OVERRIDDEN: frozenset[str] = frozenset(
    {"incorrect", "nondeterministic", "stateful", "tampered", "impossible"}
)


def _none() -> Any:
    return None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One line of candidates.jsonl: the state of a candidate after a change."""

    id: str
    seq: int = 0
    t: str = ""
    run: str = ""
    author: str = ""
    sha256: str = ""
    lang: str = "cuda"
    trust: str = "kernel"
    parents: tuple[str, ...] = ()
    item: str = ""
    family: str = ""
    hypothesis: str = ""
    defines: Mapping[str, Any] = field(default_factory=dict)
    stage: str = "submitted"
    attempt: int = 0
    validity: str = ""
    eval: str = ""
    opponent: str = ""
    time_us: float | None = None
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    floor_share: float | None = None
    worst: Mapping[str, Any] | None = None
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    compile_s: float | None = None
    cubin: str = ""
    speed: str = ""
    stage_reached: str = ""
    decision: str = ""
    decision_id: str = ""
    reason: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """One file in inbox/ (``outcome`` empty: *sent*) or one line of decisions.jsonl."""

    id: str
    kind: str
    t: str = ""
    who: str = ""
    via: str = ""
    target: Mapping[str, Any] = field(default_factory=dict)
    expect: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    text: str = ""
    lines: tuple[Mapping[str, Any], ...] = ()
    amount: Mapping[str, Any] | None = None
    seq: int = 0
    run: str = ""
    uid: int | None = None
    by: str = "person"
    rule: Mapping[str, Any] | None = None
    override: tuple[str, ...] = ()
    outcome: str = ""
    why: str = ""
    effects: tuple[int, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TranscriptBlock:
    """One line of transcript.jsonl: a finished block of what the agent, or a person, said or did."""

    seq: int = 0
    t: str = ""
    run: str = ""
    iter: int = 0
    turn: int = 0
    msg: str = ""
    block: int = 0
    kind: str = "text"
    text: str = ""
    blob: str = ""
    call: str = ""
    tool: str = ""
    args: Any = field(default_factory=_none)
    is_error: bool = False
    partial: bool = False
    dur_s: float | None = None
    claim: str = ""
    cand: str = ""
    item: str = ""
    model: str = ""
    stop_reason: str = ""
    usage: Mapping[str, Any] | None = None
    usd: float | None = None
    cache_miss: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


BENCHMARK_COLUMNS: tuple[str, ...] = (
    "seq",
    "t",
    "run",
    "eval",
    "attempt",
    "candidate",
    "workload",
    "arm",
    "opponent",
    "protocol",
    "device",
    "trust",
    "n",
    "min_us",
    "median_us",
    "p95_us",
    "iqr_us",
    "ratio",
    "ratio_lo",
    "ratio_hi",
    "floor_us",
    "aa_spread",
    "clock_mhz",
    "foreign",
    "admissible",
    "why",
    "samples",
    "sha12",
    "end",
)

Record = TypeVar("Record", Candidate, Decision, TranscriptBlock)


_SHAPES: dict[str, tuple[frozenset[str], frozenset[str], tuple[str, ...]]] = {}


def _shape(kind: Any) -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
    """Field names, those that hold tuples, and those that have no default."""
    known = _SHAPES.get(kind.__name__)
    if known is not None:
        return known
    own = [f for f in fields(kind) if f.name != "extra"]
    tuples = frozenset(f.name for f in own if f.default == () or str(f.type).startswith("tuple"))
    required = tuple(f.name for f in own if f.default is MISSING and f.default_factory is MISSING)
    _SHAPES[kind.__name__] = (frozenset(f.name for f in own), tuples, required)
    return _SHAPES[kind.__name__]


def from_line(kind: type[Record], line: Mapping[str, Any]) -> Record:
    """Build a record from a parsed line; unknown keys go to ``extra``, ``null`` keeps the default."""
    names, tuples, required = _shape(kind)
    known: dict[str, Any] = dict.fromkeys(required, "")
    extra: dict[str, Any] = {}
    for key, value in line.items():
        if key not in names:
            extra[key] = value
        elif value is not None:
            known[key] = tuple(value) if key in tuples and isinstance(value, list) else value
    return kind(**known, extra=extra)


def to_line(record: Candidate | Decision | TranscriptBlock) -> dict[str, Any]:
    """The record as a line body: defaults left out, ``extra`` merged back in."""
    body: dict[str, Any] = {}
    for f in fields(record):
        value = getattr(record, f.name)
        if f.name == "extra":
            continue
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        if value != default:
            body[f.name] = list(value) if isinstance(value, tuple) else value
    return {**body, **record.extra}
