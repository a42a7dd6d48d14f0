"""The judge's handle on a child process that launches on the GPU."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.devices.cuda.arena import HostCopies, Place
from kda_tui.evaluation.devices.cuda.build import kernels_of
from kda_tui.evaluation.devices.cuda.wire import launches_to_json, report_from_json
from kda_tui.evaluation.devices.interface import BufferSpec, Launch, LaunchReport
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.launch_plan import LaunchPlan

_START_S = 60.0
_CALL_S = 120.0


class CudaChild:
    """One child process with one context. Buffers are seen through CUDA IPC, or copied by files."""

    def __init__(self, device: Any, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._device = device
        self._scratch = scratch
        self._context = device.context(scratch)
        self._places: dict[str, Place] = {}
        self._chunks: list[Any] = []
        self._dead = LaunchReport("ok")
        self.transport = "ipc"
        self._start()

    def _start(self) -> None:
        read, write = os.pipe()
        with (self._scratch / "child.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kda_tui.evaluation.devices.cuda.child", str(write),
                 str(self._device.supervisor_cubin(self._scratch)), str(self._device.ordinal)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=(write,), start_new_session=True,
                env=_environment(), cwd=self._scratch,
            )  # fmt: skip
        os.close(write)
        self._replies = os.fdopen(read, "rb", buffering=0)
        self._buffer = b""
        reply = self._wait(_START_S)
        if not reply.get("ready"):
            self._dead = LaunchReport(
                "infrastructure_error", f"the child did not start: {self._log_tail()}", child_dead=True
            )

    def load(self, arm: str, report: CompileReport, plan: LaunchPlan) -> LaunchReport:
        pairs = [[unit.name, kernel] for unit in plan.units for kernel in kernels_of(plan, unit)]
        return self._report(
            {"op": "load", "arm": arm, "binaries": dict(report.binaries), "kernels": pairs}, _CALL_S
        )

    def allocate(self, buffers: Sequence[BufferSpec]) -> LaunchReport:
        rows = [[b.name, b.nbytes, b.align, _guard(b)] for b in buffers]
        reply = self._ask({"op": "allocate", "buffers": rows}, _CALL_S)
        if reply.get("status") != "ok":
            return report_from_json(_fields(reply))
        remote = not reply["handle"]
        if remote:
            self.transport = f"host copies ({reply.get('why', 'no IPC')})"
            base = int(reply["base"])
        else:
            chunk = self._context.open_chunk(reply["handle"])
            self._chunks.append(chunk)
            base = int(chunk)
        for buffer in buffers:
            at = base + reply["offsets"][buffer.name]
            self._places[buffer.name] = Place(at, buffer.nbytes, _guard(buffer), remote)
        return LaunchReport("ok")

    def release(self) -> None:
        self._close_chunks()
        self._places.clear()
        self._ask({"op": "release"}, _CALL_S)

    def get(self, name: str) -> NDArray[np.uint8]:
        """A copy of a buffer's bytes."""
        place = self._places[name]
        found: NDArray[np.uint8] = self._way(place).read(place.at, place.nbytes)
        return found

    def put(self, name: str, data: NDArray[np.uint8]) -> None:
        """Write all bytes of a buffer."""
        place = self._places[name]
        self._way(place).write(place.at, data.reshape(-1).view(np.uint8))

    def guards(self, name: str) -> NDArray[np.uint8]:
        place = self._places[name]
        way = self._way(place)
        before = way.read(place.at - place.guard, place.guard)
        return np.concatenate([before, way.read(place.at + place.nbytes, place.guard)])

    def run(self, arm: str, launches: Sequence[Launch], timeout_s: float) -> LaunchReport:
        return self._report({"op": "run", "arm": arm, "launches": launches_to_json(launches)}, timeout_s)

    def time(self, arm: str, launches: Sequence[Launch], flush: bool, timeout_s: float) -> LaunchReport:
        body = {"op": "time", "arm": arm, "launches": launches_to_json(launches), "flush": flush}
        return self._report(body, timeout_s)

    def changed_globals(self, arm: str) -> int:
        return int(self._ask({"op": "changed_globals", "arm": arm}, _CALL_S).get("changed", 0))

    def close(self) -> None:
        self._close_chunks()
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.write(b'{"op": "close"}\n')
                self._process.stdin.flush()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._kill()
        self._replies.close()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _way(self, place: Place) -> Any:
        return (
            HostCopies(lambda body: self._ask(body, _CALL_S), self._scratch)
            if place.remote
            else self._context
        )

    def _close_chunks(self) -> None:
        for chunk in self._chunks:
            with contextlib.suppress(Exception):  # the arena of a dead child cannot be closed cleanly
                chunk.close()
        self._chunks.clear()

    def _report(self, body: dict[str, Any], timeout_s: float) -> LaunchReport:
        return report_from_json(_fields(self._ask(body, timeout_s)))

    def _ask(self, body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        if self._dead.status != "ok":
            return {"status": self._dead.status, "text": self._dead.text, "child_dead": True}
        try:
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(body).encode() + b"\n")
                self._process.stdin.flush()
        except OSError:
            return self._died()
        return self._wait(timeout_s)

    def _wait(self, timeout_s: float) -> dict[str, Any]:
        """One reply line, or what the silence means."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._replies], [], [], max(0.0, left))
            if not ready:
                self._kill()
                self._dead = LaunchReport("timeout", f"no end after {timeout_s:.0f} s", child_dead=True)
                return {"status": "timeout", "text": self._dead.text, "child_dead": True}
            data = os.read(self._replies.fileno(), 1 << 16)
            if not data:
                return self._died()
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        if reply.get("child_dead"):
            self._dead = LaunchReport(reply["status"], reply.get("text", ""), child_dead=True)
        return reply

    def _died(self) -> dict[str, Any]:
        self._kill()
        code = self._process.wait()
        word = signal.Signals(-code).name if code < 0 else f"exit {code}"
        self._dead = LaunchReport("crashed", f"the child ended ({word}): {self._log_tail()}", child_dead=True)
        return {"status": "crashed", "text": self._dead.text, "child_dead": True}

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError):
            lines = (self._scratch / "child.log").read_text(errors="replace").strip().splitlines()
            return lines[-1][:300] if lines else "no message"
        return "no message"


def _guard(buffer: BufferSpec) -> int:
    return (buffer.guard + 255) // 256 * 256


def _fields(reply: Mapping[str, Any]) -> dict[str, Any]:
    known = ("status", "text", "samples_us", "voided", "clock_mhz", "child_dead")
    return {key: reply[key] for key in known if key in reply}


def _environment() -> dict[str, str]:
    """What a child needs to find Python and the driver, and nothing that is secret; all of it under a profiler."""
    if os.environ.get("KDA_PROFILED"):  # ncu reaches the child through variables of its own
        return dict(os.environ)
    kept = (
        "PATH",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "HOME",
        "TMPDIR",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_HOME",
        "CUDA_PATH",
    )
    return {name: os.environ[name] for name in kept if name in os.environ} | {"CUDA_CACHE_DISABLE": "1"}
