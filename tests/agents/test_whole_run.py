"""A whole run on the cpu device with a real worker, the real judge, the real SDK and a scripted model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kda_tui.record.paths import Workspace
from kda_tui.record.snapshot import Snapshot
from kda_tui.record.verify import verify
from kda_tui.worker import promote
from tests.agents.fake_api import FakeApi
from tests.agents.play import Holds, lines_of, model, stage_play


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi(model) as served:
        yield served


def check(ws: Workspace, snap: Snapshot, api: FakeApi) -> None:
    """What must be true of the record, however often the worker was killed."""
    assert not api.problems
    verdicts = {c.id: (c.validity, c.speed) for c in snap.candidates.values()}
    assert verdicts == {
        "c0001": ("compile_error", verdicts["c0001"][1]),
        "c0002": ("incorrect", verdicts["c0002"][1]),
        "c0003": ("passed", "slower"),
        "c0004": ("passed", "faster"),
    }
    assert snap.incumbent.cand == "c0004" and promote.current(ws)["cand"] == "c0004"
    assert [r.rev for r in snap.plan.revisions] == [1, 2]
    assert snap.plan.in_force is not None and snap.plan.in_force.rev == 2
    asked = next(d for d in snap.decisions if d.kind == "request_changes")
    assert snap.plan.revisions[1].answers == (asked.id,)
    assert [(r.about, r.verdict) for r in snap.reviews] == [
        ("plan", "revise"),
        ("plan", "accept"),
        ("promotion", "accept"),
    ]
    assert (ws.reviews / "001.md").read_text().startswith("# Review 001: plan r1")
    assert "n256" in (ws.reviews / "003.md").read_text()
    claims, results = lines_of(ws, "claim"), Counter(r["claim"] for r in lines_of(ws, "result"))
    assert len({c["claim"] for c in claims}) == len(claims)
    assert all(results[c["claim"]] == 1 for c in claims)
    report = verify(ws)
    assert report.ok, report.problems


def test_draft_changes_plan_four_candidates_review_promotion(tmp_path: Path, api: FakeApi) -> None:
    play = stage_play(tmp_path, api)
    try:
        snap = play.run()
    finally:
        play.close()
    check(play.ws, snap, api)
    gates = [x["gate_kind"] for x in lines_of(play.ws, "gate_open")]
    assert gates == ["plan", "plan", "promotion", "end"]
    order = [x["kind"] for x in lines_of(play.ws, "review") + lines_of(play.ws, "gate_open")]
    reviews, opened = lines_of(play.ws, "review"), lines_of(play.ws, "gate_open")
    assert all(r["seq"] < g["seq"] for r, g in zip(reviews, opened[:3], strict=True)), order
    profiled = next(x for x in lines_of(play.ws, "result") if x["op"] == "profile")
    assert "needs an NVIDIA GPU" in profiled["reason"]
    turns = [x for x in lines_of(play.ws, "result") if x["op"] == "turn"]
    assert snap.transcript.turns == len(turns) and all(t["outcome"] == "ok" for t in turns)


KILLS: dict[str, Holds] = {
    "while the draft comes": lambda s: s.phase == "draft" and any(c.op == "turn" for c in s.claims),
    "while the plan is reviewed or waits": lambda s: (
        s.phase in ("plan", "plan_review") and bool(s.plan.revisions)
    ),
    "while a reply of an iteration comes": lambda s: (
        s.phase == "iterate" and any(c.op == "turn" for c in s.claims)
    ),
    "while a candidate is evaluated": lambda s: any(c.op == "evaluate" for c in s.claims),
    "while the fast one is confirmed": lambda s: any(c.op == "confirm" for c in s.claims),
}


@pytest.mark.slow
def test_the_same_run_killed_at_five_points(tmp_path: Path, api: FakeApi) -> None:
    play = stage_play(tmp_path, api, list(KILLS.values()))
    try:
        snap = play.run()
    finally:
        play.close()
    assert len(play.killed) == 5, play.killed
    check(play.ws, snap, api)
    turns = [x for x in lines_of(play.ws, "result") if x["op"] == "turn"]
    assert sum(t["outcome"] == "ok" for t in turns) <= 20 + len(KILLS)
    assert all("usd" in t for t in turns), "what died is booked too"
