"""Copies over SSH and tmux, and says which way the text went."""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from kda_tui.record.state_folder import state_folder, write_private
from kda_tui.text import UserError, clean
from kda_tui.tui import words
from kda_tui.tui.terminal import write_raw

if TYPE_CHECKING:
    from textual.app import App

OSC_LIMIT = 74_994  # encoded bytes; longer sequences are dropped by terminals


def copy(app: App[int], text: str) -> str:
    """Copy everywhere that may work; one line that names where the text is."""
    text = clean(text)
    ways: list[str] = []
    if os.environ.get("TMUX") and _tmux(text):
        ways.append("tmux buffer (prefix ])")
    encoded = base64.b64encode(text.encode()).decode()
    if len(encoded) <= OSC_LIMIT:
        write_raw(app, f"\x1b]52;c;{encoded}\x1b\\")
        ways.append("the terminal (OSC 52, if it allows that)")
    else:
        ways.append("too long for OSC 52")
    path = state_folder() / "clipboard.txt"
    with contextlib.suppress(UserError):
        write_private(path, text.encode())
        ways.append(_short(path))
    return f"copied {words.size(len(text.encode()))}B: {', '.join(ways)}"


def _tmux(text: str) -> bool:
    try:
        done = subprocess.run(
            ["tmux", "load-buffer", "-w", "-"],
            input=text.encode(),
            capture_output=True,
            timeout=2,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _short(path: Path) -> str:
    home = str(Path.home())
    return "~" + str(path)[len(home) :] if str(path).startswith(home) else str(path)
