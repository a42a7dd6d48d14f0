"""What is fixed when a run starts: contract and reference, by their hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kda_tui.record.paths import Workspace

Stamp = tuple[int, int, int] | None


class FixedInputs:
    """Compares contract.toml and reference.py with what ``run_started`` says; hashes only what was touched."""

    def __init__(self, ws: Workspace, started: Mapping[str, Any]) -> None:
        self._expected = {
            ws.contract: str(started.get("contract_sha") or ""),
            ws.reference: str(started.get("reference_sha") or ""),
        }
        self._seen: dict[Path, tuple[Stamp, bool]] = {}

    def changed(self) -> str:
        """The name of a file that is not what the run started with; empty if none."""
        return next(
            (path.name for path, sha in self._expected.items() if sha and not self._same(path, sha)), ""
        )

    def _same(self, path: Path, sha: str) -> bool:
        stamp = _stamp(path)
        known = self._seen.get(path)
        if known is None or known[0] != stamp:
            known = (stamp, stamp is not None and hashlib.sha256(path.read_bytes()).hexdigest() == sha)
            self._seen[path] = known
        return known[1]


def _stamp(path: Path) -> Stamp:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
