"""A workspace as one file to hand on: a tar.gz that ``kda verify`` accepts where it is unpacked.

Of a live run, ledgers are cut at the newest checkpoint, which says how long each of them was; nothing is locked and nothing is
written into the workspace. Left out: the lock, the inbox, live.json, hidden names, links.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from kda_tui.record.artifacts import files_below
from kda_tui.record.checkpoint import ledgers_of
from kda_tui.record.lines import parse_line, read_lines
from kda_tui.record.lock import probe
from kda_tui.record.paths import Workspace
from kda_tui.text import Redactor, UserError

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class PackReport:
    """What was packed. ``head``: of the newest checkpoint in it; '' if there is none. ``left_out``: links, as paths."""

    path: Path
    files: int
    bytes: int
    head: str
    left_out: tuple[str, ...]


def pack(ws: Workspace, target: Path) -> PackReport:
    """Write ``target``, a .tar.gz whose paths begin with the workspace's name.

    Raises UserError if the target exists, if the workspace cannot be read, or if a live run has no checkpoint yet.
    """
    if target.exists():
        raise UserError(f"{target}: exists already; choose another name")
    for _ in range(_ATTEMPTS):
        live = probe(ws)[0] == "held"
        lengths, head = _cut(ws, live)
        try:
            report = _write(ws, target, lengths, head)
        except OSError as error:
            target.unlink(missing_ok=True)
            raise UserError(f"{error.filename or target}: {error.strerror or error}") from error
        if live or all((ws.root / name).stat().st_size == size for name, size in lengths.items()):
            return report
        target.unlink()  # somebody wrote meanwhile and is gone again
    raise UserError(f"{ws.root}: keeps changing; try again when it is quiet")


def _cut(ws: Workspace, live: bool) -> tuple[dict[str, int], str]:
    """How many bytes of each ledger belong together, by path; and the head of the newest checkpoint in them."""
    runs = ws.run_names()
    whole = {_name(ws, path): path.stat().st_size for path in ledgers_of(ws, runs)}
    found = _newest_checkpoint(ws, runs)
    if not live:
        return whole, str(found[2].get("head")) if found else ""
    if found is None:
        raise UserError(f"{ws.root}: the run has no checkpoint yet; pack it a little later")
    run, end, checkpoint = found
    cut = dict.fromkeys(whole, 0)
    for earlier in (name for name in runs if name < run):
        cut |= {_name(ws, path): path.stat().st_size for path in ledgers_of(ws, [earlier])}
    cut |= dict.fromkeys(map(partial(_name, ws), (ws.candidates_ledger, ws.decisions, ws.benchmark)), 0)
    cut |= {name: int(mark[0]) for name, mark in checkpoint["ledgers"].items()}
    cut[_name(ws, ws.run(run).events)] = end
    return cut, str(checkpoint.get("head"))


def _newest_checkpoint(ws: Workspace, runs: Sequence[str]) -> tuple[str, int, dict[str, Any]] | None:
    """Its run, where its line ends, and the line."""
    for run in reversed(runs):
        found = None
        for line in read_lines(ws.run(run).events):
            if b'"kind":"checkpoint"' in line.data and (body := parse_line(line.data)) is not None:
                found = (run, line.offset + len(line.data) + 1, body)
        if found is not None:
            return found
    return None


def _name(ws: Workspace, path: Path) -> str:
    return path.relative_to(ws.root).as_posix()


def _write(ws: Workspace, target: Path, lengths: Mapping[str, int], head: str) -> PackReport:
    redactor = Redactor.from_environment(os.environ)
    count = size = 0
    left_out = []
    # A gzip header without time and name: the same workspace gives the same file.
    with (
        target.open("xb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in _packed(ws, target):
            name = _name(ws, path)
            if path.is_symlink():
                left_out.append(name)
                continue
            with path.open("rb") as file:
                facts = os.fstat(file.fileno())
                source: IO[bytes] = file
                length = lengths.get(name, facts.st_size)
                if path.suffix == ".log":  # the only text here that no recorder has redacted
                    data = redactor.redact_text(file.read().decode("utf-8", "surrogateescape"))
                    source = io.BytesIO(data.encode("utf-8", "surrogateescape"))
                    length = source.getbuffer().nbytes
                entry = tarfile.TarInfo(f"{ws.root.resolve().name}/{name}")
                entry.size, entry.mtime, entry.mode = length, int(facts.st_mtime), 0o644
                tar.addfile(entry, source)
            count += 1
            size += length
    return PackReport(target, count, size, head, tuple(left_out))


def _packed(ws: Workspace, target: Path) -> list[Path]:
    """The files that go in, and the links that are reported."""
    links = [
        Path(parent, name)
        for parent, folders, names in os.walk(ws.root)
        for name in (*folders, *names)
        if Path(parent, name).is_symlink()
    ]
    lives = {ws.run(run).live for run in ws.run_names()}
    kept = [
        path
        for path in files_below(ws.root)
        if path != ws.lock
        and path not in lives
        and ws.inbox not in path.parents
        and path.resolve() != target.resolve()
    ]
    return sorted([*kept, *links])
