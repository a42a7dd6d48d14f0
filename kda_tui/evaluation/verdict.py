"""What an evaluation found: plain values that the judge returns and the worker records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an evaluation stands; ``fraction`` is of the whole evaluation, 0 to 1."""

    stage: str
    fraction: float
    workload: str = ""


@dataclass(frozen=True, slots=True)
class CompileReport:
    """What a compiler said about one candidate. ``ok`` false: ``log`` has the errors with file and line."""

    ok: bool
    log: str = ""
    compiler: str = ""
    seconds: float = 0.0
    cached: bool = False
    registers: int | None = None
    spills: int | None = None
    stack_bytes: int | None = None
    shared_bytes: int | None = None
    binaries: Mapping[str, str] = field(default_factory=dict)  # unit name -> path
    sha256: str = ""  # over all binaries
    warnings: tuple[str, ...] = ()  # lint
    not_possible: str = ""  # a feature the device does not have, in words


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where an output differs from the oracle, for a person."""

    workload: str
    tensor: str
    seed: str
    index: tuple[int, ...]
    got: float | str
    expected: float | str
    wrong: int
    total: int
    box: tuple[tuple[int, int], ...]  # per axis: first and last wrong index
    tile_map: tuple[str, ...] = ()  # rows of '.' right, '#' wrong, '+' partly
    guess: str = ""
    error: float | None = None
    allowed: float | None = None


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    workload: str
    time_us: float | None = None
    incumbent_us: float | None = None
    baseline_us: float | None = None
    ratio: float | None = None  # incumbent / candidate, > 1 is faster
    lo: float | None = None
    hi: float | None = None
    vs_baseline: float | None = None
    floor_us: float | None = None
    floor_share: float | None = None
    sol: float | None = None  # 1 at the floor, 0.5 at the baseline's time
    error: float | None = None  # over the tolerance: 1.0 is the limit
    error_vs_baseline: float | None = None
    error_tensor: str = ""
    error_tile: str = ""


@dataclass(frozen=True, slots=True)
class SampleFile:
    path: str  # relative to the run folder
    sha: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """One evaluation's findings: validity and, apart, speed."""

    validity: str
    speed: str = "not_measured"
    stage_reached: str = "build"
    reason: str = ""  # one line for a person
    gates: Mapping[str, str] = field(default_factory=dict)  # name -> passed|failed|not_evaluated
    workloads: tuple[WorkloadResult, ...] = ()
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    vs_baseline: float | None = None
    rule_passed: bool = False  # confirm only: the contract's written promotion rule holds
    k: int | None = None
    alpha_spent: float | None = None
    aa: float | None = None  # |ln A/A|
    device: str = ""
    trust: str = "kernel"
    compile: CompileReport | None = None
    rows: tuple[Mapping[str, Any], ...] = ()  # benchmark.csv cells without seq, t, run, eval, attempt, end
    samples: tuple[SampleFile, ...] = ()
    mismatch: Mismatch | None = None
    stage_seconds: Mapping[str, float] = field(default_factory=dict)
    dur_s: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)
