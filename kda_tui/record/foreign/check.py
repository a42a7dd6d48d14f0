"""``kda open --check``: what a folder's workspaces hold and what could not be understood, as plain data for scripts."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kda_tui.record.foreign.found import find_workspaces
from kda_tui.record.open import is_own, open_reader
from kda_tui.record.snapshot import Snapshot
from kda_tui.text import UserError


def check(folder: Path) -> list[dict[str, Any]]:
    """One object a workspace at or below ``folder``, see :func:`checked`. Raises UserError where there is none."""
    roots = find_workspaces(folder)
    if not roots:
        raise UserError(f"{folder}: no workspace here (no contract, ledger, benchmark table, plan or prompt)")
    return [checked(root) for root in roots]


def checked(root: Path) -> dict[str, Any]:
    """Kind, rows in and shown, candidates, the best with where it is stated, findings, seconds."""
    begin = time.perf_counter()
    snapshot = open_reader(root, read_only=True).settle()
    seconds = time.perf_counter() - begin
    best = snapshot.extra.get("best")
    return {
        "workspace": str(root),
        "kind": "own" if is_own(root) else "foreign",
        "rows": dict(snapshot.extra.get("rows", {})),
        "shown": shown(snapshot),
        "times": snapshot.bench.rows if snapshot.bench is not None else 0,
        "candidates": len(snapshot.candidates),
        "counts": dict(snapshot.counts),
        "best": asdict(best) if best is not None else None,
        "documents": {kind: list(names) for kind, names in snapshot.extra.get("documents", {}).items()},
        "transcripts": list(snapshot.extra.get("transcripts", ())),
        "profiles": list(snapshot.extra.get("profiles", ())),
        "findings": [asdict(finding) for finding in snapshot.findings],
        "seconds": round(seconds, 4),
    }


def shown(snapshot: Snapshot) -> dict[str, int]:
    """Ledger rows shown as candidates and as events, table rows shown with numbers and as text."""
    extra = snapshot.extra
    mine = [c for c in snapshot.candidates.values() if "raw" in c.extra]
    measured = {(m.file, m.line) for m in extra.get("measurements", ())}
    tables = [row for rows in extra.get("table_rows", {}).values() for row in rows]
    numbers = sum((row.file, row.line) in measured for row in tables)
    return {
        "candidates": sum(len(c.extra.get("observations", (1,))) for c in mine),
        "events": sum(len(e.extra.get("observations", (1,))) for e in extra.get("events", ())),
        "numbers": numbers,
        "text": len(tables) - numbers,
    }
