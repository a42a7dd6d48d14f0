"""What people write in cells and in words about a candidate."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.record.foreign.values import number_of, time_of, truth_of, unit_of
from kda_tui.record.foreign.words import bucket_of, bucket_of_words, correctness_of, is_event


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.4921x", 1.4921), ("~72", 72.0), ("48,640", 48640.0), ("27.595.520", 27595520.0), ("1e-3", 0.001), (" 12 ", 12.0),
        ("12.5%", 12.5), ("nan", None), ("(!) nan", None), ("n/a", None), ("", None), ("invalid", None), ("inf", None),
        ("1,2", None), (True, None), (None, None), (5, 5.0), (10**400, None), ("9" * 5000, None), ("1_000", None),
    ],
)  # fmt: skip
def test_numbers(text: object, number: float | None) -> None:
    assert number_of(text) == number


@given(st.one_of(st.text(), st.floats(), st.integers(), st.none(), st.lists(st.integers())))
def test_any_value_is_a_finite_number_or_none(value: object) -> None:
    found = number_of(value)
    assert found is None or math.isfinite(found)
    assert isinstance(time_of(value), str)
    assert truth_of(value) in (True, False, None)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("latency_median_us", "us"), ("candidate_ms_median", "ms"), ("achieved_gbps", "GB/s"), ("ops_per_sec", "op/s"),
        ("micros_per_op", "us"), ("cycles", "cycles"), ("speedup_x", "x"), ("notes", None), ("gpu_id", None),
    ],
)  # fmt: skip
def test_units(name: str, unit: str | None) -> None:
    found = unit_of(name)
    assert (found.name if found else None) == unit


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-06-10T08:02:21Z", "2026-06-10T08:02:21.000Z"),
        ("2026-06-01T15:43:16.126855+00:00", "2026-06-01T15:43:16.126Z"),
        ("2026-07-17T00:00:00+08:00", "2026-07-16T16:00:00.000Z"),
        ("2026-07-17T00:00:00+0800", "2026-07-16T16:00:00.000Z"),
        ("2026-06-04", "2026-06-04"),
        ("2026-06-04_08-38-56", "2026-06-04_08-38-56".replace("_", "T").replace("-38-56", ":38:56")),
        ("2024-Nov-13 18:14:36", "2024-11-13T18:14:36"),
        (1767225600.5, "2026-01-01T00:00:00.500Z"),
        ("1767225600", "2026-01-01T00:00:00.000Z"),
        ("yesterday", "yesterday"),
        (None, ""),
    ],
)
def test_times(text: object, time: str) -> None:
    assert time_of(text) == time


@pytest.mark.parametrize(
    ("words", "bucket"),
    [
        ("NOT promoted", "not promoted"),
        ("evaluated_not_promoted", "not promoted"),
        ("ISOLATION NODE (not promoted standalone)", "not promoted"),
        ("sweep-point-not-promoted", "not promoted"),
        ("PROMOTED (no phase-1 perf floor)", "promoted"),
        ("PROMOTE->SUPERSEDED by v3", "superseded"),
        ("correct + superseded", "superseded"),
        ("rejected_device_regression", "rejected"),
        ("measured-reject (correct but 2.3x slower)", "rejected"),
        ("evidence_backed_nogo", "rejected"),
        ("keep-iterating", "kept"),
        ("baseline evidence only; not a promotion candidate", "baseline"),
        ("implemented-pending-gpu-validation", "pending"),
        ("landed", "promoted"),
        ("PASS", "validated"),
        ("evaluated", "measured"),
        ("purple", "other"),
    ],
)
def test_words_about_a_candidate(words: str, bucket: str) -> None:
    assert bucket_of_words(words) == bucket


def test_the_first_usable_key_says_it_but_a_promotion_can_be_taken_back_by_another() -> None:
    assert bucket_of({"promotion_decision": None, "decision": "promoted", "status": "evaluated"}) == (
        "promoted",
        "promoted",
    )
    taken_back = {"decision": "Promote: parity", "status": "PROMOTE (historical; superseded by v2)"}
    assert bucket_of(taken_back) == ("superseded", "PROMOTE (historical; superseded by v2)")
    assert bucket_of({"promoted": False}) == ("not promoted", "promoted: false")
    assert bucket_of({"notes": "x"}) == ("", "")


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ({"passed": True}, "passed"), ({"passed": False}, "incorrect"), ({"passed": None}, "not run"), ({}, "unknown"),
        ({"correctness": "33/33; max abs diff 0.0"}, "passed"), ({"correctness": "32/33"}, "incorrect"),
        ({"correctness": "bit-exact"}, "passed"), ({"correctness": "reject: NaN"}, "incorrect"), ({"correctness": {"a": 1}}, "unknown"),
        ({"validation": {"status": "pass"}}, "passed"), ({"correctness": "n/a"}, "not run"),
    ],
)  # fmt: skip
def test_correctness_has_four_answers(row: dict[str, object], verdict: str) -> None:
    assert correctness_of(row)[0] == verdict


def test_which_kinds_are_events() -> None:
    assert all(
        is_event(kind)
        for kind in ("profile", "code-review-fix", "export-lineage", "pr", "promotion-arbiter", "analyze")
    )
    assert not any(
        is_event(kind)
        for kind in ("candidate", "baseline", "reference", "tuning", "implementation", "promising")
    )
