"""The files that a row names: inside the workspace and there, missing, on another machine, or outside. Nothing is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_KEYS = (
    "candidate", "source_files", "src_cuh", "src", "evidence", "evidence_files", "artifacts", "report", "profile_paths",
    "benchmark_csv", "ncu_report", "benchmark",
)  # fmt: skip
_WORD = re.compile(r"[\w~$.{}/\-]+(?:,[\w./\-]+\}[\w.]*)?")
_FILE = re.compile(r"[\w\-.]*\w\.(?:py|cu|cuh|cpp|csv|jsonl?|md|log|txt|ncu-rep)")
_REMOTE = re.compile(r"^(\$?REMOTE|[\w.\-]+:|~|/(home|tmp|mnt|data|root|workspace)/)")
_MOST = 60  # paths of one row
_LONGEST = 4000  # characters of one text that are looked at


@dataclass(frozen=True, slots=True)
class Artifact:
    """``state``: there | missing | remote | outside."""

    path: str
    state: str


def artifacts_of(root: Path, body: Mapping[str, Any]) -> tuple[Artifact, ...]:
    """Path-like words of a row's values about evidence and sources, each once, with what is known about it."""
    found: dict[str, Artifact] = {}
    for key in _KEYS:
        for text in _texts(body.get(key)):
            for word in _WORD.findall(text[:_LONGEST]):
                path = word.rstrip(".")
                if _is_path(path) and path not in found and len(found) < _MOST:
                    found[path] = Artifact(path, _state(root, path))
    return tuple(found.values())


def _is_path(word: str) -> bool:
    """Whether a word looks like a file or a folder and not like a fraction or a pair of words."""
    if "/" not in word:
        return _FILE.fullmatch(word) is not None
    return bool(re.search(r"[A-Za-z_]", word)) and bool(re.search(r"[._]|/.*/", word))


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list) and depth < 4:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item, depth + 1)


def _state(root: Path, path: str) -> str:
    if _REMOTE.match(path):
        return "remote"
    inside = os.path.realpath(root)
    try:
        real = os.path.realpath(root / path)
    except (OSError, ValueError):
        return "missing"
    if real != inside and not real.startswith(inside.rstrip("/") + "/"):
        return "outside"
    return "there" if os.path.lexists(real) else "missing"
