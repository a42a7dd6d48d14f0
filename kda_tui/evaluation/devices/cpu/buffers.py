"""Buffers shared by judge and child: files in memory, guard bands around the data, no page beyond them."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.devices.interface import BufferSpec

_PAGE = 4096


@dataclass(frozen=True, slots=True)
class SharedBuffer:
    """One buffer's file and the judge's view of it: front band, data, rear band."""

    spec: BufferSpec
    file: int
    start: int
    whole: NDArray[np.uint8]

    @classmethod
    def create(cls, spec: BufferSpec) -> SharedBuffer:
        """Guard bands are filled at random. Without a guard the data ends where the mapping does.

        Raises OSError or ValueError where there is no memory.
        """
        align = max(1, min(spec.align, _PAGE))
        start = _up(spec.guard, align)
        size = max(_PAGE, _up(start + spec.nbytes + spec.guard, _PAGE))
        if spec.guard == 0:
            start = (size - spec.nbytes) // align * align
        file = os.memfd_create("kda-buffer", os.MFD_CLOEXEC)
        try:
            os.ftruncate(file, size)
            whole = np.frombuffer(mmap.mmap(file, size), np.uint8)
        except BaseException:
            os.close(file)
            raise
        buffer = cls(spec, file, start, whole)
        random = np.random.default_rng(int.from_bytes(os.urandom(8), "little"))
        for band in (whole[:start], whole[start + spec.nbytes :]):
            band[:] = random.integers(0, 256, band.size, np.uint8)
        return buffer

    @property
    def data(self) -> NDArray[np.uint8]:
        return self.whole[self.start : self.start + self.spec.nbytes]

    def guards(self) -> NDArray[np.uint8]:
        """A copy of the bytes around the data: ``guard`` before, at least as many after."""
        before = self.whole[self.start - self.spec.guard : self.start]
        return np.concatenate([before, self.whole[self.start + self.spec.nbytes :]])

    def described(self) -> dict[str, int | str]:
        return {"name": self.spec.name, "file_bytes": self.whole.size, "start": self.start}


def available_memory() -> int:
    """Bytes that can be had without swapping; a large number where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 1 << 62


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
