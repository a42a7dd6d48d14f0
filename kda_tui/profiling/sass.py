"""As much of SASS as hotspots need: what an instruction reads and writes, and whether it moves memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PREDICATE = re.compile(r"^@!?U?P(?:T|\d+)\s+")
_REGISTER = re.compile(r"\b(R|UR)(\d+)\b(?:\.(64|128))?")
_LOADS = (
    "LDG",
    "LD.",
    "LD ",
    "LDS",
    "LDL",
    "LDSM",
    "TEX",
    "TLD",
    "ATOM",
    "SULD",
    "LDC",
    "S2R",
    "MUFU",
    "RED",
)
_STORES = ("STG", "ST.", "ST ", "STS", "STL", "RED", "SUST", "UTMASTG", "STSM")
_WIDE = {"64": 2, "128": 4}


@dataclass(frozen=True, slots=True)
class Parsed:
    opcode: str
    writes: frozenset[str]
    reads: frozenset[str]
    loads: bool
    stores: bool


def parse(sass: str) -> Parsed:
    """Split one instruction. Destinations come first; stores and branches write no register."""
    text = _PREDICATE.sub("", sass.strip().rstrip(";").strip())
    opcode, _, rest = text.partition(" ")
    stores = text.startswith(_STORES)
    loads = text.startswith(_LOADS) and not (stores and not opcode.startswith(("ATOM", "RED")))
    operands = [part.strip() for part in rest.split(",")] if rest.strip() else []
    first = operands[0] if operands else ""
    has_destination = bool(operands) and not stores and bool(_REGISTER.fullmatch(first.split(".")[0]))
    writes = _span(first, opcode) if has_destination else frozenset()
    reads: set[str] = set()
    for operand in operands[1 if has_destination else 0 :]:
        reads |= _span(operand, "")
    return Parsed(opcode, writes, frozenset(reads), loads, stores)


def _span(operand: str, opcode: str) -> frozenset[str]:
    """Registers an operand names; a 64- or 128-bit access takes the next ones too."""
    wide = 1
    if opcode:
        for mark, count in _WIDE.items():
            if f".{mark}" in opcode:
                wide = count
        if ".WIDE" in opcode:
            wide = 2
    found: set[str] = set()
    for kind, number, mark in _REGISTER.findall(operand):
        count = max(wide, _WIDE.get(mark, 1))
        found.update(f"{kind}{int(number) + i}" for i in range(count))
    return frozenset(found)
