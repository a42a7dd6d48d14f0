"""Reads a workspace into snapshots: all of it once, then only what was appended. Writes nothing, never."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kda_tui.record.bench_table import BenchColumns
from kda_tui.record.findings import FindingBook
from kda_tui.record.fold import (
    CandidatesFold,
    DecisionsFold,
    JournalsFold,
    budget_of,
    plan_of,
    steering_of,
)
from kda_tui.record.fold_run import RunFold
from kda_tui.record.newest_end import peek
from kda_tui.record.paths import Workspace, check_folder
from kda_tui.record.snapshot import Finding, Plan, RunInfo, Snapshot, TranscriptState
from kda_tui.record.surroundings import (
    ContractFile,
    ContractSeen,
    InboxSeen,
    LiveSeen,
    LockSeen,
    Stamp,
    stamp_of,
)
from kda_tui.record.tail import CHUNK, TailedFile, TailLine

SLICE_S = 0.02  # of reading in one poll
_TRIES = 3  # to read a workspace whose files are being replaced


@dataclass(slots=True)
class _Ledger:
    file: TailedFile
    take: Callable[[list[TailLine]], None]


class Reader:
    """Follows one workspace. Not thread-safe: one thread calls it, the snapshots go anywhere.

    Every method raises UserError where the folder itself is not there.
    """

    def __init__(self, root: Path, read_only: bool = False) -> None:
        """``read_only`` is only passed on: no reader ever writes."""
        self.root = root.absolute()
        self.read_only = read_only
        self._ws = Workspace(self.root)
        self._inbox = InboxSeen(self._ws)
        self._lock = LockSeen(self._ws)
        self._contract = ContractSeen(self._ws.contract, self.root)
        self._snapshot = Snapshot(self.root, 0, name=self.root.resolve().name, read_only=read_only)
        self._begin()

    def _begin(self) -> None:
        """Forget what was read; the next slices read it all again."""
        self._book = FindingBook()
        ws, found = self._ws, self._book.add
        self._candidates = CandidatesFold("candidates.jsonl", found)
        self._decisions = DecisionsFold("decisions.jsonl", found)
        self._journals = JournalsFold(self.root, found)
        self._bench = BenchColumns("benchmark.csv", found)
        self._fixed = (
            _Ledger(TailedFile(ws.candidates_ledger, self.root, found), _each(self._candidates.take)),
            _Ledger(TailedFile(ws.decisions, self.root, found), _each(self._decisions.take)),
            _Ledger(TailedFile(ws.benchmark, self.root, found), lambda lines: self._bench.take(lines)),
        )
        self._events: dict[str, _Ledger] = {}
        self._runs_stamp: Stamp = None
        self._run_contract: ContractSeen | None = None
        self._live: LiveSeen | None = None
        self._transcript = TranscriptState()

    # --- for callers ------------------------------------------------------------------------------

    def first(self) -> Snapshot:
        """What can be said at once. While ``extra["loading"]`` (a fraction) is there, :meth:`poll` brings more."""
        self._advance(time.monotonic() + SLICE_S)
        return self._publish() or self._snapshot

    def poll(self) -> Snapshot | None:
        """Read on for a slice of time; None if nothing changed."""
        return self._publish() if self._advance(time.monotonic() + SLICE_S) else None

    def settle(self) -> Snapshot:
        """Read what is there now to the end."""
        changed = self._advance(None)
        return (self._publish() if changed or not self._snapshot.version else None) or self._snapshot

    # --- reading ----------------------------------------------------------------------------------

    def _advance(self, until: float | None) -> bool:
        """Look at everything and read ledgers until the time is over; whether anything changed."""
        check_folder(self.root)
        changed = self._look_for_runs()
        for _ in range(_TRIES):
            grown = [ledger for ledger in self._ledgers() if ledger.file.look() or ledger.file.pending]
            changed |= bool(grown)
            if self._read(grown, until):
                break
        changed |= self._contract.look() | self._inbox.look() | self._look_at_run()
        return changed | self._lock.look(now=until is None)

    def _ledgers(self) -> Iterator[_Ledger]:
        """In the order to read them: the newest run says what goes on, so it comes first, older runs last."""
        names = sorted(self._events)
        yield from (self._events[name] for name in names[-1:])
        yield from self._fixed
        yield from (self._events[name] for name in names[:-1])

    def _look_for_runs(self) -> bool:
        stamp = stamp_of(self._ws.runs)
        names = self._ws.run_names() if stamp != self._runs_stamp else []
        self._runs_stamp = stamp
        new = [name for name in names if name not in self._events]
        for name in new:
            file = TailedFile(self._ws.run(name).events, self.root, self._book.add)
            self._events[name] = _Ledger(file, self._take_events(name, file))
        if new:
            newest = self._ws.run(max(self._events))
            self._live = LiveSeen(newest.live, self.root)
            self._run_contract = ContractSeen(newest.root / "contract.toml", self.root)
        return bool(new)

    def _take_events(self, run: str, file: TailedFile) -> Callable[[list[TailLine]], None]:
        def take(lines: list[TailLine]) -> None:
            for line in lines:
                self._journals.take(run, file.path, file.name, line)

        return take

    def _read(self, ledgers: list[_Ledger], until: float | None) -> bool:
        """Read ledgers to the size they had when looked at, or until the time is over.

        False if one of them was not the file it had been: everything begins again.
        """
        for ledger in ledgers:
            goal = ledger.file.size
            while True:
                before = ledger.file.offset
                lines = ledger.file.read(CHUNK)
                if lines is None:
                    self._restart(ledger.file.name)
                    return False
                ledger.take(lines)
                if until is not None and time.monotonic() >= until:
                    return True
                if ledger.file.offset >= goal or ledger.file.offset == before:
                    break
        return True

    def _restart(self, file: str) -> None:
        self._begin()
        self._book.add(
            Finding(file, 0, "was replaced or cut short while it was read", "everything read again")
        )
        self._look_for_runs()

    def _look_at_run(self) -> bool:
        changed = False
        if self._live is not None:
            changed |= self._live.look()
        if self._run_contract is not None:
            changed |= self._run_contract.look()
        path = self._ws.run(max(self._events)).transcript if self._events else None
        stamp = stamp_of(path) if path is not None else None
        state = TranscriptState(path if stamp else None, stamp[2] if stamp else 0)
        changed |= state != self._transcript
        self._transcript = state
        return changed

    # --- snapshots --------------------------------------------------------------------------------

    def _publish(self) -> Snapshot | None:
        """A new snapshot, or None if it would equal the last one."""
        before = self._snapshot
        after = replace(self._make(), version=before.version)
        if before.version and after == before:
            return None
        self._snapshot = replace(after, version=before.version + 1)
        return self._snapshot

    def _loading(self) -> float:
        files = [ledger.file for ledger in self._ledgers()]
        size = sum(file.size for file in files)
        left = sum(file.pending for file in files)
        return 1.0 - left / size if left else 1.0

    def _make(self) -> Snapshot:
        journals = self._journals
        run = journals.newest
        decisions = self._decisions.all()
        loading = self._loading()
        info = self._info(run)
        contract = self._contract_in_force(info)
        snapshot = Snapshot(
            workspace=self.root,
            version=0,
            name=self._snapshot.name,
            read_only=self.read_only,
            contract=contract.contract,
            contract_error=contract.error,
            contract_sha=contract.sha,
            runs=tuple(fold.info for fold in journals.runs.values()),
            run=info,
            liveness=self._lock.liveness(run is not None and not run.info.ended),
            candidates=self._candidates.states(),
            evaluations=journals.evaluations(),
            incumbent=journals.chain.now,
            incumbents=journals.chain.all,
            confirmations=journals.confirmations((info.contract_sha if info else "") or contract.sha),
            bench=self._bench.table(),
            decisions=decisions,
            pending=tuple(d for d in self._inbox.decisions if d.id not in self._decisions),
            findings=self._findings(contract, info),
            counts=self._candidates.counts(),
            events=journals.events(),
            transcript=self._transcript,
            extra={"loading": loading} if loading < 1.0 else {},
        )
        return snapshot if run is None else self._with_run(snapshot, run)

    def _with_run(self, snapshot: Snapshot, run: RunFold) -> Snapshot:
        """The snapshot with what the newest run says."""
        found = replace(
            snapshot,
            phase=run.phase,
            phase_since=run.phase_since,
            phase_why=run.phase_why,
            hold=run.hold,
            hold_since=run.hold_since,
            hold_why=run.hold_why,
            last_activity=max(run.newest, max((d.t for d in snapshot.decisions[-1:]), default="")),
            gates=tuple(sorted((g for g in run.gates.values() if not g.outcome), key=lambda g: g.seq)),
            questions=dict(run.questions),
            plan=plan_of(run, snapshot.decisions) if run.revisions else Plan(),
            reviews=tuple(run.reviews),
            draft_sha=run.draft_sha,
            claims=run.open_claims(),
            steering=steering_of(run, snapshot.decisions),
            budget=budget_of(run, self._limits(snapshot), self._candidates.charged(run.name)),
            live=self._live.now if self._live and snapshot.liveness in ("alive", "foreign_host") else None,
            transcript=replace(snapshot.transcript, turns=run.turns, usd=run.usd, tokens=dict(run.tokens)),
            head=run.head,
            extra={**snapshot.extra, "selftest": run.selftest}
            if run.selftest is not None
            else snapshot.extra,
        )
        ledger = self._events.get(run.name)
        return peek(found, ledger.file) if ledger is not None and ledger.file.pending else found

    def _info(self, run: RunFold | None) -> RunInfo | None:
        """The newest run; its process is the one that holds the lock, if there is one."""
        if run is None:
            return None
        holder = self._lock.holder
        if self._lock.state == "held" and holder is not None and holder.pid:
            return replace(run.info, pid=holder.pid, host=holder.host or run.info.host)
        return run.info

    def _contract_in_force(self, run: RunInfo | None) -> ContractFile:
        """While a run is open it is the copy that the run took; else the file, which the next run will take."""
        mine = self._run_contract
        if run is None or run.ended or mine is None or mine.path.parent.name != run.name:
            return self._contract.now
        return mine.now if mine.now.contract is not None else self._contract.now

    def _limits(self, snapshot: Snapshot) -> Mapping[str, float | None]:
        if snapshot.contract is None:
            return {}
        start = snapshot.contract.budget
        return {"candidates": start.candidates, "hours": start.hours, "usd": start.usd}

    def _findings(self, contract: ContractFile, run: RunInfo | None) -> tuple[Finding, ...]:
        passing = [ledger.file.trouble for ledger in self._ledgers() if ledger.file.trouble is not None]
        if contract is not self._contract.now and self._contract.now.sha != contract.sha:
            name = run.name if run is not None else ""
            passing.append(
                Finding(
                    "contract.toml",
                    0,
                    f"is not the contract of {name}",
                    f"{name} goes on under its own",
                    "warning",
                )
            )
        if self._lock.state != "held":
            passing += [
                Finding(file.name, file.tail[1], "the last line is not whole", "left out", "note")
                for file in (ledger.file for ledger in self._ledgers())
                if file.tail is not None and not file.pending
            ]
        passing += [*self._inbox.findings, *self._journals.unknown(), *self._candidates.misfits()]
        return self._book.all(passing)


def _each(take: Callable[[TailLine], None]) -> Callable[[list[TailLine]], None]:
    def take_all(lines: list[TailLine]) -> None:
        for line in lines:
            take(line)

    return take_all
