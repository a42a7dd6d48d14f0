"""The small parent of a worker: starts it again after a death by signal, unless it dies too often."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType

from kda_tui.record.paths import Workspace
from kda_tui.worker.start import RunOptions

WINDOW_S = 600.0
PAUSE_S = 1.0


@dataclass(slots=True)
class Restarts:
    """Counts deaths; three in ten minutes and the next worker starts held (crash_loop)."""

    limit: int = 3
    clock: Callable[[], float] = time.monotonic
    _deaths: list[float] = field(default_factory=list)

    def after_death(self, options: RunOptions) -> RunOptions:
        """How the next worker is started."""
        now = self.clock()
        self._deaths = [t for t in self._deaths if now - t < WINDOW_S] + [now]
        looping = len(self._deaths) >= self.limit
        return replace(options, resume=True, hold="crash_loop" if looping else "")


def supervise(ws: Workspace, options: RunOptions, limit: int = 3) -> int:
    """Run workers until one ends by itself; returns its exit code."""
    restarts = Restarts(limit)
    asked_to_stop = False
    child: subprocess.Popen[bytes] | None = None

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal asked_to_stop
        asked_to_stop = True
        if child is not None and child.poll() is None:
            child.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while True:
        child = subprocess.Popen(_command(ws, options))
        if asked_to_stop:
            child.terminate()
        code = child.wait()
        if code >= 0 or asked_to_stop:
            return max(code, 0)
        print(f"the worker was ended by signal {-code}; another goes on", flush=True)
        options = restarts.after_death(options)
        time.sleep(PAUSE_S)


def _command(ws: Workspace, options: RunOptions) -> Sequence[str]:
    return [sys.executable, "-m", "kda_tui.worker", str(ws.root), "--options", options.to_json(), "--worker"]
