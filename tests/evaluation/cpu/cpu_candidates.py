"""Candidates for the tests of the cpu device: a contract, plans, and a child with arrays as arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kda_tui.evaluation.devices.cpu.cpu_child import CpuChild
from kda_tui.evaluation.devices.cpu.device import CpuDevice
from kda_tui.evaluation.devices.interface import (
    BufferRef,
    BufferSpec,
    KernelStep,
    Launch,
    LaunchReport,
    ScalarValue,
)
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.contract import Contract
from kda_tui.record.launch_plan import LaunchPlan, Step, Unit

Compile = Callable[..., CompileReport]
KERNELS = Path(__file__).with_name("kernels")

CONTRACT = """
[task]
name = "t"
device = "cpu"
[[tensor]]
name = "x"
role = "in"
dtype = "float32"
shape = ["n"]
[[tensor]]
name = "y"
role = "out"
dtype = "float32"
shape = ["n"]
check = {rel_l2 = 1e-5}
[[workload]]
id = "w"
axes = {n = 4096}
[baseline]
candidate = "baseline"
[compile]
allowed = ["maxrregcount"]
timeout_s = 60.0
"""


def plan_for(kernels: Sequence[str], **unit: Any) -> LaunchPlan:
    return LaunchPlan(units=(Unit(**unit),), steps=tuple(Step(kernel=k) for k in kernels))


@dataclass
class Loaded:
    """A child with one program; ``run`` copies arrays in, launches, and copies them back."""

    child: CpuChild

    def launch(
        self,
        kernel: str,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        *arguments: Any,
        shared: int = 0,
    ) -> Launch:
        values = tuple(BufferRef(a) if isinstance(a, str) else a for a in arguments)
        return Launch((KernelStep("kernel", kernel, _three(grid), _three(block), values, shared),))

    def run(
        self,
        kernel: str,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        *arguments: Any,
        shared: int = 0,
        timeout_s: float = 20.0,
    ) -> LaunchReport:
        arrays = {f"b{i}": a for i, a in enumerate(arguments) if isinstance(a, np.ndarray)}
        assert self.child.allocate([BufferSpec(n, a.nbytes) for n, a in arrays.items()]).status == "ok"
        for name, array in arrays.items():
            self.child.put(name, array.reshape(-1).view(np.uint8))
        given = [f"b{i}" if isinstance(a, np.ndarray) else a for i, a in enumerate(arguments)]
        report = self.child.run(
            "candidate", [self.launch(kernel, grid, block, *given, shared=shared)], timeout_s
        )
        for name, array in arrays.items():
            array.reshape(-1).view(np.uint8)[:] = self.child.get(name)
        self.child.release()
        return report

    def ok(self, *arguments: Any, **options: Any) -> None:
        report = self.run(*arguments, **options)
        assert report.status == "ok", report.text


def _three(value: int | tuple[int, ...]) -> tuple[int, int, int]:
    sizes = (value,) if isinstance(value, int) else value
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def i32(value: int) -> ScalarValue:
    return ScalarValue("int32", value)


def load(device: CpuDevice, contract: Contract, cache: Path, folder: Path, kernels: Sequence[str]) -> Loaded:
    plan = plan_for(kernels)
    report = device.compile(folder, plan, contract, cache)
    assert report.ok, report.log
    child = device.start_child(folder)
    loaded = child.load("candidate", report, plan)
    assert loaded.status == "ok", loaded.text
    return Loaded(child)
