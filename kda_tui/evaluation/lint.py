"""What a candidate's source text gives away before it is compiled: refusals and warnings, with line and word.

Textual checks err on both sides. A refusal names something that no kernel needs; everything else is a
warning that a person reads beside the verdict. What a refusal misses, a device catches where it matters
(the cpu device looks at what the compiled program calls).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kda_tui.evaluation.cuda_tokens import Source, Token, matching, tokenize
from kda_tui.evaluation.lint_words import (
    DIRECTIVES,
    FAST_MATH,
    HOST_CALLS,
    INCLUDES,
    NARROW_WORDS,
    PLAIN_ATTRIBUTES,
    WARNED_WORDS,
)
from kda_tui.record.contract import Contract

MAX_BYTES = 1 << 20
_HOST_API = re.compile(r"(?:cuda|cu)[A-Z]\w*")
_DEVICE_API = {"cudaGridDependencySynchronize", "cudaTriggerProgrammaticLaunchCompletion"}
_OURS = re.compile(r"kda(?:_\w*)?|KDA_(?!CPU\b|DEBUG\b)\w*")
_ONE_SIDED = re.compile(r"ifdef\s+(KDA_CPU|KDA_DEBUG)|if\s+defined\s*\(?\s*(KDA_CPU|KDA_DEBUG)\s*\)?")
_OTHER_SIDED = re.compile(r"ifndef\s+(KDA_CPU|KDA_DEBUG)|if\s+!\s*defined\s*\(?\s*(KDA_CPU|KDA_DEBUG)\s*\)?")
_FLOATS = {"float32", "float64"}


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding. ``refused`` findings stop the compilation."""

    rule: str
    line: int
    word: str
    text: str
    refused: bool


@dataclass(frozen=True, slots=True)
class _Rules:
    """What the findings depend on besides the text."""

    cpu: bool
    debug: bool
    contract_headers: bool
    dimensions: frozenset[str]
    only_full_precision: bool
    outputs: frozenset[str]
    kernels: frozenset[str] | None


def lint(
    text: str,
    contract: Contract,
    *,
    device: str | None = None,
    debug: bool = False,
    kernels: Sequence[str] | None = None,
) -> tuple[LintFinding, ...]:
    """Findings in order of lines.

    ``device``: the contract's unless given. ``debug`` allows printf. ``kernels``: those the launch plan
    names; others are warned of.
    """
    if len(text) > MAX_BYTES:
        return (LintFinding("size", 1, "", f"a source of more than {MAX_BYTES >> 20} MiB", True),)
    source = tokenize(text)
    rules = _rules(contract, device or contract.task.device, debug, kernels)
    directives, code = _active(source, rules)
    found = [*_directives(directives, rules), *_words(code, rules), *_globals(code), *_kernels(code, rules)]
    found.sort(key=lambda f: (f.line, not f.refused, f.rule))
    first = {(f.rule, f.word): f for f in reversed(found)}
    return tuple(f for f in found if f.refused or first[f.rule, f.word] is f)  # a warning once is enough


def kernel_names(text: str) -> tuple[str, ...]:
    """Names of the ``__global__`` functions of a source, in order."""
    code = [t for t in tokenize(text).tokens if t.kind != "newline"]
    return tuple(dict.fromkeys(name.text for name in _kernel_tokens(code)))


def _rules(contract: Contract, device: str, debug: bool, kernels: Sequence[str] | None) -> _Rules:
    # Powers of two are block sizes and tile sizes of honest kernels too.
    sizes = {str(v) for w in contract.workloads for v in w.axes.values() if v > 64 and v & (v - 1)}
    data = [t for t in contract.tensors if t.kind == "data"]
    named = (
        None if kernels is None else frozenset(re.split(r"[<(]", k)[0].rsplit("::", 1)[-1] for k in kernels)
    )
    return _Rules(
        cpu=device == "cpu",
        debug=debug,
        contract_headers=bool(contract.compile.include),
        dimensions=frozenset(sizes),
        only_full_precision=bool(data) and all(t.dtype in _FLOATS for t in data),
        outputs=frozenset(t.name for t in contract.tensors if t.role == "out"),
        kernels=named,
    )


def _active(source: Source, rules: _Rules) -> tuple[list[list[Token]], list[Token]]:
    """Directives and code, without what ``KDA_CPU`` and ``KDA_DEBUG`` surely exclude."""
    directives: list[list[Token]] = []
    code: list[Token] = []
    branches = _Branches(rules.cpu, rules.debug)
    tokens = source.tokens
    i, at_line_start = 0, True
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "newline":
            i, at_line_start = i + 1, True
            continue
        if at_line_start and token.text == "#":
            end = next((k for k in range(i, len(tokens)) if tokens[k].kind == "newline"), len(tokens))
            line = list(tokens[i + 1 : end])
            branches.follow(line)
            if branches.active:
                directives.append(line)
            i = end
            continue
        if branches.active:
            code.append(token)
        i, at_line_start = i + 1, False
    return directives, code


class _Branches:
    """The open ``#if``s: each taken, not taken, or (None) unknown and so read on both sides."""

    def __init__(self, cpu: bool, debug: bool) -> None:
        self._defined = {"KDA_CPU": cpu, "KDA_DEBUG": debug}
        self._open: list[bool | None] = []
        self._not_taken = 0

    @property
    def active(self) -> bool:
        return self._not_taken == 0

    def follow(self, line: Sequence[Token]) -> None:
        """Take a directive into account."""
        name = line[0].text if line else ""
        if name in ("if", "ifdef", "ifndef"):
            self._push(self._condition(" ".join(t.text for t in line)))
        elif name == "else" and self._open:
            taken = self._pop()
            self._push(None if taken is None else not taken)
        elif name in ("elif", "elifdef", "elifndef") and self._open:
            self._pop()
            self._push(None)
        elif name == "endif" and self._open:
            self._pop()

    def _condition(self, words: str) -> bool | None:
        if (found := _ONE_SIDED.fullmatch(words)) is not None:
            return self._defined[found[1] or found[2]]
        if (found := _OTHER_SIDED.fullmatch(words)) is not None:
            return not self._defined[found[1] or found[2]]
        return None

    def _push(self, taken: bool | None) -> None:
        self._open.append(taken)
        self._not_taken += taken is False

    def _pop(self) -> bool | None:
        taken = self._open.pop()
        self._not_taken -= taken is False
        return taken


def _refuse(rule: str, token: Token, text: str) -> LintFinding:
    return LintFinding(rule, token.line, token.text[:80], text, True)


def _warn(rule: str, token: Token, text: str) -> LintFinding:
    return LintFinding(rule, token.line, token.text[:80], text, False)


def _directives(directives: Sequence[Sequence[Token]], rules: _Rules) -> Iterator[LintFinding]:
    for line in directives:
        if not line:
            continue
        name = line[0]
        if name.text == "include":
            yield from _include(line, rules)
        elif name.text in ("define", "undef"):
            yield from _define(line)
        elif name.text == "pragma":
            yield from _pragma(line[1:])
        elif name.text not in DIRECTIVES:
            yield _refuse("directive", name, f"#{name.text}: no kernel needs this directive")
        for token in line[1:]:
            if token.text.startswith("__has_"):
                yield _refuse("directive", token, f"{token.text} probes the machine that compiles")


def _include(line: Sequence[Token], rules: _Rules) -> Iterator[LintFinding]:
    path = "".join(t.text for t in line[1:])
    quoted = re.fullmatch(r'<([^<>]+)>|"([^"]+)"', path)
    if quoted is None:
        yield _refuse("include", line[0], "#include needs a file name, not a macro")
        return
    name = quoted[1] or quoted[2]
    at = line[1]
    if name.startswith("/") or "\\" in name or ".." in name.split("/"):
        yield _refuse("include", at, f"#include {path}: only headers of CUDA, of the contract, and own files")
    elif rules.cpu and quoted[1] and name not in INCLUDES and not rules.contract_headers:
        yield _refuse("include", at, f"#include {path}: the cpu device has no such header")


def _define(line: Sequence[Token]) -> Iterator[LintFinding]:
    if len(line) < 2:
        return
    name, body = line[1], line[2:]
    if name.text in ("KDA_CPU", "KDA_DEBUG") or _OURS.fullmatch(name.text) or name.text.startswith("__"):
        yield _refuse("define", name, f"{name.text} is not the candidate's to define")
    joined = [body[i - 1] for i in range(1, len(body)) if body[i].text == "##"]
    for token in joined:
        text = f"{token.text}## builds names where the text cannot be read"
        yield _refuse("paste", token, text) if _HOST_API.match(token.text) else _warn("paste", token, text)
    yield from _host_words(body)


def _pragma(words: Sequence[Token]) -> Iterator[LintFinding]:
    if not words:
        return
    first = words[0].text
    second = words[1].text if len(words) > 1 else ""
    plain = first in ("unroll", "nounroll", "once", "nv_diag_suppress", "nv_diagnostic", "push", "pop")
    if not plain and not (first == "GCC" and second in ("unroll", "ivdep", "diagnostic")):
        yield _refuse("pragma", words[0], f"#pragma {first} {second}".strip() + ": not for kernels")


def _words(code: Sequence[Token], rules: _Rules) -> Iterator[LintFinding]:
    yield from _host_words(code)
    for i, token in enumerate(code):
        if token.kind == "word":
            yield from _word(code, i, rules)
        elif token.text == "<<<":
            yield _refuse("launch", token, "<<<: launches are in launch.toml")
        elif token.kind == "number" and token.text in rules.dimensions:
            yield _warn("dimension", token, f"{token.text} is a size of the contract: special-cased?")
        elif token.kind == "string":
            yield from _string(token)


def _host_words(code: Sequence[Token]) -> Iterator[LintFinding]:
    for i, token in enumerate(code):
        if token.kind != "word":
            continue
        called = i + 1 < len(code) and code[i + 1].text == "("
        member = i > 0 and code[i - 1].text in (".", "->")
        if token.text in ("__attribute__", "__attribute", "__declspec"):
            yield from _attribute(code, i)
        elif token.text == "__managed__":
            yield _refuse("managed", token, "__managed__: memory is the judge's to give")
        elif token.text in ("thread_local", "__thread"):
            yield _refuse("storage", token, f"{token.text}: device code has __shared__ and local memory")
        elif token.text == "_Pragma":
            yield _refuse("pragma", token, "_Pragma: write #pragma unroll")
        elif called and not member and token.text in HOST_CALLS:
            yield _refuse("host", token, f"{token.text}() is host code; a candidate holds device code only")
        elif _HOST_API.fullmatch(token.text) and called and token.text not in _DEVICE_API:
            yield _refuse(
                "host", token, f"{token.text}() is the host's interface; launches are in launch.toml"
            )


def _attribute(code: Sequence[Token], at: int) -> Iterator[LintFinding]:
    if at + 1 >= len(code) or code[at + 1].text != "(":
        return
    for token in code[at + 2 : matching(code, at + 1)]:
        if token.kind == "word" and token.text.strip("_") not in PLAIN_ATTRIBUTES:
            yield _refuse("attribute", token, f"attribute {token.text}: not for kernels")


def _word(code: Sequence[Token], at: int, rules: _Rules) -> Iterator[LintFinding]:
    token = code[at]
    following = code[at + 1].text if at + 1 < len(code) else ""
    before = code[at - 1].text if at else ""
    word = token.text
    if rules.cpu and _OURS.fullmatch(word):
        yield _refuse("ours", token, f"{word}: names of the cpu device are not the candidate's to use")
    elif word in ("new", "delete") and before != "operator":
        yield _refuse("heap", token, f"{word}: a kernel has no heap; use scratch of launch.toml")
    elif word in ("malloc", "free", "alloca") and following == "(":
        yield _refuse("heap", token, f"{word}(): a kernel has no heap; use scratch of launch.toml")
    elif word == "printf" and following == "(" and not rules.debug:
        yield _refuse(
            "printf", token, "printf() works only under `kda debug`; guard it with #ifdef KDA_DEBUG"
        )
    elif word in ("gnu", "clang") and following == "::" and _in_brackets(code, at):
        yield from _scoped_attribute(code, at)
    elif word in WARNED_WORDS:
        yield _warn("word", token, f"{word}: {WARNED_WORDS[word]}")
    elif word in FAST_MATH:
        yield _warn("fast_math", token, f"{word}: less exact than the function it stands for")
    elif rules.only_full_precision and word in NARROW_WORDS:
        yield _warn("precision", token, f"{word} in a contract whose data is all float32 or wider")
    elif word in ("isnan", "isinf", "__isnanf") and following == "(":
        used = {t.text for t in code[at + 2 : min(matching(code, at + 1), at + 12)]}
        if used & rules.outputs:
            yield _warn("poison", token, f"{word}() of an output: does the kernel look for unwritten memory?")


def _in_brackets(code: Sequence[Token], at: int) -> bool:
    return any(t.text == "[[" for t in code[max(0, at - 20) : at])


def _scoped_attribute(code: Sequence[Token], at: int) -> Iterator[LintFinding]:
    name = code[at + 2] if at + 2 < len(code) else code[at]
    if name.text.strip("_") not in PLAIN_ATTRIBUTES:
        yield _refuse("attribute", name, f"attribute {name.text}: not for kernels")


def _string(token: Token) -> Iterator[LintFinding]:
    for word, why in WARNED_WORDS.items():
        if word in token.text:
            yield LintFinding("word", token.line, word, f"{word}: {why}", False)


def _globals(code: Sequence[Token]) -> Iterator[LintFinding]:
    """``__device__`` variables at file scope that can be written."""
    depth = 0
    for i, token in enumerate(code):
        if token.text in ("{", "}"):
            depth += 1 if token.text == "{" else -1
        if token.text != "__device__":
            continue
        statement = [t.text for t in code[i : i + 64]]
        end = next((k for k, text in enumerate(statement) if text in (";", "{", "(", "=")), len(statement))
        ends_variable = end < len(statement) and statement[end] in (";", "=")
        if ends_variable and not {"const", "constexpr", "operator"} & set(statement[:end]):
            yield _warn(
                "global",
                token,
                "a __device__ variable that can be written: the judge compares it after launches",
            )


def _kernel_tokens(code: Sequence[Token]) -> Iterator[Token]:
    for i, token in enumerate(code):
        if token.text != "__global__":
            continue
        k = i + 1
        while k < min(len(code) - 1, i + 64) and code[k].text not in (";", "{"):
            if code[k].text in ("__launch_bounds__", "__attribute__", "__cluster_dims__", "__maxnreg__"):
                k = matching(code, k + 1) if code[k + 1].text == "(" else k
            elif code[k].kind == "word" and code[k + 1].text == "(":
                yield code[k]
                break
            k += 1


def _kernels(code: Sequence[Token], rules: _Rules) -> Iterator[LintFinding]:
    if rules.kernels is None:
        return
    for name in _kernel_tokens(code):
        if name.text not in rules.kernels:
            yield _warn("kernel", name, f"{name.text} is a kernel that launch.toml does not launch")
