"""What a journal line puts into candidates.jsonl, decisions.jsonl and benchmark.csv. Pure functions.

A projected line has the ``seq`` and ``run`` of its journal line, so it can always be found, compared and
written again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kda_tui.record.lines import encode_line, parse_line
from kda_tui.record.records import BENCHMARK_COLUMNS, FORMAT_VERSION

CSV_HEADER = ",".join(BENCHMARK_COLUMNS).encode()
ROW_END = "."  # the last cell of a whole row
_LAST_CELL = f",{ROW_END}".encode()

Key = tuple[str, ...]  # run, seq; in benchmark.csv also workload, arm

_SEQ, _RUN, _WORKLOAD, _ARM = (BENCHMARK_COLUMNS.index(c) for c in ("seq", "run", "workload", "arm"))


@dataclass(frozen=True, slots=True)
class Projected:
    """Lines without newline, one tuple a ledger."""

    candidates: tuple[bytes, ...] = ()
    decisions: tuple[bytes, ...] = ()
    benchmark: tuple[bytes, ...] = ()


def project(line: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] | None = None) -> Projected:
    """The projections of a parsed journal line. ``rows``: those of its ``rows_blob``, if it has one."""
    envelope = {"v": FORMAT_VERSION, "seq": line.get("seq"), "t": line.get("t"), "run": line.get("run")}
    candidate, decision = line.get("candidate"), line.get("decision")
    found = rows if rows is not None else line.get("rows")
    return Projected(
        candidates=(encode_line({**envelope, **candidate}),) if isinstance(candidate, dict) else (),
        decisions=(encode_line({**envelope, **decision}),) if isinstance(decision, dict) else (),
        benchmark=tuple(benchmark_row(line, row) for row in found or () if isinstance(row, Mapping)),
    )


def benchmark_row(line: Mapping[str, Any], row: Mapping[str, Any]) -> bytes:
    """A row of benchmark.csv: the journal line says which evaluation, ``row`` has the other cells."""
    cells: dict[str, Any] = {
        "eval": line.get("claim"),
        "attempt": line.get("attempt"),
        "candidate": line.get("cand"),
        "opponent": line.get("opponent"),
        **row,
        "seq": line.get("seq"),
        "t": line.get("t"),
        "run": line.get("run"),
        "end": ROW_END,
    }
    return ",".join(csv_cell(cells.get(column)) for column in BENCHMARK_COLUMNS).encode()


def csv_cell(value: Any) -> str:
    """A cell that needs no quotes: absent is empty, true 1, false 0, a list joined by spaces.

    Commas become ``;``, double quotes ``'``, line ends and other controls spaces: every line of the
    file stands for itself, for any tool, also where a crash cut one.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, list | tuple):
        return " ".join(csv_cell(item) for item in value)
    text = str(value).replace(",", ";").replace('"', "'")
    text = "".join(c if c.isprintable() or c == " " else " " for c in text)
    return text.encode("utf-8", "replace").decode()


def jsonl_key(data: bytes) -> Key | None:
    """The key of a line of candidates.jsonl or decisions.jsonl, or None: torn, or not written from a journal."""
    line = parse_line(data)
    if line is None or "run" not in line or "seq" not in line:
        return None
    return str(line["run"]), str(line["seq"])


def csv_key(data: bytes) -> Key | None:
    """The key of a row of benchmark.csv, or None: the header, a torn row, or somebody else's."""
    if not data.endswith(_LAST_CELL) or data.count(b",") != len(BENCHMARK_COLUMNS) - 1:
        return None
    cells = data.split(b",", _ARM + 1)
    run, seq, workload, arm = (cells[i].decode("utf-8", "replace") for i in (_RUN, _SEQ, _WORKLOAD, _ARM))
    return run, seq, workload, arm


def missing_projections(
    expected: Iterable[bytes], present: Iterable[bytes], key: Callable[[bytes], Key | None]
) -> list[bytes]:
    """The expected lines whose key is not present, in order. Where a key comes n times, the first n are there."""
    there = Counter(found for data in present if (found := key(data)) is not None)
    missing: list[bytes] = []
    for data in expected:
        wanted = key(data)
        if wanted is not None and there[wanted]:
            there[wanted] -= 1
        else:
            missing.append(data)
    return missing
