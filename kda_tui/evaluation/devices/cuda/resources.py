"""What ptxas reports of a cubin: registers, spills, stack, shared memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True, slots=True)
class Resources:
    """Of one kernel, in bytes where not said otherwise; ``spills`` adds stores and loads."""

    kernel: str
    registers: int
    spills: int
    stack: int
    shared: int


def parse_ptxas(log: str) -> list[Resources]:
    """One entry a kernel, in the order of the log; lines of device functions are not counted."""
    found: list[Resources] = []
    kernel = ""
    stack = spills = 0
    for line in log.splitlines():
        entry, frame, used = _ENTRY.search(line), _STACK.search(line), _USED.search(line)
        if entry:
            kernel, stack, spills = entry[1], 0, 0
        elif "Function properties for" in line and kernel and kernel not in line:
            continue
        if frame and kernel:
            stack, spills = int(frame[1]), int(frame[2]) + int(frame[3])
        if used and kernel:
            shared = _SHARED.search(line)
            found.append(Resources(kernel, int(used[1]), spills, stack, int(shared[1]) if shared else 0))
            kernel = ""
    return found
