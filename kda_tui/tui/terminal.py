"""Signals, suspending for another program, and what reaches the terminal besides the screen."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.app import App

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def catch_signals(app: App[int]) -> None:
    """Leave in order on SIGTERM, SIGHUP and SIGINT, so that the terminal is restored.

    Textual installs no handlers: SIGTERM would leave mouse reporting on, and with SIGHUP ignored
    (nohup) the process would spin after the terminal is gone.
    """
    loop = asyncio.get_running_loop()
    for number in ENDING:
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            loop.add_signal_handler(number, app.exit, 128 + number)
