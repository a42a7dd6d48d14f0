"""The child: holds programs, buffers and the clock. Runs alone (``python -I -S child.py``), standard library only.

It obeys one caller over a socket and knows nothing of references, tolerances or verdicts.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import struct
import sys
import time
from ctypes import POINTER, c_char, c_char_p, c_int, c_int64, c_uint32, c_uint64, c_void_p
from typing import Any

Message = dict[str, Any]
_LARGEST, _MOST_FILES = 256 << 20, 1024
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def send_message(connection: socket.socket, message: Message, files: tuple[int, ...] = ()) -> None:
    """One JSON message with its length before it; open files travel beside it."""
    body = json.dumps(message).encode()
    connection.sendall(struct.pack("<II", len(body), len(files)) + body)
    for file in files:
        socket.send_fds(connection, [b"f"], [file])


def receive_message(connection: socket.socket, deadline: float | None = None) -> tuple[Message, list[int]]:
    """The next message and its open files.

    Raises EOFError at the end, TimeoutError past ``deadline`` (of time.monotonic), ValueError for nonsense.
    """
    size, count = struct.unpack("<II", _exactly(connection, 8, deadline))
    if size > _LARGEST or count > _MOST_FILES:
        raise ValueError("a message of impossible size")
    message = json.loads(_exactly(connection, size, deadline))
    if not isinstance(message, dict):
        raise ValueError("a message that is no object")
    files: list[int] = []
    for _ in range(count):
        _, received, _, _ = socket.recv_fds(connection, 1, 1)
        files += received
    return message, files


def _exactly(connection: socket.socket, size: int, deadline: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        if deadline is not None:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
        part = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


class Index(ctypes.Structure):
    _fields_ = (("x", c_uint32), ("y", c_uint32), ("z", c_uint32))


class Parameter(ctypes.Structure):
    _fields_ = (("size", c_uint32), ("kind", c_char))


class Kernel(ctypes.Structure):
    _fields_ = (
        ("name", c_char_p),
        ("call", c_void_p),
        ("count", c_uint32),
        ("parameters", POINTER(Parameter)),
    )


class Step(ctypes.Structure):
    _fields_ = (
        ("kernel", c_void_p),
        ("arguments", c_void_p),
        ("dynamic_shared", c_void_p),
        ("target", c_void_p),
        ("bytes", c_uint64),
        ("value", c_uint32),
        ("module", c_uint32),
        ("grid", Index),
        ("block", Index),
    )


class Restore(ctypes.Structure):
    _fields_ = (("target", c_void_p), ("source", c_void_p), ("bytes", c_uint64))


class Launch(ctypes.Structure):
    _fields_ = (
        ("steps", c_void_p),
        ("restores", c_void_p),
        ("step_count", c_uint32),
        ("restore_count", c_uint32),
    )


class Mode(ctypes.Structure):
    _fields_ = tuple((name, c_uint32) for name in ("flush", "reverse", "check", "poison"))


class Program:
    """One loaded unit: its kernels by name."""

    def __init__(self, runtime: ctypes.CDLL, file: int) -> None:
        # The path names an open file: a cached program loads even from a file system mounted noexec.
        self._library = ctypes.CDLL(f"/proc/self/fd/{file}", mode=os.RTLD_NOW | os.RTLD_LOCAL)
        table = ctypes.cast(self._library.kda_kernels, POINTER(Kernel))
        self.kernels: dict[str, int] = {}
        self.parameters: dict[str, list[list[Any]]] = {}
        i = 0
        while table[i].name:
            kernel = table[i]
            name = kernel.name.decode()
            self.kernels[name] = ctypes.addressof(kernel)
            self.parameters[name] = [
                [kernel.parameters[k].size, kernel.parameters[k].kind.decode()] for k in range(kernel.count)
            ]
            i += 1
        find = self._library.kda_dynamic_shared_of
        find.restype = c_void_p
        self.dynamic_shared: int | None = find()
        self.module: int = runtime.kda_add_module(ctypes.cast(self._library.kda_kernels, c_void_p))
        if self.module < 0:
            raise MemoryError("too many programs in one child")


class Child:
    """What the messages mean. Every method returns the reply."""

    def __init__(self, runtime: ctypes.CDLL) -> None:
        self._runtime = runtime
        self._programs: dict[str, Program] = {}
        self._buffers: dict[
            str, tuple[int, int, int]
        ] = {}  # name: data address, mapped address, mapped bytes

    def load(self, message: Message, files: list[int]) -> Message:
        parameters = {}
        for unit, file in zip(message["units"], files, strict=True):
            name = f"{message['arm']}/{unit}"
            self._programs[name] = Program(self._runtime, file)
            parameters[unit] = self._programs[name].parameters
        return {"parameters": parameters}

    def allocate(self, message: Message, files: list[int]) -> Message:
        addresses = {}
        for buffer, file in zip(message["buffers"], files, strict=True):
            mapped = self._runtime.kda_map(file, buffer["file_bytes"])
            os.close(file)
            if not mapped:
                return {"status": "out_of_memory", "text": f"no memory for buffer {buffer['name']}"}
            self._buffers[buffer["name"]] = (mapped + buffer["start"], mapped, buffer["file_bytes"])
            addresses[buffer["name"]] = mapped + buffer["start"]
        return {"addresses": addresses}

    def release(self, message: Message, files: list[int]) -> Message:
        for _, mapped, size in self._buffers.values():
            self._runtime.kda_unmap(mapped, size)
        self._buffers.clear()
        return {}

    def execute(self, message: Message, files: list[int]) -> Message:
        keep: list[Any] = []
        launches = [self._launch(launch, keep) for launch in message["launches"]]
        times = (c_int64 * len(launches))()
        for i, launch in enumerate(launches):
            mode = Mode(**message["launches"][i]["mode"])
            took = ctypes.byref(times, i * ctypes.sizeof(c_int64))
            self._runtime.kda_execute(ctypes.byref(launch), 1, ctypes.byref(mode), took)
        return {"nanoseconds": list(times)}

    def globals(self, message: Message, files: list[int]) -> Message:
        programs = [p for name, p in self._programs.items() if name.startswith(message["arm"] + "/")]
        changed = sum(self._runtime.kda_changed_globals(program.module) for program in programs)
        if message["reset"]:
            for program in programs:
                self._runtime.kda_reset_globals(program.module)
        return {"changed": changed}

    def _launch(self, launch: Message, keep: list[Any]) -> Launch:
        steps = (Step * len(launch["steps"]))(*(self._step(step, keep) for step in launch["steps"]))
        restores = (Restore * len(launch["restores"]))(
            *(
                Restore(self._buffers[to][0], self._buffers[source][0], size)
                for to, source, size in launch["restores"]
            )
        )
        keep += [steps, restores]
        return Launch(ctypes.addressof(steps), ctypes.addressof(restores), len(steps), len(restores))

    def _step(self, step: Message, keep: list[Any]) -> Step:
        if "memset" in step:
            return Step(target=self._buffers[step["memset"]][0], bytes=step["bytes"], value=step["value"])
        program = self._programs[step["program"]]
        values = [self._argument(argument) for argument in step["args"]]
        cells = [ctypes.create_string_buffer(value, len(value)) for value in values]
        pointers = (c_void_p * max(1, len(cells)))(*(ctypes.addressof(cell) for cell in cells))
        keep += [cells, pointers]
        return Step(
            kernel=program.kernels[step["kernel"]],
            arguments=ctypes.addressof(pointers),
            dynamic_shared=program.dynamic_shared,
            bytes=step["shared_bytes"],
            module=program.module,
            grid=Index(*step["grid"]),
            block=Index(*step["block"]),
        )

    def _argument(self, argument: list[Any]) -> bytes:
        if argument[0] == "buffer":
            return struct.pack("<Q", self._buffers[argument[1]][0] + argument[2])
        return bytes.fromhex(argument[1])


def limit_self(parent: int, user: int | None) -> None:
    """Die with the caller; no core file, few files, bounded CPU time; as root, become nobody."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    for what, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, 6 * 3600),
        (resource.RLIMIT_FSIZE, 1 << 20),
        (resource.RLIMIT_NOFILE, 4096),
    ):
        hard = resource.getrlimit(what)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (value, value))
    if user is not None:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        except OSError:
            pass  # a container that maps few users: the other limits hold
        # A change of user clears both; the second keeps /proc/self readable, where programs are loaded from.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def load_runtime(file: int) -> ctypes.CDLL:
    runtime = ctypes.CDLL(f"/proc/self/fd/{file}", mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    runtime.kda_map.restype = c_void_p
    runtime.kda_map.argtypes = (c_int, c_uint64)
    runtime.kda_unmap.argtypes = (c_void_p, c_uint64)
    runtime.kda_start.argtypes = (c_uint32, c_uint64, c_void_p)
    runtime.kda_add_module.argtypes = (c_void_p,)
    runtime.kda_changed_globals.restype = c_uint64
    runtime.kda_execute.argtypes = (c_void_p, c_uint32, c_void_p, c_void_p)
    runtime.kda_execute.restype = None
    return runtime


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    start, files = receive_message(connection)
    runtime = load_runtime(files[0])
    page = runtime.kda_map(files[1], start["page_bytes"])
    limit_self(start["parent"], start["user"])
    runtime.kda_start(start["threads"], start["flush_bytes"], page)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))  # the threads are there; no process, no thread is added
    child = Child(runtime)
    operations = {
        "load": child.load,
        "allocate": child.allocate,
        "release": child.release,
        "execute": child.execute,
        "globals": child.globals,
    }
    send_message(connection, {"status": "ok"})
    while True:
        try:
            message, files = receive_message(connection)
        except EOFError:
            os._exit(0)
        try:
            reply = operations[message["op"]](message, files)
        except MemoryError as error:
            reply = {"status": "out_of_memory", "text": str(error)}
        except OSError as error:
            reply = {"status": "infrastructure_error", "text": str(error)}
        sys.stdout.flush()
        send_message(connection, {"status": "ok", **reply})


if __name__ == "__main__":
    main()
