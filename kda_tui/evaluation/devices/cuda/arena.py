"""The judge's own sight of the child's buffers: by CUDA IPC, or by host copies where IPC is missing.

With CuPy, buffers are device arrays and no bulk data travels. The judge never executes anything of a
candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pycuda.driver as pycuda
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import HOST, Arrays, to_host
from kda_tui.evaluation.devices.cuda.arrays import DeviceArrays, cupy_or_reason
from kda_tui.evaluation.devices.cuda.clock import Supervisor

Bytes = NDArray[np.uint8]
_DEFAULT_STREAM = 0  # in order with CuPy, and with every stream of this context


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer at ``at``: in the judge's address space by a mapped ``chunk``, else (None) in the child's."""

    at: int
    nbytes: int
    guard: int
    chunk: Any = None


class JudgeContext:
    """The judge's context on one GPU: primary, pushed once, with the supervisor's kernels."""

    def __init__(self, ordinal: int, supervisor_cubin: Path) -> None:
        pycuda.init()
        self.context = pycuda.Device(ordinal).retain_primary_context()
        self.context.push()
        self.supervisor = Supervisor(supervisor_cubin.read_bytes(), _DEFAULT_STREAM)
        cupy, self.without_cupy = cupy_or_reason()
        self._device = DeviceArrays(cupy, self.supervisor, ordinal) if cupy is not None else None

    @property
    def arrays(self) -> Arrays:
        return self._device or HOST

    def open_chunk(self, handle: str) -> Any:
        """Map a child's arena by its IPC handle (hex)."""
        return pycuda.IPCMemoryHandle(bytearray.fromhex(handle))

    def synchronize(self) -> None:
        """Wait for everything that the judge has put into buffers."""
        self.context.synchronize()

    def read(self, at: int, nbytes: int, chunk: Any) -> Bytes:
        if self._device is not None:
            return self._device.view(at, nbytes, chunk)
        room = np.empty(nbytes, np.uint8)
        if nbytes:
            pycuda.memcpy_dtoh(room, at)
        return room

    def write(self, at: int, data: Bytes, chunk: Any) -> None:
        if self._device is not None:
            self._device.view(at, data.nbytes, chunk)[...] = self._device.own(data)
        elif data.nbytes:
            pycuda.memcpy_htod(at, np.ascontiguousarray(to_host(data)))

    def bands(self, at: int, nbytes: int, guard: int, chunk: Any) -> Bytes:
        """The ``guard`` bytes before ``at`` and those after ``nbytes``, as two rows."""
        if self._device is None:
            before, after = self.read(at - guard, guard, chunk), self.read(at + nbytes, guard, chunk)
            return np.stack([before, after])
        whole = self._device.view(at - guard, nbytes + 2 * guard, chunk)
        rows: Bytes = self._device.xp.lib.stride_tricks.as_strided(whole, (2, guard), (nbytes + guard, 1))
        return rows

    def close(self) -> None:
        """Leave the primary context, or PyCUDA aborts the process at exit."""
        self.context.synchronize()
        self.context.pop()


@dataclass(frozen=True, slots=True)
class HostCopies:
    """The way without IPC: bytes travel through files that the child writes and reads."""

    ask: Callable[[dict[str, Any]], dict[str, Any]]
    scratch: Path

    def read(self, at: int, nbytes: int) -> Bytes:
        path = self.scratch / "copy.bin"
        self.ask({"op": "copy_out", "at": at, "nbytes": nbytes, "path": str(path)})
        return np.fromfile(path, np.uint8)

    def write(self, at: int, data: Bytes) -> None:
        path = self.scratch / "copy.bin"
        np.ascontiguousarray(data).tofile(path)
        self.ask({"op": "copy_in", "at": at, "path": str(path)})
