"""``kda verify``: is the record what was written? Names the file and the line that is not.

Four proofs that lean on each other: each line names the hash of the line before it, checkpoints hash
whole ledgers and chain to each other, projections equal what the journal says, and every file that a line
brought still has its hash. Whoever rewrites all of that consistently changes the newest head: ``against``.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.record.brought import Artifacts
from kda_tui.record.checkpoint import head_of
from kda_tui.record.lines import TORN, Line, link_of, parse_line, read_lines
from kda_tui.record.lock import probe
from kda_tui.record.paths import Workspace
from kda_tui.record.projections import CSV_HEADER, Key, csv_key, jsonl_key, project
from kda_tui.record.recovery import rows_of
from kda_tui.record.snapshot import Finding
from kda_tui.record.state_folder import commitment
from kda_tui.text import UserError

_CHUNK = 1 << 20
_MOST = 100  # problems that are listed of one file
_SHORTEST_HEAD = 12  # digits of a head that --against takes


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """``ok``: nothing was edited. ``lines``: lines checked, over all ledgers. ``head``: the newest checkpoint's."""

    ok: bool
    problems: tuple[Finding, ...]
    head: str
    lines: int


def verify(ws: Workspace, against: str | None = None) -> VerifyReport:
    """Check a whole record; reads everything, changes nothing, and may run beside the worker.

    ``against``: a head that was noted earlier, whole or its first 12 digits or more. Raises UserError
    if it cannot be a head.
    """
    wanted = (against or "").strip().lower()
    if wanted and (len(wanted) < _SHORTEST_HEAD or not set(wanted) <= set("0123456789abcdef")):
        raise UserError(f"--against {against}: give a head, at least {_SHORTEST_HEAD} hex digits of it")
    check = _Check(ws)
    check.run()
    if wanted and not any(head.startswith(wanted) for head in check.heads):
        seen = f"no checkpoint has the head {wanted}"
        check.say("runs", 0, seen, "the record was written anew, or is another one")
    check.problems = list(_shortened(check.problems))
    errors = any(finding.severity == "error" for finding in check.problems)
    head = check.heads[-1] if check.heads else ""
    return VerifyReport(not errors, tuple(check.problems), head, check.lines)


def _shortened(problems: list[Finding]) -> Iterator[Finding]:
    """The first problems of each file, and how many more there are."""
    counted: Counter[str] = Counter()
    for finding in problems:
        counted[finding.file] += 1
        if counted[finding.file] <= _MOST:
            yield finding
    for file, count in counted.items():
        if count > _MOST:
            yield Finding(file, 0, f"{count - _MOST} more like these", "not listed", "error")


@dataclass(slots=True)
class _Check:
    ws: Workspace
    problems: list[Finding] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    lines: int = 0
    _prefixes: dict[str, list[tuple[int, str, str]]] = field(default_factory=dict)  # bytes, sha, where said
    _events: list[tuple[dict[str, Any], int]] = field(default_factory=list)  # with the offset
    _live: bool = False

    def say(self, file: str, line: int, seen: str, done: str, severity: str = "error") -> None:
        self.problems.append(Finding(file, line, seen, done, severity))

    def run(self) -> None:
        ws = self.ws
        self._live = probe(ws)[0] == "held"
        # Projections are read before the journals, so each of their lines has its journal line already.
        newest = ws.run_names()[-1:]
        size = _size(ws.run(newest[0]).events) if newest else 0
        tables = [
            (ws.candidates_ledger, jsonl_key, list(read_lines(ws.candidates_ledger))),
            (ws.decisions, jsonl_key, list(read_lines(ws.decisions))),
            (ws.benchmark, csv_key, list(read_lines(ws.benchmark))),
        ]
        artifacts = Artifacts(ws)
        for run in ws.run_names():
            self._run(run, artifacts)
        due = self._due(newest[0] if newest else "", size)
        expected: list[dict[Key, list[bytes]]] = [{}, {}, {}]
        for line, _ in self._events:
            projected = project(line, rows_of(ws, line))
            key = (str(line.get("run")), str(line.get("seq")))
            for wanted, lines in zip(
                expected, (projected.candidates, projected.decisions, projected.benchmark), strict=True
            ):
                if lines:
                    wanted[key] = list(lines)
        for (path, key_of, found), wanted in zip(tables, expected, strict=True):
            self._table(path, key_of, found, wanted, due)
        for name, marks in self._prefixes.items():
            self._prefix(name, marks)
        self.problems += artifacts.check()

    # --- journals and transcripts -----------------------------------------------------------------

    def _run(self, run: str, artifacts: Artifacts) -> None:
        paths = self.ws.run(run)
        seqs: dict[int, str] = {}
        started: dict[str, Any] = {}
        newest = 0
        for path in (paths.events, paths.transcript):
            name = self._name(path)
            for line, body in self._chain(path):
                self._sequence(seqs, body, run, name, line.number)
                artifacts.note(body, run, name, line.number)
                if path == paths.events:
                    self._events.append((body, line.offset))
                    self._event(body, name, line.number, started)
            if path == paths.events:
                newest = max(seqs, default=0)
        # Of a live run, the transcript was read later than the journal: beyond its newest line, lines may lack.
        top = newest if self._live else max(seqs, default=0)
        gaps = sorted(set(range(1, top + 1)) - set(seqs))
        if gaps:
            seen = f"seq {', '.join(map(str, gaps[:5]))}{' ...' if len(gaps) > 5 else ''} missing"
            self.say(
                self._name(paths.events), 0, seen, f"removed from the journal or the transcript of {run}"
            )

    def _chain(self, path: Path) -> Iterator[tuple[Line, dict[str, Any]]]:
        """The lines of a chained ledger; a line that is not the one its successor was written after is named."""
        name, link, before = self._name(path), "", 0
        end = 0
        for line in read_lines(path):
            end = line.offset + len(line.data) + 1
            self.lines += 1
            if line.data.endswith(TORN):
                continue
            body = parse_line(line.data)
            if body is None:
                self.say(name, line.number, "not a JSON object", "edited: no run writes such a line")
            elif body.get("link") != link:
                if before:
                    seen = f"not the line that line {line.number} was written after"
                    self.say(name, before, seen, "edited, or lines between them removed or added")
                else:
                    self.say(name, line.number, "was not the first line", "lines before it were removed")
            link, before = link_of(line.data), line.number
            if body is not None:
                yield line, body
        if _size(path) > end and not self._live:
            self.say(name, 0, "its last line has no end", "never committed; closed at the next start", "note")

    def _sequence(
        self, seqs: dict[int, str], body: Mapping[str, Any], run: str, name: str, number: int
    ) -> None:
        seq = body.get("seq")
        if not isinstance(seq, int) or body.get("run") != run:
            self.say(name, number, f"seq {seq}, run {body.get('run')}", f"no line of {run}")
        elif seq in seqs:
            self.say(name, number, f"seq {seq} again", f"it stands at {seqs[seq]} already")
        else:
            seqs[seq] = f"{name}:{number}"

    def _event(self, body: Mapping[str, Any], name: str, number: int, started: dict[str, Any]) -> None:
        kind = body.get("kind")
        if kind == "checkpoint":
            self._checkpoint(body, name, number)
        elif kind == "run_started":
            started.setdefault("commit", body.get("seed_commit"))
        elif kind == "run_ended" and body.get("seed") and started.get("commit"):
            if commitment(str(body["seed"])) == started["commit"]:
                return
            self.say(name, number, "the seed is not the one committed to", "its SHA-256 is another")

    def _checkpoint(self, body: Mapping[str, Any], name: str, number: int) -> None:
        head, before = str(body.get("head")), self.heads[-1] if self.heads else ""
        if head_of(body) != head:
            self.say(name, number, "its head is not the hash of the checkpoint", "edited")
        if body.get("prev_head") != before:
            self.say(
                name, number, "does not follow the checkpoint before it", "checkpoints removed or edited"
            )
        self.heads.append(head)
        ledgers = body.get("ledgers")
        for path, mark in ledgers.items() if isinstance(ledgers, dict) else ():
            if isinstance(mark, list) and len(mark) == 2 and isinstance(mark[0], int):
                self._prefixes.setdefault(str(path), []).append((mark[0], str(mark[1]), f"{name}:{number}"))

    # --- checkpoints against ledgers --------------------------------------------------------------

    def _prefix(self, name: str, marks: list[tuple[int, str, str]]) -> None:
        """Compare a ledger with every checkpoint over it; the first that does not fit bounds the edit."""
        path = self.ws.root / name
        if ".." in path.parts or not path.resolve().is_relative_to(self.ws.root.resolve()):
            self.say(name, 0, "a checkpoint names a path outside the workspace", "edited")
            return
        good, running = 0, hashlib.sha256()
        try:
            with path.open("rb") as file:
                for size, sha, where in sorted(marks):
                    while file.tell() < size and (data := file.read(min(_CHUNK, size - file.tell()))):
                        running.update(data)
                    if file.tell() < size:
                        self.say(name, 0, f"cut: {file.tell()} of {size} bytes", f"{where} covered them")
                        return
                    if running.hexdigest() != sha:
                        self._edited_between(path, name, good, size, where)
                        return
                    good = size
        except OSError as error:
            self.say(name, 0, f"cannot be read ({error.strerror})", f"{marks[-1][2]} covered it")

    def _edited_between(self, path: Path, name: str, start: int, end: int, where: str) -> None:
        inside = [line.number for line in read_lines(path) if start <= line.offset < end]
        if any(p.file == name and p.line in inside and p.severity == "error" for p in self.problems):
            return  # the line itself is named already
        first, last = (inside[0], inside[-1]) if inside else (0, 0)
        span = f"line {first}" if first == last else f"something in lines {first} to {last}"
        self.say(name, first, f"{span} edited", f"{where} no longer fits")

    # --- projections against journals -------------------------------------------------------------

    def _due(self, newest: str, size: int) -> set[Key]:
        """The journal lines whose projections must be there: not one that a live worker is just writing."""
        keys = [
            (str(line.get("run")), str(line.get("seq")))
            for line, offset in self._events
            if line.get("run") != newest or offset < size
        ]
        return set(keys[:-1] if self._live else keys)

    def _table(
        self,
        path: Path,
        key_of: Callable[[bytes], Key | None],
        found: list[Line],
        expected: dict[Key, list[bytes]],
        due: set[Key],
    ) -> None:
        name = self._name(path)
        odd: list[tuple[Line, Key]] = []
        for line in found:
            self.lines += 1
            if line.data.endswith(TORN) or (line.data == CSV_HEADER and line.number == 1):
                continue
            key = (key_of(line.data) or ("", ""))[:2]
            if line.data in expected.get(key, ()):
                expected[key].remove(line.data)
            else:
                odd.append((line, key))
        for line, key in odd:
            if expected.get(key):
                expected[key].pop(0)
                self.say(
                    name, line.number, f"not what run {key[0]} seq {key[1]} says in the journal", "edited"
                )
            else:
                self.say(name, line.number, "no journal line says so", "added, or edited")
        for key, left in expected.items():
            if left and key in due:
                count = "a line" if len(left) == 1 else f"{len(left)} lines"
                self.say(
                    name, 0, f"{count} of run {key[0]} seq {key[1]} missing", "removed; the journal has it"
                )

    def _name(self, path: Path) -> str:
        return path.relative_to(self.ws.root).as_posix()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
