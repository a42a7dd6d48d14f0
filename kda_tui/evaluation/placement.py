"""The buffers of one workload in a child: several sets of inputs and outputs, poison, guards.

The judge owns every byte. A set holds one call's inputs, outputs and scratch; constant tensors exist
once. Names are ``workload/tensor@set``, ``workload/tensor`` for constants, ``workload/arm:scratch@set``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import Arrays
from kda_tui.evaluation.devices.interface import BufferSpec, Child
from kda_tui.evaluation.inputs import INPUT_ROLES, InputSet
from kda_tui.evaluation.layout import TensorLayout, layouts
from kda_tui.evaluation.oracle import OUTPUT_ROLES
from kda_tui.record.contract import Contract, TensorSpec, WorkloadSpec

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Poison:
    """Random bytes laid into a buffer before a launch; two complementary ones show what was not written."""

    seed: str
    complement: bool = False

    def bytes_for(self, buffer: str, nbytes: int, arrays: Arrays) -> Bytes:
        pattern = arrays.random_bytes(nbytes, "poison", self.seed, buffer)
        return ~pattern if self.complement else pattern


@dataclass(slots=True)
class Placement:
    """The buffers of ``workload`` for ``sets`` sets; ``scratch`` is bytes by arm and name."""

    child: Child
    arrays: Arrays
    contract: Contract
    workload: WorkloadSpec
    sets: int
    scratch: Mapping[str, Mapping[str, int]]
    layouts: Mapping[str, TensorLayout] = field(init=False)
    _guards: dict[BufferSpec, Bytes] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.layouts = layouts(self.contract, self.workload)

    def buffer(self, tensor: str, which: int) -> str:
        spec = next(t for t in self.contract.tensors if t.name == tensor)
        suffix = "" if spec.constant and spec.role == "in" else f"@{which}"
        return f"{self.workload.id}/{tensor}{suffix}"

    def scratch_buffer(self, arm: str, name: str, which: int) -> str:
        return f"{self.workload.id}/{arm}:{name}@{which}"

    def specs(self) -> list[BufferSpec]:
        """Every buffer to allocate, in contract order."""
        found: dict[str, BufferSpec] = {}
        for which in range(self.sets):
            for spec in self.contract.tensors:
                name = self.buffer(spec.name, which)
                found[name] = BufferSpec(name, self.layouts[spec.name].nbytes, max(spec.align, 16))
            for arm, items in self.scratch.items():
                for item, nbytes in items.items():
                    name = self.scratch_buffer(arm, item, which)
                    found[name] = BufferSpec(name, nbytes)
        return list(found.values())

    def remember_guards(self) -> None:
        """Take the guard bands as they are now for whole; call once after allocation."""
        self._guards = {spec: self.child.guards(spec.name).copy() for spec in self.specs()}

    def undisturbed(self, inputs: Mapping[int, InputSet]) -> Callable[[], bool]:
        """Whether the read-only inputs of some sets and all guard bands are as they were; else look closer."""
        pairs = [(self.child.guards(spec.name), before) for spec, before in self._guards.items()]
        for which, masters in inputs.items():
            for spec in self._read_only():
                pairs.append((self.child.get(self.buffer(spec.name, which)), masters.storage[spec.name]))
        return self.arrays.equal(pairs)

    def _read_only(self) -> list[TensorSpec]:
        return [t for t in self.contract.tensors if t.role in INPUT_ROLES and t.role not in OUTPUT_ROLES]

    def binding(self, arm: str, which: int) -> dict[str, str]:
        """Logical tensor and scratch names of a resolved plan -> buffers of one set."""
        names = {spec.name: self.buffer(spec.name, which) for spec in self.contract.tensors}
        for item in self.scratch.get(arm, {}):
            names[item] = self.scratch_buffer(arm, item, which)
        return names

    def fill(self, which: int, inputs: InputSet) -> None:
        """Restore everything a kernel finds filled (in, inout, state) from the masters."""
        for name, data in inputs.storage.items():
            self.child.put(self.buffer(name, which), data)

    def poison(self, which: int, poison: Poison) -> None:
        """Poison the outputs of a set and the scratch of every arm."""
        for spec in self.contract.tensors:
            if spec.role == "out":
                self._lay(self.buffer(spec.name, which), self.layouts[spec.name].nbytes, poison)
        for arm, items in self.scratch.items():
            for item, nbytes in items.items():
                self._lay(self.scratch_buffer(arm, item, which), nbytes, poison)

    def _lay(self, buffer: str, nbytes: int, poison: Poison) -> None:
        self.child.put(buffer, poison.bytes_for(buffer, nbytes, self.arrays))

    def pattern(self, poison: Poison, tensor: str, which: int) -> Bytes:
        """What ``poison`` laid into an output's storage."""
        return poison.bytes_for(self.buffer(tensor, which), self.layouts[tensor].nbytes, self.arrays)

    def output(self, tensor: str, which: int) -> Bytes:
        """A copy of an output's storage bytes."""
        return self.child.get(self.buffer(tensor, which)).copy()

    def outputs(self, which: int) -> dict[str, Bytes]:
        return {t.name: self.output(t.name, which) for t in self.contract.tensors if t.role in OUTPUT_ROLES}

    def elements(self, tensor: str, storage: Bytes) -> NDArray[Any]:
        return self.layouts[tensor].elements(storage)

    def changed_inputs(self, which: int, inputs: InputSet) -> list[tuple[str, int]]:
        """Read-only inputs that no longer hold what was put there, with the first changed byte."""
        changed: list[tuple[str, int]] = []
        for spec in self._read_only():
            now, master = self.child.get(self.buffer(spec.name, which)), inputs.storage[spec.name]
            if not np.array_equal(now, master):
                changed.append((spec.name, int(np.argmax(now != master))))
        return changed

    def broken_guards(self) -> list[tuple[str, int]]:
        """Buffers whose guard bands changed, with the distance in bytes: negative before, positive past the end."""
        broken: list[tuple[str, int]] = []
        for spec, before in self._guards.items():
            now = self.child.guards(spec.name)
            if not np.array_equal(now, before):
                hits = np.flatnonzero((now != before).reshape(-1))
                past = hits[hits >= spec.guard]
                distance = int(past[0]) - spec.guard + 1 if past.size else int(hits[-1]) - spec.guard
                broken.append((spec.name, distance))
        return broken


def total_bytes(specs: Sequence[BufferSpec]) -> int:
    return sum(spec.nbytes + 2 * spec.guard for spec in specs)
