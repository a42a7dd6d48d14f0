"""TOML with line numbers: parse a file, and say on which line a key stands.

tomllib knows no positions, so a second, forgiving scan finds the lines of tables and keys. It is only
used for messages: where it is unsure it gives the line of the nearest enclosing table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from kda_tui.text import UserError, clean_line

MAX_BYTES = 4 << 20
Path = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=(?!=)""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")


def parse_toml(data: bytes, name: str) -> tuple[dict[str, Any], Lines]:
    """The parsed document and where its keys stand. Raises UserError with file and line."""
    if len(data) > MAX_BYTES:
        raise UserError(f"{name}: larger than {MAX_BYTES >> 20} MB; this is no configuration file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UserError(f"{name}, line {line}: not UTF-8; save the file as UTF-8") from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.search(str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        what = clean_line(_AT_LINE.sub("", str(error)).strip().rstrip(":"))[:200]
        raise UserError(f"{name}, line {line}: not TOML: {what}") from error
    except (RecursionError, ValueError) as error:
        raise UserError(
            f"{name}: not TOML: {'nested too deeply' if isinstance(error, RecursionError) else error}"
        ) from error
    return document, Lines(text)


class Lines:
    """Line numbers (from 1) by key path; integers in a path number the tables of an array."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {(): 1}
        self._counts: dict[Path, int] = {}
        self._scan(text.splitlines())

    def of(self, path: Sequence[str | int]) -> int:
        """The line of a key, or of the nearest enclosing table that is known."""
        wanted = tuple(path)
        while wanted not in self._lines:
            wanted = wanted[:-1]
        return self._lines[wanted]

    def _scan(self, lines: Sequence[str]) -> None:
        table: Path = ()
        inside = ""  # the delimiter of a multi-line string
        depth = 0  # open brackets of a multi-line array or table
        for number, line in enumerate(lines, start=1):
            if not inside and depth <= 0:
                header = _HEADER.match(line)
                if header is not None and "=" not in header[2]:
                    table = self._enter(header[1] == "[[", header[2], number)
                    continue
                key = _KEY.match(line)
                if key is not None:
                    self._note(table, key[1], number)
                    line = line[key.end() :]
                depth = 0
            inside, depth = _balance(line, inside, depth)

    def _enter(self, array: bool, name: str, number: int) -> Path:
        path: Path = ()
        parts = [_bare(part) for part in _PART.findall(name)]
        for i, part in enumerate(parts):
            path = (*path, part)
            last = i == len(parts) - 1
            if array and last:
                count = self._counts.get(path, 0)
                self._counts[path] = count + 1
                self._lines.setdefault(path, number)
                path = (*path, count)
            elif path in self._counts:
                path = (*path, self._counts[path] - 1)
        self._lines.setdefault(path, number)
        return path

    def _note(self, table: Path, key: str, number: int) -> None:
        path = table
        for part in _PART.findall(key):
            path = (*path, _bare(part))
            self._lines.setdefault(path, number)


def _bare(part: str) -> str:
    return part[1:-1] if part[:1] in "\"'" else part


def _balance(line: str, inside: str, depth: int) -> tuple[str, int]:
    """Follow strings and brackets over one line; returns the open string delimiter and bracket depth."""
    i = 0
    while i < len(line):
        if inside:
            if inside[0] == '"' and line[i] == "\\":
                i += 2
                continue
            if line.startswith(inside, i):
                i += len(inside)
                inside = ""
                continue
        elif line.startswith(('"""', "'''"), i):
            inside = line[i : i + 3]
            i += 3
            continue
        elif line[i] in "\"'":
            inside = line[i]
        elif line[i] == "#":
            break
        elif line[i] in "[{":
            depth += 1
        elif line[i] in "]}":
            depth -= 1
        i += 1
    return (inside if len(inside) == 3 else ""), depth
