"""Bad candidates for the self-test: an honest program whose results are spoiled on the way to the judge.

A mutant is a child around a child. It launches the honest program and then does to the buffers, in
the child's place, what a bad kernel would have done. The judge judges it by the very code that judges
candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import Array, to_host
from kda_tui.evaluation.compare import TILE, tile_axes
from kda_tui.evaluation.devices.interface import (
    BufferRef,
    BufferSpec,
    Child,
    KernelStep,
    Launch,
    LaunchReport,
)
from kda_tui.evaluation.dtypes import decode, encode, is_float
from kda_tui.evaluation.faults import CANDIDATE
from kda_tui.evaluation.layout import TensorLayout, layouts
from kda_tui.evaluation.oracle import OUTPUT_ROLES, check_of
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.contract import Contract, TensorSpec
from kda_tui.record.launch_plan import LaunchPlan

Bytes = NDArray[np.uint8]
RIGHT_CALLS = 3  # of M12


@dataclass(slots=True)
class Answer:
    """The buffers of one launch: what a bad kernel can spoil. ``before`` holds the outputs as they were."""

    specs: Mapping[str, TensorSpec]
    layouts: Mapping[str, TensorLayout]
    storage: Mapping[str, Bytes]
    before: Mapping[str, Bytes]
    call: int
    memory: dict[str, Bytes]  # of the mutant, per tensor, over all calls of the child

    def outputs(self) -> Iterator[str]:
        return (name for name, spec in self.specs.items() if spec.role in OUTPUT_ROLES)

    def elements(self, name: str) -> Array:
        return self.layouts[name].elements(self.storage[name])

    def values(self, name: str) -> Array:
        return decode(self.elements(name), self.specs[name].dtype)

    def put(self, name: str, values: Array) -> None:
        self.elements(name)[...] = encode(values, self.specs[name].dtype).reshape(self.layouts[name].shape)


Spoil = Callable[[Answer], None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """``spoil`` runs after the honest launch; ``skip`` leaves the launch out; ``past_end`` damages guards."""

    name: str
    what: str
    spoil: Spoil
    applies: Callable[[Contract], bool] = lambda contract: True
    skip: bool = False
    past_end: bool = False
    round_inputs: bool = False


def _zeros(answer: Answer) -> None:
    for name in answer.outputs():
        answer.elements(name)[...] = 0


def _mean(answer: Answer) -> None:
    for name in answer.outputs():
        values = answer.values(name)
        finite = values[np.isfinite(values)]  # what a mask leaves unwritten may hold anything
        with np.errstate(over="ignore", invalid="ignore"):
            answer.put(name, np.full(values.shape, finite.mean() if finite.size else 0.0))


def _copy_input(answer: Answer) -> None:
    for name in answer.outputs():
        for other, spec in answer.specs.items():
            if spec.role == "in" and answer.layouts[other].shape == answer.layouts[name].shape:
                answer.put(name, answer.values(other))
                break


def _has_same_shape(contract: Contract) -> bool:
    shapes = {t.shape for t in contract.tensors if t.role == "in"}
    return any(t.shape in shapes for t in contract.tensors if t.role in OUTPUT_ROLES)


def _previous(answer: Answer) -> None:
    """The answer of the input before: what a kernel gives that works on last call's data."""
    for name in answer.outputs():
        now = answer.storage[name].copy()
        last = answer.memory.get(f"{name}:now")
        if last is not None and not np.array_equal(last, now):
            answer.memory[f"{name}:old"] = last
        answer.memory[f"{name}:now"] = now
        old = answer.memory.get(f"{name}:old")
        if old is not None and old.size == now.size:
            answer.storage[name][...] = old


def _tail(answer: Answer) -> None:
    for name in answer.outputs():
        flat = answer.elements(name)
        index = np.unravel_index(np.arange(flat.size - max(1, flat.size // 20), flat.size), flat.shape)
        flat[index] = 0


def _flip_largest(answer: Answer) -> None:
    """One element: the largest of the last tile gets the other sign (integers: the other low bit)."""
    for name in answer.outputs():
        spec, elements = answer.specs[name], answer.elements(name)
        values = answer.values(name)
        axes = tile_axes(check_of(spec), spec, elements.ndim)
        if axes:
            tile = tuple(slice(None) if a in axes else slice(-1, None) for a in range(elements.ndim))
            start = np.zeros(values.shape, np.bool_)
            start[tile] = True
        else:
            start = (np.arange(values.size) >= (values.size - 1) // TILE * TILE).reshape(values.shape)
        size = np.where(start & np.isfinite(values), np.abs(values), -1.0)
        index = np.unravel_index(int(np.argmax(size)), values.shape)
        if is_float(spec.dtype):
            values[index] = -values[index]
            answer.put(name, values)
        else:
            elements[index] ^= 1


def _nan(answer: Answer) -> None:
    for name in answer.outputs():
        if is_float(answer.specs[name].dtype):
            answer.put(name, np.full(answer.values(name).shape, np.nan))


def _gives_floats(contract: Contract) -> bool:
    return any(t.role in OUTPUT_ROLES and is_float(t.dtype) and t.dtype != "fp4x2" for t in contract.tensors)


def _nothing(answer: Answer) -> None:
    return


def _shifted(answer: Answer) -> None:
    for name in answer.outputs():
        elements = answer.elements(name)
        elements[...] = np.roll(elements.reshape(-1), 1).reshape(elements.shape)


def _mutate_input(answer: Answer) -> None:
    name = next(n for n, spec in answer.specs.items() if spec.role == "in" and n in answer.storage)
    answer.storage[name][-1] ^= 1


def _reads_inputs(contract: Contract) -> bool:
    return any(t.role == "in" for t in contract.tensors)


def _stale(answer: Answer) -> None:
    for name in answer.outputs():
        if answer.call <= RIGHT_CALLS:
            answer.memory[name] = answer.storage[name].copy()
        elif answer.memory[name].size == answer.storage[name].size:
            answer.storage[name][...] = answer.memory[name]


def _dropping(output: str) -> Spoil:
    def drop(answer: Answer) -> None:
        answer.storage[output][...] = answer.before[output]

    return drop


def _has_single_precision(contract: Contract) -> bool:
    return any(t.role == "in" and t.dtype == "float32" and t.kind == "data" for t in contract.tensors)


def mutants_of(contract: Contract) -> list[Mutant]:
    """The mutants that mean something for this contract: its tensors decide."""
    made = [
        Mutant("M1", "all zeros", _zeros),
        Mutant("M2", "the mean of each output everywhere", _mean),
        Mutant("M3", "a copy of an input of the same shape", _copy_input, _has_same_shape),
        Mutant("M4", "the answer of the input before", _previous),
        Mutant("M5", "the last 5 % are zero", _tail),
        Mutant("M6", "the largest element of the last tile has the wrong sign", _flip_largest),
        Mutant("M7", "inputs rounded to float16", _nothing, _has_single_precision, round_inputs=True),
        Mutant("M8", "NaN everywhere", _nan, _gives_floats),
        Mutant("M9", "nothing is written", _nothing, skip=True),
        Mutant("M10", "shifted by one element", _shifted),
        Mutant("M11", "right, but changes an input", _mutate_input, _reads_inputs),
        Mutant("M12", "right three times, then stale", _stale),
        Mutant("M14", "right, but writes 4 bytes past the end", _nothing, past_end=True),
    ]
    made += [
        Mutant(f"M13.{t.name}", f"{t.name} is not written", _dropping(t.name))
        for t in contract.tensors
        if t.role in OUTPUT_ROLES
    ]
    return [m for m in made if m.applies(contract)]


@dataclass(slots=True)
class MutantChild:
    """A child whose candidate is spoiled; every other arm is left alone."""

    inner: Child
    mutant: Mutant
    contract: Contract
    _calls: int = 0
    _memory: dict[str, Bytes] = field(default_factory=dict)
    _outputs: list[str] = field(default_factory=list)
    _damaged: bool = False

    def load(self, arm: str, report: CompileReport, plan: LaunchPlan) -> LaunchReport:
        return self.inner.load(arm, report, plan)

    def allocate(self, buffers: Sequence[BufferSpec]) -> LaunchReport:
        return self.inner.allocate(buffers)

    def release(self) -> None:
        self._damaged = False
        self.inner.release()

    def get(self, name: str) -> Bytes:
        return self.inner.get(name)

    def put(self, name: str, data: Bytes) -> None:
        self.inner.put(name, data)

    def guards(self, name: str) -> Bytes:
        bands = self.inner.guards(name).copy()
        if self._damaged and name in self._outputs:
            end = BufferSpec(name, 0).guard
            bands.reshape(-1)[end : end + 4] ^= 0xFF
        return bands

    def run(self, arm: str, launches: Sequence[Launch], timeout_s: float) -> LaunchReport:
        if arm != CANDIDATE:
            return self.inner.run(arm, launches, timeout_s)
        for launch in launches:
            report = self._run_spoiled(launch, timeout_s)
            if report.status != "ok":
                return report
        return LaunchReport("ok")

    def time(self, arm: str, launches: Sequence[Launch], flush: bool, timeout_s: float) -> LaunchReport:
        return self.inner.time(arm, launches, flush, timeout_s)

    def changed_globals(self, arm: str) -> int:
        return self.inner.changed_globals(arm)

    def close(self) -> None:
        self.inner.close()

    def _run_spoiled(self, launch: Launch, timeout_s: float) -> LaunchReport:
        self._calls += 1
        buffers = self._buffers_of(launch)
        before = self._copies(buffers)
        if self.mutant.round_inputs:
            rounded = {tensor: data.copy() for tensor, data in before.items()}
            self._round(rounded)
            self._put(buffers, rounded)
        report = LaunchReport("ok") if self.mutant.skip else self.inner.run(CANDIDATE, [launch], timeout_s)
        if report.status != "ok":
            return report
        specs = {t.name: t for t in self.contract.tensors}
        storage = self._copies(buffers)
        if self.mutant.round_inputs:
            for tensor in storage:
                if specs[tensor].role == "in":
                    storage[tensor][...] = before[tensor]
        answer = Answer(specs, self._layouts(buffers), storage, before, self._calls, self._memory)
        self.mutant.spoil(answer)
        self._put(buffers, storage)
        if self.mutant.past_end:
            self._damaged = True
            self._outputs = [buffers[t.name] for t in self.contract.tensors if t.role in OUTPUT_ROLES]
        return report

    def _copies(self, buffers: Mapping[str, str]) -> dict[str, Bytes]:
        """In host memory, whatever the device."""
        return {tensor: np.array(to_host(self.inner.get(buffer))) for tensor, buffer in buffers.items()}

    def _put(self, buffers: Mapping[str, str], storage: Mapping[str, Bytes]) -> None:
        for tensor, data in storage.items():
            self.inner.put(buffers[tensor], data)

    def _round(self, storage: Mapping[str, Bytes]) -> None:
        for spec in self.contract.tensors:
            if spec.role == "in" and spec.dtype == "float32" and spec.kind == "data":
                view = storage[spec.name].view(np.float32)
                view[...] = view.astype(np.float16)

    def _buffers_of(self, launch: Launch) -> dict[str, str]:
        """Tensor -> buffer, from the arguments: buffers are called ``workload/tensor@set``."""
        names = {t.name for t in self.contract.tensors}
        found: dict[str, str] = {}
        for step in launch.steps:
            for arg in step.args if isinstance(step, KernelStep) else ():
                if isinstance(arg, BufferRef):
                    tensor = arg.name.rsplit("/", 1)[-1].rsplit("@", 1)[0]
                    if tensor in names:
                        found[tensor] = arg.name
        return found

    def _layouts(self, buffers: Mapping[str, str]) -> Mapping[str, TensorLayout]:
        workload = next(iter(buffers.values())).rsplit("/", 1)[0]
        return layouts(self.contract, next(w for w in self.contract.workloads if w.id == workload))
