"""What this GPU really reaches: a copy, matrix products, an empty launch. Measured once, kept in a file."""

from __future__ import annotations

import ctypes
import json
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.evaluation.devices.cuda.arena import JudgeContext
from kda_tui.evaluation.devices.cuda.clock import Clock, Supervisor
from kda_tui.evaluation.devices.cuda.launch import Prepared
from kda_tui.evaluation.devices.interface import Launch

COPY_BYTES = 1 << 30
SIDE = 8192  # of the matrix products
_TYPES = {"float16": ("float16", "bfloat16"), "float32": ("float32",), "float64": ("float64",)}


@dataclass(frozen=True, slots=True)
class Peaks:
    """Bytes and floating-point operations a second; microseconds of an empty kernel between two events."""

    bandwidth: float | None = None
    flops: dict[str, float] = field(default_factory=dict)
    empty_us: float = 0.0
    least_empty_us: float = 0.0


def peaks_of(context: JudgeContext, supervisor_cubin: Path, file: Path) -> Peaks:
    """From ``file``, or measured now and written there."""
    try:
        return Peaks(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        found = _measure(context, supervisor_cubin)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_text(
        json.dumps(
            {
                "bandwidth": found.bandwidth,
                "flops": found.flops,
                "empty_us": found.empty_us,
                "least_empty_us": found.least_empty_us,
            }
        )
    )
    part.replace(file)
    return found


def _measure(context: JudgeContext, supervisor_cubin: Path) -> Peaks:
    import pycuda.driver as pycuda

    stream = pycuda.Stream()
    supervisor = Supervisor(supervisor_cubin.read_bytes(), stream.handle)
    clock = Clock(supervisor, stream)
    empty = Prepared(lambda: supervisor.launch("empty", blocks=1, threads=32))
    times = clock.time([([empty], Launch(()))] * 40, lambda launch: None, flush=True)["samples_us"]
    room = [pycuda.mem_alloc(COPY_BYTES) for _ in range(2)]
    try:
        copy = _best_seconds(
            lambda: supervisor.launch(
                "copy",
                *(ctypes.c_uint64(int(r)) for r in room),
                ctypes.c_uint64(COPY_BYTES // 16),
                blocks=8448,
            ),
            stream,
        )
    finally:
        for piece in room:
            piece.free()
    return Peaks(
        bandwidth=2.0 * COPY_BYTES / copy,
        flops=_products(context.arrays.xp) if context.arrays.name == "cupy" else {},
        empty_us=statistics.median(times) if times else 0.0,
        least_empty_us=min(times, default=0.0),
    )


def _products(cupy: Any) -> dict[str, float]:
    """FLOP/s of one matrix product a type; types that share the tensor cores share the number."""
    found: dict[str, float] = {}
    for dtype, names in _TYPES.items():
        side = SIDE if dtype != "float64" else SIDE // 2
        a = cupy.random.random((side, side), dtype=cupy.float32).astype(dtype) - cupy.asarray(0.5, dtype)
        seconds = _best_seconds(lambda a=a: cupy.matmul(a, a))  # type: ignore[misc]
        found |= dict.fromkeys(names, 2.0 * side**3 / seconds)
    return found


def _best_seconds(call: Callable[[], Any], stream: Any = None) -> float:
    import pycuda.driver as pycuda

    best = float("inf")
    for _ in range(8):
        start, end = pycuda.Event(), pycuda.Event()
        start.record(stream)
        call()
        end.record(stream)
        end.synchronize()
        best = min(best, float(end.time_since(start)) * 1e-3)
    return best
