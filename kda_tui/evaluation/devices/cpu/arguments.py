"""Kernel arguments as bytes, checked against what the compiled kernel takes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

from kda_tui.evaluation.devices.interface import BufferRef, KernelStep, ScalarValue

Parameters = Sequence[tuple[int, str]]  # size and kind of each, see shim/kda/abi.hpp
Packed = list[list[str | int]]

_INTEGERS = {
    "int8": "b", "uint8": "B", "bool": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q",
}  # fmt: skip
_FLOATS = {"float64": ("d", "f"), "float32": ("f", "f"), "float16": ("e", "h")}
_LIMITS = (("block", (1024, 1024, 64)), ("grid", (2**31 - 1, 65535, 65535)))


class BadLaunch(Exception):
    """A launch that a GPU would refuse as well; the text names what is wrong."""


def check_shape(step: KernelStep, most_shared: int) -> None:
    """Raises BadLaunch for a grid, block or shared memory beyond the limits of a GPU."""
    for what, most in _LIMITS:
        sizes = step.block if what == "block" else step.grid
        if any(size < 1 or size > limit for size, limit in zip(sizes, most, strict=True)):
            raise BadLaunch(f"{step.kernel}: {what} {sizes} is outside 1 to {most}")
    threads = step.block[0] * step.block[1] * step.block[2]
    if threads > 1024:
        raise BadLaunch(f"{step.kernel}: a block of {threads} threads; the most is 1024")
    if not 0 <= step.shared_bytes <= most_shared:
        raise BadLaunch(f"{step.kernel}: shared_bytes {step.shared_bytes} is outside 0 to {most_shared}")


def pack(step: KernelStep, parameters: Parameters, buffers: Mapping[str, int]) -> Packed:
    """The arguments for child.py. ``buffers``: sizes by name. Raises BadLaunch naming the argument."""
    if len(step.args) != len(parameters):
        raise BadLaunch(
            f"{step.kernel} takes {len(parameters)} arguments and launch.toml passes {len(step.args)}"
        )
    packed: Packed = []
    for number, (argument, (size, kind)) in enumerate(zip(step.args, parameters, strict=True), 1):
        where = f"{step.kernel}: argument {number}"
        if isinstance(argument, BufferRef):
            packed.append(_buffer(where, argument, kind, size, buffers))
        elif isinstance(argument, ScalarValue):
            data, given = scalar_bytes(argument)
            if len(data) != size or not _fits(given, kind):
                raise BadLaunch(f"{where} is {_words(kind, size)} and launch.toml passes {argument.dtype}")
            packed.append(["value", data.hex()])
        else:
            raise BadLaunch(f"{where}: the cpu device does not have TMA descriptors")
    return packed


def _buffer(
    where: str, argument: BufferRef, kind: str, size: int, buffers: Mapping[str, int]
) -> list[str | int]:
    if argument.name not in buffers:
        raise BadLaunch(f"{where}: no buffer {argument.name}")
    if kind != "p":
        raise BadLaunch(f"{where} is {_words(kind, size)} and launch.toml passes the tensor {argument.name}")
    if not 0 <= argument.byte_offset <= buffers[argument.name]:
        raise BadLaunch(f"{where}: offset {argument.byte_offset} is outside the tensor {argument.name}")
    return ["buffer", argument.name, argument.byte_offset]


def scalar_bytes(scalar: ScalarValue) -> tuple[bytes, str]:
    """Little-endian bytes and the kind of a scalar. Raises BadLaunch where the value does not fit."""
    try:
        if scalar.dtype in _INTEGERS:
            return struct.pack("<" + _INTEGERS[scalar.dtype], int(scalar.value)), "i"
        if scalar.dtype in _FLOATS:
            code, kind = _FLOATS[scalar.dtype]
            with np.errstate(over="ignore"):
                value = np.dtype("<" + {"d": "f8", "f": "f4", "e": "f2"}[code]).type(scalar.value)
            return value.tobytes(), kind
    except (struct.error, OverflowError, ValueError) as error:
        raise BadLaunch(f"{scalar.value} does not fit {scalar.dtype}") from error
    if scalar.dtype == "bfloat16":
        return _bfloat16(float(scalar.value)), "b"
    raise BadLaunch(f"the cpu device cannot pass a {scalar.dtype} by value")


def _bfloat16(value: float) -> bytes:
    with np.errstate(over="ignore"):
        bits = int(np.float32(value).view(np.uint32))
    if bits & 0x7FFFFFFF > 0x7F800000:
        return struct.pack("<H", 0x7FFF)
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF)


def _fits(given: str, kind: str) -> bool:
    return given == kind or (given == "i" and kind == "u")


def _words(kind: str, size: int) -> str:
    if kind == "p":
        return "a pointer"
    names = {"f": "a float", "h": "a __half", "b": "a __nv_bfloat16", "s": "a struct"}
    return f"{names.get(kind, 'an integer')} of {size} bytes"
