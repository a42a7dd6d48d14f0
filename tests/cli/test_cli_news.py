"""What happened between two snapshots, in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kda_tui.cli.news import news, verdict
from kda_tui.record.records import Candidate, Decision
from kda_tui.record.snapshot import Gate, Incumbent, Plan, PlanItem, PlanRevision, RunInfo, Snapshot

EMPTY = Snapshot(Path("task"), 1, phase="iterate", run=RunInfo("r001", agent="tuner"), liveness="alive")
JUDGED = Candidate(
    "c0002",
    stage="judged",
    validity="passed",
    speed="faster",
    time_us=68.5,
    ratio=1.21,
    lo=1.18,
    hi=1.23,
    opponent="c0001",
    eval="e7",
)


def test_nothing_new_is_nothing_said() -> None:
    assert news(EMPTY, replace(EMPTY, version=2)) == []


def test_a_first_look_tells_where_the_run_stands() -> None:
    assert news(None, EMPTY) == ["run r001 started by tuner", "phase iterate"]


def test_a_candidate_from_submission_to_promotion() -> None:
    born = replace(EMPTY, candidates={"c0002": Candidate("c0002", author="tuner", hypothesis="float4")})
    judged = replace(born, candidates={"c0002": JUDGED})
    promoted = replace(
        judged,
        candidates={"c0002": replace(JUDGED, decision="promoted")},
        incumbent=Incumbent("c0002", why="promoted"),
    )
    assert news(EMPTY, born) == ["c0002 submitted by tuner: float4"]
    assert news(born, judged) == ["c0002 passed, faster: 68.5 us, 1.21 [1.18 1.23] vs c0001"]
    assert news(judged, promoted) == ["c0002 promoted", "the incumbent is c0002 (promoted)"]


def test_verdicts_without_numbers() -> None:
    assert (
        verdict(replace(JUDGED, validity="incorrect", reason="last tile wrong"))
        == "incorrect: last tile wrong"
    )
    assert verdict(replace(JUDGED, stage="cancelled")) == "cancelled"
    assert verdict(replace(JUDGED, speed="not_measured", time_us=None, ratio=None)) == "passed"
    assert verdict(Candidate("c0001", stage="compiled")) == "compiled"


def test_plans_gates_holds_and_decisions() -> None:
    rev = PlanRevision(1, "docs/plans/r001.md", "ab", items=(PlanItem("P1", "knobs"),))
    proposed = replace(
        EMPTY,
        plan=Plan(proposed=rev, revisions=(rev,)),
        gates=(Gate("g1", "plan", {"plan_rev": 1}),),
        hold="person",
    )
    approved = replace(
        proposed,
        plan=Plan(in_force=rev, approved_by="jw", revisions=(rev,)),
        gates=(),
        hold="",
        decisions=(Decision("d1", "approve_plan", who="jw", target={"plan_rev": 1}, outcome="taken"),),
    )
    assert news(EMPTY, proposed) == [
        "plan r1 proposed, 1 items (docs/plans/r001.md)",
        "held: person",
        "waits for a decision: plan r1",
    ]
    assert news(proposed, approved) == [
        "plan r1 in force, approved by jw",
        "the hold is lifted",
        "jw: approve plan r1: taken",
    ]


def test_a_worker_that_dies_is_told() -> None:
    assert news(EMPTY, replace(EMPTY, liveness="gone")) == [
        "the worker is gone; kda run --resume starts it again"
    ]
    assert news(EMPTY, replace(EMPTY, liveness="gone", phase="ended")) == ["phase ended"]
