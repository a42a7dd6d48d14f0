"""The profile of a candidate as the hotspots pane shows it: its digest, from summary.json or a child process.

A .ncu-rep is read by native code; that must not be able to take the screen's process with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kda_tui.record.paths import Workspace
from kda_tui.tui import words
from kda_tui.tui.folder import inside, read_text

PROFILES = (".ncu-rep", ".csv", ".txt")
SHOWN = 8  # hot lines
READ_S = 60.0  # longest time for reading one file


@dataclass(frozen=True, slots=True)
class Spot:
    """One hot source line: its share of the samples and what it waits for, in words."""

    line: int
    share: float
    words: str
    text: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """The profile of one candidate; ``why_none`` is set when there are no spots."""

    cand: str
    version: str = ""
    kernel: str = ""
    verdict: str = ""
    taken: float | None = None
    spots: tuple[Spot, ...] = ()
    notes: tuple[str, ...] = ()
    why_none: str = ""
    source: tuple[str, ...] = ()


def read_seen(workspace: Workspace, cand: str) -> Seen:
    """The newest profile of a candidate; runs in the reading thread."""
    folder = workspace.profile / cand
    summary = folder / "summary.json"
    if inside(workspace, summary) and summary.is_file():
        return _seen(workspace, cand, _parse(read_text(summary)), summary)
    files = sorted(_profiles(folder), key=lambda p: (PROFILES.index(p.suffix), -p.stat().st_mtime))
    for path in files:
        if inside(workspace, path):
            return _seen(workspace, cand, _digest(path), path)
    return Seen(cand, why_none=f"{cand} has no profile; I profiles it (with Nsight Compute, on a GPU)")


def _profiles(folder: Path) -> list[Path]:
    try:
        return [p for p in folder.iterdir() if p.is_file() and p.suffix in PROFILES]
    except OSError:
        return []


def _digest(path: Path) -> Mapping[str, Any]:
    """What ``kda profile --read`` says about a file."""
    command = [sys.executable, "-m", "kda_tui", "profile", "--read", str(path), "--json"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=READ_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"unavailable": f"{path.name} cannot be read: {error}"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"unavailable": f"{path.name} cannot be read: {last}"}
    return _parse(done.stdout)


def _parse(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        return {"unavailable": f"the digest of the profile is not JSON: {error}"}
    return found if isinstance(found, dict) else {"unavailable": "the digest of the profile is not an object"}


def _seen(workspace: Workspace, cand: str, digest: Mapping[str, Any], path: Path) -> Seen:
    """From a digest, whoever wrote it: a key that is missing or odd is left out, never an error."""
    kernels = [k for k in _list(digest.get("kernels")) if isinstance(k, dict)]
    version = str(digest.get("version") or digest.get("form") or "")
    findings = tuple(str(f) for f in _list(digest.get("findings")))
    if not kernels:
        why = str(digest.get("unavailable") or "; ".join(findings) or "no kernel in this profile")
        return Seen(cand, version, why_none=why)
    kernel = max(kernels, key=lambda k: _number(k.get("samples")))
    spots = tuple(_spot(s) for s in _list(kernel.get("hotspots"))[:SHOWN] if isinstance(s, dict))
    notes = (*(str(n) for n in _list(kernel.get("notes"))), *findings)
    why = str(kernel.get("no_hotspots") or "")
    return Seen(
        cand, f"ncu {version}" if version[:1].isdigit() else version, str(kernel.get("name", "")), str(kernel.get("verdict") or ""),
        path.stat().st_mtime, spots, notes, why, _source(workspace, cand),
    )  # fmt: skip


def _spot(spot: Mapping[str, Any]) -> Spot:
    how, lines = str(spot.get("waits_how") or ""), [str(n) for n in _list(spot.get("waits_on"))[:3]]
    return Spot(
        int(_number(spot.get("line"))),
        _number(spot.get("share")),
        f"{spot.get('words') or spot.get('stall') or ''} ({words.share(_number(spot.get('stall_share')))})",
        str(spot.get("text") or ""),
        f"{how} line {', '.join(lines)}" if how and lines else how,
    )


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and value == value else 0.0


def _source(workspace: Workspace, cand: str) -> tuple[str, ...]:
    path = workspace.candidate(cand) / "kernel.cu"
    return tuple(read_text(path).split("\n")) if path.is_file() and inside(workspace, path) else ()
