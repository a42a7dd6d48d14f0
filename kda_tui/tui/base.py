"""What every screen and widget may ask of the app: how it looks, what time it is, what it hears."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.app import App

from kda_tui.tui.themes import Look

DEAF_S = 0.3  # keys typed ahead of a question are dropped for this long,
BURST_S = 0.05  # and as long as they come faster than a person types


class Ears:
    """Drops keys that were typed before a question was on the screen. Times are event times."""

    def __init__(self, deaf_s: float = DEAF_S) -> None:
        self.deaf_s = deaf_s
        self._until = 0.0

    def close(self) -> None:
        """A question opens now."""
        self._until = time.monotonic() + self.deaf_s

    def drops(self, event_time: float) -> bool:
        """Whether an input of that time is to be dropped; a burst keeps the ears closed."""
        if event_time >= self._until:
            return False
        self._until = max(self._until, event_time + BURST_S)
        return True


class BaseApp(App[int], inherit_bindings=False):
    """The app as widgets know it."""

    look: Look
    ears: Ears
    ascii_only: bool = False
    clock: Callable[[], float] = staticmethod(time.time)

    def now(self) -> float:
        """Seconds since 1970, by the one clock of the screen."""
        return self.clock()

    def minute(self) -> float:
        """The middle of the minute it is: what ages and clocks are drawn with.

        All of them move together once a minute, and between minutes an idle screen writes nothing.
        """
        return self.clock() // 60 * 60 + 30
