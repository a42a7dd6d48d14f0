"""Compiled programs on disk: named by the hash of all that made them, written whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kda_tui.text import UserError


@dataclass(frozen=True, slots=True)
class Stored:
    path: Path
    facts: Mapping[str, Any]


class Store:
    """``<key>.so`` and ``<key>.json`` in one folder; safe for any number of processes at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UserError(
                f"{root}: the compile cache cannot be written ({error.strerror}); set XDG_CACHE_HOME"
            ) from error

    def get(self, key: str) -> Stored | None:
        """What was stored; None if it is missing or damaged."""
        path = self.root / f"{key}.so"
        try:
            facts = json.loads((self.root / f"{key}.json").read_bytes())
            if facts["sha256"] == sha256(path.read_bytes()):
                return Stored(path, facts)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def put(self, key: str, program: bytes, facts: Mapping[str, Any]) -> Stored:
        """Store under ``key``; the facts, which make an entry valid, last."""
        whole = {**facts, "sha256": sha256(program)}
        path = self.root / f"{key}.so"
        self._write(path, program)
        self._write(self.root / f"{key}.json", json.dumps(whole).encode())
        return Stored(path, whole)

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """A folder for one compilation, removed at the end."""
        with tempfile.TemporaryDirectory(prefix="build-", dir=self.root, ignore_cleanup_errors=True) as name:
            yield Path(name)

    def _write(self, path: Path, data: bytes) -> None:
        handle, name = tempfile.mkstemp(dir=self.root, prefix=".part-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def default_cache() -> Path:
    """Where compiled programs and measured facts of this machine are kept."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "kda" / "cpu"
