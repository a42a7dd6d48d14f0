"""Sends decisions to the inbox. Read-only is enforced here, below every screen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kda_tui.record.paths import Workspace
from kda_tui.record.records import Decision
from kda_tui.text import UserError
from kda_tui.tui.intents import Intent


class ReadOnly(UserError):
    """The workspace was opened for reading only."""


class Sender:
    """The only way from the screen into a workspace."""

    def __init__(self, root: Path, read_only: bool) -> None:
        self.workspace = Workspace(root)
        self.read_only = read_only

    def refuse_read_only(self) -> None:
        if self.read_only:
            raise ReadOnly(f"{self.workspace.name} is open read-only: no decision leaves this screen")

    def send(self, intent: Intent, typed: Mapping[str, Any]) -> Decision:
        """Drop the decision into inbox/; raises UserError when it cannot."""
        from kda_tui.record import inbox

        self.refuse_read_only()
        decision = inbox.new_decision(
            intent.kind,
            target=dict(intent.target),
            expect=dict(intent.expect),
            reason=typed.get("reason", ""),
            text=typed.get("text", ""),
            lines=intent.lines,
            amount=typed.get("amount"),
            via="ui",
        )
        return inbox.send(self.workspace, decision)

    def start_worker(self, resume: bool, agent: str = "") -> str:
        """Start a detached worker as a process of its own; returns what it said."""
        self.refuse_read_only()
        command = [sys.executable, "-m", "kda_tui", "run", str(self.workspace.root)]
        command += ["--resume"] if resume else []
        command += ["--agent", agent] if agent else []
        hint = f"kda run {self.workspace.root} says more"
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"the worker did not start: {error}; {hint}") from None
        said = (done.stderr if done.returncode else done.stdout).strip().split("\n")[-1]
        if done.returncode:
            raise UserError(f"the worker did not start: {said or f'exit code {done.returncode}'}; {hint}")
        return said or "a worker is starting"
