"""A launch plan with all numbers filled in, for one workload on one device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kda_tui.evaluation.devices.interface import (
    ArgValue,
    BufferRef,
    DeviceFacts,
    KernelStep,
    Launch,
    MemsetStep,
    ResolvedStep,
    ScalarValue,
    TensorMapValue,
)
from kda_tui.evaluation.dtypes import is_float, item_bytes, storage_dtype
from kda_tui.evaluation.layout import Names, TensorLayout, layouts, scalar_values
from kda_tui.expressions import ExpressionError, evaluate
from kda_tui.record.contract import Contract, Expr, WorkloadSpec
from kda_tui.record.launch_plan import (
    Arg,
    AxisArg,
    LaunchPlan,
    ScalarArg,
    Step,
    TensorArg,
    TensorMap,
    ValueArg,
)
from kda_tui.record.sizes import workload_names
from kda_tui.text import UserError

MAX_BLOCK_THREADS = 1024


class ResolveError(UserError):
    """The launch plan cannot be launched for some workload: the candidate's fault, a launch_error."""


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """Steps over *logical* buffers: tensor and scratch names. ``signature`` names the launch path."""

    steps: tuple[ResolvedStep, ...]
    scratch: Mapping[str, int]  # name -> bytes
    signature: tuple[str, ...]

    def bind(
        self,
        buffers: Mapping[str, str],
        calls: int = 1,
        restore: tuple[tuple[str, str], ...] = (),
        graph: bool = False,
    ) -> Launch:
        """A launch of ``calls`` chained calls over the child's buffers that ``buffers`` names."""
        steps = tuple(_bind_step(step, buffers) for step in self.steps)
        return Launch(steps=steps * calls, restore=restore, graph=graph)


def device_names(facts: DeviceFacts) -> dict[str, int]:
    """The device facts that expressions may use."""
    return {
        "sm_count": facts.sm_count,
        "l2_bytes": facts.l2_bytes,
        "warp_size": facts.warp_size,
    }


def resolve(
    plan: LaunchPlan, contract: Contract, workload: WorkloadSpec, facts: Mapping[str, int]
) -> ResolvedPlan:
    """Fill in the numbers; raises ResolveError naming step, key and workload."""
    scope = _Scope(plan, contract, workload, facts)
    steps: list[ResolvedStep] = []
    signature: list[str] = []
    for index, step in enumerate(plan.steps):
        resolved = scope.step(index, step)
        if resolved is not None:
            steps.append(resolved)
            signature.append(_path_name(index, resolved))
    if not any(isinstance(step, KernelStep) for step in steps):
        raise ResolveError(
            f"launch.toml: no kernel step is left for workload {workload.id!r}: every `when` is false"
        )
    return ResolvedPlan(tuple(steps), scope.scratch, tuple(signature))


def _path_name(index: int, step: ResolvedStep) -> str:
    what = f"{step.unit}.{step.kernel}" if isinstance(step, KernelStep) else f"memset {step.buffer}"
    return f"{index}:{what}"


class _Scope:
    """The names that one workload gives to the expressions of a plan."""

    def __init__(
        self, plan: LaunchPlan, contract: Contract, workload: WorkloadSpec, facts: Mapping[str, int]
    ) -> None:
        self.plan = plan
        self.workload = workload
        self.scalar_specs = {s.name: s for s in contract.scalars}
        self.scalars = scalar_values(contract, workload)
        self.layouts: dict[str, TensorLayout] = layouts(contract, workload)
        self.read_only = {t.name for t in contract.tensors if t.role == "in"}
        self.maps = {m.name: m for m in plan.tensor_maps}
        self.units = {u.name: u for u in plan.units}
        defines: dict[str, int | float | str] = {}
        for unit in reversed(plan.units):
            defines.update(unit.defines)
        self.names: Names = {**facts, **defines, **workload_names(contract, workload)}
        self.scratch: dict[str, int] = {}
        for item in plan.scratch:
            elements = 1
            for extent in item.shape:
                elements *= self.number(extent, self.names, f"scratch {item.name!r} shape")
            if elements < 1:
                raise self.error(f"scratch {item.name!r} has no elements")
            self.scratch[item.name] = elements * item_bytes(item.dtype)

    def error(self, text: str) -> ResolveError:
        return ResolveError(f"launch.toml: {text} (workload {self.workload.id!r})")

    def number(self, expr: Expr, names: Names, where: str) -> int:
        try:
            return evaluate(expr, names)
        except ExpressionError as error:
            raise self.error(f"{where}: {error}") from error

    def step(self, index: int, step: Step) -> ResolvedStep | None:
        where = f"step {index + 1}"
        unit, kernel = self._function(step, where)
        names: Names = {**self.names, **(self.units[unit].defines if unit else {})}
        if step.when is not None and not self.number(step.when, names, f"{where} when"):
            return None
        if step.memset is not None:
            return self._memset(step, step.memset, where)
        grid = self._triple(step.grid, names, f"{where} grid")
        block = self._triple(step.block, names, f"{where} block")
        threads = block[0] * block[1] * block[2]
        if threads > MAX_BLOCK_THREADS:
            raise self.error(f"{where} block: {threads} threads, at most {MAX_BLOCK_THREADS} are possible")
        shared = self.number(step.shared_bytes, names, f"{where} shared_bytes")
        if shared < 0:
            raise self.error(f"{where} shared_bytes: {shared} is negative")
        return KernelStep(
            unit=unit,
            kernel=kernel,
            grid=grid,
            block=block,
            args=tuple(self._arg(a, names, f"{where} args[{i}]") for i, a in enumerate(step.args)),
            shared_bytes=shared,
            cluster=self._triple(step.cluster, names, f"{where} cluster") if step.cluster else None,
            cooperative=step.cooperative,
            pdl=step.pdl,
        )

    def _function(self, step: Step, where: str) -> tuple[str, str]:
        if step.kernel is None:
            return "", ""
        unit, dot, kernel = step.kernel.rpartition(".")
        if not dot:
            return self.plan.units[0].name, step.kernel
        if unit not in self.units:
            raise self.error(f"{where} kernel: no unit {unit!r}; units are {', '.join(self.units)}")
        return unit, kernel

    def _memset(self, step: Step, buffer: str, where: str) -> MemsetStep:
        if buffer in self.read_only:
            raise self.error(f"{where} memset: {buffer!r} is an input")
        if buffer in self.scratch:
            return MemsetStep(buffer, step.value, self.scratch[buffer])
        if buffer in self.layouts:
            return MemsetStep(buffer, step.value, self.layouts[buffer].nbytes)
        raise self.error(f"{where} memset: no tensor or scratch is called {buffer!r}")

    def _triple(self, exprs: tuple[Expr, Expr, Expr], names: Names, where: str) -> tuple[int, int, int]:
        x, y, z = (self.number(e, names, where) for e in exprs)
        if min(x, y, z) < 1:
            raise self.error(f"{where}: {[x, y, z]} must be at least 1 on every axis")
        return x, y, z

    def _arg(self, arg: Arg, names: Names, where: str) -> ArgValue:
        if isinstance(arg, TensorArg):
            return self._buffer(arg.tensor, self.number(arg.offset, names, f"{where} offset"), where)
        if isinstance(arg, AxisArg):
            if arg.axis not in self.workload.axes:
                raise self.error(f"{where}: no axis is called {arg.axis!r}")
            return self._scalar(arg.as_, self.workload.axes[arg.axis], where)
        if isinstance(arg, ScalarArg):
            if arg.scalar not in self.scalars:
                raise self.error(f"{where}: no scalar is called {arg.scalar!r}")
            dtype = arg.as_ or self.scalar_specs[arg.scalar].dtype
            return self._scalar(dtype, self.scalars[arg.scalar], where)
        if isinstance(arg, ValueArg):
            return self._scalar(arg.as_, self.number(arg.value, names, where), where)
        return self._bare(arg, names, where)

    def _bare(self, name: str, names: Names, where: str) -> ArgValue:
        if name in self.layouts or name in self.scratch:
            return self._buffer(name, 0, where)
        if name in self.maps:
            return self._tensor_map(self.maps[name], names, where)
        if name in self.scalars:
            return self._scalar(self.scalar_specs[name].dtype, self.scalars[name], where)
        if name in self.workload.axes:
            return self._scalar("int32", self.workload.axes[name], where)
        raise self.error(f"{where}: no tensor, scratch, tensor map, scalar or axis is called {name!r}")

    def _buffer(self, name: str, offset: int, where: str) -> BufferRef:
        """``offset`` counts elements from the tensor's first one."""
        if name in self.scratch:
            item = next(s for s in self.plan.scratch if s.name == name)
            start, size = offset * item_bytes(item.dtype), self.scratch[name]
        elif name in self.layouts:
            layout = self.layouts[name]
            start, size = (layout.offset + offset) * item_bytes(layout.dtype), layout.nbytes
        else:
            raise self.error(f"{where}: no tensor or scratch is called {name!r}")
        if not 0 <= start < size:
            raise self.error(f"{where}: offset {offset} lies outside {name!r}")
        return BufferRef(name, start)

    def _scalar(self, dtype: str, value: float | int, where: str) -> ScalarValue:
        if is_float(dtype):
            return ScalarValue(dtype, float(value))
        if dtype == "bool":
            return ScalarValue(dtype, int(bool(value)))
        limits = np.iinfo(storage_dtype(dtype))
        if value != int(value) or not int(limits.min) <= int(value) <= int(limits.max):
            raise self.error(f"{where}: {value} does not fit {dtype}")
        return ScalarValue(dtype, int(value))

    def _tensor_map(self, spec: TensorMap, names: Names, where: str) -> TensorMapValue:
        if spec.tensor not in self.layouts:
            raise self.error(f"{where}: tensor map {spec.name!r} is over {spec.tensor!r}, which is no tensor")
        where = f"tensor map {spec.name!r}"
        dims = tuple(self.number(e, names, f"{where} dims") for e in spec.dims)
        steps = spec.element_strides or (1,) * len(dims)
        return TensorMapValue(
            buffer=spec.tensor,
            dtype=self.layouts[spec.tensor].dtype,
            dims=dims,
            strides=tuple(self.number(e, names, f"{where} strides") for e in spec.strides),
            box=tuple(self.number(e, names, f"{where} box") for e in spec.box),
            element_strides=tuple(self.number(e, names, f"{where} element_strides") for e in steps),
            swizzle=spec.swizzle,
            interleave=spec.interleave,
            l2_promotion=spec.l2_promotion,
            oob=spec.oob,
        )


def _bind_step(step: ResolvedStep, buffers: Mapping[str, str]) -> ResolvedStep:
    if isinstance(step, MemsetStep):
        return replace(step, buffer=buffers[step.buffer])
    return replace(step, args=tuple(_bind_arg(arg, buffers) for arg in step.args))


def _bind_arg(arg: ArgValue, buffers: Mapping[str, str]) -> ArgValue:
    if isinstance(arg, BufferRef):
        return replace(arg, name=buffers[arg.name])
    if isinstance(arg, TensorMapValue):
        return replace(arg, buffer=buffers[arg.buffer])
    return arg
