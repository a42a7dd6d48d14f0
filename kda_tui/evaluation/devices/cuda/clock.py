"""Timing inside the child: flush, a queued start event, the steps, an end event.

The start event must still be pending when the end event has been queued, else the host was late and
the sample is void: the delay in front is then lengthened. A flush writes and then *reads* twice the L2
of clean data: behind a memset alone, dirty lines are written back inside the timed window (measured on
an H200: 69.5 us after a memset, 65.8 us after reading clean data, 64.7 us in ncu for one kernel).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import pycuda.driver as pycuda
from cuda.bindings import driver as cu

from kda_tui.evaluation.devices.cuda.driver import check
from kda_tui.evaluation.devices.cuda.launch import Prepared, allow_shared, get_function, load_module
from kda_tui.evaluation.devices.interface import Launch

_BLOCKS = 1056  # a multiple of the 132 SMs of an H100 or H200; grid-stride kernels need no more
_THREADS = 256
_SPIN_NS = 20_000
_RETRIES = 4


class Supervisor:
    """The supervisor's kernels in this context, launched on one stream."""

    def __init__(self, cubin: bytes, stream: int) -> None:
        self._module = load_module(cubin)
        self._stream = stream
        self._functions: dict[str, Any] = {}

    def launch(
        self,
        name: str,
        *args: Any,
        blocks: int = _BLOCKS,
        rows: int = 1,
        threads: int = _THREADS,
        shared: int = 0,
    ) -> None:
        """Launch ``kda_<name>`` on (blocks, rows) with ctypes arguments and dynamic shared memory."""
        function = self._functions.get(name)
        if function is None:
            function = get_function(self._module, f"kda_{name}", name)
            allow_shared(function, shared)
            self._functions[name] = function
        pointers = (ctypes.c_void_p * max(1, len(args)))(*[ctypes.addressof(a) for a in args])
        check(
            cu.cuLaunchKernel(
                function.handle,
                blocks,
                rows,
                1,
                threads,
                1,
                1,
                shared,
                self._stream,
                ctypes.addressof(pointers),
                0,
            ),
            name,
        )


class Scrubber:
    """Leaves no trace of earlier launches in shared memory: all ones before one launch, zero before the next."""

    def __init__(self, supervisor: Supervisor) -> None:
        facts, kind = pycuda.Context.get_device().get_attribute, pycuda.device_attribute
        self._supervisor = supervisor
        self._blocks = int(facts(kind.MULTIPROCESSOR_COUNT))
        self._bytes = int(facts(kind.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
        self._ones = True

    def __call__(self) -> None:
        pattern = ctypes.c_uint32(0xFFFFFFFF if self._ones else 0)
        self._ones = not self._ones
        self._supervisor.launch(
            "scrub",
            pattern,
            ctypes.c_uint32(self._bytes // 4),
            blocks=self._blocks,
            threads=1024,
            shared=self._bytes,
        )


class Clock:
    """Times prepared launches one by one, cold or warm."""

    def __init__(self, supervisor: Supervisor, stream: Any) -> None:
        self.supervisor = supervisor
        self.scrub = Scrubber(supervisor)
        self.stream = stream
        self._flush_bytes = 2 * int(
            pycuda.Context.get_device().get_attribute(pycuda.device_attribute.L2_CACHE_SIZE)
        )
        self._room: Any = None
        self._sink: Any = None
        self._spin_ns = _SPIN_NS

    def _allocate(self) -> None:
        if self._room is None:
            self._room = pycuda.mem_alloc(max(2 * self._flush_bytes, 1 << 20))
            self._sink = pycuda.mem_alloc(4096)
            pycuda.memset_d8(int(self._room), 0, max(2 * self._flush_bytes, 1 << 20))

    def flush(self) -> None:
        """Write twice the L2, then read twice the L2 of other, clean data."""
        self._allocate()
        base, half = int(self._room), self._flush_bytes
        check(cu.cuMemsetD32Async(base, 0, half // 4, self.stream.handle), "flush")
        self.supervisor.launch(
            "read",
            ctypes.c_uint64(base + half),
            ctypes.c_uint64(half // 16),
            ctypes.c_uint64(int(self._sink)),
        )

    def time(
        self,
        prepared: Sequence[tuple[list[Prepared], Launch]],
        restore: Callable[[Launch], None],
        flush: bool,
    ) -> dict[str, Any]:
        """Microseconds of each launch by events; host-bound samples are taken again, then voided."""
        samples: list[float] = []
        voided = 0
        clock = self._sm_clock_mhz()
        for steps, launch in prepared:
            value: float | None = None
            for _ in range(_RETRIES):
                value = self._once(steps, launch, restore, flush)
                if value is not None:
                    break
                self._spin_ns = min(self._spin_ns * 2, 2_000_000)
            if value is None:
                voided += 1
            else:
                samples.append(value)
        return {"status": "ok", "samples_us": samples, "voided": voided, "clock_mhz": clock}

    def _once(
        self, steps: list[Prepared], launch: Launch, restore: Callable[[Launch], None], flush: bool
    ) -> float | None:
        start, end = pycuda.Event(), pycuda.Event()
        restore(launch)
        self.scrub()
        if flush:
            self.flush()
        self.supervisor.launch(
            "spin", ctypes.c_uint64(self._spin_ns * max(1, len(steps))), blocks=1, threads=1
        )
        start.record(self.stream)
        for step in steps:
            step.run()
        end.record(self.stream)
        pending = not start.query()
        end.synchronize()
        return float(end.time_since(start)) * 1e3 if pending else None

    def _sm_clock_mhz(self) -> float | None:
        """What one SM counted while a spin of 50 us passed on the global timer."""
        import numpy as np

        self._allocate()
        out = int(self._sink) + 1024
        self.supervisor.launch("clock", ctypes.c_uint64(out), ctypes.c_uint64(50_000), blocks=1, threads=1)
        self.stream.synchronize()
        read = np.empty(2, np.uint64)
        pycuda.memcpy_dtoh(read, out)
        return int(read[1]) / int(read[0]) * 1e3 if read[0] else None
