"""benchmark.csv into columns: keys interned, numbers in arrays, a batch of lines at a time."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Callable, Sequence

from kda_tui.record.projections import ROW_END
from kda_tui.record.records import BENCHMARK_COLUMNS
from kda_tui.record.snapshot import BenchTable, Finding
from kda_tui.record.tail import TailLine
from kda_tui.text import clean_line

KEYS = ("candidate", "workload", "arm", "opponent", "eval", "protocol")
NUMBERS = ("median_us", "min_us", "p95_us", "iqr_us", "ratio", "ratio_lo", "ratio_hi", "floor_us")

_ADMISSIBLE = {"1": 1, "true": 1, "yes": 1, "0": 0, "false": 0, "no": 0}
_NONE = math.nan
_BATCH = 400  # rows cut at once; more of them fall out of the processor's cache


class _Names(dict[str, int]):
    """Indexes of interned texts; asking for a new one adds it."""

    def __missing__(self, text: str) -> int:
        index = self[text] = len(self)
        return index


class BenchColumns:
    """The growing columns behind :class:`BenchTable`. The first line is the header; its names decide, not places."""

    def __init__(self, file: str, found: Callable[[Finding], None]) -> None:
        self._file = file
        self._found = found
        self._width = 0  # cells of a row; 0 until the header was read
        self._places: dict[str, int] = {}
        self._ends = True  # rows end in a "." cell
        self._names = _Names()
        self._keys = {name: array("i") for name in KEYS}
        self._numbers = {name: array("d") for name in NUMBERS}
        self._admissible = array("b")
        self._seq = array("q")
        self._t: list[str] = []
        self._same_t: dict[str, str] = {}
        self._table: BenchTable | None = None

    @property
    def rows(self) -> int:
        return len(self._t)

    def take(self, lines: Sequence[TailLine]) -> None:
        """Fold whole lines. Rows that are not whole, or hold no numbers where numbers belong, become findings."""
        if lines and not self._width:
            self._read_header(lines[0])
            lines = lines[1:]
        for at in range(0, len(lines), _BATCH):
            batch = lines[at : at + _BATCH]
            columns = self._regular(batch)
            if columns is not None:
                self._append([number for _, number, _ in batch], columns)
                continue
            rows = [(line[1], cells) for line in batch if (cells := self._cells(line)) is not None]
            if rows:
                columns = list(zip(*[cells for _, cells in rows], strict=True))
                self._append([number for number, _ in rows], columns)

    def table(self) -> BenchTable | None:
        """What there is so far, sharing the arrays; None before the header. The same object until rows come."""
        if not self._width:
            return None
        if self._table is None or self._table.rows != self.rows:
            old = self._table.names if self._table is not None else ()
            self._table = BenchTable(
                rows=self.rows,
                names=old if len(old) == len(self._names) else tuple(self._names),
                t=self._t,
                seq=self._seq,
                admissible=self._admissible,
                candidate=self._keys["candidate"],
                workload=self._keys["workload"],
                arm=self._keys["arm"],
                opponent=self._keys["opponent"],
                eval=self._keys["eval"],
                protocol=self._keys["protocol"],
                median_us=self._numbers["median_us"],
                min_us=self._numbers["min_us"],
                p95_us=self._numbers["p95_us"],
                iqr_us=self._numbers["iqr_us"],
                ratio=self._numbers["ratio"],
                ratio_lo=self._numbers["ratio_lo"],
                ratio_hi=self._numbers["ratio_hi"],
                floor_us=self._numbers["floor_us"],
            )
        return self._table

    # --- lines ------------------------------------------------------------------------------------

    def _read_header(self, line: TailLine) -> None:
        _, number, data = line
        names = [name.strip() for name in _split(data.decode("utf-8", "replace")) or ()]
        self._width = max(1, len(names))
        self._places = {name: place for place, name in reversed(list(enumerate(names)))}
        self._ends = bool(names) and names[-1] == "end"
        unknown = [name for name in names if name not in BENCHMARK_COLUMNS]
        missing = [name for name in ("candidate", "workload", "median_us") if name not in self._places]
        if unknown:
            self._say(number, f"columns {clean_line(', '.join(unknown), 100)}", "not in the table", "note")
        if missing:
            self._say(number, f"no column {', '.join(missing)}", "left empty", "warning")
        if not self._ends:
            self._say(
                number, "no column 'end'", "rows that a crash cut cannot be told from whole ones", "note"
            )

    def _regular(self, lines: Sequence[TailLine]) -> list[Sequence[str]] | None:
        """The columns of lines that are all whole, unquoted rows, cut at once; None if one of them is not."""
        try:
            text = b",\n,".join([data for _, _, data in lines]).decode()
        except UnicodeDecodeError:
            return None
        if '"' in text or "\0" in text:
            return None
        cells = text.split(",")
        step, count = self._width + 1, len(lines)
        if len(cells) != step * count - 1 or cells[self._width :: step] != ["\n"] * (count - 1):
            return None
        if self._ends and cells[self._width - 1 :: step] != [ROW_END] * count:
            return None
        return [cells[place::step] for place in range(self._width)]

    def _cells(self, line: TailLine) -> list[str] | None:
        _, number, data = line
        try:
            row = data.decode()
        except UnicodeDecodeError:
            row = data.decode("utf-8", "backslashreplace")
            self._say(number, "bytes that are not UTF-8", "shown as they are", "warning")
        if "\0" in row:
            self._say(number, f"{row.count(chr(0))} NUL bytes", "left out", "warning")
            row = row.replace("\0", "")
        cells = row.split(",") if '"' not in row else _split(row)
        if cells is not None and len(cells) == self._width and (not self._ends or cells[-1] == ROW_END):
            return cells
        what = "an open quote" if cells is None else f"{len(cells)} cells of {self._width}"
        if cells is not None and len(cells) == self._width:
            what = "a row without its end"
        self._say(number, f"{what}: {clean_line(row, 60)}", "not in the table", "warning")
        return None

    # --- columns ----------------------------------------------------------------------------------

    def _append(self, numbers: Sequence[int], columns: Sequence[Sequence[str]]) -> None:
        """Append rows, given as columns; ``numbers`` are their lines, for findings."""
        count = len(numbers)
        index = self._names.__getitem__
        for name, keys in self._keys.items():
            keys.extend(map(index, self._column(columns, name, count)))
        for name, values in self._numbers.items():
            values.extend(self._floats(name, self._column(columns, name, count), numbers))
        admissible = self._column(columns, "admissible", count)
        self._admissible.extend([_ADMISSIBLE.get(cell.lower(), -1) if cell else -1 for cell in admissible])
        self._seq.extend([_seq(cell) for cell in self._column(columns, "seq", count)])
        same = self._same_t.setdefault
        self._t.extend([same(t, t) for t in self._column(columns, "t", count)])

    def _column(self, columns: Sequence[Sequence[str]], name: str, count: int) -> Sequence[str]:
        place = self._places.get(name)
        return columns[place] if place is not None else ("",) * count

    def _floats(self, name: str, cells: Sequence[str], lines: Sequence[int]) -> list[float]:
        try:
            if "" not in cells:
                values = list(map(float, cells))
                if math.isfinite(math.fsum(values)):
                    return values
            else:
                values = [float(cell) if cell else _NONE for cell in cells]
        except (ValueError, OverflowError):
            values = [self._float(name, cell, line) for cell, line in zip(cells, lines, strict=True)]
        if math.inf in values or -math.inf in values:
            for at, value in enumerate(values):
                if math.isinf(value):
                    values[at] = _NONE
                    self._say(lines[at], f"{name} is infinite", "left empty", "warning")
        return values

    def _float(self, name: str, cell: str, line: int) -> float:
        try:
            return float(cell) if cell else _NONE
        except ValueError:
            self._say(line, f"{name} is {clean_line(cell, 40)!r}", "left empty", "warning")
            return _NONE

    def _say(self, line: int, seen: str, done: str, severity: str) -> None:
        self._found(Finding(self._file, line, seen, done, severity))


def _seq(cell: str) -> int:
    return int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 19 else 0


def _split(row: str) -> list[str] | None:
    """The cells of a row with quotes; None where a quote stays open."""
    try:
        found = list(csv.reader([row], strict=True))
    except csv.Error:
        return None
    return found[0] if found else []
