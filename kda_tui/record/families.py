"""Families of hypotheses: how much was tried in each, and since when nothing in it got better. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kda_tui.record.records import Candidate

STALE_AFTER = 4  # judged candidates without a better one


@dataclass(frozen=True, slots=True)
class Family:
    """``since_best``: candidates judged since the best one; ``best`` is the highest ratio that passed."""

    name: str
    judged: int
    passed: int
    best: float | None
    best_cand: str
    since_best: int

    @property
    def is_stale(self) -> bool:
        return self.since_best >= STALE_AFTER


def families(candidates: Iterable[Candidate]) -> tuple[Family, ...]:
    """The families of judged candidates, those that stagnate longest first."""
    found: dict[str, Family] = {}
    for c in candidates:
        if c.stage != "judged" or c.validity in ("", "infrastructure_error"):
            continue
        name = c.family or "(no family)"
        old = found.get(name, Family(name, 0, 0, None, "", 0))
        passed = c.validity == "passed" and c.ratio is not None
        better = passed and c.ratio is not None and (old.best is None or c.ratio > old.best)
        found[name] = Family(
            name,
            old.judged + 1,
            old.passed + passed,
            c.ratio if better else old.best,
            c.id if better else old.best_cand,
            0 if better else old.since_best + 1,
        )
    return tuple(sorted(found.values(), key=lambda f: -f.since_best))
