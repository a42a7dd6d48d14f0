"""Benchmark tables as people write them: headers that change on the way, comments, ragged rows, JSON in cells."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kda_tui.record.snapshot import Finding
from kda_tui.record.tail import TailLine
from kda_tui.text import clean_line

_HEADER_WORDS = frozenset(
    ["timestamp", "timestamp_utc", "ts", "utc", "date", "time", "candidate", "candidate_id", "candidate_name", "solution_name", "solution_tag", "case", "case_id", "case_name", "shape", "shape_id", "shape_rows", "commit", "commit_id", "notes", "metric", "cycles", "op", "host", "n", "kernel", "mode", "run_id"]
)  # fmt: skip
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_MAX_FIELD = 1 << 18


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row by column name. Cells beyond the header are under ``column 17``; ``line`` is where the row begins."""

    file: str
    line: int
    cells: Mapping[str, str]


def read_table(file: str, lines: Iterable[TailLine], found: Callable[[Finding], None]) -> list[TableRow]:
    """All rows of a table, in order. Comments and blank lines are counted in a finding, nothing is dropped silently."""
    reader = _Reader(file, found)
    for number, text in _logical_lines(file, lines, found):
        reader.take(number, text)
    reader.end()
    return reader.rows


def _logical_lines(
    file: str, lines: Iterable[TailLine], found: Callable[[Finding], None]
) -> Iterable[tuple[int, str]]:
    """Lines, those of one quoted cell joined again; with the number of the first."""
    begun, held = 0, ""
    for _, number, data in lines:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode("utf-8", "backslashreplace")
            found(Finding(file, number, "bytes that are not UTF-8", "shown as they are"))
        if "\0" in text:
            found(Finding(file, number, f"{text.count(chr(0))} NUL bytes", "left out"))
            text = text.replace("\0", "")
        begun, held = (begun, f"{held}\n{text}") if held else (number, text)
        if held.count('"') % 2 and len(held) < _MAX_FIELD:
            continue
        yield begun, held
        held = ""
    if held:
        found(Finding(file, begun, "a quote that is never closed", "read to the end of the file as one row"))
        yield begun, held


class _Reader:
    def __init__(self, file: str, found: Callable[[Finding], None]) -> None:
        self.rows: list[TableRow] = []
        self._file = file
        self._found = found
        self._header: list[str] = []
        self._comments: list[int] = []

    def take(self, number: int, text: str) -> None:
        if not text.strip() or text.lstrip().startswith("#"):
            if text.strip():
                self._comments.append(number)
            return
        cells = self._cells(number, text)
        names = [cell.strip().lower() for cell in cells]
        if _is_header(names, again=bool(self._header)):
            if self._header:
                self._say(
                    number, f"another header, {len(cells)} columns", "rows below are read by it", "note"
                )
            self._header = [cell.strip() or f"column {place}" for place, cell in enumerate(cells, 1)]
            return
        if not self._header:
            self._header = [f"column {place}" for place in range(1, len(cells) + 1)]
            self._say(number, "no header", "columns are numbered", "warning")
        if len(cells) != len(self._header):
            done = "the rest is empty" if len(cells) < len(self._header) else "the rest has numbered columns"
            self._say(number, f"{len(cells)} cells of {len(self._header)}", done, "warning")
        row = dict(zip(self._header, cells, strict=False))
        row |= {f"column {place}": cell for place, cell in enumerate(cells, 1) if place > len(self._header)}
        self.rows.append(TableRow(self._file, number, row))

    def _cells(self, number: int, text: str) -> list[str]:
        try:
            found = (
                list(csv.reader([text.replace("\r", "")], strict=False))
                if "\n" not in text
                else list(csv.reader(text.splitlines(True)))
            )
        except csv.Error as error:
            self._say(number, f"{error}: {clean_line(text, 60)}", "cut at commas", "warning")
            return text.split(",")
        return [cell for row in found for cell in row]

    def end(self) -> None:
        if self._comments:
            self._say(self._comments[0], f"{len(self._comments)} comment lines", "kept in the file", "note")
        if self._header and not self.rows:
            self._say(0, "a header and no rows", "no data yet", "note")

    def _say(self, line: int, seen: str, done: str, severity: str) -> None:
        self._found(Finding(self._file, line, seen, done, severity))


def _is_header(names: list[str], again: bool) -> bool:
    """Whether these cells are column names. The first line needs one known word, a later one a quarter of them."""
    if not names or _STAMP.match(names[0]) or any(_NUMBER.fullmatch(name) for name in names):
        return False
    known = sum(name in _HEADER_WORDS or name.endswith(("_us", "_ms", "_x", "_gbs")) for name in names)
    return known >= (max(2, len(names) // 4) if again else 1)
