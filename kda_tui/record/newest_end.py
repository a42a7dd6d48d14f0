"""What the end of the newest journal says, before the whole of it has been read: phase, hold, what waits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kda_tui.record.fold_run import RunFold
from kda_tui.record.plain_file import Refused, open_plain
from kda_tui.record.rough_json import read_object
from kda_tui.record.snapshot import Gate, RunInfo, Snapshot
from kda_tui.record.tail import TailedFile
from kda_tui.record.typed import mapping, text

WINDOW = 128 * 1024  # bytes that are looked at


def peek(snapshot: Snapshot, journal: TailedFile) -> Snapshot:
    """The snapshot with phase, hold, gates and claims as the last lines of a journal have them.

    Unchanged where these lines say nothing of a phase.
    """
    run = RunFold("", RunInfo(""))
    for data in _last_lines(journal):
        line, _ = read_object(data)
        if line is None:
            continue
        if line.get("kind") == "checkpoint":
            _begin_at(run, mapping(line.get("summary")), text(line.get("t")))
        run.take(line, line)
    if not run.phase:
        return snapshot
    return replace(
        snapshot,
        phase=run.phase,
        phase_since=run.phase_since,
        phase_why=run.phase_why,
        hold=run.hold,
        hold_since=run.hold_since,
        hold_why=run.hold_why,
        last_activity=run.newest,
        gates=tuple(gate for gate in run.gates.values() if not gate.outcome),
        claims=run.open_claims(),
        head=run.head,
    )


def _begin_at(run: RunFold, summary: Mapping[str, Any], t: str) -> None:
    """A checkpoint says where the run stands; lines before it are of no more use."""
    phase = text(summary.get("phase"))
    if phase != run.phase:
        run.phase, run.phase_since, run.phase_why = phase, t, ""
    hold = text(summary.get("hold"))
    if hold != run.hold:
        run.hold, run.hold_since, run.hold_why = hold, t if hold else "", ""
    listed = summary.get("gates")
    gates = [gate for gate in listed if isinstance(gate, dict)] if isinstance(listed, list) else []
    for gate in gates:
        ident = text(gate.get("gate"))
        opened = Gate(
            ident, text(gate.get("gate_kind")), mapping(gate.get("target")), opened=text(gate.get("t"))
        )
        run.gates.setdefault(ident, opened)


def _last_lines(journal: TailedFile) -> list[bytes]:
    try:
        fd = open_plain(journal.path, journal.root)
    except Refused:
        return []
    try:
        start = max(0, journal.size - WINDOW)
        data = os.pread(fd, journal.size - start, start)
    except OSError:
        return []
    finally:
        os.close(fd)
    lines = data.split(b"\n")[:-1]
    return lines[1:] if start else lines
