"""The files of one candidate, read for the detail view; never anything outside the workspace."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.record.foreign.artifacts import artifacts_of
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Evaluation

MAX_FILE = 1 << 20
MOST_NAMED = 12  # files read of those that a row names
MAX_SAMPLES = 4 << 20


@dataclass(frozen=True, slots=True)
class Folder:
    """Texts by file name; a file that cannot be shown says why in its text."""

    name: str
    files: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        return self.files.get(name, "")


def read_folder(workspace: Workspace, cand: str, baseline: str = "baseline") -> Folder:
    """Every text of a candidate's folder (of the baseline's for ``baseline``)."""
    path = workspace.root / baseline if cand == "baseline" else workspace.candidate(cand)
    files: dict[str, str] = {}
    if inside(workspace, path):
        try:
            names = sorted(p for p in path.iterdir() if p.is_file())
        except OSError:
            names = []
        for file in names:
            if inside(workspace, file):
                files[file.name] = read_text(file)
    return Folder(cand, files)


def read_named(workspace: Workspace, cand: Candidate) -> Folder:
    """The files inside somebody's workspace that a candidate's row names, sources first."""
    raw = cand.extra.get("raw")
    named = artifacts_of(workspace.root, raw) if isinstance(raw, Mapping) else ()
    paths = [workspace.root / artifact.path for artifact in named if artifact.state == "there"]
    sources = sorted(paths, key=lambda p: p.suffix not in (".cu", ".cuh", ".py", ".cpp"))
    files = {
        p.relative_to(workspace.root).as_posix(): read_text(p) for p in sources[:MOST_NAMED] if p.is_file()
    }
    return Folder(cand.id, files)


def read_text(path: Path) -> str:
    """A text of at most 1 MB; what cannot be shown is said instead."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        return f"({path.name} cannot be read: {error.strerror})"
    if b"\0" in data[:4096]:
        return f"({path.name} is not a text)"
    cut = f"\n(only the first {MAX_FILE >> 20} MB are shown)" if len(data) > MAX_FILE else ""
    return data[:MAX_FILE].decode("utf-8", "backslashreplace") + cut


def inside(workspace: Workspace, path: Path) -> bool:
    """Whether a path, its links followed, stays in the workspace."""
    try:
        return path.resolve().is_relative_to(workspace.root.resolve())
    except OSError:
        return False


Samples = Mapping[tuple[str, str], Sequence[float]]


def read_samples(workspace: Workspace, evaluation: Evaluation) -> dict[tuple[str, str], list[float]]:
    """Microseconds by (workload, arm) of an evaluation's sample files; lines that cannot be read are left out."""
    out: dict[tuple[str, str], list[float]] = {}
    listed = evaluation.extra.get("samples")
    for entry in listed if isinstance(listed, list) else []:
        name = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            continue
        path = _sample_path(workspace, evaluation, name)
        if path is None:
            continue
        with path.open("rb") as file:
            text = file.read(MAX_SAMPLES).decode("utf-8", "replace")
        for line in text.splitlines():
            _take(out, line)
    return out


def _sample_path(workspace: Workspace, evaluation: Evaluation, name: str) -> Path | None:
    run = workspace.run(evaluation.run).root
    for path in (run / name, run / "samples" / name):
        if path.is_file() and inside(workspace, path):
            return path
    return None


def _take(out: dict[tuple[str, str], list[float]], line: str) -> None:
    try:
        slot: Any = json.loads(line)
    except ValueError:
        return
    if not isinstance(slot, dict) or not isinstance(slot.get("us"), list) or slot.get("block", 0) == -1:
        return
    key = (str(slot.get("workload", "")), str(slot.get("arm", "")))
    values = [float(v) for v in slot["us"] if isinstance(v, int | float) and math.isfinite(v)]
    out.setdefault(key, []).extend(values)
