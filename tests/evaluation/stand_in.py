"""A stand-in device: programs are Python functions and the clock is written down beforehand.

It exists to test decisions about times, which a real device cannot be asked to repeat. A kernel.cu whose
first line is ``// stand-in: NAME`` runs the behaviour NAME.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import HOST
from kda_tui.evaluation.devices.interface import (
    BufferRef,
    BufferSpec,
    DeviceFacts,
    KernelStep,
    Launch,
    LaunchReport,
    ScalarValue,
)
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.contract import Contract
from kda_tui.record.launch_plan import LaunchPlan

Bytes = NDArray[np.uint8]
Rows = NDArray[np.float32]


def center(x: Rows, y: Rows) -> None:
    """What the contract ``center`` asks for."""
    y[...] = x - x.mean(axis=1, keepdims=True, dtype=np.float64)


@dataclass
class Behaviour:
    """``us`` gives the time of a launch from (child, arm, launches of this arm so far)."""

    us: Callable[[int, str, int], float]
    run: Callable[[Rows, Rows], None] = center
    timed: Callable[[Rows, Rows], None] | None = None  # what it does when timed, if something else
    voided: bool = False


@dataclass
class StandInChild:
    device: StandInDevice
    number: int
    arms: dict[str, str] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    buffers: dict[str, tuple[Bytes, Bytes]] = field(default_factory=dict)

    def load(self, arm: str, report: CompileReport, plan: LaunchPlan) -> LaunchReport:
        self.arms[arm] = next(iter(report.binaries.values()))
        return LaunchReport("ok")

    def allocate(self, buffers: Sequence[BufferSpec]) -> LaunchReport:
        for spec in buffers:
            self.buffers[spec.name] = (np.zeros(spec.nbytes, np.uint8), np.zeros(2 * spec.guard, np.uint8))
        return LaunchReport("ok")

    def release(self) -> None:
        self.buffers.clear()

    def get(self, name: str) -> Bytes:
        return self.buffers[name][0]

    def put(self, name: str, data: Bytes) -> None:
        self.buffers[name][0][...] = data

    def guards(self, name: str) -> Bytes:
        return self.buffers[name][1].copy()

    def run(self, arm: str, launches: Sequence[Launch], timeout_s: float) -> LaunchReport:
        for launch in launches:
            self._launch(self.device.behaviours[self.arms[arm]].run, launch)
        return LaunchReport("ok")

    def time(self, arm: str, launches: Sequence[Launch], flush: bool, timeout_s: float) -> LaunchReport:
        behaviour = self.device.behaviours[self.arms[arm]]
        times = []
        for launch in launches:
            self._launch(behaviour.timed or behaviour.run, launch)
            self.calls[arm] = self.calls.get(arm, 0) + 1
            times.append(behaviour.us(self.number, arm, self.calls[arm]))
        if behaviour.voided:
            return LaunchReport("ok", voided=len(times))
        return LaunchReport("ok", samples_us=tuple(times))

    def changed_globals(self, arm: str) -> int:
        return 0

    def close(self) -> None:
        self.buffers.clear()

    def _launch(self, function: Callable[[Rows, Rows], None], launch: Launch) -> None:
        for step in launch.steps:
            assert isinstance(step, KernelStep)
            x, y, cols = step.args
            assert isinstance(x, BufferRef) and isinstance(y, BufferRef) and isinstance(cols, ScalarValue)
            shape = (-1, int(cols.value))
            function(
                self.get(x.name).view(np.float32).reshape(shape),
                self.get(y.name).view(np.float32).reshape(shape),
            )


@dataclass
class StandInDevice:
    behaviours: Mapping[str, Behaviour]
    facts: DeviceFacts = field(default_factory=lambda: DeviceFacts("stand-in", "cpu", peak_bandwidth=1e9))
    children: int = 0
    heat: list[tuple[str, ...]] = field(default_factory=list)  # what disturbs, block by block

    def compile(self, folder: Path, plan: LaunchPlan, contract: Contract, cache: Path) -> CompileReport:
        name = (folder / "kernel.cu").read_text().splitlines()[0].removeprefix("// stand-in: ")
        return CompileReport(ok=True, binaries={"kernel": name})

    arrays = HOST

    def exclusive(self, waiting: Callable[[str], None]) -> AbstractContextManager[None]:
        return nullcontext()

    def disturbances(self) -> tuple[str, ...]:
        return self.heat.pop(0) if self.heat else ()

    def prepare(self, scratch: Path) -> None:
        pass

    def settle(self) -> None:
        pass

    def borrow_child(self, scratch: Path) -> StandInChild:
        return self.start_child(scratch)

    def start_child(self, scratch: Path) -> StandInChild:
        self.children += 1
        return StandInChild(self, self.children)

    def watched_child(self, scratch: Path, tool: str) -> str:
        return "no tool"

    def describe(self) -> Mapping[str, Any]:
        return {"device": "stand-in"}
