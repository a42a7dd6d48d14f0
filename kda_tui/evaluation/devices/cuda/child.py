"""The child process: cubins, buffers, a stream and events. It knows no reference and no verdict.

Requests are JSON lines on stdin, replies JSON lines on the descriptor given as the first argument.
Nothing else reaches that descriptor: stdout goes to the log.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pycuda.driver as pycuda

from kda_tui.evaluation.devices.cuda.clock import Clock, Supervisor
from kda_tui.evaluation.devices.cuda.driver import CudaFault
from kda_tui.evaluation.devices.cuda.launch import (
    ArgumentError,
    Function,
    Prepared,
    as_graph,
    get_function,
    get_global,
    load_module,
    prepare,
    unload_module,
)
from kda_tui.evaluation.devices.cuda.module_globals import variables
from kda_tui.evaluation.devices.cuda.symbols import symbols
from kda_tui.evaluation.devices.cuda.wire import launches_from_json
from kda_tui.evaluation.devices.interface import Launch

WATCHED = "KDA_WATCHED"  # set where a tool watches this process


class ChildState:
    """Everything that the child holds. Addresses are of this process."""

    def __init__(self, supervisor_cubin: Path, ordinal: int) -> None:
        pycuda.init()
        self.context = pycuda.Device(ordinal).retain_primary_context()
        self.context.push()
        self.stream = pycuda.Stream()
        self.supervisor = Supervisor(supervisor_cubin.read_bytes(), self.stream.handle)
        self.clock = Clock(self.supervisor, self.stream)
        self.functions: dict[str, dict[tuple[str, str], Function]] = {}
        self.prepared: dict[int, tuple[list[Prepared], Launch]] = {}
        self.modules: list[Any] = []
        self.globals: dict[str, list[tuple[int, bytes]]] = {}  # arm -> (address, bytes at load)
        self.chunks: list[tuple[Any, int]] = []
        self.address: dict[str, int] = {}
        self.size: dict[str, int] = {}

    def load(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Load an arm's cubins. ``kernels`` lists (unit, kernel) pairs that its plan launches."""
        found: dict[tuple[str, str], Function] = {}
        kept: list[tuple[int, bytes]] = []
        for unit, path in request["binaries"].items():
            image = Path(path).read_bytes()
            module = load_module(image)
            self.modules.append(module)
            for variable in variables(image):
                at = get_global(module, variable.name)
                kept.append((at, _read(at, variable.nbytes)))
            names = symbols(path)
            for owner, kernel in request["kernels"]:
                if owner == unit:
                    found[unit, kernel] = get_function(module, names.get(kernel, kernel), kernel)
        self.functions[request["arm"]] = found
        self.globals[request["arm"]] = kept
        return {"status": "ok"}

    def changed_globals(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Bytes of an arm's module variables that differ from their state when loaded."""
        self.stream.synchronize()
        changed = 0
        for at, before in self.globals[request["arm"]]:
            changed += sum(a != b for a, b in zip(_read(at, len(before)), before, strict=True))
        return {"status": "ok", "changed": changed}

    def allocate(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One arena for the buffers of a request; replies with its IPC handle and offsets."""
        total, offsets = 0, {}
        for name, nbytes, align, guard in request["buffers"]:
            total = _up(total + guard, max(align, 256))
            offsets[name] = total
            total = _up(total + nbytes + guard, 256)
        chunk = pycuda.mem_alloc(max(total, 256))
        self.chunks.append((chunk, max(total, 256)))
        base = int(chunk)
        seed = int.from_bytes(os.urandom(8), "little")  # guards must not be guessable, nor what is unwritten
        self.supervisor.launch(
            "poison", ctypes.c_uint64(base), ctypes.c_uint64(total), ctypes.c_uint64(seed), ctypes.c_uint32(0)
        )
        self.stream.synchronize()
        for name, nbytes, _, _ in request["buffers"]:
            self.address[name] = base + offsets[name]
            self.size[name] = nbytes
        try:
            if os.environ.get(WATCHED):
                raise pycuda.Error("switched off under a tool")
            handle = bytes(pycuda.mem_get_ipc_handle(chunk)).hex()
        except pycuda.Error as error:
            return {
                "status": "ok",
                "handle": "",
                "why": str(error),
                "offsets": offsets,
                "total": total,
                "base": base,
            }
        return {"status": "ok", "handle": handle, "offsets": offsets, "total": total}

    def release(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Free every arena, overwritten first: what is allocated next must find nothing of it."""
        del request
        self.context.synchronize()
        for chunk, nbytes in self.chunks:
            pycuda.memset_d8(int(chunk), 0, nbytes)
            chunk.free()
        self.chunks.clear()
        self.prepared.clear()
        self.address.clear()
        self.size.clear()
        return {"status": "ok"}

    def empty(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Become like new: no buffers, no programs, nothing of them in shared memory."""
        self.release(request)
        for module in self.modules:
            unload_module(module)
        self.modules.clear()
        self.functions.clear()
        self.globals.clear()
        self.clock.scrub()
        self.stream.synchronize()
        return {"status": "ok"}

    def _wanted(self, request: Mapping[str, Any]) -> list[tuple[list[Prepared], Launch]]:
        """The launches that a request names; those it defines are packed now and kept."""
        functions = self.functions[request["arm"]]
        handle = self.stream.handle
        for number, (launch,) in ((n, launches_from_json([body])) for n, body in request["define"]):
            steps = [prepare(step, functions, self.address, handle) for step in launch.steps]
            if launch.graph:
                steps = [as_graph(steps, handle)]
            self.prepared[number] = (steps, launch)
        return [self.prepared[number] for number in request["launches"]]

    def _restore(self, launch: Launch) -> None:
        for target, source in launch.restore:
            count = min(self.size[target], self.size[source])
            pycuda.memcpy_dtod_async(self.address[target], self.address[source], count, self.stream)

    def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        for steps, launch in self._wanted(request):
            self._restore(launch)
            self.clock.scrub()
            for step in steps:
                step.run()
        self.stream.synchronize()
        return {"status": "ok"}

    def time(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self.clock.time(self._wanted(request), self._restore, bool(request["flush"]))

    def copy_out(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Host copy of arena bytes into a file, where IPC is missing."""
        import numpy as np

        room = np.empty(request["nbytes"], np.uint8)
        pycuda.memcpy_dtoh(room, request["at"])
        room.tofile(request["path"])
        return {"status": "ok"}

    def copy_in(self, request: Mapping[str, Any]) -> dict[str, Any]:
        import numpy as np

        pycuda.memcpy_htod(request["at"], np.fromfile(request["path"], np.uint8))
        return {"status": "ok"}


def _read(at: int, nbytes: int) -> bytes:
    room = bytearray(nbytes)
    pycuda.memcpy_dtoh(room, at)
    return bytes(room)


def _up(value: int, align: int) -> int:
    return (value + align - 1) // align * align


def answer(state: ChildState, request: Mapping[str, Any]) -> dict[str, Any]:
    """Serve one request; a fault of the device is a status, with the text that a person needs."""
    calls: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
        "load": state.load,
        "allocate": state.allocate,
        "release": state.release,
        "empty": state.empty,
        "changed_globals": state.changed_globals,
        "run": state.run,
        "time": state.time,
        "copy_out": state.copy_out,
        "copy_in": state.copy_in,
    }
    try:
        return calls[request["op"]](request)
    except CudaFault as fault:
        return {"status": fault.status, "text": str(fault), "child_dead": fault.sticky}
    except ArgumentError as error:
        return {"status": "launch_error", "text": str(error)}
    except pycuda.MemoryError as error:
        return {"status": "out_of_memory", "text": f"out of device memory ({error})"}
    except pycuda.Error as error:  # synchronise reports what a kernel did: the context is dead
        text = str(error)
        return {
            "status": "timeout" if "timed out" in text else "launch_error",
            "text": text,
            "child_dead": True,
        }


def main() -> None:
    reply = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    state = ChildState(Path(sys.argv[2]), int(sys.argv[3]))
    reply.write(json.dumps({"status": "ok", "ready": True}) + "\n")
    found: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "close":
            break
        found = answer(state, request)
        reply.write(json.dumps(found) + "\n")
        if found.get("child_dead"):
            break
    if os.environ.get(WATCHED) and not found.get("child_dead"):
        state.context.pop()  # left on the stack, PyCUDA aborts at exit
        return  # a tool writes its report when the process ends by itself
    os._exit(0)  # a dead context cannot be left cleanly


if __name__ == "__main__":
    main()
