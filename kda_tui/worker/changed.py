"""One thing to wait on: something changed."""

from __future__ import annotations

import asyncio


class Signal:
    """Wakes everybody who waits; a fire between two waits is not lost to a waiter that looks first."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def fire(self) -> None:
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self, timeout_s: float) -> None:
        """Until the next fire, or the timeout."""
        event = self._event
        try:
            # Not wait_for: before Python 3.12 it can swallow a cancellation that comes with the fire.
            async with asyncio.timeout(timeout_s):
                await event.wait()
        except TimeoutError:
            return
