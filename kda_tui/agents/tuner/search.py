"""Coordinate descent with restarts over a small grid, as a pure function of what was measured.

The search keeps no state: it is replayed over the measured points and stops at the first one it
would need next. So a new process, or another person, goes on exactly where the last one was.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from kda_tui.agents.tuner.space import Point, Space, Value, words

GAIN = 1.005  # a neighbour must be this much faster to move there; less is noise
RESTARTS = 1


@dataclass(frozen=True, slots=True)
class Next:
    """The point to measure next, the point it was reached from, and why, in words."""

    point: Point
    origin: Point
    why: str
    axis: str = ""  # the tunable that is being varied; "" = a starting point
    descent: int = 0  # 0 = from the declared start, 1.. = restarts


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to measure; ``best`` is None if no point passed."""

    best: Point | None
    score: float = 0.0


Measured = Mapping[Point, float | None]  # speed, larger is faster; None = did not pass


def propose(space: Space, measured: Measured, restarts: int = RESTARTS) -> Next | Done:
    """What to measure next, or that the search has converged."""
    for descent, start in enumerate(_starts(space, restarts)):
        step = _descend(space, start, measured, descent)
        if isinstance(step, Next):
            return step
    passed = [(score, point) for point, score in measured.items() if score is not None]
    if not passed:
        return Done(None)
    score, best = max(passed, key=lambda pair: pair[0])
    return Done(best, score)


def descended(space: Space, measured: Measured) -> Done | None:
    """Where the first descent, the one from the declared start, ended; None while it goes on."""
    step = _descend(space, space.start, measured, 0)
    return step if isinstance(step, Done) else None


def _starts(space: Space, restarts: int) -> list[Point]:
    """The declared start, then far-apart points drawn with a seed that is fixed by the grid."""
    rng = random.Random(f"{space.name}/{space.axes}")
    starts = [space.start]
    for _ in range(20 * restarts):
        if len(starts) > restarts:
            break
        point: Point = tuple((name, rng.choice(values)) for name, values in space.axes)
        if point not in starts:
            starts.append(point)
    return starts


def _descend(space: Space, start: Point, measured: Measured, descent: int) -> Next | Done:
    if start not in measured:
        why = "the declared defaults" if descent == 0 else f"restart {descent} from {words(start)}"
        return Next(start, start, why, descent=descent)
    at, moved = start, True
    while moved:
        moved = False
        for axis, values in space.axes:
            step = _line(at, axis, values, measured, descent)
            if isinstance(step, Next):
                return step
            moved = moved or step != at
            at = step
    return Done(at, _score(measured, at))


def _line(at: Point, axis: str, values: tuple[Value, ...], measured: Measured, descent: int) -> Next | Point:
    """The best point along one axis, or the first unmeasured one."""
    best = at
    for value in values:
        point: Point = tuple((name, value if name == axis else old) for name, old in at)
        if point == at:
            continue
        if point not in measured:
            old = dict(at)[axis]
            return Next(point, at, f"{axis} {old} -> {value} from {words(at)}", axis, descent)
        if _score(measured, point) > _score(measured, best) * (GAIN if best == at else 1.0):
            best = point
    return best


def _score(measured: Measured, point: Point) -> float:
    score = measured.get(point)
    return score if score is not None else 0.0
