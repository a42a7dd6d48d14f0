"""Times and identifiers of records."""

from __future__ import annotations

import os
import threading
import time
import uuid
from datetime import UTC, datetime

_COUNTER_LIMIT = 1 << 12
_guard = threading.Lock()
_last = (0, 0)  # milliseconds and counter of the newest uuid7


def now() -> str:
    """The time as UTC ISO 8601 with milliseconds and ``Z``, such as ``2026-07-01T12:00:00.000Z``."""
    return stamp(time.time())


def stamp(epoch_s: float) -> str:
    """Seconds since the epoch in the form of :func:`now`."""
    moment = datetime.fromtimestamp(epoch_s, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def parse(t: str) -> float:
    """Seconds since the epoch of an ISO 8601 time; a time without zone is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(t)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def uuid7() -> str:
    """A UUID of version 7 (RFC 9562): sorts by time, strictly ascending within a process."""
    global _last
    with _guard:
        ms = time.time_ns() // 1_000_000
        last_ms, counter = _last
        if ms > last_ms:
            # Starting low leaves room to count up within the millisecond.
            counter = int.from_bytes(os.urandom(1), "big")
        else:
            ms, counter = last_ms, counter + 1
            if counter == _COUNTER_LIMIT:
                ms, counter = ms + 1, 0
        _last = (ms, counter)
    tail = int.from_bytes(os.urandom(8), "big") & ((1 << 62) - 1)
    return str(uuid.UUID(int=(ms << 80) | (7 << 76) | (counter << 64) | (0b10 << 62) | tail))
