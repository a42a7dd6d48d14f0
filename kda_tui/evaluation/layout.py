"""Where the elements of a tensor lie in its storage: shape, strides and offset with numbers filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import namespace
from kda_tui.evaluation.dtypes import item_bytes, storage_dtype
from kda_tui.expressions import ExpressionError, Number, evaluate
from kda_tui.record.contract import Contract, TensorSpec, WorkloadSpec
from kda_tui.record.sizes import tensor_shape, tensor_strides, workload_names
from kda_tui.text import UserError

Names = Mapping[str, Number]


class LayoutError(UserError):
    """A tensor of the contract has no sensible place in memory for some workload."""


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """Strides and offset count elements; ``nbytes`` is the whole storage, holes included."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    nbytes: int

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def dense(self) -> bool:
        """The elements fill the storage in row-major order."""
        return self.offset == 0 and self.size * item_bytes(self.dtype) == self.nbytes and self._row_major

    @property
    def _row_major(self) -> bool:
        expected = 1
        for length, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if length > 1 and stride != expected:
                return False
            expected *= length
        return True

    def elements(self, storage: NDArray[np.uint8]) -> NDArray[Any]:
        """The tensor's elements as bits, a view into ``storage`` (a contiguous byte array)."""
        typed = storage.view(storage_dtype(self.dtype))
        if self.dense:
            return typed.reshape(self.shape)
        step = typed.itemsize
        elements: NDArray[Any] = namespace(storage).lib.stride_tricks.as_strided(
            typed[self.offset :], self.shape, tuple(s * step for s in self.strides)
        )
        return elements

    def covered(self, marked: NDArray[np.bool_] | None, like: NDArray[Any]) -> NDArray[np.bool_]:
        """Which bytes of the storage belong to an element, or to a ``marked`` one; arrays are of ``like``'s kind."""
        xp = namespace(like)
        if self.dense and marked is None:
            everything: NDArray[np.bool_] = xp.ones(self.nbytes, np.bool_)
            return everything
        item = item_bytes(self.dtype)
        marks = xp.zeros(self.nbytes // item, dtype=np.bool_)
        view = xp.lib.stride_tricks.as_strided(marks[self.offset :], self.shape, self.strides)
        view[...] = True if marked is None else marked
        repeated: NDArray[np.bool_] = np.repeat(marks, item)
        return repeated


def scalar_values(contract: Contract, workload: WorkloadSpec) -> dict[str, int | float]:
    """The value of every scalar: of the workload, else of its axis, else its own."""
    names = workload_names(contract, workload)
    found = {scalar.name: names[scalar.name] for scalar in contract.scalars}
    return {name: value for name, value in found.items() if not isinstance(value, str)}


def layout_of(spec: TensorSpec, names: Names) -> TensorLayout:
    """Fill in the numbers of one tensor. Raises LayoutError naming tensor and what is wrong."""
    where = f"contract.toml: tensor {spec.name!r}"
    try:
        shape = tensor_shape(spec, names)
        offset = evaluate(spec.offset, names)
        strides = tensor_strides(spec, names)
    except ExpressionError as error:
        raise LayoutError(f"{where}: {error}") from error
    if any(n < 1 for n in shape):
        raise LayoutError(f"{where}: shape {list(shape)} has no elements")
    if len(strides) != len(shape) or any(s < 0 for s in strides) or offset < 0:
        raise LayoutError(f"{where}: needs one stride >= 0 per axis and an offset >= 0, got {list(strides)}")
    if spec.role != "in" and any(s == 0 and n > 1 for s, n in zip(strides, shape, strict=True)):
        raise LayoutError(f"{where}: an output cannot have stride 0: its elements would overlap")
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    nbytes = (last + 1) * item_bytes(spec.dtype)
    return TensorLayout(spec.name, spec.dtype, shape, strides, offset, nbytes)


def layouts(contract: Contract, workload: WorkloadSpec) -> dict[str, TensorLayout]:
    """The layout of every tensor of the contract for one workload, by name."""
    names = workload_names(contract, workload)
    return {spec.name: layout_of(spec, names) for spec in contract.tensors}
