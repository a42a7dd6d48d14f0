"""Sizes of a contract's tensors with numbers filled in."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from kda_tui.expressions import Number, evaluate
from kda_tui.record.contract_model import Contract, DType, TensorSpec, WorkloadSpec

DEVICE_FACTS = ("sm_count", "l2_bytes", "warp_size")

_BYTES: dict[str, int] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp4x2": 1, "e8m0": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "uint16": 2, "uint32": 4, "bool": 1,
    "complex64": 8, "complex128": 16,
}  # fmt: skip


def element_size(dtype: DType) -> int:
    """Bytes of one element; fp4x2 packs two values into its one byte."""
    return _BYTES[dtype]


def workload_names(contract: Contract, workload: WorkloadSpec) -> dict[str, Number]:
    """Axes and scalars of a workload, by name, as expressions see them."""
    names: dict[str, Number] = dict(workload.axes)
    for scalar in contract.scalars:
        if scalar.name in workload.scalars:
            names[scalar.name] = workload.scalars[scalar.name]
        elif scalar.axis is not None and scalar.axis in workload.axes:
            names[scalar.name] = workload.axes[scalar.axis]
        elif scalar.value is not None:
            names[scalar.name] = scalar.value
    return names


def contract_names(contract: Contract) -> frozenset[str]:
    """Names that the contract's own expressions may use: axes and scalars, the same on every device."""
    axes = {axis for workload in contract.workloads for axis in workload.axes}
    return frozenset(axes | {scalar.name for scalar in contract.scalars})


def known_names(contract: Contract) -> frozenset[str]:
    """Names that a launch plan may use beside its defines: axes, scalars and device facts."""
    return contract_names(contract) | frozenset(DEVICE_FACTS)


def tensor_shape(spec: TensorSpec, names: Mapping[str, Number]) -> tuple[int, ...]:
    return tuple(evaluate(length, names) for length in spec.shape)


def tensor_strides(spec: TensorSpec, names: Mapping[str, Number]) -> tuple[int, ...]:
    """Strides in elements; row-major where the contract gives none."""
    if spec.strides is not None:
        return tuple(evaluate(stride, names) for stride in spec.strides)
    shape = tensor_shape(spec, names)
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))


def storage_elements(spec: TensorSpec, names: Mapping[str, Number]) -> int:
    """Elements that the buffer must hold: offset and the farthest element included."""
    shape, strides = tensor_shape(spec, names), tensor_strides(spec, names)
    reach = sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
    return evaluate(spec.offset, names) + reach + 1
