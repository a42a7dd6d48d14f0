"""The budget of a run (R10): what is used, the 80 % notice, the 100 % hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kda_tui.record.contract import Contract
from kda_tui.record.snapshot import BudgetLine, Snapshot
from kda_tui.worker.facts import charged

AXES = ("candidates", "hours", "usd")
NOTICE_AT = 0.8
_RANK = {"ok": 0, "notice": 1, "reached": 2}


def level(used: float, limit: float | None) -> str:
    """ok, notice (80 %) or reached (100 %)."""
    if limit is None:
        return "ok"
    if used >= limit:
        return "reached"
    return "notice" if used >= NOTICE_AT * limit else "ok"


def limits(snap: Snapshot, contract: Contract) -> dict[str, float | None]:
    """What people set, else what the contract starts with. None = no limit."""
    start = {
        "candidates": contract.budget.candidates,
        "hours": contract.budget.hours,
        "usd": contract.budget.usd,
    }
    return {a: snap.budget[a].limit if a in snap.budget else start[a] for a in AXES}


@dataclass(slots=True)
class Meter:
    """Counts working hours; held and waiting time only where the contract says so.

    ``hours`` starts at what the record says a former worker used.
    """

    count_held: bool
    hours: float = 0.0
    usd: float = 0.0
    clock: Callable[[], float] = time.monotonic
    _last: float = field(default=-1.0)

    def tick(self, working: bool) -> None:
        """Add the time since the last tick if it was working time."""
        now = self.clock()
        if self._last >= 0.0 and (working or self.count_held):
            self.hours += (now - self._last) / 3600.0
        self._last = now

    def lines(self, snap: Snapshot, contract: Contract) -> dict[str, BudgetLine]:
        used = {"candidates": float(charged(snap)), "hours": self.hours, "usd": self.usd}
        return {
            axis: BudgetLine(axis, used[axis], limit, level(used[axis], limit))
            for axis, limit in limits(snap, contract).items()
        }


def raised(before: Mapping[str, BudgetLine], after: Mapping[str, BudgetLine]) -> list[BudgetLine]:
    """Axes whose level grew: the ones to record and to tell people about."""
    return [
        line
        for axis, line in after.items()
        if _RANK[line.level] > _RANK.get(before[axis].level if axis in before else "ok", 0)
    ]
