"""The seldom wanted part of a ledger line, read again from the file when somebody asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kda_tui.record.plain_file import Refused, open_plain
from kda_tui.record.rough_json import read_object


class LineRest(Mapping[str, Any]):
    """The keys of one line without some, as an immutable mapping. Ten thousand of them cost next to nothing.

    A ledger only grows, so the line stays where it is; where it is gone after all, the mapping is empty.
    """

    __slots__ = ("_at", "_found", "_path", "_root", "_size", "_without")

    def __init__(self, root: Path, path: Path, at: int, size: int, without: frozenset[str]) -> None:
        """``at`` and ``size``: the line in the file, in bytes."""
        self._root = root
        self._path = path
        self._at = at
        self._size = size
        self._without = without
        self._found: dict[str, Any] | None = None

    def _line(self) -> dict[str, Any]:
        if self._found is None:
            line = read_object(self._bytes())[0] or {}
            self._found = {key: value for key, value in line.items() if key not in self._without}
        return self._found

    def _bytes(self) -> bytes:
        try:
            fd = open_plain(self._path, self._root)
        except Refused:
            return b""
        try:
            return os.pread(fd, self._size, self._at)
        except OSError:
            return b""
        finally:
            os.close(fd)

    def __getitem__(self, key: str) -> Any:
        return self._line()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._line())

    def __len__(self) -> int:
        return len(self._line())

    def __repr__(self) -> str:
        return f"LineRest({self._line()!r})"
