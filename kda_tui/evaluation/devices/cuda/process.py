"""One child process on the GPU: started, asked in JSON lines, watched, and killed as a group."""

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

from kda_tui.evaluation.devices.interface import LaunchReport

_START_S = 60.0
_END_S = 10.0  # a tool writes its report at the end
CALL_S = 120.0


class ChildProcess:
    """Starting returns at once; the first question waits until the process has its context.

    ``under`` is the command of a tool that watches it; ``settings`` are added to its environment.
    """

    def __init__(
        self,
        supervisor_cubin: Path,
        ordinal: int,
        scratch: Path,
        under: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self.scratch = scratch
        self.dead = LaunchReport("ok")
        read, write = os.pipe()
        with (scratch / "child.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*under, sys.executable, "-m", "kda_tui.evaluation.devices.cuda.child", str(write),
                 str(supervisor_cubin), str(ordinal)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=(write,), start_new_session=True,
                env=_environment() | dict(settings or {}), cwd=scratch,
            )  # fmt: skip
        os.close(write)
        self._replies = os.fdopen(read, "rb", buffering=0)
        self._buffer = b""
        self._ready = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        if self._ready or self.dead.status != "ok":
            return
        self._ready = True
        reply = self._wait(_START_S)
        if not reply.get("ready"):
            text = f"the child did not start: {self._log_tail()}"
            self.dead = LaunchReport("infrastructure_error", text, child_dead=True)

    def ask(self, body: dict[str, Any], timeout_s: float = CALL_S) -> dict[str, Any]:
        """The reply to one request, or what the silence means."""
        self.wait_ready()
        if self.dead.status != "ok":
            return {"status": self.dead.status, "text": self.dead.text, "child_dead": True}
        try:
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(body).encode() + b"\n")
                self._process.stdin.flush()
        except OSError:
            return self._died()
        return self._wait(timeout_s)

    def stop(self) -> None:
        """End the process, gently first."""
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.write(b'{"op": "close"}\n')
                self._process.stdin.flush()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._kill()
        self._replies.close()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _wait(self, timeout_s: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._replies], [], [], max(0.0, left))
            if not ready:
                self._kill()
                self.dead = LaunchReport("timeout", f"no end after {timeout_s:.0f} s", child_dead=True)
                return {"status": "timeout", "text": self.dead.text, "child_dead": True}
            data = os.read(self._replies.fileno(), 1 << 16)
            if not data:
                return self._died()
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        if reply.get("child_dead"):
            self.dead = LaunchReport(reply["status"], reply.get("text", ""), child_dead=True)
        return reply

    def _died(self) -> dict[str, Any]:
        self._kill()
        code = self._process.wait()
        word = signal.Signals(-code).name if code < 0 else f"exit {code}"
        self.dead = LaunchReport("crashed", f"the child ended ({word}): {self._log_tail()}", child_dead=True)
        return {"status": "crashed", "text": self.dead.text, "child_dead": True}

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError):
            lines = (self.scratch / "child.log").read_text(errors="replace").strip().splitlines()
            return lines[-1][:300] if lines else "no message"
        return "no message"


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
