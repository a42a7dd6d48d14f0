"""The judge's handle of a child on the cpu: buffers it shares, launches it asks for, reports in words."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.devices.cpu.arguments import BadLaunch, Parameters, check_shape, pack
from kda_tui.evaluation.devices.cpu.buffers import SharedBuffer, available_memory
from kda_tui.evaluation.devices.cpu.build import MAX_DYNAMIC_SHARED
from kda_tui.evaluation.devices.cpu.candidate import split_kernel
from kda_tui.evaluation.devices.cpu.child import Message
from kda_tui.evaluation.devices.cpu.process import ChildProcess, Crash, Ended, program_file
from kda_tui.evaluation.devices.interface import (
    BufferSpec,
    KernelStep,
    Launch,
    LaunchReport,
    ResolvedStep,
)
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.launch_plan import LaunchPlan

_OK = LaunchReport("ok")
_GARBLED = LaunchReport("crashed", "the child sent nonsense in place of a reply", child_dead=True)
_SETUP_S = 60.0


class CpuChild:
    """A live child process; see ``interface.Child``. After ``child_dead`` it must be closed."""

    def __init__(self, runtime: Path, scratch: Path, threads: int, flush_bytes: int) -> None:
        self._process = ChildProcess(runtime, scratch, threads, flush_bytes)
        self._buffers: dict[str, SharedBuffer] = {}
        self._addresses: dict[str, int] = {}
        self._parameters: dict[tuple[str, str], dict[str, Parameters]] = {}
        self._plans: dict[str, LaunchPlan] = {}
        self._untimed = 0
        self._started = self._process.reply(_SETUP_S)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """What kernels printed (debug mode), at most 16 KiB."""
        return self._process.output

    def load(self, arm: str, report: CompileReport, plan: LaunchPlan) -> LaunchReport:
        """Load the binaries of one arm; loading an arm again puts fresh programs in its place."""
        if isinstance(self._started, Ended):
            return self._told(self._started)
        files: list[int] = []
        try:
            files = [program_file(Path(path)) for path in report.binaries.values()]
            message = {"op": "load", "arm": arm, "units": list(report.binaries)}
            reply = self._process.ask(message, _SETUP_S, tuple(files))
        except OSError as error:
            return LaunchReport("infrastructure_error", f"a compiled program cannot be read: {error}")
        finally:
            for file in files:
                os.close(file)
        if isinstance(reply, Ended) or reply["status"] != "ok":
            return self._told(reply)
        for unit, kernels in reply["parameters"].items():
            self._parameters[arm, unit] = {
                name: [(size, kind) for size, kind in parameters] for name, parameters in kernels.items()
            }
        self._plans[arm] = plan
        return _OK

    def allocate(self, buffers: Sequence[BufferSpec]) -> LaunchReport:
        """Add buffers; their guard bands hold random bytes, their data zeros."""
        needed = sum(b.nbytes + 2 * b.guard for b in buffers)
        if needed > available_memory() * 0.9:
            return LaunchReport("out_of_memory", f"{needed / 2**30:.1f} GiB of buffers do not fit in memory")
        new: list[SharedBuffer] = []
        try:
            for spec in buffers:
                new.append(SharedBuffer.create(spec))
        except (OSError, ValueError, MemoryError) as error:
            return LaunchReport("out_of_memory", f"a buffer could not be made: {error}")
        finally:
            self._buffers.update({buffer.spec.name: buffer for buffer in new})
        self._process.limit_memory(sum(buffer.whole.size for buffer in self._buffers.values()))
        message = {"op": "allocate", "buffers": [buffer.described() for buffer in new]}
        reply = self._process.ask(message, _SETUP_S, tuple(buffer.file for buffer in new))
        if isinstance(reply, Ended) or reply["status"] != "ok":
            return self._told(reply)
        self._addresses.update(reply["addresses"])
        return _OK

    def release(self) -> None:
        """Drop every buffer, keep the programs. Views taken before stay readable."""
        self._process.ask({"op": "release"}, _SETUP_S)
        self._drop_buffers()

    def get(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a buffer: a live view, for reading."""
        return self._buffers[name].data

    def put(self, name: str, data: NDArray[np.uint8]) -> None:
        """Write all bytes of a buffer."""
        self._buffers[name].data[...] = data

    def guards(self, name: str) -> NDArray[np.uint8]:
        """The guard bytes before and after a buffer, concatenated (a copy)."""
        return self._buffers[name].guards()

    def run(self, arm: str, launches: Sequence[Launch], timeout_s: float) -> LaunchReport:
        """Run launches once each, in order, untimed.

        Threads begin in rising order in one launch and in falling order in the next, and shared memory is
        all ones before the one and zero before the other: a race gives itself away.
        """
        modes = []
        for _ in launches:
            falling = self._untimed % 2
            modes.append({"flush": 0, "reverse": falling, "check": 1, "poison": 0 if falling else 0xFF})
            self._untimed += 1
        report, _ = self._execute(arm, launches, modes, timeout_s)
        return report

    def time(self, arm: str, launches: Sequence[Launch], flush: bool, timeout_s: float) -> LaunchReport:
        """Time each launch on its own; with ``flush`` caches, shared memory and stacks are cleared before."""
        modes = [{"flush": int(flush), "reverse": 0, "check": 0}] * len(launches)
        report, nanoseconds = self._execute(arm, launches, modes, timeout_s)
        if report.status != "ok":
            return report
        return LaunchReport("ok", samples_us=tuple(ns / 1000 for ns in nanoseconds))

    def changed_globals(self, arm: str, reset: bool = False) -> int:
        """How many bytes of an arm's ``__device__`` variables differ from their state when loaded."""
        reply = self._process.ask({"op": "globals", "arm": arm, "reset": reset}, _SETUP_S)
        return 0 if isinstance(reply, Ended) else int(reply.get("changed", 0))

    def close(self) -> None:
        self._process.close()
        self._drop_buffers()

    def _drop_buffers(self) -> None:
        for buffer in self._buffers.values():
            with contextlib.suppress(OSError):
                os.close(buffer.file)
        self._buffers.clear()
        self._addresses.clear()

    def _execute(
        self, arm: str, launches: Sequence[Launch], modes: Sequence[Message], timeout_s: float
    ) -> tuple[LaunchReport, list[int]]:
        try:
            described = [
                self._launch(arm, launch, mode) for launch, mode in zip(launches, modes, strict=True)
            ]
        except BadLaunch as error:
            return LaunchReport("launch_error", str(error)), []
        reply = self._process.ask({"op": "execute", "launches": described}, timeout_s)
        if isinstance(reply, Ended) or reply["status"] != "ok":
            return self._told(reply, timeout_s), []
        times = reply.get("nanoseconds")
        if (
            not isinstance(times, list)
            or len(times) != len(launches)
            or not all(type(t) is int for t in times)
        ):
            return _GARBLED, []
        return _OK, times

    def _launch(self, arm: str, launch: Launch, mode: Message) -> Message:
        for pair in launch.restore:
            for name in pair:
                if name not in self._buffers:
                    raise BadLaunch(f"restore: no buffer {name}")
        restores = [
            [to, source, min(self._buffers[to].spec.nbytes, self._buffers[source].spec.nbytes)]
            for to, source in launch.restore
        ]
        return {"steps": [self._step(arm, step) for step in launch.steps], "restores": restores, "mode": mode}

    def _step(self, arm: str, step: ResolvedStep) -> Message:
        if not isinstance(step, KernelStep):
            if step.buffer not in self._buffers:
                raise BadLaunch(f"memset: no buffer {step.buffer}")
            if not 0 <= step.nbytes <= self._buffers[step.buffer].spec.nbytes:
                raise BadLaunch(f"memset of {step.nbytes} bytes: {step.buffer} is smaller")
            return {"memset": step.buffer, "bytes": step.nbytes, "value": step.value & 0xFF}
        if step.cluster is not None or step.cooperative:
            raise BadLaunch(f"{step.kernel}: the cpu device has no clusters and no cooperative launches")
        check_shape(step, MAX_DYNAMIC_SHARED)
        unit, kernel = self._resolve(arm, step)
        sizes = {name: buffer.spec.nbytes for name, buffer in self._buffers.items()}
        return {
            "program": f"{arm}/{unit}",
            "kernel": kernel,
            "args": pack(step, self._parameters[arm, unit][kernel], sizes),
            "shared_bytes": step.shared_bytes,
            "grid": step.grid,
            "block": step.block,
        }

    def _resolve(self, arm: str, step: KernelStep) -> tuple[str, str]:
        if arm not in self._plans:
            raise BadLaunch(f"{arm} is not loaded")
        unit, kernel = step.unit, step.kernel
        if not unit:
            unit, kernel = split_kernel(self._plans[arm], kernel)
        if kernel not in self._parameters.get((arm, unit), {}):
            raise BadLaunch(f"no kernel {kernel} in unit {unit}")
        return unit, kernel

    def _told(self, reply: Message | Ended, timeout_s: float = _SETUP_S) -> LaunchReport:
        if not isinstance(reply, Ended):
            return LaunchReport(reply["status"], reply.get("text", ""))
        if reply.why == "timeout":
            return LaunchReport("timeout", f"no end after {timeout_s:g} s", child_dead=True)
        if reply.why == "garbled":
            return _GARBLED
        if reply.why == "flood":
            return LaunchReport("launch_error", "it printed more than 16 MiB", child_dead=True)
        if reply.crash is None:
            return LaunchReport(*_died_silently(reply), child_dead=True)
        status, text = self._story(reply.crash)
        return LaunchReport(status, text, child_dead=True)

    def _story(self, crash: Crash) -> tuple[str, str]:
        where = ""
        if crash.thread is not None:
            where = f"{crash.kernel}, thread {crash.thread} of block {crash.block}: "
        if not crash.signal:
            for start, status in (
                ("infrastructure", "infrastructure_error"),
                ("out of memory", "out_of_memory"),
            ):
                if crash.text.startswith(start):
                    return status, crash.text
            return "launch_error", where + crash.text
        if crash.thread is None:
            return (
                "infrastructure_error",
                f"the child died of {_signal_name(crash.signal)} outside any kernel",
            )
        return "launch_error", f"{where}{_signal_name(crash.signal)}: {self._guess(crash)}"

    def _guess(self, crash: Crash) -> str:
        if crash.signal == signal.SIGFPE:
            return "an integer division by zero"
        if crash.signal == signal.SIGILL:
            return "a trap instruction"
        if crash.stack_overflow:
            return "more than 256 KiB of local memory in one thread"
        if crash.address == 0:
            return "a null or misaligned address"
        near = [(self._distance(name, crash.address), name) for name in self._addresses]
        if near:
            (distance, words), name = min(near)
            if distance < 1 << 30:
                return f"out of bounds, {words} buffer {name}"
        return f"address 0x{crash.address:x} is in no buffer (out of bounds?)"

    def _distance(self, name: str, address: int) -> tuple[int, str]:
        begin = self._addresses[name]
        end = begin + self._buffers[name].spec.nbytes
        if address < begin:
            return begin - address, f"{begin - address} bytes before"
        return max(0, address - end), f"{max(0, address - end)} bytes past the end of"


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _died_silently(ended: Ended) -> tuple[str, str]:
    code = ended.returncode
    if code is not None and code < 0:
        return "crashed", f"the child was ended by {_signal_name(-code)}"
    said = ended.output.strip().splitlines()
    return "crashed", f"the child ended with code {code}" + (f": {said[-1][:200]}" if said else "")
