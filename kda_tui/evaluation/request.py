"""What is asked of the judge: one request, plain values that travel as a JSON line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Op = Literal["compile", "evaluate", "confirm", "selftest", "debug", "explain"]
Level = Literal["build", "smoke", "screen", "correct", "time", "confirm"]


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """``candidate`` and ``incumbent`` are folders; an empty incumbent is the contract's baseline.

    ``seeds`` is the run's pool, or fresh ones for a confirm; the first also draws orders and hidden shapes.
    ``options``: ``workloads`` (only these ids).
    """

    op: str
    workspace: str
    candidate: str
    incumbent: str = ""
    cand_id: str = ""
    incumbent_id: str = ""
    level: str = "time"
    k: int = 1
    attempt: int = 1
    samples_dir: str = ""
    cache_dir: str = ""
    seeds: tuple[str, ...] = ("0",)
    options: Mapping[str, Any] = field(default_factory=dict)

    def line(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> JudgeRequest:
        """Raises KeyError or TypeError on a line that is no request."""
        known = {f.name for f in fields(cls)}
        given = {k: v for k, v in line.items() if k in known}
        return cls(**{**given, "seeds": tuple(str(s) for s in given.get("seeds", ())) or ("0",)})
