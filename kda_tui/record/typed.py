"""Records out of parsed lines, with every field of the type it claims: what does not fit is kept in ``extra``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from kda_tui.record.records import Candidate, Decision, TranscriptBlock

Problems = list[str]  # in words: which key holds what


class Unfit(Exception):
    """A value that the field cannot hold."""


def text(value: Any) -> str:
    """The value as a text; '' for null and for what is not a scalar."""
    if type(value) is str:
        return value
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value)


def number(value: Any) -> float | None:
    """A finite number, else None."""
    if value is None:
        return None
    if type(value) is float:
        return value if value - value == 0.0 else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def whole(value: Any) -> int | None:
    """An integer that fits 63 bits, else None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        return None
    return value


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts; a single text is a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(text(item) for item in value) if isinstance(value, list) else ()


# --- whole records ---------------------------------------------------------------------------------


def _a_text(value: Any) -> str:
    if isinstance(value, dict | list):
        raise Unfit
    return str(value)


def _a_number(value: Any) -> float | None:
    found = number(value)
    if found is None and not (isinstance(value, float) and math.isnan(value)):
        raise Unfit
    return found


def _an_integer(value: Any) -> int:
    found = whole(value)
    if found is None:
        raise Unfit
    return found


def _an_object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Unfit
    return value


def _list_of_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | str):
        raise Unfit
    return texts(value)


def _list_of_integers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise Unfit
    return tuple(_an_integer(item) for item in value)


def _list_of_objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list):
        raise Unfit
    return tuple(_an_object(item) for item in value)


def _a_truth(value: Any) -> bool:
    if not isinstance(value, bool | int):
        raise Unfit
    return bool(value)


_Fit = tuple[type[Any], Callable[[Any], Any]]  # a value of exactly this type is taken as it is

_TEXT: _Fit = (str, _a_text)
_NUMBER: _Fit = (float, _a_number)
_INTEGER: _Fit = (int, _an_integer)
_OBJECT: _Fit = (dict, _an_object)
_TEXTS: _Fit = (tuple, _list_of_texts)
_TRUTH: _Fit = (bool, _a_truth)
_ANY: _Fit = (tuple, lambda value: value)


def _fits(**names: str) -> dict[str, _Fit]:
    kinds: dict[str, _Fit] = {
        "text": _TEXT, "number": _NUMBER, "integer": _INTEGER, "object": _OBJECT, "texts": _TEXTS, "truth": _TRUTH,
        "integers": (tuple, _list_of_integers), "objects": (tuple, _list_of_objects), "any": _ANY,
    }  # fmt: skip
    return {name: kinds[kind] for kind, listed in names.items() for name in listed.split()}


_CANDIDATE = _fits(
    text="id t run author sha256 lang trust item family hypothesis stage validity eval opponent cubin speed "
    "stage_reached decision decision_id reason",
    number="time_us ratio lo hi floor_share compile_s",
    integer="seq attempt registers spills shared_bytes",
    object="defines worst",
    texts="parents",
)
_DECISION = _fits(
    text="id kind t who via reason text run by outcome why",
    integer="seq uid",
    object="target expect amount rule",
    texts="override",
    integers="effects",
    objects="lines",
)
_BLOCK = _fits(
    text="t run msg kind text blob call tool claim cand item model stop_reason cache_miss",
    number="dur_s usd",
    integer="seq iter turn block",
    object="usage",
    truth="is_error partial",
    any="args",
)


_BOUNDED: frozenset[type[Any]] = frozenset((int, float))
_BOUND = 1 << 62  # beyond it, and for NaN, the slow way decides


def _sort_out(
    line: Mapping[str, Any], fits: Mapping[str, _Fit], problems: Problems
) -> tuple[dict[str, Any], dict[str, Any]]:
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in line.items():
        fit = fits.get(key)
        if fit is None:
            extra[key] = value
        elif type(value) is fit[0] and (fit[0] not in _BOUNDED or -_BOUND < value < _BOUND):
            known[key] = value
        elif value is not None:
            try:
                known[key] = fit[1](value)
            except Unfit:
                extra[key] = value
                problems.append(f"{key} is {_shown(value)}")
    return known, extra


def _shown(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 40 else f"{words[:37]}..."


_BORING = frozenset({"v", "link"})  # of our own envelope; nobody needs to see them beside a record


def candidate_of(line: Mapping[str, Any], problems: Problems) -> Candidate:
    """A line of candidates.jsonl. ``problems`` gets what does not fit, which stays in ``extra``."""
    known, extra = _sort_out(line, _CANDIDATE, problems)
    known.setdefault("id", "")
    return Candidate(**known, extra=_without_envelope(extra))


def decision_of(line: Mapping[str, Any], problems: Problems) -> Decision:
    """A line of decisions.jsonl."""
    known, extra = _sort_out(line, _DECISION, problems)
    known.setdefault("id", "")
    known.setdefault("kind", "")
    return Decision(**known, extra=_without_envelope(extra))


def block_of(line: Mapping[str, Any]) -> TranscriptBlock:
    """A line of transcript.jsonl; what does not fit is in ``extra``."""
    known, extra = _sort_out(line, _BLOCK, [])
    return TranscriptBlock(**known, extra=_without_envelope(extra))


def _without_envelope(extra: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in extra.items() if key not in _BORING} if extra else extra
