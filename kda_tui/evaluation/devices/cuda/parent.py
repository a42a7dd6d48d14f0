"""The judge's handle on a child process: its programs, its buffers, its launches."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import to_host
from kda_tui.evaluation.devices.cuda.arena import HostCopies, JudgeContext, Place
from kda_tui.evaluation.devices.cuda.build import kernels_of
from kda_tui.evaluation.devices.cuda.process import CALL_S, ChildProcess
from kda_tui.evaluation.devices.cuda.wire import launches_to_json, report_from_json
from kda_tui.evaluation.devices.interface import BufferSpec, Launch, LaunchReport
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.launch_plan import LaunchPlan

Bytes = NDArray[np.uint8]


class CudaChild:
    """Buffers are seen through CUDA IPC, or copied by files where that is missing (``transport`` says).

    ``leave`` is called with the process when the child is closed.
    """

    def __init__(
        self, process: ChildProcess, context: JudgeContext, leave: Callable[[ChildProcess], None]
    ) -> None:
        self._process = process
        self._context = context
        self._leave = leave
        self._places: dict[str, Place] = {}
        self._chunks: list[Any] = []
        self._known: dict[tuple[str, Launch], int] = {}
        self._numbers = itertools.count()  # none is used twice: it must never mean two launches
        self.transport = "ipc"

    def load(self, arm: str, report: CompileReport, plan: LaunchPlan) -> LaunchReport:
        pairs = [[unit.name, kernel] for unit in plan.units for kernel in kernels_of(plan, unit)]
        self._forget(arm)
        return self._report(
            {"op": "load", "arm": arm, "binaries": dict(report.binaries), "kernels": pairs}, CALL_S
        )

    def allocate(self, buffers: Sequence[BufferSpec]) -> LaunchReport:
        rows = [[b.name, b.nbytes, b.align, _guard(b)] for b in buffers]
        reply = self._process.ask({"op": "allocate", "buffers": rows})
        if reply.get("status") != "ok":
            return report_from_json(_fields(reply))
        chunk: Any = None
        if reply["handle"]:
            chunk = self._context.open_chunk(reply["handle"])
            self._chunks.append(chunk)
        else:
            self.transport = f"host copies ({reply.get('why', 'no IPC')})"
        base = int(reply["base"]) if chunk is None else int(chunk)
        for buffer in buffers:
            at = base + reply["offsets"][buffer.name]
            self._places[buffer.name] = Place(at, buffer.nbytes, _guard(buffer), chunk)
        return LaunchReport("ok")

    def release(self) -> None:
        self._drop_buffers()
        self._process.ask({"op": "release"})

    def get(self, name: str) -> Bytes:
        """A buffer's bytes: a live view on the device, or a copy where there is none."""
        place = self._places[name]
        return self._read(place, place.at, place.nbytes)

    def put(self, name: str, data: Bytes) -> None:
        """Write all bytes of a buffer."""
        place = self._places[name]
        if place.chunk is None:
            self._by_file().write(place.at, to_host(data))
        else:
            self._context.write(place.at, data.reshape(-1).view(np.uint8), place.chunk)

    def guards(self, name: str) -> Bytes:
        """Two rows: the bytes before a buffer and after it."""
        place = self._places[name]
        if place.chunk is not None:
            return self._context.bands(place.at, place.nbytes, place.guard, place.chunk)
        before = self._read(place, place.at - place.guard, place.guard)
        after = self._read(place, place.at + place.nbytes, place.guard)
        return self._context.arrays.own(np.stack([to_host(before), to_host(after)]))

    def run(self, arm: str, launches: Sequence[Launch], timeout_s: float) -> LaunchReport:
        return self._launch({"op": "run", "arm": arm}, launches, timeout_s)

    def time(self, arm: str, launches: Sequence[Launch], flush: bool, timeout_s: float) -> LaunchReport:
        return self._launch({"op": "time", "arm": arm, "flush": flush}, launches, timeout_s)

    def changed_globals(self, arm: str) -> int:
        return int(self._process.ask({"op": "changed_globals", "arm": arm}).get("changed", 0))

    def close(self) -> None:
        self._drop_buffers()
        self._leave(self._process)

    def _launch(self, body: dict[str, Any], launches: Sequence[Launch], timeout_s: float) -> LaunchReport:
        """Launches are packed once in the child and called by number afterwards."""
        numbers: list[int] = []
        defined: list[list[Any]] = []
        for launch in launches:
            key = (str(body["arm"]), launch)
            if key not in self._known:
                self._known[key] = next(self._numbers)
                defined.append([self._known[key], launches_to_json([launch])[0]])
            numbers.append(self._known[key])
        self._context.synchronize()
        report = self._report({**body, "launches": numbers, "define": defined}, timeout_s)
        if report.status != "ok":
            self._forget(str(body["arm"]))
        return report

    def _forget(self, arm: str) -> None:
        self._known = {key: number for key, number in self._known.items() if key[0] != arm}

    def _read(self, place: Place, at: int, nbytes: int) -> Bytes:
        if place.chunk is None:
            return self._context.arrays.own(self._by_file().read(at, nbytes))
        return self._context.read(at, nbytes, place.chunk)

    def _by_file(self) -> HostCopies:
        return HostCopies(self._process.ask, self._process.scratch)

    def _drop_buffers(self) -> None:
        self._context.synchronize()
        for chunk in self._chunks:
            with contextlib.suppress(Exception):  # the arena of a dead child cannot be closed cleanly
                chunk.close()
        self._chunks.clear()
        self._places.clear()
        self._known.clear()

    def _report(self, body: dict[str, Any], timeout_s: float) -> LaunchReport:
        return report_from_json(_fields(self._process.ask(body, timeout_s)))


def _guard(buffer: BufferSpec) -> int:
    return (buffer.guard + 255) // 256 * 256


def _fields(reply: Mapping[str, Any]) -> dict[str, Any]:
    known = ("status", "text", "samples_us", "voided", "clock_mhz", "child_dead")
    return {key: reply[key] for key in known if key in reply}
