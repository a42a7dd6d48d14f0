"""The CUDA driver through cuda-bindings, with errors as exceptions that carry their code."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver as cu

# CUresult codes that a person needs words for (CUDA Driver API, "Data types used by CUDA driver")
_WORDS = {
    2: "out of device memory",
    209: "the cubin is for another architecture than this GPU",
    700: "illegal address: the kernel read or wrote outside its buffers",
    701: "too many resources for the launch: registers, threads or shared memory",
    702: "the launch timed out",
    715: "illegal instruction",
    716: "misaligned address",
    717: "invalid address space",
    718: "invalid program counter",
    719: "launch failed: an exception in the kernel",
    720: "the cooperative grid is too large to be resident at once",
    801: "not supported by this GPU",
    1: "invalid value",
    98: "invalid device function",
}
STICKY = frozenset({214, 700, 702, 710, 714, 715, 716, 717, 718, 719})  # the context is dead


class CudaFault(Exception):
    """A driver call that failed. ``sticky``: nothing works in this context any more."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{_WORDS.get(code, name)} ({name}, {call})")
        self.code = code
        self.sticky = code in STICKY

    @property
    def status(self) -> str:
        """The LaunchReport status that this fault is."""
        if self.code == 2:
            return "out_of_memory"
        if self.code == 702:
            return "timeout"
        return "launch_error"


def check(result: Any, call: str) -> Any:
    """The value of a bindings call, or CudaFault."""
    error, *values = result
    if int(error) != 0:
        _, name = cu.cuGetErrorName(error)
        text = name.decode() if isinstance(name, bytes) else str(error)
        raise CudaFault(call, int(error), text)
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)
