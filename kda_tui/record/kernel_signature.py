"""The signatures of CUDA kernels, read from source text without a compiler.

A reader for drafts: it understands parameter lists as people write them, and marks what it does not
understand instead of failing. No text makes it raise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kda_tui.record.contract_model import DType

Kind = Literal["tensor", "scalar", "tensor_map", "unknown"]

MAX_CHARACTERS = 4 << 20
MAX_KERNELS = 64
MAX_PARAMETERS = 128
MAX_WORDS = 10_000  # of one signature


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. ``dtype`` None: the type is void, a template's, or unknown; ``c_type`` is as written."""

    name: str
    kind: Kind
    dtype: DType | None
    is_const: bool
    c_type: str
    lanes: int = 1  # elements that one vector type holds: float4 is float32 with 4 lanes


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """A ``__global__`` function; ``template`` has its template parameters as written."""

    name: str
    parameters: tuple[Parameter, ...]
    template: tuple[str, ...]
    max_threads: int | None  # of __launch_bounds__, where it is a number
    dynamic_shared: bool  # its file declares ``extern __shared__``
    line: int


_DTYPES: dict[str, DType] = {
    "float": "float32", "double": "float64", "half": "float16", "__half": "float16", "float16": "float16",
    "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16", "bfloat16": "bfloat16", "bfloat16_t": "bfloat16",
    "half_t": "float16", "__nv_fp8_e4m3": "fp8_e4m3", "__nv_fp8_e5m2": "fp8_e5m2",
    "__nv_fp4x2_e2m1": "fp4x2", "__nv_fp8_e8m0": "e8m0", "bool": "bool",
    "int": "int32", "signed": "int32", "int32_t": "int32",
    "unsigned": "uint32", "uint": "uint32", "uint32_t": "uint32",
    "char": "int8", "signed char": "int8", "int8_t": "int8",
    "unsigned char": "uint8", "uchar": "uint8", "uint8_t": "uint8",
    "short": "int16", "int16_t": "int16",
    "unsigned short": "uint16", "ushort": "uint16", "uint16_t": "uint16",
    "long": "int64", "long long": "int64", "int64_t": "int64",
    "unsigned long": "int64", "unsigned long long": "int64",
    "uint64_t": "int64", "size_t": "int64", "ptrdiff_t": "int64", "ssize_t": "int64",
    "cuFloatComplex": "complex64", "cuComplex": "complex64", "cuDoubleComplex": "complex128",
}  # fmt: skip
_VECTORS: dict[str, DType] = {
    "float": "float32", "double": "float64", "char": "int8", "uchar": "uint8", "short": "int16",
    "ushort": "uint16", "int": "int32", "uint": "uint32", "long": "int64", "longlong": "int64",
    "half": "float16", "__half": "float16", "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16",
}  # fmt: skip
_VECTOR = re.compile(r"([a-z_]\w*?)([1248])(?:_a)?")
_QUALIFIERS = frozenset(
    {
        "__restrict__",
        "__restrict",
        "restrict",
        "volatile",
        "__grid_constant__",
        "register",
        "typename",
        "struct",
    }
)
_NOT_NAMES = frozenset({"__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__", "alignas"})

_NOISE = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'(?:[^'\\\n]|\\.)*+'?",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*+", re.MULTILINE | re.DOTALL)
_TOKEN = re.compile(r"[A-Za-z_$][\w$]*|[0-9][\w.']*|::|->|[^\s]")
_THREADS = re.compile(r"[0-9]{1,6}[uU]?")
_EXTERN_SHARED = re.compile(r"\bextern\s+(?:__shared__|__align__\s*\([^)]*\)\s*__shared__)")


def read_signatures(source: str) -> tuple[KernelSignature, ...]:
    """The kernels that a source defines or declares, in order; each name once."""
    source = source[:MAX_CHARACTERS].replace("\r\n", "\n")
    plain = _DIRECTIVE.sub(_blank, _NOISE.sub(_blank, source))
    dynamic = _EXTERN_SHARED.search(plain) is not None
    found = list(_TOKEN.finditer(plain))
    words = [match[0] for match in found]
    kernels: dict[str, KernelSignature] = {}
    places = [at for at, word in enumerate(words) if word == "__global__"]
    for at in places[:MAX_KERNELS]:
        line = plain.count("\n", 0, found[at].start()) + 1
        kernel = _kernel(words, at, dynamic, line)
        if kernel is not None:
            kernels.setdefault(kernel.name, kernel)
    return tuple(kernels.values())


def _blank(match: re.Match[str]) -> str:
    """Comments and strings as blanks, so that lines stay."""
    return " " + "\n" * match[0].count("\n")


def _kernel(words: Sequence[str], at: int, dynamic: bool, line: int) -> KernelSignature | None:
    """The kernel whose ``__global__`` stands at ``at``; None where no function follows."""
    bounds: int | None = None
    i = at + 1
    last = min(len(words), at + MAX_WORDS) - 1
    while i < last and words[i] not in (";", "{", "}", "="):
        if words[i] == "(":  # the parentheses of an attribute that is not known
            i = _behind(words, i)
        elif words[i + 1] == "(" and _is_word(words[i]):
            end = _behind(words, i + 1)
            inside = words[i + 2 : end - 1]
            if words[i] not in _NOT_NAMES:
                return KernelSignature(
                    words[i], _parameters(inside), _template(words, at), bounds, dynamic, line
                )
            if words[i] == "__launch_bounds__" and inside and _THREADS.fullmatch(inside[0]):
                bounds = int(inside[0].rstrip("uU"))
            i = end
        else:
            i += 1
    return None


def _is_word(word: str) -> bool:
    return word[0].isalpha() or word[0] in "_$"


_MIRRORED = {"(": ")", ")": "(", "[": "]", "]": "[", "{": "}", "}": "{", "<": ">", ">": "<"}


def _behind(words: Sequence[str], at: int) -> int:
    """The index behind the parenthesis that closes the one at ``at`` (or far away where none does)."""
    depth = 0
    end = min(len(words), at + MAX_WORDS)
    for i in range(at, end):
        depth += (words[i] == "(") - (words[i] == ")")
        if depth == 0:
            return i + 1
    return end


def _split(words: Sequence[str]) -> list[list[str]]:
    """Parts between the commas that no bracket encloses; parts without words are left out."""
    parts: list[list[str]] = [[]]
    depth = _Depth()
    for word in words:
        depth.take(word)
        if word == "," and depth.outside:
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


@dataclass(slots=True)
class _Depth:
    """Open brackets; inside round, square or curly ones ``<`` and ``>`` compare."""

    brackets: int = 0
    angles: int = 0

    def take(self, word: str) -> None:
        self.brackets = max(0, self.brackets + (word in "([{") - (word in ")]}"))
        if self.brackets == 0:
            self.angles = max(0, self.angles + (word == "<") - (word == ">"))

    @property
    def outside(self) -> bool:
        return self.brackets == 0 and self.angles == 0


def _template(words: Sequence[str], at: int) -> tuple[str, ...]:
    """Template parameters of the declaration that holds ``__global__``: looked for backwards."""
    end = at - 1
    while end >= 0 and words[end] not in (";", "}", "{", ">", ")"):
        end -= 1
    if end < 0 or words[end] != ">":
        return ()
    depth = _Depth()
    for i in range(end, max(0, end - MAX_WORDS), -1):
        depth.take(_MIRRORED.get(words[i], words[i]))
        if depth.outside:
            inside = words[i + 1 : end] if words[i - 1] == "template" else ()
            return tuple(" ".join(part) for part in _split(inside))
    return ()


def _parameters(words: Sequence[str]) -> tuple[Parameter, ...]:
    parts = _split(words)
    if parts == [["void"]]:
        return ()
    return tuple(_parameter(part, i) for i, part in enumerate(parts[:MAX_PARAMETERS]))


def _parameter(words: list[str], index: int) -> Parameter:
    if "=" in words:
        words = words[: words.index("=")]
    written = " ".join(words)
    is_const = "const" in _before_pointer(words)
    plain = [w for w in words if w not in _QUALIFIERS and w != "const"]
    pointer = plain.count("*") + plain.count("[") - ("&" in plain)
    base, name = _base_and_name([w for w in plain if w not in "*&"])
    name = name if name.isidentifier() and name.isascii() else f"arg{index + 1}"
    if "CUtensorMap" in base:
        return Parameter(name, "tensor_map", None, is_const, written)
    dtype, lanes = _dtype(base)
    kind: Kind = "unknown"
    if pointer == 1:
        kind = "tensor"
    elif pointer == 0 and dtype is not None and lanes == 1:
        kind = "scalar"
    return Parameter(name, kind, dtype, is_const, written, lanes)


def _before_pointer(words: Sequence[str]) -> Sequence[str]:
    return words[: words.index("*")] if "*" in words else words


def _base_and_name(words: Sequence[str]) -> tuple[str, str]:
    """``unsigned int n [ 4 ]`` is (``unsigned int``, ``n``); an unnamed parameter has the name ``""``."""
    if "[" in words:
        words = words[: list(words).index("[")]
    if len(words) > 1 and _is_word(words[-1]) and words[-2] != "::" and _dtype(" ".join(words))[0] is None:
        return _base(words[:-1]), words[-1]
    return _base(words), ""


def _base(words: Sequence[str]) -> str:
    """A type without its namespaces and template arguments."""
    words = list(words)
    if "<" in words:
        words = words[: words.index("<")]
    while "::" in words:
        words = words[words.index("::") + 1 :]
    return " ".join(words)


def _dtype(base: str) -> tuple[DType | None, int]:
    words = sorted(base.split(), key=_word_rank)
    if len(words) > 1 and words[-1] == "int":
        words.pop()  # `long int` and `long` are one type
    base = " ".join(words)
    if base in _DTYPES:
        return _DTYPES[base], 1
    vector = _VECTOR.fullmatch(base)
    if vector is not None and vector[1] in _VECTORS:
        return _VECTORS[vector[1]], int(vector[2])
    return None, 1


def _word_rank(word: str) -> int:
    """``long unsigned int`` and ``unsigned long int`` are one type."""
    order = ("unsigned", "signed", "short", "long", "char", "int")
    return order.index(word) if word in order else len(order)
