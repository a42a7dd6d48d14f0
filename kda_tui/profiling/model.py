"""A profile as plain values, whatever file it came from.

Metric values are in base units (ns, byte, byte/s, hz, %); ``unit`` says which. A metric that the
file does not have is absent: nothing here turns absence into zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MIN_SAMPLES = 1000  # below this, shares of warp samples are noise: say so, draw nothing


@dataclass(frozen=True, slots=True)
class Value:
    value: float | str
    unit: str = ""

    @property
    def number(self) -> float | None:
        return self.value if isinstance(self.value, float) else None


@dataclass(frozen=True, slots=True)
class Instruction:
    """One SASS instruction: warp samples by stall reason (ncu's names without the prefix)."""

    pc: int
    sass: str
    file: str = ""
    line: int = 0
    samples: int = 0
    stalls: Mapping[str, int] = field(default_factory=dict)
    executed: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of ncu that fired. ``speedup`` is ncu's own estimate in percent, not additive."""

    name: str
    section: str
    title: str
    message: str
    kind: str = ""  # OPT | INF | WRN
    speedup: float | None = None


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """One profiled launch."""

    name: str
    index: int = 0
    mangled: str = ""
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    device: str = ""
    cc: str = ""
    metrics: Mapping[str, Value] = field(default_factory=dict)
    displayed: Mapping[str, Value] = field(default_factory=dict)  # "Section/Display Name [unit class]"
    rules: tuple[Rule, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)  # embedded source text by path
    no_hotspots: str = ""  # why there are no per-line samples, in words


@dataclass(frozen=True, slots=True)
class Profile:
    """One file of profiles. ``findings`` say what could not be read and why."""

    path: str
    form: str  # ncu-rep | raw csv | details csv | source csv | text
    version: str = ""
    kernels: tuple[KernelProfile, ...] = ()
    findings: tuple[str, ...] = ()
