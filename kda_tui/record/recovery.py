"""What has to be mended in the ledgers when a run is opened after a crash. Reading only.

The rules: a journal line without its newline was never committed; a committed line is never lost,
its projections are appended again where they are missing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.record.lines import TORN, Line, last_lines, link_of, parse_line, read_lines
from kda_tui.record.paths import Workspace
from kda_tui.record.projections import Key, csv_key, jsonl_key, missing_projections, project


@dataclass(frozen=True, slots=True)
class TornLine:
    """A line that a crash cut short: which ledger (relative to the workspace), where, how many bytes stood there."""

    ledger: str
    offset: int
    bytes: int


@dataclass(slots=True)
class Tail:
    """Where the next line of a ledger goes on: the newest seq in it and the link to its last line."""

    seq: int = 0
    link: str = ""


@dataclass(slots=True)
class Journals:
    """The committed lines of some runs, and what they say about earlier recoveries."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    reported: set[tuple[str, int]] = field(default_factory=set)
    torn: list[TornLine] = field(default_factory=list)
    tail: Tail = field(default_factory=Tail)  # of the last run


def committed_runs(ws: Workspace) -> list[str]:
    """The runs with at least one committed journal line, oldest first."""
    return [run for run in ws.run_names() if next(committed(ws.run(run).events), None) is not None]


def committed(path: Path) -> Iterator[tuple[Line, dict[str, Any]]]:
    """The lines of a ledger that count, with the parsed object."""
    for line in read_lines(path):
        body = parse_line(line.data)
        if body is not None:
            yield line, body


def unsettled_runs(ws: Workspace, run: str) -> list[str]:
    """The runs that a crash can have left unfinished when ``run`` is opened, oldest first.

    Opening a run settles the ones before it ahead of its first line, so only its forerunner is left.
    """
    earlier = [name for name in committed_runs(ws) if name < run]
    return [*earlier[-1:], run]


def read_journals(ws: Workspace, runs: Iterable[str]) -> Journals:
    """Read the journals of these runs; the tail is the last one's, its seq over journal and transcript."""
    found = Journals()
    for run in runs:
        path = ws.run(run).events
        name = path.relative_to(ws.root).as_posix()
        tail = Tail()
        for line in read_lines(path):
            if line.data.endswith(TORN):
                found.torn.append(_torn(name, line))
                continue
            tail.link = link_of(line.data)
            body = parse_line(line.data)
            if body is None:
                continue
            found.lines.append(body)
            tail.seq = max(tail.seq, _seq(body))
            if body.get("kind") == "recovered":
                found.reported.add((str(body.get("ledger")), int(body.get("offset", -1))))
        found.tail = tail
    return found


def transcript_tail(path: Path) -> Tail:
    """Where a transcript goes on. Reads its end only, as it may be huge."""
    tail = Tail()
    for data in last_lines(path):
        if data.endswith(TORN):
            continue
        tail.link = link_of(data)
        body = parse_line(data)
        tail.seq = max(tail.seq, _seq(body or {}))
    return tail


def torn_lines(ws: Workspace, runs: Iterable[str]) -> Iterator[TornLine]:
    """The closed torn lines of the projections, and the last line of each transcript if it is one."""
    for path in (ws.candidates_ledger, ws.decisions, ws.benchmark):
        name = path.relative_to(ws.root).as_posix()
        yield from (_torn(name, line) for line in read_lines(path) if line.data.endswith(TORN))
    for run in runs:
        path = ws.run(run).transcript
        last = last_lines(path)[-1:]
        if last and last[0].endswith(TORN):
            offset = path.stat().st_size - len(last[0]) - 1
            yield _torn(path.relative_to(ws.root).as_posix(), Line(offset, 0, last[0]))


def _torn(name: str, line: Line) -> TornLine:
    return TornLine(name, line.offset, len(line.data) - len(TORN))


def _seq(body: dict[str, Any]) -> int:
    seq = body.get("seq")
    return seq if isinstance(seq, int) else 0


def rows_of(ws: Workspace, line: dict[str, Any]) -> list[Any] | None:
    """The benchmark rows of a journal line that went into a blob; None where there is no such blob."""
    blob = line.get("rows_blob")
    if not isinstance(blob, str) or "/" in blob:
        return None
    try:
        rows = json.loads((ws.run(str(line.get("run"))).blobs / blob).read_bytes())
    except (OSError, ValueError):
        return None
    return rows if isinstance(rows, list) else None


def missing_lines(ws: Workspace, lines: Iterable[dict[str, Any]]) -> list[tuple[Path, list[bytes]]]:
    """For each projection, the lines that these journal lines put there and that are not there."""
    tables = ((ws.candidates_ledger, jsonl_key), (ws.decisions, jsonl_key), (ws.benchmark, csv_key))
    there = [_count(path, key) for path, key in tables]
    # Projecting again costs much more than counting, and nearly always nothing is missing.
    short = [line for line in lines if _falls_short(ws, line, there)]
    projected = [project(line, rows_of(ws, line)) for line in short]
    expected = (
        [data for p in projected for data in p.candidates],
        [data for p in projected for data in p.decisions],
        [data for p in projected for data in p.benchmark],
    )
    return [
        (path, missing_projections(wanted, (line.data for line in read_lines(path)), key) if wanted else [])
        for (path, key), wanted in zip(tables, expected, strict=True)
    ]


def _count(path: Path, key: Callable[[bytes], Key | None]) -> Counter[Key]:
    """How many lines of a projection there are for each (run, seq)."""
    return Counter(found[:2] for line in read_lines(path) if (found := key(line.data)) is not None)


def _falls_short(ws: Workspace, line: dict[str, Any], there: list[Counter[Key]]) -> bool:
    key = (str(line.get("run")), str(line.get("seq")))
    rows = rows_of(ws, line) if "rows_blob" in line else line.get("rows")
    wanted = (
        isinstance(line.get("candidate"), dict),
        isinstance(line.get("decision"), dict),
        len(rows) if isinstance(rows, list) else 0,
    )
    return any(count[key] < least for count, least in zip(there, wanted, strict=True))
