"""Starting a worker: detached, so that closing the laptop changes nothing, or in the foreground."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from kda_tui.record.lock import LockHeld, probe
from kda_tui.record.paths import Workspace
from kda_tui.record.state_folder import state_folder
from kda_tui.text import UserError, clean_line

WAIT_S = 30.0
LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a worker is started. ``yes``: kinds of gates that a written rule decides (plan, promotion, end)."""

    agent: str = "tuner"
    device: str | None = None
    yes: tuple[str, ...] = ()
    resume: bool = False
    model: str = ""
    max_candidates: int | None = None
    hold: str = ""  # a hold to record at the start (crash_loop)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RunOptions:
        """Raises UserError for text that another version wrote."""
        try:
            given: dict[str, Any] = json.loads(text)
            known = {f.name for f in fields(cls)}
            options: dict[str, Any] = {k: v for k, v in given.items() if k in known}
            return cls(**{**options, "yes": tuple(options.get("yes", ()))})
        except (ValueError, TypeError, AttributeError) as error:
            raise UserError(f"the options of the worker cannot be read: {error}") from error


def start_log(ws: Workspace) -> Path:
    """Where a worker writes until its run exists; then it goes on in runs/<run>/worker.log."""
    name = hashlib.sha256(str(ws.root.resolve()).encode()).hexdigest()[:16]
    return state_folder() / "workers" / f"{name}.log"


def start_detached(ws: Workspace, options: RunOptions) -> int:
    """Start a worker in a session of its own, under its restarting parent; returns that parent's pid.

    Waits until the worker holds the lock. Raises LockHeld where one runs already, UserError with the
    worker's own words where it does not start.
    """
    state, holder = probe(ws)
    if state == "held":
        raise LockHeld(f"{ws.root}: {holder} runs already; kda open {ws.root} shows it", holder)
    log = start_log(ws)
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [sys.executable, "-m", "kda_tui.worker", str(ws.root.resolve()), "--options", options.to_json()]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd="/",
            start_new_session=True,
            env=_environment(),
        )
    _await_lock(ws, process, log)
    return process.pid


def _environment() -> dict[str, str]:
    """This very package must be found from "/"."""
    package = str(Path(__file__).resolve().parents[2])
    path = [package, *(p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p != package)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def _await_lock(ws: Workspace, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        if process.poll() is not None:
            if process.returncode == 0:
                return  # it had nothing to do any more
            raise UserError(_last_words(log) or f"{ws.root}: the worker ended at once; see {log}")
        state, holder = probe(ws)
        if state == "held" and holder is not None and holder.role == "worker" and ws.run_names():
            return
        time.sleep(LOOK_S)
    raise UserError(f"{ws.root}: the worker did not take the workspace within {WAIT_S:g} s; see {log}")


def _last_words(log: Path) -> str:
    """The worker's error, as it said it in its last lines."""
    try:
        lines = [line for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    found = next((line for line in reversed(lines) if line.startswith("error: ")), "")
    return clean_line(found.removeprefix("error: "), 500)


def run_foreground(ws: Workspace, options: RunOptions) -> None:
    """Run the worker here until the run ends or the process is interrupted. Raises UserError."""
    from kda_tui.worker.main import run_worker

    run_worker(ws, options, own_log=False)
