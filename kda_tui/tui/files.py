"""Reads files for the screen in one thread: the newest question of each slot is answered, older ones are dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from textual.message import Message

from kda_tui.text import clean_line


@dataclass
class Loaded(Message, bubble=False):
    """The answer to a question: ``value``, or ``error`` in words when reading failed."""

    slot: str
    key: object
    value: Any
    error: str = ""


class FileReader:
    """One daemon thread that runs small reading jobs and posts :class:`Loaded`."""

    def __init__(self, post: Callable[[Message], object]) -> None:
        self._post = post
        self._jobs: dict[str, tuple[object, Callable[[], Any]]] = {}
        self._wake = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="kda-files", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._wake:
            self._stopped = True
            self._wake.notify()

    def ask(self, slot: str, key: object, job: Callable[[], Any]) -> None:
        """Run ``job`` soon; a job that still waits in the same slot is replaced."""
        with self._wake:
            self._jobs.pop(slot, None)
            self._jobs[slot] = (key, job)
            self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._jobs and not self._stopped:
                    self._wake.wait()
                if self._stopped:
                    return
                slot = next(iter(self._jobs))
                key, job = self._jobs.pop(slot)
            try:
                loaded = Loaded(slot, key, job())
            except Exception as error:  # a file that cannot be read is said, not fatal
                loaded = Loaded(slot, key, None, f"{type(error).__name__}: {clean_line(str(error))}")
            self._post(loaded)
