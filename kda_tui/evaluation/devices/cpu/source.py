"""From a candidate's .cu to one C++ translation unit that keeps the candidate's line numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from kda_tui.evaluation.cuda_tokens import Source, Token, matching, tokenize

LAUNCH_FILE = "launch.toml"
_PREAMBLE = """\
#include <kda_cpu.hpp>
#pragma GCC poison asm __asm __asm__
#line 1 "{name}"
"""
_DYNAMIC_SHARED = """\
extern "C" {
alignas(1024) __thread unsigned char kda_dynamic_shared[kda::MAX_DYNAMIC_SHARED];
static char* kda_dynamic() { return reinterpret_cast<char*>(kda_dynamic_shared); }
}
"""
_NO_DYNAMIC_SHARED = "static constexpr char* (*kda_dynamic)() = nullptr;\n"


def translation_unit(name: str, text: str, kernels: Sequence[str], shares_dynamically: bool) -> str:
    """The C++ to compile: the shim, ``text`` (already rewritten) as file ``name``, the table of ``kernels``."""
    rows = "".join(
        f'#line 1 "{LAUNCH_FILE}: kernel {_quoted(kernel)}"\nKDA_KERNEL("{_quoted(kernel)}", {kernel}),\n'
        for kernel in kernels
    )
    return (
        _PREAMBLE.format(name=_quoted(name))
        + text
        + f'\n#line 1 "{LAUNCH_FILE}"\n'
        + (_DYNAMIC_SHARED if shares_dynamically else _NO_DYNAMIC_SHARED)
        + 'extern "C" {\n'
        + "KDA_RUNTIME extern const kda::Kernel kda_kernels[];\n"
        + "const kda::Kernel kda_kernels[] = {\n"
        + rows
        + "{nullptr, nullptr, 0, nullptr}};\n"
        + "KDA_RUNTIME char* (*kda_dynamic_shared_of())() { return kda_dynamic; }\n}\n"
    )


def rewrite(text: str) -> tuple[str, bool]:
    """The text with ``__shared__`` declarations as a host compiler takes them; true if one is dynamic.

    ``extern __shared__ T name[];`` becomes thread-local storage under one common symbol. Lines stay.
    """
    source = tokenize(text)
    code = [t for t in source.tokens if t.kind != "newline"]
    edits: list[tuple[int, int, str]] = []
    dynamic = False
    for i, token in enumerate(code):
        if token.text != "__shared__":
            continue
        before = code[i - 1] if i else None
        if before is not None and before.text in ("extern", "static"):
            edits.append((before.start, before.start + len(before.text), ""))
        if before is not None and before.text == "extern":
            dynamic = True
            edits.append((token.start, token.start + len("__shared__"), "extern __thread"))
            edits += _label(code, i)
        edits += _alignment_first(source, code, i)
    return _apply(source, edits), dynamic


def _label(code: Sequence[Token], shared: int) -> list[tuple[int, int, str]]:
    for token in code[shared:]:
        if token.text == ";":
            return [(token.start, token.start, " KDA_DYNAMIC_SHARED")]
    return []


def _alignment_first(source: Source, code: Sequence[Token], shared: int) -> list[tuple[int, int, str]]:
    """``__shared__ alignas(16) T`` is CUDA; C++ wants ``alignas(16)`` before the other specifiers."""
    if shared + 2 >= len(code) or code[shared + 1].text != "alignas" or code[shared + 2].text != "(":
        return []
    end = code[matching(tuple(code[: shared + 40]), shared + 2)]
    start = code[shared + 1].start
    words = source.text[start : end.start + 1]
    first = code[shared - 1] if shared and code[shared - 1].text in ("extern", "static") else code[shared]
    return [(first.start, first.start, words + " "), (start, end.start + 1, "")]


def _apply(source: Source, edits: list[tuple[int, int, str]]) -> str:
    pieces, position = [], 0
    for start, end, words in sorted(edits, key=lambda e: (e[0], e[1])):
        pieces.append(_with_splices(source, position, start))
        pieces.append(words)
        position = end
    pieces.append(_with_splices(source, position, len(source.text)))
    return "".join(pieces)


def _with_splices(source: Source, start: int, end: int) -> str:
    pieces, position = [], start
    for at in source.splices[bisect_left(source.splices, start) : bisect_left(source.splices, end)]:
        pieces += [source.text[position:at], "\\\n"]
        position = at
    return "".join([*pieces, source.text[position:end]])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
