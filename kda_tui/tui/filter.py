"""The filter language of lists: words, and comparisons such as ``reg<64 ratio>=1.1 verdict=faster !vetoed``.

All terms must hold. A word matches anywhere in the row's text; ``!`` negates; ``name<op>value``
compares a field, numerically when both sides are numbers. An absent number never matches.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from kda_tui.record.records import Candidate
from kda_tui.text import UserError

_TERM = re.compile(r"^(?P<name>[a-z_0-9]+)(?P<op><=|>=|!=|==|=|<|>|~)(?P<value>.*)$")

FIELDS: Mapping[str, Callable[[Candidate], object]] = {
    "id": lambda c: c.id,
    "us": lambda c: c.time_us,
    "ratio": lambda c: c.ratio,
    "lo": lambda c: c.lo,
    "hi": lambda c: c.hi,
    "floor": lambda c: None if c.floor_share is None else 100 * c.floor_share,
    "reg": lambda c: c.registers,
    "spill": lambda c: c.spills,
    "smem": lambda c: c.shared_bytes,
    "item": lambda c: c.item,
    "family": lambda c: c.family,
    "author": lambda c: c.author,
    "parent": lambda c: " ".join(c.parents),
    "validity": lambda c: c.validity,
    "speed": lambda c: c.speed,
    "verdict": lambda c: c.speed if c.validity == "passed" else c.validity,
    "decision": lambda c: c.decision,
    "stage": lambda c: c.stage,
    "run": lambda c: c.run,
    "opponent": lambda c: c.opponent,
}

Row = TypeVar("Row")


class FilterError(UserError):
    """A filter that cannot be read."""


def compile_filter(text: str) -> Callable[[Candidate], bool]:
    """A predicate over candidates; raises :class:`FilterError` naming the term."""
    terms = [_term(word) for word in text.split()]
    if not terms:
        return lambda cand: True
    return lambda cand: all(term(cand) for term in terms)


def _term(word: str) -> Callable[[Candidate], bool]:
    negate = word.startswith("!") and len(word) > 1
    body = word[1:] if negate else word
    match = _TERM.match(body)
    test = _comparison(match["name"], match["op"], match["value"]) if match else _contains(body.lower())
    return (lambda cand: not test(cand)) if negate else test


def _contains(needle: str) -> Callable[[Candidate], bool]:
    def test(cand: Candidate) -> bool:
        verdict = cand.speed if cand.validity == "passed" else cand.validity
        hay = f"{cand.id} {cand.hypothesis} {verdict} {cand.decision} {cand.item} {cand.family} {cand.author} {cand.stage}"
        return needle in hay.lower()

    return test


def _comparison(name: str, op: str, value: str) -> Callable[[Candidate], bool]:
    get = FIELDS.get(name)
    if get is None:
        raise FilterError(f"filter: there is no field '{name}'; there are {', '.join(FIELDS)}")
    if not value:
        raise FilterError(f"filter: '{name}{op}' needs a value")
    number = _number(value)
    needle = value.lower()

    def test(cand: Candidate) -> bool:
        seen = get(cand)
        if number is not None and isinstance(seen, int | float):
            return _compare(float(seen), op, number)
        if isinstance(seen, int | float) or seen is None:
            return False
        have = str(seen).lower()
        if op in ("=", "=="):
            return needle == have or needle in have.split()
        if op == "!=":
            return needle != have
        if op == "~":
            return needle in have
        return (
            have < needle
            if op == "<"
            else have > needle
            if op == ">"
            else have <= needle
            if op == "<="
            else have >= needle
        )

    if (
        number is None
        and op in ("<", ">", "<=", ">=")
        and name in ("us", "ratio", "lo", "hi", "floor", "reg", "spill", "smem")
    ):
        raise FilterError(f"filter: '{name}{op}' needs a number, not '{value}'")
    return test


def _compare(seen: float, op: str, number: float) -> bool:
    if not math.isfinite(seen):
        return False
    match op:
        case "<":
            return seen < number
        case ">":
            return seen > number
        case "<=":
            return seen <= number
        case ">=":
            return seen >= number
        case "!=":
            return seen != number
    return seen == number


def _number(text: str) -> float | None:
    try:
        value = float(text.rstrip("%"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
