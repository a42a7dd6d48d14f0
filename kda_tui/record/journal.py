"""The recorder: the only code that writes ledgers. A journal line on disk is the commit (R1).

Order of writing: artifacts, then the journal line (fsync), then its projections. A crash between any two
bytes is mended by :meth:`Recorder.open` (R2): torn tails closed, missing projections appended again.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from kda_tui.record import recovery
from kda_tui.record.artifacts import files_below, sha256_bytes, sha256_tree, sweep, write_file
from kda_tui.record.checkpoint import PrefixHashes, head_of, ledgers_of, newest_head
from kda_tui.record.clock import now
from kda_tui.record.ledger import DiskFull, Ledger, RecordFailed
from kda_tui.record.lines import MAX_LINE, encode_line, link_of, parse_line, read_lines, shorten
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import RunPaths, Workspace
from kda_tui.record.projections import CSV_HEADER, project
from kda_tui.record.records import FORMAT_VERSION, Candidate, Decision, TranscriptBlock, to_line
from kda_tui.text import Redactor, UserError

ENVELOPE = ("v", "seq", "t", "run", "kind", "link")
LONG_TEXT = 48 * 1024  # bytes of a transcript block's text that still stand in its line
_EXCERPT = 2000
_RUN_NAME = re.compile(r"r(\d+)")
_STAMPED = ("v", "seq", "t", "run", "link")  # keys that the recorder gives to a projected line


class SecretFound(UserError):
    """A source holds the value of an environment secret; it is refused, never rewritten."""


class Recorder:
    """Writes one run of a workspace. One live recorder per workspace: it needs the lock.

    Every method that writes raises DiskFull where nothing was committed and the call may be repeated,
    or RecordFailed where the recorder is of no more use.
    """

    def __init__(self, ws: Workspace, lock: WorkspaceLock, run: str, redactor: Redactor) -> None:
        """Use :meth:`create_run` or :meth:`open`."""
        if not lock.held or lock.ws.root != ws.root:
            raise ValueError("a recorder needs the lock of its workspace")
        self.ws = ws
        self.run = run
        self.seq = 0
        self._redactor = redactor
        self._failed = False
        self._settled = False
        self._links = {"events": "", "transcript": ""}
        self._hashes = PrefixHashes(ws.root)
        self._head: tuple[str, str] | None = None  # run and head of the newest checkpoint
        _write_csv_header(ws.benchmark)
        self._events = Ledger(self.paths.events)
        self._transcript = Ledger(self.paths.transcript)
        self._candidates = Ledger(ws.candidates_ledger)
        self._decisions = Ledger(ws.decisions)
        self._benchmark = Ledger(ws.benchmark)
        self._projections = (self._candidates, self._decisions, self._benchmark)

    @classmethod
    def create_run(cls, ws: Workspace, lock: WorkspaceLock, redactor: Redactor) -> Recorder:
        """Begin the next run, ``r001``, ``r002``, ...; what an earlier run left torn is mended first."""
        names = [name for name in ws.run_names() if _RUN_NAME.fullmatch(name)]
        begun = recovery.committed_runs(ws)
        if names and names[-1] not in begun:
            run = names[-1]  # a crash came before its first line
        else:
            run = f"r{int(names[-1][1:]) + 1 if names else 1:03d}"
        for folder in (ws.run(run).samples, ws.run(run).blobs):
            folder.mkdir(parents=True, exist_ok=True)
        return cls._started(ws, lock, run, redactor)

    @classmethod
    def open(cls, ws: Workspace, lock: WorkspaceLock, run: str, redactor: Redactor) -> Recorder:
        """Go on with the newest run. Closes torn tails, appends missing projections, records ``recovered`` (R2)."""
        begun = recovery.committed_runs(ws)
        if run not in begun:
            raise UserError(f"{ws.root}: no run {run}; there is {', '.join(begun) or 'none yet'}")
        if run != begun[-1]:
            raise UserError(f"{ws.root}: run {run} is over, {begun[-1]} came after it; go on with that one")
        return cls._started(ws, lock, run, redactor)

    @classmethod
    def _started(cls, ws: Workspace, lock: WorkspaceLock, run: str, redactor: Redactor) -> Recorder:
        recorder = cls(ws, lock, run, redactor)
        try:
            sweep(
                (recorder.paths.blobs, recorder.paths.samples, ws.root, ws.plans, ws.reviews, ws.plan.parent)
            )
            recorder._settle()
        except BaseException:
            recorder.close()
            raise
        return recorder

    @property
    def paths(self) -> RunPaths:
        return self.ws.run(self.run)

    # --- writing ----------------------------------------------------------------------------------

    def event(
        self,
        kind: str,
        *,
        candidate: Candidate | None = None,
        decision: Decision | str | None = None,
        rows: Sequence[Mapping[str, Any]] = (),
        **fields: Any,
    ) -> int:
        """Commit one journal line and project it; returns its seq.

        ``candidate``, ``decision`` and ``rows`` stand in the line and go to candidates.jsonl, decisions.jsonl
        and benchmark.csv under the same (run, seq). A ``decision`` given as text is only its id: a reference.
        Once the line is committed the call succeeds, even if a projection finds the disk full: it follows
        with the next call.
        """
        self._ready()
        return self._commit(self._event_body(kind, candidate, decision, rows, fields))

    def _event_body(
        self,
        kind: str,
        candidate: Candidate | None,
        decision: Decision | str | None,
        rows: Sequence[Mapping[str, Any]],
        fields: Mapping[str, Any],
    ) -> dict[str, Any]:
        taken = [name for name in ENVELOPE if name in fields]
        if taken:
            raise ValueError(f"{kind}: the recorder itself writes {', '.join(taken)}")
        body: dict[str, Any] = {"kind": kind, **fields}
        if candidate is not None:
            body["candidate"] = {
                "id": candidate.id,
                "stage": candidate.stage,
                **_unstamped(to_line(candidate)),
            }
        if decision is not None:
            body["decision"] = decision if isinstance(decision, str) else _decision_body(decision)
        if rows:
            body["rows"] = [dict(row) for row in rows]
        return body

    def _commit(self, body: Mapping[str, Any]) -> int:
        return self._commit_line(self._encode("events", body))

    def _commit_line(self, data: bytes) -> int:
        with self._watched():
            self._transcript.sync()  # a journal line must not outlive the transcript blocks before it
            self._events.append(data)
            self._events.sync()
            self._written("events", data)
        with contextlib.suppress(DiskFull), self._watched():
            self._project(data)
        return self.seq

    def _project(self, data: bytes) -> None:
        line = parse_line(data)
        if line is None:
            raise AssertionError("a committed line is an object")
        projected = project(line, recovery.rows_of(self.ws, line))
        work = zip(
            self._projections, (projected.candidates, projected.decisions, projected.benchmark), strict=True
        )
        for ledger, lines in work:
            for projection in lines:
                ledger.append(projection)

    def transcript(self, block: TranscriptBlock) -> int:
        """Append one finished block; returns its seq. Long text goes to a blob, its beginning stays."""
        self._ready()
        body = {"kind": block.kind, **_unstamped(to_line(block))}
        text = self._redactor.redact_text(block.text).encode("utf-8", "replace")
        if len(text) > LONG_TEXT:
            body |= {"text": block.text[:_EXCERPT], "blob": self._keep(text)}
        data = self._encode("transcript", body)
        with self._watched():
            self._transcript.append(data)
            self._written("transcript", data)
        return self.seq

    def blob(self, data: bytes) -> str:
        """Keep bytes under ``runs/<run>/blobs/<sha256>``; returns the hash. Text is redacted first."""
        with contextlib.suppress(UnicodeDecodeError):  # what is not text is kept as it is
            data = self._redactor.redact_text(data.decode()).encode()
        return self._keep(data)

    def _keep(self, data: bytes) -> str:
        sha = sha256_bytes(data)
        path = self.paths.blobs / sha
        if not path.exists():
            write_file(path, data)
        return sha

    def artifact(self, path: Path, data: bytes) -> str:
        """Put a file into the workspace whole; returns its SHA-256, for the line that brings it.

        ``path`` is below the workspace. Raises SecretFound if the text holds a secret.
        """
        target = path if path.is_absolute() else self.ws.root / path
        if not target.resolve().is_relative_to(self.ws.root.resolve()):
            raise ValueError(f"{path} is outside the workspace")
        secret = self._redactor.holds_secret(data.decode("utf-8", "replace"))
        if secret is not None:
            raise SecretFound(f"{target.name}: holds the value of {secret}; take it out and submit again")
        write_file(target, data)
        return sha256_bytes(data)

    def artifacts(self, folder: Path, files: Mapping[str, bytes]) -> dict[str, str]:
        """Several files of one folder; returns ``{path relative to the workspace: sha256}`` for ``files=``."""
        for name, data in files.items():
            secret = self._redactor.holds_secret(data.decode("utf-8", "replace"))
            if secret is not None:
                raise SecretFound(f"{name}: holds the value of {secret}; take it out and submit again")
        root = self.ws.root.resolve()
        return {
            (folder / name).resolve().relative_to(root).as_posix(): self.artifact(folder / name, data)
            for name, data in files.items()
        }

    def keep_inputs(self, baseline: Path | None) -> dict[str, str]:
        """Copy contract, reference and the baseline's folder into the run.

        Returns ``contract_sha``, ``reference_sha`` and, with a baseline, ``baseline_sha`` (over its files,
        see :func:`~kda_tui.record.artifacts.sha256_tree`), the fields of ``run_started``.
        """
        fields: dict[str, str] = {}
        for name, path in (("contract_sha", self.ws.contract), ("reference_sha", self.ws.reference)):
            if path.is_file():
                fields[name] = self.artifact(self.paths.root / path.name, path.read_bytes())
        if baseline is not None:
            copied = self.paths.root / "baseline"
            shutil.rmtree(copied, ignore_errors=True)  # of a start that a crash cut short
            for path in files_below(baseline):
                self.artifact(copied / path.relative_to(baseline), path.read_bytes())
            fields["baseline_sha"] = sha256_tree(copied, files_below(copied))
        return fields

    def checkpoint(self, summary: Mapping[str, Any]) -> str:
        """Commit a ``checkpoint`` over all ledgers as they are now; returns its head."""
        self._ready()
        with self._watched():
            for ledger in self._projections:
                ledger.sync()
        runs = self.ws.run_names()
        if self._head is None:
            self._head = newest_head(self.ws, [run for run in runs if run <= self.run])
        since = [run for run in runs if self._head[0] <= run <= self.run]
        body = {
            "kind": "checkpoint",
            "prev_head": self._head[1],
            "ledgers": self._hashes.update(ledgers_of(self.ws, since)),
            "summary": dict(summary),
        }
        line = parse_line(self._encode("events", body))
        if line is None:
            raise AssertionError("an encoded line is an object")
        head = head_of(line)
        self._commit_line(encode_line({**line, "head": head}))
        self._head = (self.run, head)
        return head

    def close(self) -> None:
        """Make everything durable and close the files; the lock stays with whoever took it."""
        ledgers = (self._events, self._transcript, *self._projections)
        try:
            if not self._failed:
                for ledger in ledgers:
                    ledger.sync()
        finally:
            self._failed = True
            for ledger in ledgers:
                ledger.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- inside -----------------------------------------------------------------------------------

    def _encode(self, ledger: str, body: Mapping[str, Any]) -> bytes:
        """The next line of a ledger: redacted, stamped, and short enough."""
        stamp = {"v": FORMAT_VERSION, "seq": self.seq + 1, "t": now(), "run": self.run}
        full = {**stamp, **self._redactor.redact(body), "link": self._links[ledger]}
        data = encode_line(full)
        if len(data) >= MAX_LINE:
            data = encode_line(shorten(full, self._keep, MAX_LINE - 1))
        return data

    def _written(self, ledger: str, data: bytes) -> None:
        self.seq += 1
        self._links[ledger] = link_of(data)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Remember what a failed write means for the calls to come."""
        try:
            yield
        except DiskFull:
            self._settled = False
            raise
        except RecordFailed:
            self._failed = True
            raise

    def _ready(self) -> None:
        if self._failed:
            raise RecordFailed(f"{self.ws.root}: this recorder is closed; open the run again")
        if not self._settled:
            self._settle()

    def _settle(self) -> None:
        """R2: close torn tails, append missing projections, record what was torn. May itself be cut anywhere."""
        runs = recovery.unsettled_runs(self.ws, self.run)
        for run in runs[:-1]:
            for path in (self.ws.run(run).events, self.ws.run(run).transcript):
                if path.exists():
                    with Ledger(path) as ledger:
                        ledger.close_torn_tail()
        for ledger in (self._events, self._transcript, *self._projections):
            ledger.close_torn_tail()
        found = recovery.read_journals(self.ws, runs)
        tail = recovery.transcript_tail(self.paths.transcript)
        self.seq = max(found.tail.seq, tail.seq)
        self._links = {"events": found.tail.link, "transcript": tail.link}
        for ledger, (_, lines) in zip(
            self._projections, recovery.missing_lines(self.ws, found.lines), strict=True
        ):
            for data in lines:
                ledger.append(data)
        self._settled = True
        for torn in (*found.torn, *recovery.torn_lines(self.ws, runs)):
            if (torn.ledger, torn.offset) not in found.reported:
                self._commit(
                    {"kind": "recovered", "ledger": torn.ledger, "offset": torn.offset, "bytes": torn.bytes}
                )


def _unstamped(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in _STAMPED}


def _decision_body(decision: Decision) -> dict[str, Any]:
    line = to_line(decision)
    sent = {"sent": decision.t} if decision.t else {}
    return {"id": decision.id, "kind": decision.kind, "by": decision.by, **_unstamped(line), **sent}


def _write_csv_header(path: Path) -> None:
    """Give benchmark.csv its header; refuse a file that has another one."""
    first = next(read_lines(path), None)
    if first is None:
        if path.exists() and path.stat().st_size:
            raise UserError(f"{path}: its first line is not the header of this program's table; move it away")
        write_file(path, CSV_HEADER + b"\n")
    elif first.data != CSV_HEADER:
        raise UserError(
            f"{path}: has other columns than this program writes; move it away or open it read-only"
        )
