"""Reads somebody's workspace into the same snapshots as our own.

Its files are rewritten, not appended to, so a change of any of them means reading all of them again; the last
snapshot stays until the new one is whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kda_tui.record.findings import FindingBook
from kda_tui.record.foreign.best import best_of
from kda_tui.record.foreign.blocks import is_transcript
from kda_tui.record.foreign.documents import newest_time, plan_of, rounds_of, task_of
from kda_tui.record.foreign.found import Layout, layout_of
from kda_tui.record.foreign.joining import candidates_of, cells_of, measure_all
from kda_tui.record.foreign.ledger import LedgerRow, nodes_of
from kda_tui.record.foreign.series import bench_table
from kda_tui.record.foreign.tables import TableRow, read_table
from kda_tui.record.paths import check_folder
from kda_tui.record.records import Candidate
from kda_tui.record.rough_json import read_object
from kda_tui.record.snapshot import Finding, Incumbent, Snapshot, TranscriptState
from kda_tui.record.surroundings import Stamp, stamp_of
from kda_tui.record.tail import CHUNK, TailedFile, TailLine
from kda_tui.record.transcript import TranscriptFile
from kda_tui.text import clean_line

FIRST_S = 0.2  # of reading before anything is shown; nearly every workspace is whole by then
SLICE_S = 0.02
LOOK_AGAIN_S = 2.0  # between two looks for new files
MOST_ROWS = 100_000  # kept of one file; more are counted in a finding


@dataclass(slots=True)
class _Reading:
    """One pass over all files: what was read so far, and the findings of this pass."""

    layout: Layout
    book: FindingBook = field(default_factory=FindingBook)
    rows: list[LedgerRow] = field(default_factory=list)
    tables: dict[str, list[TableRow]] = field(default_factory=dict)
    done: int = 0  # bytes
    size: int = 1


class ForeignReader:
    """The interface of ``record.reader.Reader`` for workspaces that our worker did not write. Writes nothing."""

    def __init__(self, root: Path, read_only: bool = True) -> None:
        """Always read-only, whatever is asked: nobody here may decide."""
        self.root = root.absolute()
        self.read_only = True
        self._snapshot = Snapshot(self.root, 0, self.root.resolve().name, read_only=True, foreign=True)
        self._stamps: dict[str, Stamp] = {}
        self._layout = Layout(self.root)
        self._look_at = 0.0
        self._work: Iterator[None] | None = None
        self._reading = _Reading(self._layout)

    # --- for callers ------------------------------------------------------------------------------

    def first(self) -> Snapshot:
        """What can be said at once; ``extra["loading"]`` while there is more to come."""
        self._look(anew=True)
        return self._advance(time.monotonic() + FIRST_S) or self._loading()

    def poll(self) -> Snapshot | None:
        """Read on for a slice of time; None if nothing changed."""
        self._look(anew=False)
        return self._advance(time.monotonic() + SLICE_S)

    def settle(self) -> Snapshot:
        """Read everything as it is now."""
        self._look(anew=True)
        return self._advance(None) or self._snapshot

    # --- reading ----------------------------------------------------------------------------------

    def _look(self, anew: bool) -> None:
        """Begin to read again if a file came, went or changed."""
        check_folder(self.root)
        clock = time.monotonic()
        if anew or clock >= self._look_at:
            self._layout = layout_of(self.root)
            self._look_at = clock + LOOK_AGAIN_S
        stamps = {name: stamp_of(self.root / name) for name in self._layout.watched}
        if stamps != self._stamps:
            self._stamps = stamps
            self._reading = _Reading(
                self._layout, size=max(1, sum(s[2] for s in stamps.values() if s is not None))
            )
            self._work = self._read(self._reading)

    def _advance(self, until: float | None) -> Snapshot | None:
        if self._work is None:
            return self._publish(replace(self._snapshot, transcript=self._grown_transcript()))
        for _ in self._work:
            if until is not None and time.monotonic() >= until:
                return None
        self._work = None
        return self._publish(self._make(self._reading))

    def _grown_transcript(self) -> TranscriptState:
        state = self._snapshot.transcript
        stamp = stamp_of(state.path) if state.path is not None else None
        return replace(state, size=stamp[2]) if stamp is not None else state

    def _publish(self, made: Snapshot) -> Snapshot | None:
        before = self._snapshot
        if before.version and replace(made, version=before.version) == before:
            return None
        self._snapshot = replace(made, version=before.version + 1)
        return self._snapshot

    def _loading(self) -> Snapshot:
        if self._snapshot.version:
            return self._snapshot
        share = min(0.99, self._reading.done / self._reading.size)
        return replace(self._snapshot, extra={"loading": share})

    def _read(self, reading: _Reading) -> Iterator[None]:
        """Read all ledgers and tables, giving way after each chunk."""
        for name in reading.layout.ledgers:
            for found in self._objects(name, reading):
                if found is None:
                    yield
                else:
                    reading.rows.append(LedgerRow(name, *found))
        for name in reading.layout.results:
            rows: list[TableRow] = []
            for found in self._objects(name, reading):
                if found is None:
                    yield
                else:
                    rows.append(TableRow(name, found[0], cells_of(found[1])))
            reading.tables[name] = rows
        for name in reading.layout.tables:
            lines: list[TailLine] = []
            for line in self._lines(name, reading):
                if line is None:
                    yield
                else:
                    lines.append(line)
            reading.tables[name] = read_table(name, lines, reading.book.add)
            yield

    def _objects(self, name: str, reading: _Reading) -> Iterator[tuple[int, dict[str, Any]] | None]:
        """The objects of a file of JSON lines, each with its line's number; None between chunks, to give way."""
        for line in self._lines(name, reading):
            if line is None:
                yield None
                continue
            _, number, data = line
            body, problem = read_object(data)
            if problem and data.strip():
                words = f"{problem}: {clean_line(data[:200].decode('utf-8', 'replace'), 60)}"
                reading.book.add(Finding(name, number, words, "left out" if body is None else "kept"))
            if body is not None:
                yield number, body

    def _lines(self, name: str, reading: _Reading) -> Iterator[TailLine | None]:
        """The lines of a file, its last one also without a newline; None between chunks, to give way."""
        file = TailedFile(self.root / name, self.root, reading.book.add)
        file.look()
        count = 0
        while True:
            before = file.offset
            lines = file.read(CHUNK)
            if lines is None:
                reading.book.add(Finding(name, 0, "changed while it was read", "read again at the next look"))
                return
            ended = file.offset == before
            if ended and file.tail is not None:
                lines = [file.tail]
            yield from lines[: max(0, MOST_ROWS - count)]
            count += len(lines)
            reading.done += file.offset - before
            if ended:
                break
            yield None
        if file.trouble is not None:
            reading.book.add(file.trouble)
        if file.held:
            reading.book.add(Finding(name, 0, f"{file.held} bytes on the last line", "not parsed"))
        if count > MOST_ROWS:
            reading.book.add(Finding(name, 0, f"{count} lines", f"the first {MOST_ROWS} are shown"))
        elif count == 0 and file.trouble is None:
            reading.book.add(Finding(name, 0, "empty", "no data yet", "note"))

    # --- mapping ----------------------------------------------------------------------------------

    def _make(self, reading: _Reading) -> Snapshot:
        found = reading.book.add
        layout = reading.layout
        nodes = nodes_of(reading.rows, found)
        measurements = measure_all(reading.tables, nodes, found)
        candidates, events = candidates_of(nodes, measurements)
        best = best_of(candidates, events, measurements)
        task = task_of(layout, found)
        transcript, others = self._transcript(layout)
        if layout.cut:
            found(Finding("", 0, "more files than are looked at", "some are not listed"))
        extra: dict[str, Any] = {
            "task": task,
            "measurements": tuple(measurements),
            "rows": {"ledger": len(reading.rows), "table": sum(map(len, reading.tables.values()))},
            "table_rows": {name: tuple(rows) for name, rows in reading.tables.items()},
            "events": events,
            "best": best,
            "rounds": rounds_of(layout, found),
            "documents": {
                "contract": layout.contracts,
                "plan": layout.plans,
                "draft": layout.drafts,
                "notes": layout.notes,
            },
            "transcripts": others,
            "profiles": layout.profiles,
        }
        times = [c.t for c in candidates.values()] + [m.t for m in measurements[-1:]]
        return replace(
            self._snapshot,
            contract_error="" if layout.contracts else "no contract, prompt or task description was found",
            last_activity=newest_time(times),
            plan=plan_of(layout, found),
            candidates=candidates,
            incumbent=Incumbent(best.cand, why="promoted", eval=best.source)
            if best
            else Incumbent("baseline"),
            bench=bench_table(measurements) if reading.tables else None,
            transcript=transcript,
            counts=_counts(candidates, events),
            findings=reading.book.all(),
            extra=extra,
        )

    def _transcript(self, layout: Layout) -> tuple[TranscriptState, tuple[str, ...]]:
        """The first file that is a transcript, and the names of all of them."""
        known = []
        for name in layout.transcripts:
            if any(_is_transcript_block(self.root, name)):
                known.append(name)
        if not known:
            return TranscriptState(), ()
        path = self.root / known[0]
        stamp = stamp_of(path)
        return TranscriptState(path, stamp[2] if stamp else 0), tuple(known)


def _is_transcript_block(root: Path, name: str) -> Iterator[bool]:
    """For some lines at the end of a file, whether each looks like a line of a transcript."""
    seen: list[bool] = []

    def look(line: Mapping[str, Any]) -> Any:
        seen.append(is_transcript(line))

    TranscriptFile(root / name, root, parse=look).tail(5)
    yield from seen


def _counts(candidates: Mapping[str, Candidate], events: Sequence[Candidate]) -> dict[str, int]:
    counts: dict[str, int] = {"candidates": len(candidates)}
    for candidate in candidates.values():
        for word in (candidate.validity, candidate.decision):
            if word:
                counts[word] = counts.get(word, 0) + 1
    if events:
        counts["events"] = len(events)
    return counts
