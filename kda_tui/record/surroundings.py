"""What a workspace says besides its ledgers: contract, inbox, live.json, the lock. Looked at, never kept open."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from kda_tui.record import inbox
from kda_tui.record.contract import Contract
from kda_tui.record.contract_file import parse_contract
from kda_tui.record.lock import Holder, probe
from kda_tui.record.paths import Workspace
from kda_tui.record.plain_file import Absent, Refused, read_plain
from kda_tui.record.records import Decision
from kda_tui.record.rough_json import read_object
from kda_tui.record.snapshot import Finding, Live
from kda_tui.record.typed import mapping, number, text, whole
from kda_tui.text import UserError, clean_line

MAX_CONTRACT = 4 << 20
MAX_LIVE = 1 << 20
PROBE_EVERY_S = 1.0

Stamp = tuple[int, ...] | None


def stamp_of(path: Path) -> Stamp:
    """What changes when a file does, without opening it; None where there is nothing."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


@dataclass(frozen=True, slots=True)
class ContractFile:
    """A contract as it stands in a file; ``error`` says why there is none."""

    contract: Contract | None = None
    error: str = ""
    absent: bool = True

    @property
    def sha(self) -> str:
        return self.contract.sha256 if self.contract is not None else ""


class ContractSeen:
    """One contract file, read again when it changes."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.now = ContractFile()
        self._root = root
        self._stamp: Stamp = None

    def look(self) -> bool:
        """Whether it changed since the last look."""
        stamp = stamp_of(self.path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        before, self.now = self.now, self._read()
        return self.now != before

    def _read(self) -> ContractFile:
        try:
            data = read_plain(self.path, self._root, MAX_CONTRACT)
        except Absent:
            return ContractFile()
        except Refused as error:
            return ContractFile(error=f"{self.path.name}: {error}", absent=False)
        try:
            return ContractFile(parse_contract(data, self.path.name), absent=False)
        except UserError as error:
            return ContractFile(error=str(error), absent=False)


class InboxSeen:
    """What waits in inbox/, read again when a file comes, goes or changes."""

    def __init__(self, ws: Workspace) -> None:
        self.decisions: tuple[Decision, ...] = ()
        self.findings: tuple[Finding, ...] = ()
        self._ws = ws
        self._listing: tuple[object, ...] = ()

    def look(self) -> bool:
        listing = self._list()
        if listing == self._listing:
            return False
        self._listing = listing
        before = (self.decisions, self.findings)
        self._read()
        return before != (self.decisions, self.findings)

    def _list(self) -> tuple[object, ...]:
        try:
            with os.scandir(self._ws.inbox) as entries:
                return tuple(sorted((e.name, *_facts(e)) for e in entries if e.name.endswith(".json")))
        except OSError as error:
            return (error.errno,)

    def _read(self) -> None:
        try:
            found = inbox.pending(self._ws)
        except UserError as error:
            self.decisions = ()
            self.findings = (Finding("inbox", 0, str(error), "decisions that wait are not shown", "error"),)
            return
        self.decisions = tuple(item.decision for item in found if item.decision is not None)
        self.findings = tuple(
            Finding(f"inbox/{clean_line(item.path.name, 60)}", 0, item.error, "will be refused")
            for item in found
            if item.decision is None
        )


def _facts(entry: os.DirEntry[str]) -> tuple[int, ...]:
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return ()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


class LiveSeen:
    """live.json of a run; not a record, so what cannot be read is simply not there."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.now: Live | None = None
        self._root = root
        self._stamp: Stamp = None

    def look(self) -> bool:
        stamp = stamp_of(self.path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        before, self.now = self.now, self._read()
        return before != self.now

    def _read(self) -> Live | None:
        try:
            body, _ = read_object(read_plain(self.path, self._root, MAX_LIVE))
        except Refused:
            return None
        if body is None:
            return None
        foreign = body.get("foreign")
        return Live(
            claim=text(body.get("claim")),
            op=text(body.get("op")),
            cand=text(body.get("cand")),
            stage=text(body.get("stage")),
            fraction=number(body.get("fraction")),
            workload=text(body.get("workload")),
            streaming=text(body.get("streaming")),
            clocks=mapping(body.get("clocks")),
            foreign=tuple(pid for item in _list(foreign) if (pid := whole(item)) is not None),
            pid=whole(body.get("pid")),
            t=text(body.get("t")),
            waiting=text(body.get("waiting")),
            waiting_since=text(body.get("waiting_since")),
        )


def _list(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


class LockSeen:
    """Who holds the lock. A probe takes it for an instant, so it is not done more often than needed."""

    def __init__(self, ws: Workspace, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = "none"
        self.holder: Holder | None = None
        self._ws = ws
        self._clock = clock
        self._due = -1.0

    def look(self, now: bool) -> bool:
        """Probe if it is due, or ``now``; whether the answer changed."""
        clock = self._clock()
        if not now and clock < self._due:
            return False
        self._due = clock + PROBE_EVERY_S
        before = (self.state, self.holder)
        self.state, self.holder = probe(self._ws)
        return before != (self.state, self.holder)

    def liveness(self, run_open: bool) -> str:
        """alive, foreign_host, gone (a run is open and nobody works on it) or none."""
        if self.state == "held":
            return "alive"
        if self.state == "foreign_host" and run_open:
            return "foreign_host"
        return "gone" if run_open else "none"
