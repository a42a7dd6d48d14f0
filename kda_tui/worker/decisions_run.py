"""Rules for the run itself: holds (R5), the end, the budget (R10)."""

from __future__ import annotations

import math

from kda_tui.record.records import Decision
from kda_tui.record.snapshot import Snapshot
from kda_tui.worker.budget import AXES, level
from kda_tui.worker.facts import by_whom
from kda_tui.worker.rulings import Effect, Ruling, moot, refused, superseded, taken


def _ended(snap: Snapshot) -> Ruling | None:
    if snap.run is None or snap.phase in ("", "ended"):
        return moot("no run is open")
    return None


def pause(snap: Snapshot, d: Decision) -> Ruling:
    if (over := _ended(snap)) is not None:
        return over
    if snap.hold == "person":
        return moot(f"already held since {snap.hold_since}")
    return taken(Effect("hold", {"on": True, "why": "person", "text": d.reason or d.text}))


def resume(snap: Snapshot, d: Decision) -> Ruling:
    if (over := _ended(snap)) is not None:
        return over
    if not snap.hold:
        return moot("the run is not held")
    spent = [b for b in snap.budget.values() if b.limit is not None and b.used >= b.limit]
    if snap.hold == "budget" and spent:
        what = ", ".join(f"{b.axis} {b.used:g} of {b.limit:g}" for b in spent)
        return refused(f"the budget is used up ({what}); raise it first (kda budget)")
    return taken(Effect("hold", {"on": False, "why": snap.hold, "text": d.reason or d.text}))


def _end(snap: Snapshot, d: Decision) -> Ruling:
    if (over := _ended(snap)) is not None:
        return over
    earlier = next(
        (
            x
            for x in reversed(snap.decisions)
            if x.kind in ("end_now", "end_after")
            and x.outcome == "taken"
            and snap.run
            and x.run == snap.run.name
        ),
        None,
    )
    if earlier is not None and not (earlier.kind == "end_after" and d.kind == "end_now"):
        return superseded(f"the run is ending already{by_whom(earlier)}")
    gates = [
        Effect("gate_close", {"gate": g.id, "outcome": "ended", "gate_kind": "end", **g.target})
        for g in snap.gates
        if g.kind == "end"
    ]
    return taken(*gates)


end_after = _end
end_now = _end


def set_budget(snap: Snapshot, d: Decision) -> Ruling:
    amount = d.amount or {}
    axis, value = str(amount.get("axis") or ""), amount.get("value")
    if axis not in AXES:
        return refused(f"there is no budget axis {axis or '(none named)'}; there are {', '.join(AXES)}")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return refused(f"the budget of {axis} is a number, 0 or more, not {value!r}")
    if (over := _ended(snap)) is not None:
        return over
    line = snap.budget.get(axis)
    used = line.used if line is not None else 0.0
    effects = [Effect("budget", {"axis": axis, "used": used, "limit": value, "level": level(used, value)})]
    if used < value:
        effects += [
            Effect("gate_close", {"gate": g.id, "outcome": "raised", "gate_kind": "budget", **g.target})
            for g in snap.gates
            if g.kind == "budget" and g.target.get("axis") == axis
        ]
        others = [
            b for b in snap.budget.values() if b.axis != axis and b.limit is not None and b.used >= b.limit
        ]
        if snap.hold == "budget" and not others:
            effects.append(
                Effect("hold", {"on": False, "why": "budget", "text": f"{axis} raised to {value:g}"})
            )
    return taken(*effects)
