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
__thread unsigned char kda_dynamic_shared[kda::MAX_DYNAMIC_SHARED] __attribute__((aligned(1024)));
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

    ``extern __shared__ T name[];`` names one common thread-local array: under an assembler name outside
    of functions, as a reference to it inside (a template forgets assembler names). Lines stay.
    """
    source = tokenize(text)
    code = [t for t in source.tokens if t.kind != "newline"]
    edits: list[_Edit] = []
    dynamic = False
    in_function: list[bool] = []  # per open brace
    for i, token in enumerate(code):
        if token.text == "{":
            in_function.append(not _is_namespace(code, i))
        elif token.text == "}" and in_function:
            in_function.pop()
        elif token.text == "__shared__":
            first = i - 1 if i and code[i - 1].text in ("extern", "static") else i
            if code[first].text == "extern":
                dynamic = True
                edits += _dynamic(source, code, first, any(in_function))
            else:
                edits += _static(source, code, first, i)
    return _apply(source, edits), dynamic


_Edit = tuple[int, int, str]  # from, to, words in their place


def _is_namespace(code: Sequence[Token], brace: int) -> bool:
    before = [t.text for t in code[max(0, brace - 6) : brace]]
    return "namespace" in before or before[-2:] == ["extern", '"C"']


def _dynamic(source: Source, code: Sequence[Token], first: int, in_function: bool) -> list[_Edit]:
    """Replace ``extern __shared__ T name[];``, alignment words left out: the array is aligned enough."""
    last = next((k for k in range(first, min(first + 64, len(code))) if code[k].text == ";"), None)
    if last is None:
        return []
    kept, k = [], first + 2
    while k < last:
        if code[k].text in ("alignas", "__align__", "__attribute__") and code[k + 1].text == "(":
            k = matching(code, k + 1)
        else:
            kept.append(code[k])
        k += 1
    bracket = next((n for n, t in enumerate(kept) if t.text == "["), 0)
    if bracket < 2:
        return []
    kind, name = " ".join(t.text for t in kept[: bracket - 1]), kept[bracket - 1].text
    sizes = "".join(t.text for t in kept[bracket:])
    if in_function:
        words = f"auto& {name} = reinterpret_cast<{kind} (&){sizes}>(kda_dynamic_shared)"
    else:
        words = f"extern __thread {kind} {name}{sizes} KDA_DYNAMIC_SHARED"
    start, end = code[first].start, code[last].start
    return [(start, end, words + _lines_between(source, start, end))]


def _lines_between(source: Source, start: int, end: int) -> str:
    joined = bisect_left(source.splices, end) - bisect_left(source.splices, start)
    return "\n" * (source.text.count("\n", start, end) + joined)


def _static(source: Source, code: Sequence[Token], first: int, shared: int) -> list[_Edit]:
    """Drop ``static``, which ``__shared__`` says too; move ``alignas`` to where C++ wants it."""
    edits: list[_Edit] = []
    if first != shared:
        edits.append((code[first].start, code[first].start + len("static"), ""))
    if shared + 2 < len(code) and code[shared + 1].text == "alignas" and code[shared + 2].text == "(":
        start, end = code[shared + 1].start, code[matching(code, shared + 2)].start + 1
        edits.append((code[first].start, code[first].start, source.text[start:end] + " "))
        edits.append((start, end, ""))
    return edits


def _apply(source: Source, edits: Sequence[_Edit]) -> str:
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
