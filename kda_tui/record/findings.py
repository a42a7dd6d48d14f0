"""Findings as they are collected: in order, and a flood from one file cut short with its count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kda_tui.record.snapshot import Finding

MOST = 500  # findings kept of one file


@dataclass(slots=True)
class FindingBook:
    """Findings by file, in the order of files first named. What is over MOST of one file is only counted."""

    _kept: dict[str, list[Finding]] = field(default_factory=dict)
    _more: dict[str, int] = field(default_factory=dict)
    _all: tuple[Finding, ...] | None = ()

    def add(self, finding: Finding) -> None:
        kept = self._kept.setdefault(finding.file, [])
        if len(kept) < MOST:
            kept.append(finding)
        else:
            self._more[finding.file] = self._more.get(finding.file, 0) + 1
        self._all = None

    def forget(self, file: str) -> None:
        """Drop what was found in a file that is read anew."""
        if self._kept.pop(file, None) is not None:
            self._all = None
        self._more.pop(file, None)

    def all(self, passing: Iterable[Finding] = ()) -> tuple[Finding, ...]:
        """Everything, by file and line; ``passing`` are findings of this moment and come first."""
        if self._all is None:
            self._all = tuple(
                finding
                for file in sorted(self._kept)
                for finding in (*sorted(self._kept[file], key=_line), *self._rest(file))
            )
        first = tuple(passing)
        return (*first, *self._all) if first else self._all

    def _rest(self, file: str) -> tuple[Finding, ...]:
        more = self._more.get(file)
        return (Finding(file, 0, f"{more} more findings", "counted only", "warning"),) if more else ()


def _line(finding: Finding) -> int:
    return finding.line
