"""The judge's own sight of the child's buffers: by CUDA IPC, or by host copies where IPC is missing.

All work on bytes is done on the device where IPC works: poison, hash, copy. The judge never executes
anything of a candidate.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pycuda.driver as pycuda
from numpy.typing import NDArray

from kda_tui.evaluation.devices.cuda.clock import Supervisor


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer in the judge's address space (``at``), or in the child's when ``remote``."""

    at: int
    nbytes: int
    guard: int
    remote: bool = False


class JudgeContext:
    """The judge's context on one GPU: primary, pushed once, with the supervisor's kernels."""

    def __init__(self, ordinal: int, supervisor_cubin: Path) -> None:
        pycuda.init()
        self.device = pycuda.Device(ordinal)
        self.context = self.device.retain_primary_context()
        self.context.push()
        self.stream = pycuda.Stream()
        self.supervisor = Supervisor(supervisor_cubin.read_bytes(), self.stream.handle)
        self._word = pycuda.mem_alloc(256)

    def open_chunk(self, handle: str) -> Any:
        """Map a child's arena by its IPC handle (hex)."""
        return pycuda.IPCMemoryHandle(bytearray.fromhex(handle))

    def poison(self, at: int, nbytes: int, seed: int, complement: bool) -> None:
        self.supervisor.launch(
            "poison",
            ctypes.c_uint64(at),
            ctypes.c_uint64(nbytes),
            ctypes.c_uint64(seed),
            ctypes.c_uint32(complement),
        )

    def hash(self, at: int, nbytes: int) -> int:
        return self._counted("hash", ctypes.c_uint64(at), ctypes.c_uint64(nbytes))

    def unwritten(self, at: int, nbytes: int, seed: int, complement: bool) -> int:
        """How many bytes still equal their poison."""
        return self._counted(
            "unwritten",
            ctypes.c_uint64(at),
            ctypes.c_uint64(nbytes),
            ctypes.c_uint64(seed),
            ctypes.c_uint32(complement),
        )

    def _counted(self, name: str, *args: Any) -> int:
        pycuda.memset_d32_async(int(self._word), 0, 2, self.stream)
        self.supervisor.launch(name, *args, ctypes.c_uint64(int(self._word)))
        self.stream.synchronize()
        found = np.empty(1, np.uint64)
        pycuda.memcpy_dtoh(found, int(self._word))
        return int(found[0])

    def read(self, at: int, nbytes: int) -> NDArray[np.uint8]:
        self.stream.synchronize()
        room = np.empty(nbytes, np.uint8)
        if nbytes:
            pycuda.memcpy_dtoh(room, at)
        return room

    def write(self, at: int, data: NDArray[np.uint8]) -> None:
        self.stream.synchronize()
        if data.nbytes:
            pycuda.memcpy_htod(at, np.ascontiguousarray(data))

    def close(self) -> None:
        """Leave the primary context, or PyCUDA aborts the process at exit."""
        self.stream.synchronize()
        self.context.pop()


@dataclass(frozen=True, slots=True)
class HostCopies:
    """The way without IPC: bytes travel through files that the child writes and reads."""

    ask: Callable[[dict[str, Any]], dict[str, Any]]
    scratch: Path

    def read(self, at: int, nbytes: int) -> NDArray[np.uint8]:
        path = self.scratch / "copy.bin"
        self.ask({"op": "copy_out", "at": at, "nbytes": nbytes, "path": str(path)})
        return np.fromfile(path, np.uint8)

    def write(self, at: int, data: NDArray[np.uint8]) -> None:
        path = self.scratch / "copy.bin"
        np.ascontiguousarray(data).tofile(path)
        self.ask({"op": "copy_in", "at": at, "path": str(path)})
