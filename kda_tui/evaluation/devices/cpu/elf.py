"""What a compiled candidate would do to its host: what it calls, and whether code runs when it is loaded."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from kda_tui.evaluation.lint_words import words

_MATH = words(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs
    fdim floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p
    log2 logb lrint lround modf nan nearbyint nextafter pow remainder remquo rint round scalbln scalbn
    sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
    """
)
_RUNTIME = words(
    """
    kda_thread_index kda_block_index kda_block_size kda_grid_size kda_lane kda_block_collective
    kda_warp_collective kda_active_mask kda_give_way kda_stop kda_print
    """
)
_MEMORY = words("memcpy memmove memset memcmp __tls_get_addr")
_ALLOWED = _MATH | {name + "f" for name in _MATH} | _RUNTIME | _MEMORY
_COMPILER_HELPER = re.compile(r"__(?:[a-z]+[sdth]i[2-4]|(?:trunc|extend|float|fix)[a-z]+|atomic_[a-z_0-9]+)")

_DYNAMIC, _DYNSYM, _RELA, _TLS = 6, 11, 4, 7  # SHT_DYNAMIC, SHT_DYNSYM, SHT_RELA, PT_TLS
_RUNS_AT_LOAD = {
    12: "DT_INIT",
    13: "DT_FINI",
    25: "DT_INIT_ARRAY",
    26: "DT_FINI_ARRAY",
    32: "DT_PREINIT_ARRAY",
}
_R_IRELATIVE = 37


@dataclass(frozen=True, slots=True)
class Program:
    """Facts of a shared object: undefined symbols, what runs at load, bytes of thread-local storage."""

    calls: tuple[str, ...]
    at_load: tuple[str, ...]
    thread_local_bytes: int

    def objections(self) -> list[str]:
        """Why it may not be loaded; empty if it may."""
        foreign = [n for n in self.calls if n not in _ALLOWED and not _COMPILER_HELPER.fullmatch(n)]
        found = [f"it calls {name}(), which a kernel cannot" for name in foreign[:5]]
        if self.at_load:
            found.append(
                "it has host code that would run when it is loaded (a constructor of a global object?)"
            )
        return found


def read_program(data: bytes) -> Program:
    """Read an ELF64 little-endian shared object; raises ValueError where it is something else."""
    try:
        return _read(data)
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError(f"not an ELF shared object: {error}") from error


def _read(data: bytes) -> Program:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not an ELF64 little-endian file")
    section_offset, segment_offset = (
        struct.unpack_from("<Q", data, 40)[0],
        struct.unpack_from("<Q", data, 32)[0],
    )
    segment_size, segment_count, section_size, section_count = struct.unpack_from("<4H", data, 54)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, section_offset + i * section_size)
        for i in range(section_count)
    ]
    tls = 0
    for i in range(segment_count):
        kind, _, _, _, _, _, in_memory, _ = struct.unpack_from(
            "<IIQQQQQQ", data, segment_offset + i * segment_size
        )
        tls += in_memory if kind == _TLS else 0
    calls: list[str] = []
    at_load: list[str] = []
    for section in sections:
        kind, body = section[1], data[section[4] : section[4] + section[5]]
        if kind == _DYNSYM:
            strings = sections[section[6]]
            calls += _undefined(body, data[strings[4] : strings[4] + strings[5]])
        elif kind == _RELA:
            types = {info & 0xFFFFFFFF for _, info, _ in struct.iter_unpack("<QQq", body)}
            at_load += ["R_X86_64_IRELATIVE"] if _R_IRELATIVE in types else []
    for section in sections:
        if section[1] == _DYNAMIC:
            body = data[section[4] : section[4] + section[5]]
            at_load += [
                _RUNS_AT_LOAD[tag] for tag, _ in struct.iter_unpack("<QQ", body) if tag in _RUNS_AT_LOAD
            ]
    return Program(tuple(calls), tuple(at_load), tls)


def _undefined(table: bytes, strings: bytes) -> list[str]:
    names = []
    for name, info, _, section, _, _ in struct.iter_unpack("<IBBHQQ", table):
        if (section == 0 and name) or info & 15 == 10:  # undefined, or STT_GNU_IFUNC
            names.append(strings[name : strings.index(b"\0", name)].decode("utf-8", "replace"))
    return names
