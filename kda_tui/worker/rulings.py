"""What a decision rule answers: an outcome with its reason, and the events that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kda_tui.record.records import Candidate, Decision, from_line, to_line
from kda_tui.record.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Effect:
    """One journal event that follows from a decision; ``candidate`` is the candidate's new state."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    candidate: Candidate | None = None

    def to_todo(self) -> dict[str, Any]:
        """As plain data, for the redo list in the decision's own journal line."""
        todo: dict[str, Any] = {"kind": self.kind}
        if self.fields:
            todo["fields"] = dict(self.fields)
        if self.candidate is not None:
            todo["candidate"] = to_line(self.candidate)
        return todo

    @classmethod
    def from_todo(cls, todo: Mapping[str, Any]) -> Effect:
        """The inverse of :meth:`to_todo`."""
        line = todo.get("candidate")
        return cls(
            kind=str(todo["kind"]),
            fields=dict(todo.get("fields") or {}),
            candidate=from_line(Candidate, line) if isinstance(line, Mapping) else None,
        )


@dataclass(frozen=True, slots=True)
class Ruling:
    """``outcome`` is taken, refused, superseded or moot; ``files`` are sources to write first (R1)."""

    outcome: str
    why: str = ""
    effects: tuple[Effect, ...] = ()
    override: tuple[str, ...] = ()
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # candidate -> name -> text


Rule = Callable[[Snapshot, Decision], Ruling]


def taken(*effects: Effect, why: str = "", override: Sequence[str] = ()) -> Ruling:
    return Ruling("taken", why, tuple(effects), tuple(override))


def refused(why: str) -> Ruling:
    return Ruling("refused", why)


def superseded(why: str) -> Ruling:
    return Ruling("superseded", why)


def moot(why: str) -> Ruling:
    return Ruling("moot", why)
