"""Numbers, units, times and yes or no, as people write them in tables and ledgers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from kda_tui.record.clock import stamp

NOTHING = frozenset({"", "-", "--", "null", "none", "nan", "n/a", "na", "empty", "?", "unknown", "(!) nan"})

_DIGITS = 40  # of a number; longer ones are no measurement
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_COMMAS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_DOTS = re.compile(r"[+-]?\d{1,3}(\.\d{3}){2,}")
_DECORATION = re.compile(r"^[~≈\s]+|\s*[xX×%]$|\s+$")


@dataclass(frozen=True, slots=True)
class Unit:
    """``us``: microseconds in one of it, None if it is no time. ``better``: 1 more is better, -1 less, 0 unknown."""

    name: str
    us: float | None
    better: int


SPEEDUP = Unit("x", None, 1)

_UNITS: dict[str, Unit] = {
    **dict.fromkeys(("ns", "nsec", "nsecond"), Unit("ns", 1e-3, -1)),
    **dict.fromkeys(("us", "usec", "usecond", "µs", "micros"), Unit("us", 1.0, -1)),
    **dict.fromkeys(("ms", "msec", "msecond"), Unit("ms", 1e3, -1)),
    **dict.fromkeys(("s", "sec", "seconds"), Unit("s", 1e6, -1)),
    **dict.fromkeys(("cycles", "cycle"), Unit("cycles", None, -1)),
    **dict.fromkeys(("gbs", "gbps"), Unit("GB/s", None, 1)),
    "tflops": Unit("TFLOP/s", None, 1),
    "gflops": Unit("GFLOP/s", None, 1),
    "ops": Unit("op/s", None, 1),
    **dict.fromkeys(("mib", "mb"), Unit("MB", None, -1)),
    "bytes": Unit("bytes", None, -1),
    "pct": Unit("%", None, 0),
    **dict.fromkeys(("x", "speedup"), SPEEDUP),
}


@lru_cache(maxsize=4096)
def unit_of(name: str) -> Unit | None:
    """The unit in a column's or a key's name: ``latency_median_us``, ``candidate_ms_median``, ``ops_per_sec``.

    A single letter alone is a dimension, not seconds.
    """
    words = name.lower().split("_")
    if len(name) == 1:
        return None
    if "ops" in words or words[-2:] == ["per", "sec"]:
        return _UNITS["ops"]
    return next((_UNITS[word] for word in reversed(words) if word in _UNITS), None)


def is_unit(word: str) -> bool:
    """Whether a word of a name is a unit: ``us``, ``x``."""
    return word in _UNITS


def unit_called(text: str) -> Unit | None:
    """The unit that a cell names: ``us``, ``GB/s``, ``s``."""
    return _UNITS.get(text.strip().lower().replace("/", "")) or unit_of(text)


def number_of(value: Any) -> float | None:
    """A finite number out of ``1.4921x``, ``~72``, ``48,640``, ``27.595.520`` or a number; None if it is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value) if -1e300 < value < 1e300 else None
    if not isinstance(value, str) or len(value) > _DIGITS:
        return None
    text = value.strip()
    if not _PLAIN.fullmatch(text):  # nearly every cell is a plain number or nothing
        text = _DECORATION.sub("", _DECORATION.sub("", text))
    if _COMMAS.fullmatch(text):
        text = text.replace(",", "")
    elif _DOTS.fullmatch(text):
        text = text.replace(".", "")
    elif not _PLAIN.fullmatch(text):
        return None
    found = float(text)
    return found if math.isfinite(found) else None


_WORD = re.compile(r"[A-Za-z0-9_.\-]+")


def words_of(text: str) -> list[str]:
    """What may be an id in a text: its words, with dots, dashes and underscores inside."""
    return [word.strip(".-") for word in _WORD.findall(text)]


def is_nothing(value: Any) -> bool:
    """Whether a cell or a value says that there is nothing."""
    return value is None or (isinstance(value, str) and value.strip().lower() in NOTHING)


def truth_of(value: Any) -> bool | None:
    """Yes, no or not said."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
            value.strip().lower()
        )
    return None


_UNDERSCORED = re.compile(r"(\d{4}-\d{2}-\d{2})_(\d{2})-(\d{2})-(\d{2})")
_MONTH = re.compile(r"\d{4}-[A-Za-z]{3}-")
_SHORT_ZONE = re.compile(r"([+-]\d{2})(\d{2})$")


def time_of(value: Any) -> str:
    """The time in the form of our records, where the value is one; else its text. Naive times are kept naive."""
    number = (
        number_of(value) if not isinstance(value, str) or re.fullmatch(r"\d{9,10}(\.\d+)?", value) else None
    )
    if number is not None and 1e8 < number < 1e11:
        return stamp(number)
    if not isinstance(value, str):
        return ""
    text = value.strip()[:40]
    text = _UNDERSCORED.sub(r"\1T\2:\3:\4", text)
    for form in ("%Y-%b-%d %H:%M:%S", "%Y-%b-%d") if _MONTH.match(text) else ():
        try:
            return datetime.strptime(text, form).isoformat()
        except ValueError:
            continue
    try:
        moment = datetime.fromisoformat(_SHORT_ZONE.sub(r"\1:\2", text.replace("Z", "+00:00")))
    except ValueError:
        return text
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) or moment.tzinfo is None:
        return text
    return stamp(moment.astimezone(UTC).timestamp())
