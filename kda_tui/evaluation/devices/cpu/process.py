"""The judge's end of a child: starting it within limits, talking to it, and learning how it died."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from kda_tui.evaluation.devices.cpu.child import Message, receive_message, send_message

_CHILD = Path(__file__).with_name("child.py")
_PAGE_BYTES = 4096
_REPLY_S = 30.0  # for a reply that has begun
_OUTPUT_KEPT = 16 << 10
_OUTPUT_MOST = 16 << 20
_OWN_USER = 0x70000000  # plus the child's number: a user nobody else is, where the judge is root
_CRASH = struct.Struct("<IiQ3I3III128s512s")
_ADDRESS_SPACE = 2 << 30  # beside the buffers


@dataclass(frozen=True, slots=True)
class Crash:
    """What a dying child wrote into its crash page."""

    text: str
    signal: int
    address: int
    thread: tuple[int, int, int] | None
    block: tuple[int, int, int]
    stack_overflow: bool
    kernel: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A child that gave no reply. ``why``: timeout | died | flood | garbled."""

    why: str
    output: str = ""
    crash: Crash | None = None
    returncode: int | None = None


class ChildProcess:
    """One child in a process group of its own; output is read and bounded while waiting for replies."""

    _started = 0

    def __init__(self, runtime: Path, scratch: Path, threads: int, flush_bytes: int) -> None:
        self._page = os.memfd_create("kda-crash", os.MFD_CLOEXEC)
        os.ftruncate(self._page, _PAGE_BYTES)
        self._socket, theirs = socket.socketpair()
        self._user = self._new_user()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_CHILD), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(theirs.fileno(),),
            cwd=scratch,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "MALLOC_ARENA_MAX": "1"},
            start_new_session=True,
        )
        theirs.close()
        self._output = bytearray()
        self._output_bytes = 0
        self._ended: Ended | None = None
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._threads = threads
        self._greet(runtime, flush_bytes)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """What the child printed so far: its first 16 KiB."""
        self._drain()
        return self._output.decode("utf-8", "replace")

    def _new_user(self) -> int | None:
        if os.geteuid() != 0:
            return None
        ChildProcess._started += 1
        return _OWN_USER + os.getpid() % 100_000 * 1000 + ChildProcess._started % 1000

    def _greet(self, runtime: Path, flush_bytes: int) -> None:
        program = program_file(runtime)
        start = {
            "threads": self._threads,
            "flush_bytes": flush_bytes,
            "page_bytes": _PAGE_BYTES,
            "parent": os.getpid(),
            "user": self._user,
        }
        self.limit_memory(0)
        try:
            send_message(self._socket, start, (program, self._page))
        except OSError:
            self._ended = self._end("died")
        finally:
            os.close(program)

    def limit_memory(self, buffer_bytes: int) -> None:
        """Set the child's address space to what it needs for buffers of ``buffer_bytes`` and its own."""
        most = _ADDRESS_SPACE + self._threads * (400 << 20) + buffer_bytes
        with contextlib.suppress(OSError, ValueError):
            hard = resource.prlimit(self._process.pid, resource.RLIMIT_AS)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.prlimit(self._process.pid, resource.RLIMIT_AS, (most, hard))

    def ask(self, message: Message, timeout_s: float, files: tuple[int, ...] = ()) -> Message | Ended:
        """Send and wait for the reply. After ``Ended`` the child is gone."""
        if self._ended is not None:
            return self._ended
        try:
            self._socket.settimeout(_REPLY_S)
            send_message(self._socket, message, files)
        except OSError:
            self._ended = self._end("died")
            return self._ended
        return self.reply(timeout_s)

    def reply(self, timeout_s: float) -> Message | Ended:
        """The next reply; ends the child when it does not come in time."""
        if self._ended is not None:
            return self._ended
        why = self._wait(time.monotonic() + timeout_s)
        if why is None:
            try:
                reply, files = receive_message(self._socket, time.monotonic() + _REPLY_S)
                if isinstance(reply.get("status"), str) and not files:
                    return reply
                why = "garbled"
            except EOFError:
                why = "died"
            except (OSError, ValueError, RecursionError):
                why = "garbled"
        self._ended = self._end(why)
        return self._ended

    def _wait(self, deadline: float) -> str | None:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    return "timeout"
                ready = {key.fileobj for key, _ in selector.select(left)}
                if self._socket in ready:
                    return None
                if ready and not self._drain():
                    selector.unregister(self._process.stdout)
                if self._output_bytes > _OUTPUT_MOST:
                    return "flood"

    def _drain(self) -> bool:
        """Read what the child printed; False at its end."""
        assert self._process.stdout is not None
        if self._process.stdout.closed:
            return False
        for _ in range(64):
            try:
                part = os.read(self._process.stdout.fileno(), 1 << 16)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not part:
                return False
            self._output += part[: max(0, _OUTPUT_KEPT - len(self._output))]
            self._output_bytes += len(part)
        return True

    def _end(self, why: str) -> Ended:
        if why == "died":  # let a dying child write its story
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2.0)
        self._kill()
        self._drain()
        return Ended(why, self._output.decode("utf-8", "replace"), self._crash(), self._process.returncode)

    def _crash(self) -> Crash | None:
        data = os.pread(self._page, _CRASH.size, 0)
        kind, number, address, *rest = _CRASH.unpack(data)
        if kind == 0:
            return None
        thread, block = (rest[0], rest[1], rest[2]), (rest[3], rest[4], rest[5])
        in_kernel, overflow, kernel, text = rest[6:]
        return Crash(
            _text(text),
            number if kind == 2 else 0,
            address,
            thread if in_kernel else None,
            block,
            bool(overflow),
            _text(kernel),
        )

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._user is not None:
            _kill_all_of(self._user)

    def close(self) -> None:
        """End the child and everything it started."""
        if self._ended is None:
            self._kill()
            self._ended = Ended("died")
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._socket.close()
        if self._page >= 0:
            os.close(self._page)
            self._page = -1


def program_file(path: Path) -> int:
    """A sealed copy of a program in memory, as an open file."""
    file = os.memfd_create(path.name, os.MFD_CLOEXEC)
    with open(file, "wb", closefd=False) as out:
        out.write(path.read_bytes())
    return file


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


def _kill_all_of(user: int) -> None:
    """What left the process group is found by its user, which is this child's alone."""
    for _ in range(20):
        found = False
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    os.kill(int(entry.name), signal.SIGKILL)
                    found = True
        if not found:
            return
        time.sleep(0.01)
