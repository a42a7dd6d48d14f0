"""The one function through which every kernel of every arm is launched: cuLaunchKernelEx.

Arguments are packed once by their declared types and checked against the cubin's own parameter sizes,
so a wrong type is an error that names the argument and not a crash.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cuda.bindings import driver as cu

from kda_tui.evaluation.devices.cuda.driver import CudaFault, check
from kda_tui.evaluation.devices.interface import (
    ArgValue,
    BufferRef,
    KernelStep,
    MemsetStep,
    ResolvedStep,
    ScalarValue,
    TensorMapValue,
)

_FORMATS = {
    "float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
    "uint8": "B", "uint16": "H", "uint32": "I", "bool": "?",
}  # fmt: skip
_STATIC_LIMIT = 48 << 10
_MAP_TYPES = {
    "uint8": "UINT8", "int8": "UINT8", "bool": "UINT8", "fp8_e4m3": "UINT8", "fp8_e5m2": "UINT8", "fp4x2": "UINT8",
    "uint16": "UINT16", "int16": "UINT16", "float16": "FLOAT16", "bfloat16": "BFLOAT16",
    "uint32": "UINT32", "int32": "INT32", "int64": "INT64", "float32": "FLOAT32", "float64": "FLOAT64",
}  # fmt: skip


class ArgumentError(Exception):
    """An argument does not fit the kernel's parameter; the text names it."""


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel of a loaded module with the sizes of its parameters in bytes."""

    name: str
    handle: Any
    parameters: tuple[int, ...]
    static_shared: int


@dataclass(slots=True)
class Prepared:
    """A step whose arguments are packed; ``keep`` owns the memory behind ``pointers``."""

    run: Any
    keep: list[Any] = field(default_factory=list)


def load_module(image: bytes) -> Any:
    """Load a cubin (or PTX) into the current context."""
    return check(cu.cuModuleLoadData(image), "cuModuleLoadData")


def unload_module(module: Any) -> None:
    check(cu.cuModuleUnload(module), "cuModuleUnload")


def get_function(module: Any, symbol: str, name: str) -> Function:
    handle = check(cu.cuModuleGetFunction(module, symbol.encode()), f"kernel {name}")
    sizes: list[int] = []
    while True:
        error, _, size = cu.cuFuncGetParamInfo(handle, len(sizes))
        if int(error) != 0:
            break
        sizes.append(int(size))
    attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    static = check(cu.cuFuncGetAttribute(attribute, handle), "cuFuncGetAttribute")
    return Function(name, handle, tuple(sizes), int(static))


def get_global(module: Any, name: str) -> int:
    """The device address of a module variable."""
    pointer, _ = check(cu.cuModuleGetGlobal(module, name.encode()), f"variable {name}")
    return int(pointer)


def prepare(
    step: ResolvedStep, functions: Mapping[tuple[str, str], Function], address: Mapping[str, int], stream: int
) -> Prepared:
    """Pack a step for launching on ``stream``. ``address`` gives every buffer's device address."""
    if isinstance(step, MemsetStep):
        return _prepare_memset(step, address, stream)
    function = functions[step.unit, step.kernel]
    _check_sizes(function, step.args)
    packed = [_pack(arg, address) for arg in step.args]
    pointers = (ctypes.c_void_p * max(1, len(packed)))(*[ctypes.addressof(p) for p in packed])
    config, attributes = _config(step, stream)
    allow_shared(function, step.shared_bytes)
    handle, where = function.handle, ctypes.addressof(pointers)
    call = f"launch of {step.kernel}"

    def run() -> None:
        check(cu.cuLaunchKernelEx(config, handle, where, 0), call)

    return Prepared(run, [packed, pointers, config, attributes])


def as_graph(steps: Sequence[Prepared], stream: int) -> Prepared:
    """Steps captured once, replayed as one CUDA graph."""
    queue = cu.CUstream(stream)
    mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    check(cu.cuStreamBeginCapture(queue, mode), "graph capture")
    try:
        for step in steps:
            step.run()
    finally:
        graph = check(cu.cuStreamEndCapture(queue), "graph capture")
    ready = check(cu.cuGraphInstantiate(graph, 0), "graph")
    check(cu.cuGraphUpload(ready, queue), "graph")

    def run() -> None:
        check(cu.cuGraphLaunch(ready, queue), "graph launch")

    return Prepared(run, [list(steps), graph, ready])


def _prepare_memset(step: MemsetStep, address: Mapping[str, int], stream: int) -> Prepared:
    at, value, count = address[step.buffer], step.value & 0xFF, step.nbytes

    def run() -> None:
        check(cu.cuMemsetD8Async(at, value, count, stream), f"memset of {step.buffer}")

    return Prepared(run)


def _check_sizes(function: Function, args: Sequence[ArgValue]) -> None:
    if len(args) != len(function.parameters):
        raise ArgumentError(
            f"kernel {function.name} takes {len(function.parameters)} arguments, the launch plan gives {len(args)}"
        )
    for i, (arg, size) in enumerate(zip(args, function.parameters, strict=True)):
        have = _declared_bytes(arg)
        if have != size:
            raise ArgumentError(
                f"kernel {function.name}: argument {i + 1} ({_describe(arg)}) has {have} bytes, the kernel's parameter {size}"
            )


def _declared_bytes(arg: ArgValue) -> int:
    if isinstance(arg, BufferRef):
        return 8
    if isinstance(arg, TensorMapValue):
        return 128
    return len(scalar_bytes(arg))


def _describe(arg: ArgValue) -> str:
    if isinstance(arg, BufferRef):
        return f"pointer to {arg.name}"
    return f"{arg.dtype} {arg.value}" if isinstance(arg, ScalarValue) else f"tensor map of {arg.buffer}"


def scalar_bytes(arg: ScalarValue) -> bytes:
    """A scalar by its declared type, little endian."""
    if arg.dtype == "bfloat16":
        (bits,) = struct.unpack("<I", struct.pack("<f", float(arg.value)))
        rounded = bits if math.isnan(float(arg.value)) else bits + 0x7FFF + ((bits >> 16) & 1)
        return struct.pack("<H", (rounded >> 16) & 0xFFFF)
    code = _FORMATS.get(arg.dtype)
    if code is None:
        raise ArgumentError(f"a scalar of type {arg.dtype} cannot be passed by value")
    value = float(arg.value) if code in "dfe" else int(arg.value)
    try:
        return struct.pack("<" + code, value)
    except (struct.error, OverflowError) as error:
        raise ArgumentError(f"{arg.value} does not fit {arg.dtype}") from error


def _pack(arg: ArgValue, address: Mapping[str, int]) -> Any:
    if isinstance(arg, BufferRef):
        return ctypes.c_uint64(address[arg.name] + arg.byte_offset)
    if isinstance(arg, TensorMapValue):
        return _tensor_map(arg, address[arg.buffer])
    data = scalar_bytes(arg)
    return (ctypes.c_char * len(data)).from_buffer_copy(data)


def _tensor_map(spec: TensorMapValue, at: int) -> Any:
    """Encode a TMA descriptor; it must lie on 64 bytes."""
    kind = getattr(cu.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_MAP_TYPES[spec.dtype]}")
    rank = len(spec.dims)
    encoded = check(
        cu.cuTensorMapEncodeTiled(
            kind,
            rank,
            at,
            [cu.cuuint64_t(d) for d in spec.dims],
            [cu.cuuint64_t(s) for s in spec.strides],
            [cu.cuuint32_t(b) for b in spec.box],
            [cu.cuuint32_t(e) for e in (spec.element_strides or (1,) * rank)],
            _word(cu.CUtensorMapInterleave, "CU_TENSOR_MAP_INTERLEAVE_", spec.interleave),
            _word(cu.CUtensorMapSwizzle, "CU_TENSOR_MAP_SWIZZLE_", spec.swizzle),
            _word(cu.CUtensorMapL2promotion, "CU_TENSOR_MAP_L2_PROMOTION_L2_", spec.l2_promotion),
            _oob(spec.oob),
        ),
        f"tensor map over {spec.buffer}",
    )
    room = (ctypes.c_char * (128 + 64))()
    start = -ctypes.addressof(room) % 64
    aligned = (ctypes.c_uint64 * 16).from_buffer(room, start)
    for i, word in enumerate(encoded.opaque):
        aligned[i] = int(word)
    return aligned


def _word(enum: Any, prefix: str, word: str) -> Any:
    if word == "none":
        return next(getattr(enum, n) for n in dir(enum) if n.endswith("_NONE"))
    return getattr(enum, prefix + word)


def _oob(word: str) -> Any:
    names = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}
    return getattr(cu.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{names[word]}")


def _config(step: KernelStep, stream: int) -> tuple[Any, list[Any]]:
    config = cu.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = step.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = step.block
    config.sharedMemBytes = step.shared_bytes
    config.hStream = cu.CUstream(stream)
    attributes = []
    ids = cu.CUlaunchAttributeID
    if step.cluster is not None:
        attribute = cu.CUlaunchAttribute()
        attribute.id = ids.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = (
            step.cluster
        )
        attributes.append(attribute)
    if step.cooperative:
        attribute = cu.CUlaunchAttribute()
        attribute.id = ids.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        attributes.append(attribute)
    if step.pdl:
        attribute = cu.CUlaunchAttribute()
        attribute.id = ids.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        attributes.append(attribute)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config, attributes


def allow_shared(function: Function, dynamic: int) -> None:
    """Above 48 KiB in all, a kernel must opt in (and 49,152 + 1 is the first that does)."""
    if function.static_shared + dynamic <= _STATIC_LIMIT:
        return
    attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    have = check(cu.cuFuncGetAttribute(attribute, function.handle), "cuFuncGetAttribute")
    if int(have) >= dynamic:
        return
    try:
        check(cu.cuFuncSetAttribute(function.handle, attribute, dynamic), "shared memory opt-in")
    except CudaFault as fault:
        raise ArgumentError(
            f"kernel {function.name}: {dynamic} bytes of dynamic and {function.static_shared} of static shared memory are more than this GPU allows ({fault})"
        ) from fault
