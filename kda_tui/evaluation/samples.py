"""Raw samples: one JSON line a slot in a file beside the record, and the cells of benchmark.csv."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.evaluation.statistics import quantile
from kda_tui.evaluation.verdict import SampleFile


@dataclass(frozen=True, slots=True)
class Slot:
    """The samples of one slot: consecutive launches of one arm on fresh inputs, in microseconds a call."""

    child: int
    block: int  # -1: the incumbent alone, before the candidate is loaded
    workload: str
    arm: str
    pair: int
    order: int  # position within the block's visit to the workload
    us: tuple[float, ...]
    voided: int = 0
    clock_mhz: float | None = None

    def line(self) -> dict[str, Any]:
        line: dict[str, Any] = {
            "child": self.child,
            "block": self.block,
            "workload": self.workload,
            "arm": self.arm,
            "pair": self.pair,
            "order": self.order,
            "us": [round(v, 4) for v in self.us],
        }
        if self.voided:
            line["voided"] = self.voided
        if self.clock_mhz is not None:
            line["clock_mhz"] = self.clock_mhz
        return line


@dataclass(slots=True)
class SampleLog:
    """Slots of one evaluation in the order of measurement; written once, with fsync, by ``write``."""

    path: Path | None
    slots: list[Slot] = field(default_factory=list)
    void: set[int] = field(default_factory=set)  # children that count for nothing; their slots are kept
    void_blocks: set[tuple[int, int]] = field(default_factory=set)  # the same of (child, block)

    def add(self, slot: Slot) -> None:
        self.slots.append(slot)

    def valid(self, workload: str, arm: str) -> list[Slot]:
        """The slots of an arm beside its rivals, without those of voided children."""
        return [
            s for s in self.slots
            if s.workload == workload and s.arm == arm and s.block >= 0 and not self._is_void(s)
        ]  # fmt: skip

    def _is_void(self, slot: Slot) -> bool:
        return slot.child in self.void or (slot.child, slot.block) in self.void_blocks

    def write(self) -> tuple[SampleFile, ...]:
        """The file and its hash; nothing without a path or without samples."""
        if self.path is None or not self.slots:
            return ()
        lines = [slot.line() | ({"void": True} if self._is_void(slot) else {}) for slot in self.slots]
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)
        name = f"{self.path.parent.name}/{self.path.name}"
        return (SampleFile(name, hashlib.sha256(data).hexdigest(), len(data)),)

    def of(self, workload: str, arm: str) -> list[float]:
        """All samples of an arm beside its rivals, microseconds."""
        return [v for slot in self.valid(workload, arm) for v in slot.us]

    def clock(self, workload: str, arm: str) -> float | None:
        clocks = [s.clock_mhz for s in self.valid(workload, arm) if s.clock_mhz is not None]
        return quantile(clocks, 0.5) if clocks else None


def time_cells(samples: Sequence[float]) -> dict[str, Any]:
    """n, min, median, p95 and interquartile range, as benchmark.csv names them."""
    if not samples:
        return {"n": 0}
    return {
        "n": len(samples),
        "min_us": round(min(samples), 4),
        "median_us": round(quantile(samples, 0.5), 4),
        "p95_us": round(quantile(samples, 0.95), 4),
        "iqr_us": round(quantile(samples, 0.75) - quantile(samples, 0.25), 4),
    }
