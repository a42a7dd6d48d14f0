"""Signals, suspending for another program, and what reaches the terminal besides the screen."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from textual.app import SuspendNotSupported

from kda_tui.text import clean_line

if TYPE_CHECKING:
    from textual.app import App

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
GRACE_S = 3.0  # from a signal until the process is ended whatever the terminal does
RESTORE = b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?7h\x1b[0m"


class Signals:
    """Leaves in order on SIGTERM, SIGHUP and SIGINT, so that the terminal is restored.

    Textual installs no handlers: SIGTERM would leave mouse reporting on, and after a hang-up the
    process would spin. The handlers are plain ones, not the event loop's, because the loop may be
    blocked by a terminal that has stopped reading; a timer ends the process if leaving takes too long.
    """

    def __init__(self, leave: Callable[[int], object]) -> None:
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self._tty = _tty_state()
        self.outside = False  # another program has the terminal; ctrl+c is its own

    def install(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                signal.signal(number, self._caught)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.outside:
            return
        timer = threading.Timer(GRACE_S, self._force, (128 + number,))
        timer.daemon = True
        timer.start()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._leave, 128 + number)

    def _force(self, code: int) -> None:
        """End now: modes off as far as the terminal takes them, tty settings back."""
        with contextlib.suppress(OSError, ValueError):
            os.set_blocking(2, False)
            os.write(2, RESTORE)
        if self._tty is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(0, termios.TCSANOW, self._tty)
        os._exit(code)


def _tty_state() -> list[Any] | None:
    try:
        return termios.tcgetattr(0)
    except (termios.error, OSError, ValueError):
        return None


def run_outside(app: App[int], signals: Signals | None, command: Sequence[str]) -> str:
    """Give the terminal to another program and take it back; what went wrong, or "".

    The body never raises and the app does not repaint meanwhile: both would leave Textual's writer
    stopped for ever.
    """
    fault = ""
    try:
        with app.batch_update(), app.suspend():
            if signals is not None:
                signals.outside = True
            try:
                done = subprocess.run(list(command), check=False)
                if done.returncode:
                    fault = f"{command[0]} ended with code {done.returncode}"
            except (OSError, ValueError) as error:
                fault = f"{command[0]} cannot be started: {error}"
            finally:
                if signals is not None:
                    signals.outside = False
    except SuspendNotSupported:
        return "this terminal cannot be given to another program"
    app.refresh(layout=True)
    return clean_line(fault)


def write_raw(app: App[int], sequence: str) -> None:
    """A control sequence of our own for the terminal; nothing where there is no driver."""
    driver = app._driver
    if driver is not None and not app.is_headless:
        with contextlib.suppress(AssertionError, OSError):
            driver.write(sequence)


def title(app: App[int], text: str) -> None:
    write_raw(app, f"\x1b]2;{clean_line(text)}\x1b\\")


def push_title(app: App[int]) -> None:
    write_raw(app, "\x1b[22;2t")


def pop_title(app: App[int]) -> None:
    write_raw(app, "\x1b[23;2t")


def notify(app: App[int], text: str, bell: bool, desktop: bool) -> None:
    """A bell, and a desktop notification in the two forms that terminals know (OSC 9 and OSC 777)."""
    text = clean_line(text).replace(";", ",")
    if desktop:
        write_raw(app, f"\x1b]9;{text}\x1b\\\x1b]777;notify;kda;{text}\x1b\\")
    if bell:
        write_raw(app, "\x07")


def editor_command(path: str) -> list[str]:
    """$VISUAL, $EDITOR or vi on a file."""
    words = (os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi").split()
    return [*words, path]


def pager_command(path: str) -> list[str]:
    words = (os.environ.get("PAGER") or "less").split()
    return [*words, path]


def is_dumb() -> bool:
    """Whether this terminal cannot show the screen."""
    return os.environ.get("TERM", "dumb") in ("dumb", "") or not sys.stdout.isatty()
