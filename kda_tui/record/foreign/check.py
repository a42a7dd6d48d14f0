"""``kda open --check``: what a folder's workspaces hold and what could not be understood, as plain data for scripts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from kda_tui.record.foreign.found import find_workspaces
from kda_tui.record.open import is_own, open_reader
from kda_tui.record.snapshot import Snapshot


def check(folder: Path) -> list[dict[str, Any]]:
    """One object a workspace at or below ``folder``: kind, rows, candidates, best, findings."""
    roots = find_workspaces(folder) or [folder]
    return [_checked(root, open_reader(root, read_only=True).settle()) for root in roots]


def _checked(root: Path, snapshot: Snapshot) -> dict[str, Any]:
    best = snapshot.extra.get("best")
    return {
        "workspace": str(root),
        "kind": "own" if is_own(root) else "foreign",
        "rows": dict(snapshot.extra.get("rows", {})),
        "times": snapshot.bench.rows if snapshot.bench is not None else 0,
        "candidates": len(snapshot.candidates),
        "counts": dict(snapshot.counts),
        "best": asdict(best) if best is not None else None,
        "findings": [asdict(finding) for finding in snapshot.findings],
    }
