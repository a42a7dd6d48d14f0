"""ncu's units, brought to base units.

Exports without ``--print-units base`` scale each column on its own (us, Mbyte, Tbyte/s, Ghz,
Kbyte/block) and put thousands separators into numbers.
"""

from __future__ import annotations

import re

_SCALE: dict[str, float] = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "K": 1e3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
}
_SECONDS = {
    "ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9,
}  # fmt: skip
_PREFIXED = re.compile(r"^(?P<prefix>[KkMGT]?)(?P<base>byte|hz|Hz|bit)(?P<per>(?:/.*)?)$")
_NUMBER = re.compile(r"^[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?([eE][+-]?\d+)?$")


def to_base(value: float, unit: str) -> tuple[float, str]:
    """``(2.5, "us")`` is ``(2500.0, "ns")``; units that have no scale come back as they are."""
    if unit in _SECONDS:
        return value * _SECONDS[unit], "ns"
    found = _PREFIXED.match(unit)
    if found is None:
        return value, unit
    scale = _SCALE[found["prefix"]] if found["prefix"] else 1.0
    base = "hz" if found["base"] in ("hz", "Hz") else found["base"]
    per = found["per"]
    if per in ("/second", "/s"):
        per = "/s"
    return value * scale, base + per


def parse_number(cell: str) -> float | None:
    """A cell as a number, or None when it is text, empty or ``nan``. Commas must group by three."""
    cell = cell.strip()
    if not _NUMBER.match(cell) or len(cell) > 40:
        return None
    return float(cell.replace(",", ""))


def unit_class(unit: str) -> str:
    """What kind of quantity a base unit measures: metrics of one display name differ only in this."""
    if unit == "%":
        return "%"
    return unit.split("/")[0] + ("/s" if unit.endswith("/s") else "")
