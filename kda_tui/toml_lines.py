"""TOML with line numbers: parse a file safely, and say on which line any key stands.

tomllib knows no positions and takes quadratic time on some hostile texts, so a scan of our own goes
first: it notes lines, and refuses what is nested or dotted beyond reason. Where the scan meets
something that is no TOML it stops, and tomllib says what is wrong.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from typing import Any

from kda_tui.text import UserError, clean_line

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_PARTS = 32
Key = tuple[str | int, ...]

_BLANK = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\n]++|#[^\n]*+)*+")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*'""")
_STRING = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']++|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]++|\\.)*+"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE = re.compile(r"[^\s,\]}#\[{=\"']+(?: [0-9:.Z+-]+)?")  # a date and its time may be two words
_AT = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")


class TomlError(UserError):
    """A text that is no TOML, with its line; ``what`` is the message without file and line."""

    def __init__(self, name: str, line: int, what: str) -> None:
        self.line, self.what = line, what
        super().__init__(f"{name}, line {line}: {what}")


def parse_toml(data: bytes, name: str) -> tuple[dict[str, Any], Lines]:
    """The parsed document and where its keys stand. Raises TomlError with file and line."""
    if len(data) > MAX_BYTES:
        raise TomlError(name, 1, f"larger than {MAX_BYTES >> 20} MiB; settings and contracts are small files")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        hint = "it looks like UTF-16; " if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise TomlError(name, line, f"not UTF-8; {hint}save the file as UTF-8") from error
    scan = _Scan(text)
    try:
        scan.document()
    except _TooDeep as error:
        raise TomlError(name, scan.line(), f"nested or dotted more than {MAX_DEPTH} deep") from error
    except _NotToml:
        pass  # tomllib stops at the same place and has the better words
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        found = _AT.search(str(error))
        line = int(found[1]) if found and found[1] else text.count("\n", 0, len(text.rstrip())) + 1
        what = clean_line(_AT.sub("", str(error)))[:200] or "nested too deep"
        raise TomlError(name, line, f"not TOML: {what[:1].lower()}{what[1:]}") from error
    return document, Lines(scan.lines)


class Lines:
    """Line numbers, from 1, by key path; integers count the elements of arrays and arrays of tables."""

    def __init__(self, lines: dict[Key, int]) -> None:
        self._lines = {**lines, (): 1}

    def of(self, key: Sequence[str | int]) -> int:
        """The line of a key, or of the nearest enclosing one that the file has."""
        wanted = tuple(key)
        while wanted not in self._lines:
            wanted = wanted[:-1]
        return self._lines[wanted]

    def moved(self, where: Callable[[Key], Key]) -> Lines:
        """The same lines under other keys: ``where`` gives the new key of each."""
        return Lines({where(key): line for key, line in self._lines.items()})

    def has(self, key: Sequence[str | int]) -> bool:
        return tuple(key) in self._lines


class _NotToml(Exception):
    pass


class _TooDeep(Exception):
    pass


class _Scan:
    """One pass over a text with ``\\n`` line ends; ``lines`` fills up."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Key, int] = {}
        self._tables: dict[Key, int] = {}  # arrays of tables: how many so far
        self._counted = (0, 1)  # a position and its line: lines are counted once

    def line(self) -> int:
        position, line = self._counted
        line += self.text.count("\n", position, self.at)
        self._counted = (self.at, line)
        return line

    def document(self) -> None:
        table: Key = ()
        while self._skip(_GAP) < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table, 0)
            self._skip(_BLANK)
            if self.at < len(self.text) and self.text[self.at] not in "#\n":
                raise _NotToml

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def _take(self, word: str) -> bool:
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def _key(self) -> list[str]:
        """A bare, quoted or dotted key."""
        parts: list[str] = []
        while True:
            self._skip(_BLANK)
            found = _PART.match(self.text, self.at)
            if found is None:
                raise _NotToml
            self.at = found.end()
            parts.append(_plain(found[0]))
            if len(parts) > MAX_PARTS:
                raise _TooDeep
            self._skip(_BLANK)
            if not self._take("."):
                return parts

    def _header(self) -> Key:
        line = self.line()
        array = self._take("[[")
        if not array:
            self._take("[")
        parts = self._key()
        if not self._take("]]" if array else "]"):
            raise _NotToml
        path: Key = ()
        for part in parts[:-1]:
            path = (*path, part)
            self.lines.setdefault(path, line)
            if path in self._tables:
                path = (*path, self._tables[path] - 1)
        path = (*path, parts[-1])
        if array:
            self.lines.setdefault(path, line)
            self._tables[path] = self._tables.get(path, 0) + 1
            path = (*path, self._tables[path] - 1)
        self.lines.setdefault(path, line)
        return path

    def _pair(self, table: Key, depth: int) -> None:
        line = self.line()
        path = table
        for part in self._key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        if not self._take("="):
            raise _NotToml
        self._value(path, depth)

    def _value(self, path: Key, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _TooDeep
        self._skip(_BLANK)
        if self._take("["):
            self._array(path, depth)
        elif self._take("{"):
            self._inline(path, depth)
        else:
            pattern = _STRING if self.text[self.at : self.at + 1] in ("'", '"') else _BARE
            if pattern.match(self.text, self.at) is None:
                raise _NotToml
            self._skip(pattern)

    def _array(self, path: Key, depth: int) -> None:
        count = 0
        self._skip(_GAP)
        while not self._take("]"):
            self.lines.setdefault((*path, count), self.line())
            self._value((*path, count), depth + 1)
            count += 1
            self._skip(_GAP)
            if not self._take(",") and self.text[self.at : self.at + 1] != "]":
                raise _NotToml
            self._skip(_GAP)

    def _inline(self, path: Key, depth: int) -> None:
        self._skip(_GAP)
        while not self._take("}"):
            self._pair(path, depth + 1)
            self._skip(_GAP)
            if not self._take(",") and self.text[self.at : self.at + 1] != "}":
                raise _NotToml
            self._skip(_GAP)


def _plain(part: str) -> str:
    """The name that a key's spelling stands for."""
    if part[0] == "'":
        return part[1:-1]
    if part[0] != '"':
        return part
    try:
        return str(next(iter(tomllib.loads(f"{part} = 0"))))
    except tomllib.TOMLDecodeError as error:
        raise _NotToml from error
