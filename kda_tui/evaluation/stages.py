"""The stages of an evaluation: which a level runs, the gates it must pass, the share of time each takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kda_tui.evaluation.verdict import Progress
from kda_tui.record.contract import Contract

_STAGES = {
    "build": ("build",),
    "smoke": ("build", "smoke"),
    "screen": ("build", "smoke", "screen"),
    "correct": ("build", "smoke", "screen", "correct"),
    "time": ("build", "smoke", "screen", "correct", "time"),
    "confirm": ("build", "smoke", "correct", "confirm"),  # a confirm measures anew; nothing earlier counts
}
_SHARES = {"build": 0.05, "smoke": 0.05, "screen": 0.15, "correct": 0.3, "time": 0.45, "confirm": 1.2}


def stages_of(level: str) -> tuple[str, ...]:
    """The stages of a level, in order."""
    return _STAGES[level]


def gates_of(contract: Contract, level: str) -> dict[str, str]:
    """Every gate that this contract has at this level, as not evaluated."""
    stages = stages_of(level)
    names = ["build"]
    if "smoke" in stages:
        names.append("smoke")
    if "correct" in stages:
        names += ["oracle", "unwritten", "inputs", "bounds", "determinism", "state"]
        if contract.correctness.probes:
            names.append("probes")
        judged = [t.check for t in contract.tensors if t.check is not None and not t.check.exact]
        if any(check.vs_baseline is not None for check in judged):
            names.append("vs_baseline")
    if "time" in stages or "confirm" in stages:
        names += ["timed_outputs", "floor", "alone", "aa"]
    if "confirm" in stages:
        names += ["hidden"] if contract.hidden is not None else []
        names += ["confirm"]
        names += ["sanitizer"] if contract.task.device == "cuda" else []
    return dict.fromkeys(names, "not_evaluated")


@dataclass(slots=True)
class Stages:
    """Where an evaluation stands, and how long each stage took."""

    level: str
    report: Callable[[Progress], None]
    reached: str = "build"
    seconds: dict[str, float] = field(default_factory=dict)
    _began: float = 0.0
    _told: float = 0.0
    _done: float = 0.0

    def enter(self, stage: str) -> None:
        self.leave()
        self.reached = stage
        self._began = time.monotonic()
        self.tick("", 0.0)

    def leave(self) -> None:
        if self._began:
            spent = time.monotonic() - self._began
            self.seconds[self.reached] = self.seconds.get(self.reached, 0.0) + spent
            self._began = 0.0

    def tick(self, workload: str, fraction: float) -> None:
        """Report the share of the whole evaluation, at most ten times a second."""
        now = time.monotonic()
        if fraction > 0.0 and now - self._told < 0.1:
            return
        self._told = now
        names = stages_of(self.level)
        total = sum(_SHARES[name] for name in names)
        before = sum(_SHARES[name] for name in names[: names.index(self.reached)])
        done = (before + _SHARES[self.reached] * min(1.0, max(0.0, fraction))) / total
        self._done = max(self._done, done)  # a child that is measured again does not turn the clock back
        self.report(Progress(self.reached, self._done, workload))
