"""Families of hypotheses: what counts as tried, and when nothing gets better any more."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kda_tui.record.families import STALE_AFTER, families
from kda_tui.record.records import Candidate


def judged(n: int, ratio: float | None, validity: str = "passed", family: str = "tiles") -> Candidate:
    return Candidate(f"c{n:04d}", family=family, stage="judged", validity=validity, ratio=ratio)


def test_a_family_stagnates_after_some_that_are_no_better() -> None:
    first = [judged(1, 1.1), judged(2, 1.3)]
    worse = [judged(n, 1.2) for n in range(3, 3 + STALE_AFTER)]
    (fresh,) = families([*first, *worse[:-1]])
    (stale,) = families([*first, *worse])
    assert (fresh.best, fresh.best_cand, fresh.since_best, fresh.is_stale) == (
        1.3,
        "c0002",
        STALE_AFTER - 1,
        False,
    )
    assert stale.is_stale and stale.judged == 2 + STALE_AFTER
    (again,) = families([*first, *worse, judged(20, 1.4)])
    assert again.best_cand == "c0020" and again.since_best == 0


def test_failures_count_as_tried_and_faults_of_the_machine_do_not() -> None:
    found = families(
        [
            judged(1, None, "incorrect"),
            judged(2, None, "infrastructure_error"),
            replace(judged(3, 1.0), stage="submitted", validity=""),
            judged(4, 1.0, family=""),
        ]
    )
    assert [(f.name, f.judged, f.passed, f.since_best) for f in found] == [
        ("tiles", 1, 0, 1),
        ("(no family)", 1, 1, 0),
    ]


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=30))
def test_the_best_is_the_highest_and_the_rest_is_counted(ratios: list[float]) -> None:
    (found,) = families([judged(n, r) for n, r in enumerate(ratios)])
    first = ratios.index(max(ratios))
    assert found.best == max(ratios) and found.since_best == len(ratios) - 1 - first
