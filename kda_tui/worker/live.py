"""live.json: what goes on this second. Not a record; renamed into place at most four times a second."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.record.clock import now

EVERY_S = 0.25


@dataclass(slots=True)
class LiveWriter:
    """Keeps the newest state and writes it when it is due; call :meth:`flush` from a tick."""

    path: Path
    state: dict[str, Any] = field(default_factory=dict)
    _dirty: bool = True
    _written: float = 0.0

    def set(self, **fields: Any) -> None:
        """Change fields; ``None`` takes one away."""
        for key, value in fields.items():
            if self.state.get(key) == value:
                continue
            self._dirty = True
            if value is None:
                self.state.pop(key, None)
            else:
                self.state[key] = value
        self.flush()

    def idle(self) -> None:
        """No claim runs: take away everything about one."""
        self.set(claim=None, op=None, cand=None, stage=None, fraction=None, workload=None)

    def waits(self, what: str) -> None:
        """Say what the worker waits for; the age starts when the words change."""
        if self.state.get("waiting", "") != what:
            self.set(waiting=what or None, waiting_since=now() if what else None)

    def flush(self, force: bool = False) -> None:
        """Write if something changed and the last write is old enough. Never raises: it is not a record."""
        clock = time.monotonic()
        if not force and (not self._dirty or clock - self._written < EVERY_S):
            return
        self._dirty, self._written = False, clock
        body = {"v": 1, "t": now(), "pid": os.getpid(), **self.state}
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            temporary.write_text(json.dumps(body, ensure_ascii=False), encoding="utf-8")
            temporary.replace(self.path)
        except OSError:
            self._dirty = True

    def remove(self) -> None:
        """At the end nothing is going on."""
        self.path.unlink(missing_ok=True)
