"""CUDA C++ source text as tokens: comments and strings told apart, in linear time for any input."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_PLAIN = re.compile(
    r"""
      (?P<space>[ \t\f\v\r]+)
    | (?P<newline>\n)
    | (?P<comment>//[^\n]*)
    | (?P<block>/\*)
    | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\()
    | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"?)
    | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*'?)
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[0-9A-Za-z_.])*)
    | (?P<word>[A-Za-z_$\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*)
    | (?P<punctuation><<<|>>>|\#\#|::|->|\[\[|\]\]|.)
    """,
    re.VERBOSE | re.DOTALL,
)

_REACH = 128  # tokens that a bracket may hold; bounded, so that hostile nesting costs no quadratic time


@dataclass(frozen=True, slots=True)
class Token:
    """One token; ``kind``: word, number, string, char, punctuation, newline. ``start`` is an offset in ``text``."""

    kind: str
    text: str
    start: int
    line: int


@dataclass(frozen=True, slots=True)
class Source:
    """A source with its line splices joined, so that no token is split; lines are those of the file."""

    text: str
    tokens: tuple[Token, ...]
    splices: tuple[int, ...]  # offsets in ``text`` where a backslash and new line stood


def tokenize(source: str) -> Source:
    """Split ``source``; white space and comments are left out, new lines are kept (directives need them)."""
    text, splices = _join_lines(source)
    tokens: list[Token] = []
    position, line = 0, 1
    while position < len(text):
        found = _PLAIN.match(text, position)
        assert found is not None  # the last alternative takes any character
        kind, end = found.lastgroup or "", found.end()
        if kind == "delimiter":
            kind = "raw"
        if kind == "block":
            end = _end_after(text, "*/", end)
        elif kind == "raw":
            end = _end_after(text, f'){found["delimiter"]}"', end)
        if kind not in ("space", "comment", "block"):
            at = line + bisect_right(splices, position)
            tokens.append(Token("string" if kind == "raw" else kind, text[position:end], position, at))
        line += text.count("\n", position, end)
        position = end
    return Source(text, tuple(tokens), tuple(splices))


def _join_lines(source: str) -> tuple[str, list[int]]:
    """Drop each backslash-newline; also the offsets, in the joined text, where one was."""
    parts = re.split(r"\\[ \t]*\r?\n", source.replace("\r\n", "\n"))
    splices, offset = [], 0
    for part in parts[:-1]:
        offset += len(part)
        splices.append(offset)
    return "".join(parts), splices


def _end_after(text: str, closing: str, start: int) -> int:
    found = text.find(closing, start)
    return len(text) if found < 0 else found + len(closing)


def matching(tokens: Sequence[Token], opening: int) -> int:
    """The index of the bracket that closes ``tokens[opening]``; the last one looked at (128 on)
    where none does."""
    pairs = {"(": ")", "[": "]", "{": "}", "[[": "]]"}
    close = pairs[tokens[opening].text]
    depth = 0
    for i in range(opening, min(len(tokens), opening + _REACH)):
        if tokens[i].text == tokens[opening].text:
            depth += 1
        elif tokens[i].text == close:
            depth -= 1
            if depth == 0:
                return i
    return min(len(tokens), opening + _REACH) - 1
