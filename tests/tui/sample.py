"""A fixed workspace as a snapshot, and a source that plays snapshots: no files, no clock."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

from kda_tui.record.contract import Contract
from kda_tui.record.records import Candidate, Decision
from kda_tui.record.snapshot import (
    BenchTable,
    BudgetLine,
    Claim,
    Gate,
    Incumbent,
    Live,
    Plan,
    PlanItem,
    PlanRevision,
    Question,
    RunInfo,
    Snapshot,
    Steering,
    TranscriptState,
)

NOW = 1767233647.0  # 2026-01-01 02:14:07 UTC


def at(minutes_ago: float) -> str:
    """A record's time, minutes before NOW."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(NOW - 60 * minutes_ago, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def contract(**changes: Any) -> Contract:
    data: dict[str, Any] = {
        "task": {
            "name": "softmax_rows",
            "objective": "Row softmax of a large matrix, as fast as memory allows",
            "device": "cuda",
            "arch": "sm_90a",
        },
        "tensors": [
            {"name": "x", "role": "in", "dtype": "float32", "shape": ["R", "C"]},
            {
                "name": "y",
                "role": "out",
                "dtype": "float32",
                "shape": ["R", "C"],
                "check": {"rel_l2": 1e-6, "tile": ["row"]},
            },
        ],
        "workloads": [
            {"id": "4096x4096", "axes": {"R": 4096, "C": 4096}},
            {"id": "odd", "axes": {"R": 33, "C": 1027}, "timed": False},
        ],
        "baseline": {"candidate": "baseline"},
        "promotion": {"min_speedup": 1.02},
        "budget": {"candidates": 200, "hours": 12.0, "usd": 20.0},
        "sha256": "c8fe2a77" + "0" * 56,
    }
    return Contract.model_validate({**data, **changes})


CANDIDATES = (
    Candidate("c0022", seq=10, t=at(200), author="agent", hypothesis="one block a row, shared memory", item="P1", stage="judged", validity="passed", speed="faster", eval="e1", opponent="baseline", time_us=96.1, ratio=1.14, lo=1.12, hi=1.16, floor_share=0.50, registers=32, spills=0, shared_bytes=4096, decision="revoked"),
    Candidate("c0029", seq=20, t=at(150), author="agent", parents=("c0022",), item="P6", hypothesis="cp.async ring", stage="judged", validity="passed", speed="slower", eval="e2", opponent="c0022", time_us=84.0, ratio=0.98, lo=0.97, hi=0.99, floor_share=0.57, registers=48, spills=0, shared_bytes=16384, decision="vetoed", reason="too clever"),
    Candidate("c0031", seq=30, t=at(120), author="agent", parents=("c0022",), item="P1", hypothesis="vectorised store", stage="judged", validity="passed", speed="faster", eval="e3", opponent="baseline", time_us=82.7, ratio=1.34, lo=1.31, hi=1.36, floor_share=0.58, registers=32, spills=0, shared_bytes=4096, decision="promoted"),
    Candidate("c0037", seq=40, t=at(60), author="agent", parents=("c0031",), item="P3", hypothesis="two-pass online", stage="judged", validity="incorrect", eval="e4", worst={"workload": "odd", "tile": "(3,0)", "err": 2.5}, registers=40, spills=0),
    Candidate("c0039", seq=50, t=at(20), author="agent", parents=("c0031",), item="P3", hypothesis="row in registers", stage="judged", validity="passed", speed="faster", eval="e5", opponent="c0031", time_us=68.5, ratio=1.21, lo=1.18, hi=1.23, floor_share=0.71, registers=38, spills=0, shared_bytes=0, decision="requested"),
    Candidate("c0042", seq=60, t=at(2), author="agent", parents=("c0039",), item="P4", hypothesis="float4 + smem swizzle", stage="claimed", registers=40, spills=0, shared_bytes=4096),
)  # fmt: skip

PLAN_2 = PlanRevision(
    2, "docs/plans/r002.md", "77ab" * 16, "agent", at(180), (), (PlanItem("P1", "vectorised store", "done"),)
)
PLAN_3 = PlanRevision(3, "docs/plans/r003.md", "91d0" * 16, "agent", at(3))


def bench(rows: list[tuple[str, str, str, str, float, float]]) -> BenchTable:
    """A table from (eval, candidate, workload, arm, median_us, ratio)."""
    names: dict[str, int] = {}

    def intern(text: str) -> int:
        return names.setdefault(text, len(names))

    columns: dict[str, Any] = {
        k: array("l") for k in ("candidate", "workload", "arm", "opponent", "eval", "protocol")
    }
    floats: dict[str, Any] = {
        k: array("d")
        for k in ("median_us", "min_us", "p95_us", "iqr_us", "ratio", "ratio_lo", "ratio_hi", "floor_us")
    }
    times: list[str] = []
    for ev, cand, load, arm, median, ratio in rows:
        for key, value in (
            ("candidate", cand),
            ("workload", load),
            ("arm", arm),
            ("opponent", ""),
            ("eval", ev),
            ("protocol", "ABBA"),
        ):
            columns[key].append(intern(value))
        for key in floats:
            floats[key].append(math.nan)
        floats["median_us"][-1], floats["ratio"][-1], floats["floor_us"][-1] = median, ratio, 48.1
        times.append(at(100))
    count = len(rows)
    return BenchTable(
        rows=count,
        names=tuple(names),
        t=times,
        seq=array("l", range(count)),
        admissible=array("l", [1] * count),
        **columns,
        **floats,
    )


BENCH_ROWS = [
    ("e1", "c0022", "4096x4096", "candidate", 96.1, 1.14), ("e1", "baseline", "4096x4096", "incumbent", 110.0, math.nan),
    ("e2", "c0029", "4096x4096", "candidate", 98.0, 0.98), ("e2", "c0022", "4096x4096", "incumbent", 96.1, math.nan),
    ("e3", "c0031", "4096x4096", "candidate", 82.7, 1.16), ("e3", "c0022", "4096x4096", "incumbent", 96.0, math.nan),
    ("e5", "c0039", "4096x4096", "candidate", 68.5, 1.21), ("e5", "c0031", "4096x4096", "incumbent", 82.7, math.nan),
]  # fmt: skip


def snapshot(root: Path = Path("/nowhere/softmax_rows"), **changes: Any) -> Snapshot:
    """The sketch of the design as a snapshot: a run in the night with two things waiting."""
    whole = Snapshot(
        workspace=root,
        version=1,
        name="softmax_rows",
        contract=contract(),
        contract_sha="c8fe2a77" + "0" * 56,
        runs=(
            RunInfo("r001", ended=at(900)),
            RunInfo("r002", agent="anthropic", model="m", pid=4121, device={"name": "NVIDIA H200"}),
        ),
        run=RunInfo("r002", agent="anthropic", model="m", pid=4121, device={"name": "NVIDIA H200"}),
        phase="iterate",
        phase_since=at(180),
        liveness="alive",
        last_activity=at(0.1),
        gates=(
            Gate("g1", "promotion", {"cand": "c0039"}, opened=at(14), seq=55),
            Gate(
                "g2",
                "question",
                {"question": "q3"},
                default="keep fp32",
                timeout_s=3600,
                opened=at(3),
                seq=58,
            ),
        ),
        questions={"q3": Question("q3", "May the sum be taken in bf16?", ("keep fp32", "bf16"), at(3))},
        plan=Plan(
            in_force=PLAN_2,
            approved_by="jw",
            approved_t=at(122),
            proposed=PLAN_3,
            revisions=(PLAN_2, PLAN_3),
            items=(
                PlanItem("P1", "vectorised store", "done"),
                PlanItem("P3", "row in registers", "doing"),
                PlanItem("P4", "swizzle so that the second pass is conflict free", "open"),
                PlanItem("P6", "cp.async ring", "dropped"),
            ),
        ),
        candidates={c.id: c for c in CANDIDATES},
        claims=(Claim("k9", "evaluate", "c0042", t=at(1), seq=61, run="r002", opponent="c0031"),),
        incumbent=Incumbent("c0031", "baseline", "promoted", "d1", "e3", 33, at(118)),
        bench=bench(BENCH_ROWS),
        decisions=(
            Decision("d1", "promote", at(118), "jw", "ui", {"cand": "c0031"}, outcome="taken"),
            Decision(
                "d2", "veto", at(100), "kl", "ui", {"cand": "c0029"}, reason="too clever", outcome="taken"
            ),
        ),
        steering=(Steering("d3", "jw", "try the swizzle before cp.async", at(30), 41, False),),
        budget={
            "candidates": BudgetLine("candidates", 42, 200),
            "hours": BudgetLine("hours", 3.1, 12),
            "usd": BudgetLine("usd", 6.2, 20),
        },
        live=Live("k9", "evaluate", "c0042", "timing", 0.71, "4096x4096", clocks={"sm_mhz": 1980}, pid=4121),
        transcript=TranscriptState(None, 0, 41, 0.84, {"in": 20000, "cache_read": 192000, "out": 8000}),
        counts={"passed": 4, "promoted": 1},
        events=61,
    )
    return replace(whole, **changes)


class Played:
    """A source that hands out the snapshots it is given."""

    def __init__(self, *snapshots: Snapshot) -> None:
        self._first, *rest = snapshots
        self._rest = list(rest)

    def first(self) -> Snapshot:
        return self._first

    def poll(self) -> Snapshot | None:
        return self._rest.pop(0) if self._rest else None

    def play(self, snapshot: Snapshot) -> None:
        self._rest.append(snapshot)
