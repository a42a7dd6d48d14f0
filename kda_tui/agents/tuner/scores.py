"""What the record says about a search: candidates of one family, how fast each is, what is still open."""

from __future__ import annotations

from dataclasses import dataclass

from kda_tui.agents.tuner.space import Point, Space
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Snapshot

BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class Standing:
    """``measured`` maps points to speed relative to the baseline; ``open`` has no verdict yet."""

    measured: dict[Point, float | None]
    by_point: dict[Point, Candidate]
    open: tuple[Candidate, ...]


def speed(snap: Snapshot, cand: str, seen: frozenset[str] = frozenset()) -> float | None:
    """Speed over the baseline, through the opponents it was compared with.

    Good enough to steer a search; never a claim (those come from a confirm).
    """
    if cand in (BASELINE, ""):
        return 1.0
    c = snap.candidates.get(cand)
    if c is None or c.validity != "passed" or c.ratio is None or cand in seen:
        return None
    opponent = speed(snap, c.opponent, seen | {cand})
    return None if opponent is None else c.ratio * opponent


def is_stale(snap: Snapshot, c: Candidate) -> bool:
    """Judged under another contract than the one in force: its verdict counts for nothing here."""
    found = snap.evaluations.get(c.eval)
    return found is not None and snap.run is not None and found.contract_sha != snap.run.contract_sha


def standing(snap: Snapshot, space: Space) -> Standing:
    """Read the candidates of ``space`` back from the record."""
    measured: dict[Point, float | None] = {}
    by_point: dict[Point, Candidate] = {}
    waiting: list[Candidate] = []
    for c in snap.candidates.values():
        if c.family != space.name or (point := space.point_of(c.defines)) is None:
            continue
        by_point[point] = c
        if c.decision in ("vetoed", "revoked"):
            measured[point] = None
        elif c.stage == "judged" or c.validity:
            measured[point] = speed(snap, c.id)
            if is_stale(snap, c):
                waiting.append(c)
        elif c.stage != "cancelled":
            measured[point] = None
            waiting.append(c)
        else:
            measured[point] = None
    return Standing(measured, by_point, tuple(waiting))


def best_candidate(snap: Snapshot, found: Standing) -> Candidate | None:
    """The fastest candidate that passed and is not rejected."""
    ranked = [
        (score, c)
        for point, c in found.by_point.items()
        if (score := found.measured.get(point)) is not None and c.decision not in ("vetoed", "revoked")
    ]
    return max(ranked, key=lambda pair: pair[0], default=(0.0, None))[1]
