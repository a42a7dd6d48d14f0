"""What people's words about a candidate mean: a bucket by ordered rules, and whether it is correct.

The words themselves are always shown beside the bucket.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kda_tui.record.foreign.values import is_nothing, truth_of

# The first that is usable says it.
DECISION_KEYS = (
    "promotion_decision", "decision", "verdict", "disposition", "promoted", "status", "evidence_status", "benchmark_status",
)  # fmt: skip
CORRECT_KEYS = (
    "correctness",
    "passed",
    "correct",
    "correctness_result",
    "all_pass",
    "passed_correctness",
    "valid",
)

_LEAD = re.compile(r"[(;:,.\u2014]| - |->")

# Ordered: what denies comes before what it denies.
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (bucket, re.compile(pattern, re.IGNORECASE))
    for bucket, pattern in (
        (
            "not promoted",
            r"\bnot[\s_-]*(yet[\s_-]*)?(a[\s_-]*)?(promot|chosen|adopted)|non-?promot|not_promoted",
        ),
        ("superseded", r"\bsuperseded\b|superseded$|^superseded"),
        (
            "rejected",
            r"reject|\bno-?go\b|nogo|infeasible|\bclosed\b|no-?op\b|regress|\bdropped\b|\bdiscard|\bskipped\b|\bslower\b",
        ),
        ("failed", r"\bfail|\binvalid|compile_error|\berror\b"),
        ("pending", r"pending|\bplanned\b|not[\s_](run|measured|yet)|unmeasured|\btodo\b|in.?progress"),
        ("promoted", r"promot|\bship|\bland|\badopt|integrated|exported|arbiter-pass|validated-win"),
        ("kept", r"\bkeep|\bkept\b|retain|revis|keep-"),
        ("baseline", r"baseline|reference|frozen|\blocked\b|vendored"),
        ("measured", r"measured|evaluated|screen|record|benchmark|profiled|sweep|\btie\b|analysis|probe"),
        ("validated", r"\bpass|valid|correct|parity|admissible|confirmed"),
    )
)
_SUPERSEDED = re.compile(r"\bsuperseded\b", re.IGNORECASE)
_OPPOSITES = frozenset({("promoted", "rejected"), ("rejected", "promoted")})


def bucket_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """The bucket of a ledger row, and the very words it comes from ('' and '' where the row says nothing).

    A promotion that another key of the row calls superseded is superseded.
    """
    found = [(key, row[key]) for key in DECISION_KEYS if not is_nothing(row.get(key))]
    said = [(key, value) for key, value in found if isinstance(value, bool | str)]
    if not said:
        return "", ""
    key, value = said[0]
    if isinstance(value, bool):
        bucket, words = ("promoted" if value else "not promoted"), f"{key}: {str(value).lower()}"
    else:
        bucket, words = bucket_of_words(value), value
    if bucket == "promoted":
        taken_back = next((v for _, v in said[1:] if isinstance(v, str) and _SUPERSEDED.search(v)), None)
        if taken_back is not None:
            return "superseded", taken_back
    return bucket, words


@lru_cache(maxsize=4096)
def bucket_of_words(words: str) -> str:
    """One of the buckets, ``mixed`` for two opposite ones in the lead, ``other`` for none.

    The lead clause decides; the rest of a sentence only where the lead says nothing.
    """
    lead = _LEAD.split(words, maxsplit=1)[0]
    found = [bucket for bucket, rule in _RULES if rule.search(lead)]
    if len(found) > 1 and (found[0], found[1]) in _OPPOSITES and re.search(r"\band\b|;", lead):
        return "mixed"
    if found:
        if found[0] == "promoted" and _SUPERSEDED.search(words):
            return "superseded"
        return found[0]
    return next((bucket for bucket, rule in _RULES if rule.search(words[:400])), "other")


_RATIO = re.compile(r"\b(\d{1,7})/(\d{1,7})\b")


def correctness_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """``passed``, ``incorrect``, ``not run`` or ``unknown`` (nothing said), and the words it comes from."""
    for key in CORRECT_KEYS:
        if key in row:
            value = row[key]
            return _verdict(value), f"{key}: {_shown(value)}"
    validation = row.get("validation")
    if isinstance(validation, dict) and "status" in validation:
        return _verdict(validation["status"]), f"validation.status: {_shown(validation['status'])}"
    return "unknown", ""


def _verdict(value: Any) -> str:
    if is_nothing(value):
        return "not run"
    said = truth_of(value)
    if said is not None:
        return "passed" if said else "incorrect"
    if not isinstance(value, str):
        return "unknown"
    text = value.strip().lower()
    if re.match(r"(pass|ok\b|bit-?exact|correct\b|exact\b)", text):
        return "passed"
    if re.match(r"(reject|fail|incorrect|wrong|mismatch)", text) or "fail correctness" in text:
        return "incorrect"
    ratio = _RATIO.match(text)
    if ratio is not None:
        return "passed" if ratio[1] == ratio[2] else "incorrect"
    return "unknown"


def _shown(value: Any) -> str:
    words = str(value)
    return words if len(words) <= 200 else f"{words[:200]}…"


# Rows of a ledger that are no candidates but steps between them.
_EVENT = re.compile(
    r"profil|review|export|fix|harness|^pr\b|^pr-|analy|design|research|evidence|continuation|decision|promotion|measure|audit|note",
    re.IGNORECASE,
)


def kind_of(row: Mapping[str, Any]) -> str:
    value = next((row[key] for key in ("kind", "type", "event") if isinstance(row.get(key), str)), "")
    return value or "candidate"


@lru_cache(maxsize=4096)
def is_event(kind: str) -> bool:
    """Whether rows of this kind carry the chain between candidates without being one."""
    return _EVENT.search(kind) is not None
