"""Times sort as text, ids sort by time."""

from __future__ import annotations

import re
import threading
import time
import uuid

from hypothesis import given
from hypothesis import strategies as st

from kda_tui.record.clock import now, parse, stamp, uuid7


@given(st.integers(0, 4_102_444_800_000))
def test_a_time_survives_writing_and_parsing(ms: int) -> None:
    assert abs(parse(stamp(ms / 1000)) * 1000 - ms) <= 1


def test_now_is_utc_with_milliseconds() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", now())
    assert abs(parse(now()) - time.time()) < 60
    assert parse("2026-01-01T00:00:00") == parse("2026-01-01T01:00:00+01:00")


def test_ids_ascend_within_a_millisecond_and_over_threads() -> None:
    own = [uuid7() for _ in range(5000)]
    assert own == sorted(own)
    drawn: list[list[str]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=lambda d=d: d.extend(uuid7() for _ in range(500))) for d in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = own + [one for some in drawn for one in some]
    assert len(set(everything)) == len(everything)
    parsed = uuid.UUID(own[0])
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
