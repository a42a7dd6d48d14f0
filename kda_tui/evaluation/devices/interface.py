"""What the judge asks of a device. ``cpu`` and ``cuda`` implement it; nothing else may launch a kernel.

A *child* is one process that holds compiled programs, buffers and a clock. It never sees the
reference, a tolerance or a verdict. The judge owns the meaning of every buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # a child imports this module: it must start fast
    from kda_tui.evaluation.arrays import Arrays
    from kda_tui.evaluation.verdict import CompileReport
    from kda_tui.record.contract import Contract
    from kda_tui.record.launch_plan import LaunchPlan


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Names usable in expressions (sm_count, l2_bytes, ...) and peaks for floors, in B/s and FLOP/s."""

    name: str
    kind: str  # cpu | cuda
    uuid: str = ""
    driver: str = ""
    cc: str = ""
    sm_count: int = 1
    l2_bytes: int = 0
    warp_size: int = 32
    max_shared_bytes: int = 49152
    memory_bytes: int = 0  # of its own; 0 where it shares the host's
    peak_bandwidth: float | None = None  # that nothing can exceed
    peak_flops: Mapping[str, float] = field(default_factory=dict)
    launch_floor_us: float = 0.0  # below this no launch can end
    reached_bandwidth: float | None = None  # what a plain copy and a plain matrix product really reach
    reached_flops: Mapping[str, float] = field(default_factory=dict)
    empty_launch_us: float = 0.0  # what an empty kernel takes


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """A buffer in the child, surrounded by guard bands of ``guard`` bytes on each side."""

    name: str
    nbytes: int
    align: int = 256
    guard: int = 4096


@dataclass(frozen=True, slots=True)
class BufferRef:
    name: str
    byte_offset: int = 0


@dataclass(frozen=True, slots=True)
class ScalarValue:
    dtype: str
    value: float | int


@dataclass(frozen=True, slots=True)
class TensorMapValue:
    """A TMA descriptor to encode over ``buffer``; sizes resolved, strides in bytes."""

    buffer: str
    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: str
    interleave: str
    l2_promotion: str
    oob: str


ArgValue = BufferRef | ScalarValue | TensorMapValue


@dataclass(frozen=True, slots=True)
class KernelStep:
    unit: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[ArgValue, ...]
    shared_bytes: int = 0
    cluster: tuple[int, int, int] | None = None
    cooperative: bool = False
    pdl: bool = False


@dataclass(frozen=True, slots=True)
class MemsetStep:
    buffer: str
    value: int
    nbytes: int


ResolvedStep = KernelStep | MemsetStep


@dataclass(frozen=True, slots=True)
class Launch:
    """One call of a candidate: untimed restores first (dst, src), then the timed steps, as one graph or in a row."""

    steps: tuple[ResolvedStep, ...]
    restore: tuple[tuple[str, str], ...] = ()
    graph: bool = False


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """How launches ended. ``status``: ok | launch_error | timeout | out_of_memory | crashed | infrastructure_error."""

    status: str
    text: str = ""
    samples_us: tuple[float, ...] = ()
    voided: int = 0  # samples dropped as host-bound
    clock_mhz: float | None = None
    child_dead: bool = False


class Child(Protocol):
    """A live child process. After any status but ``ok`` with ``child_dead`` it must be closed."""

    def load(self, arm: str, report: CompileReport, plan: LaunchPlan) -> LaunchReport:
        """Load the binaries of one arm ("candidate", "incumbent", "incumbent2", "baseline")."""
        ...

    def allocate(self, buffers: Sequence[BufferSpec]) -> LaunchReport:
        """Add buffers; order of allocation is the caller's."""
        ...

    def release(self) -> None:
        """Drop every buffer, keep the programs."""
        ...

    def get(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a buffer, for reading, as an array of the device's kind; it may be a live view."""
        ...

    def put(self, name: str, data: NDArray[np.uint8]) -> None:
        """Write all bytes of a buffer."""
        ...

    def guards(self, name: str) -> NDArray[np.uint8]:
        """The guard bytes before a buffer (``guard`` of them) and after it, concatenated or as two rows."""
        ...

    def run(self, arm: str, launches: Sequence[Launch], timeout_s: float) -> LaunchReport:
        """Run launches once each, in order, untimed; wait for the end."""
        ...

    def time(self, arm: str, launches: Sequence[Launch], flush: bool, timeout_s: float) -> LaunchReport:
        """Time each launch on its own (``samples_us`` in order)."""
        ...

    def changed_globals(self, arm: str) -> int:
        """How many bytes of an arm's module variables differ from their state when loaded."""
        ...

    def close(self) -> None: ...


class WatchedChild(Protocol):
    """A child that a tool watches."""

    @property
    def child(self) -> Child: ...

    def findings(self) -> str | None:
        """After the child was closed: the first finding, "" for none, None if the tool left no report."""
        ...


class Device(Protocol):
    @property
    def facts(self) -> DeviceFacts: ...

    def compile(self, folder: Path, plan: LaunchPlan, contract: Contract, cache: Path) -> CompileReport:
        """Compile every unit of the plan in ``folder``; never raises for the candidate's faults."""
        ...

    @property
    def arrays(self) -> Arrays:
        """What the judge's own arrays are on this device."""
        ...

    def exclusive(self, waiting: Callable[[str], None]) -> AbstractContextManager[None]:
        """The device for oneself, across processes and users; ``waiting`` is told why it is not yet."""
        ...

    def disturbances(self) -> tuple[str, ...]:
        """What makes measurements of this moment worthless (heat), in words; a power cap is none."""
        ...

    def prepare(self, scratch: Path) -> None:
        """Begin, without waiting, what the next child needs; never called while something is timed."""
        ...

    def settle(self) -> None:
        """Wait until nothing that ``prepare`` began is still running: something will be timed."""
        ...

    def start_child(self, scratch: Path) -> Child:
        """A child in a process of its own that has never run anything."""
        ...

    def borrow_child(self, scratch: Path) -> Child:
        """A child with nothing loaded; its process may have run other programs, of which nothing is left."""
        ...

    def watched_child(self, scratch: Path, tool: str) -> WatchedChild | str:
        """A fresh child under a tool of compute-sanitizer, or why there is none."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """What run_started and doctor show."""
        ...
