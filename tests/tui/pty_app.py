"""Runs a terminal program on a pty: what it writes and when, what it costs, keys, signals, hang-up."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

import psutil


class PtyApp:
    """The program's output is drained by a thread; ``chunks`` are (monotonic time, bytes)."""

    def __init__(
        self, command: Sequence[str], cols: int = 120, rows: int = 40, env: Mapping[str, str] | None = None
    ) -> None:
        self.chunks: list[tuple[float, bytes]] = []
        self.started = time.monotonic()
        self._drain = threading.Event()
        self._drain.set()
        self._closed = False
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})})
            time.sleep(0.05)
            os.execvp(command[0], list(command))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        self.process = psutil.Process(self.pid)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> PtyApp:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        while not self._closed:
            self._drain.wait(0.2)
            if not self._drain.is_set():
                continue
            try:
                if not select.select([self.fd], [], [], 0.1)[0]:
                    continue
                data = os.read(self.fd, 65536)
            except (OSError, ValueError):
                return
            if not data:
                return
            self.chunks.append((time.monotonic(), data))
            if b"\x1b[?2026$p" in data:  # the terminal knows synchronised output
                with contextlib.suppress(OSError):
                    os.write(self.fd, b"\x1b[?2026;2$y")

    def stop_reading(self) -> None:
        self._drain.clear()

    @property
    def output(self) -> bytes:
        return b"".join(data for _, data in self.chunks)

    def written(self, since: float) -> int:
        """Bytes that came after a moment."""
        return sum(len(data) for at, data in list(self.chunks) if at >= since)

    def wait_for(self, text: bytes, timeout: float = 15.0) -> float:
        """Seconds from the start until a text was written."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if text in self.output:
                return self._when(text) - self.started
            time.sleep(0.01)
        raise AssertionError(f"{text!r} was not written within {timeout} s: {self.output[-2000:]!r}")

    def _when(self, text: bytes) -> float:
        seen = b""
        for at, data in self.chunks:
            seen += data
            if text in seen:
                return at
        return self.chunks[-1][0]

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def key_to_paint(self, keys: str, timeout: float = 2.0) -> float:
        """Seconds from a key to the first byte that answers it."""
        count = len(self.chunks)
        begin = time.monotonic()
        self.press(keys)
        while time.monotonic() - begin < timeout:
            if len(self.chunks) > count:
                return self.chunks[count][0] - begin
            time.sleep(0.001)
        return timeout

    def cpu(self) -> float:
        """Seconds of CPU used so far, user and system."""
        times = self.process.cpu_times()
        return times.user + times.system

    def rss_mb(self) -> float:
        return self.process.memory_info().rss / 1e6

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def hang_up(self) -> None:
        """Close the terminal's side, as a lost SSH connection does."""
        self._closed = True
        self._drain.set()
        self._thread.join(1)
        os.close(self.fd)
        self.fd = -1

    def wait(self, timeout: float) -> int | None:
        """The exit code, minus the signal if one killed it; None while it still runs."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        return None

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(ProcessLookupError, ChildProcessError, OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self.fd)
