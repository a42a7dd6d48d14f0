"""Checkpoints: one hash that stands for everything the ledgers held at a moment, chained to the one before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.record.artifacts import sha256_bytes
from kda_tui.record.lines import canonical, last_lines, parse_line, read_lines
from kda_tui.record.paths import Workspace

_CHUNK = 1 << 20


def head_of(line: Mapping[str, Any]) -> str:
    """The head of a checkpoint: SHA-256 over the canonical form of its line without ``head``."""
    return sha256_bytes(canonical({key: value for key, value in line.items() if key != "head"}))


def ledgers_of(ws: Workspace, runs: Iterable[str]) -> list[Path]:
    """The ledgers of the workspace and of these runs that exist."""
    paths = [ws.candidates_ledger, ws.decisions, ws.benchmark]
    for run in runs:
        paths += [ws.run(run).events, ws.run(run).transcript]
    return [path for path in paths if path.exists()]


def newest_head(ws: Workspace, runs: Iterable[str]) -> tuple[str, str]:
    """The run of the newest checkpoint and its head; both '' if these runs, oldest first, have none."""
    for run in reversed(list(runs)):
        path = ws.run(run).events
        for lines in (last_lines(path), [line.data for line in read_lines(path)]):
            for data in reversed(lines):
                line = parse_line(data)
                if line is not None and line.get("kind") == "checkpoint":
                    return run, str(line.get("head"))
    return "", ""


@dataclass(slots=True)
class PrefixHashes:
    """SHA-256 of ledgers as they grow; reads only what was appended since the last time."""

    root: Path
    _known: dict[Path, tuple[int, Any]] = field(default_factory=dict)

    def update(self, paths: Iterable[Path]) -> dict[str, list[int | str]]:
        """``{path relative to root: [bytes, sha256 of those bytes]}`` of the files as they are now."""
        return {path.relative_to(self.root).as_posix(): self._extend(path) for path in paths}

    def _extend(self, path: Path) -> list[int | str]:
        size, running = self._known.get(path, (0, hashlib.sha256()))
        with path.open("rb") as file:
            file.seek(size)
            while chunk := file.read(_CHUNK):
                running.update(chunk)
                size += len(chunk)
        self._known[path] = (size, running)
        return [size, running.hexdigest()]
