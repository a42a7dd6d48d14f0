"""The ``__device__`` variables of a cubin: where a kernel could keep state between launches.

A cubin is ELF64; its variables are the object symbols of the sections ``.nv.global`` (zeroed at load)
and ``.nv.global.init``. Honest code has some (a ``<cuda/barrier>`` brings 32 bytes), so only a byte that
changes is state.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_SECTIONS = (".nv.global", ".nv.global.init")
_SYMTAB, _OBJECT = 2, 1  # SHT_SYMTAB, STT_OBJECT


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int
    entry: int


def variables(cubin: bytes) -> list[Variable]:
    """Module variables of a cubin; empty for PTX and for anything that is not ELF64."""
    if cubin[:5] != b"\x7fELF\x02":
        return []
    sections = _sections(cubin)
    held = {i for i, s in enumerate(sections) if s.name in _SECTIONS}
    found: list[Variable] = []
    for table in (s for s in sections if s.kind == _SYMTAB):
        names = sections[table.link]
        for at in range(table.offset, table.offset + table.size, table.entry or 24):
            name, info, _, section, _, size = struct.unpack_from("<IBBHQQ", cubin, at)
            if info & 0xF == _OBJECT and section in held and size:
                found.append(Variable(_text(cubin, names.offset + name), size))
    return found


def _sections(cubin: bytes) -> list[_Section]:
    (offset,) = struct.unpack_from("<Q", cubin, 0x28)
    entry, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    rows = [struct.unpack_from("<IIQQQQIIQQ", cubin, offset + i * entry) for i in range(count)]
    base = rows[names_at][4]
    return [_Section(_text(cubin, base + r[0]), r[1], r[4], r[5], r[6], r[9]) for r in rows]


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")
