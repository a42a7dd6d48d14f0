"""Follows a workspace in a thread and posts one coalesced snapshot a tick, only when it changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from textual.message import Message

from kda_tui.record.snapshot import Snapshot
from kda_tui.text import clean_line

POLL_S = 0.1  # how often file sizes are looked at
IDLE_POLL_S = 0.5  # the same once nothing has changed for IDLE_AFTER polls
IDLE_AFTER = 100
FIRST_SLICES_S = 0.02  # pause between slices while the workspace is still being read


class Source(Protocol):
    """What the follower needs of ``record.reader.Reader``."""

    def first(self) -> Snapshot: ...

    def poll(self) -> Snapshot | None: ...


@dataclass
class Arrived(Message, bubble=False):
    """A newer snapshot; older ones that were not looked at are gone."""

    snapshot: Snapshot


@dataclass
class Lost(Message, bubble=False):
    """Reading failed: the folder went away, or a file cannot be read. Reading goes on."""

    why: str


class Follower:
    """One reading thread. ``post`` is thread-safe (``post_message``); one message is in flight at most."""

    def __init__(self, source: Source, post: Callable[[Message], object], hz: float = 4.0) -> None:
        self._source = source
        self._post = post
        self._tick_s = 1.0 / hz
        self._stop = threading.Event()
        self._taken = threading.Event()
        self._taken.set()
        self._why = ""
        self._thread = threading.Thread(target=self._run, name="kda-follow", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; it does within one poll."""
        self._stop.set()
        self._taken.set()

    def taken(self) -> None:
        """The screen has drawn the last snapshot and can take another."""
        self._taken.set()

    def _run(self) -> None:
        waiting: Snapshot | None = None
        quiet = 0
        since_post = self._tick_s
        first = True
        while not self._stop.is_set():
            fresh = self._read(first)
            first = first and fresh is None
            quiet = 0 if fresh is not None else quiet + 1
            waiting = fresh or waiting
            if waiting is not None and since_post >= self._tick_s and self._taken.is_set():
                self._taken.clear()
                self._post(Arrived(waiting))
                waiting, since_post = None, 0.0
            loading = fresh is not None and fresh.extra.get("loading", 1.0) < 1.0
            pause = FIRST_SLICES_S if loading else IDLE_POLL_S if quiet > IDLE_AFTER else POLL_S
            since_post += pause
            self._stop.wait(pause)

    def _read(self, first: bool) -> Snapshot | None:
        try:
            snapshot = self._source.first() if first else self._source.poll()
        except Exception as error:  # a reader's fault must not end the screen
            why = f"{type(error).__name__}: {clean_line(str(error))}"
            if why != self._why:
                self._why = why
                self._post(Lost(why))
            return None
        if self._why and snapshot is not None:
            self._why = ""
            self._post(Lost(""))
        return snapshot


def open_reader(root: Path, read_only: bool) -> Source:
    """The reader of a workspace on disk, ours or somebody's."""
    from kda_tui.record.open import open_reader as either

    return either(root, read_only=read_only)
