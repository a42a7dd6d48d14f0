"""The search as a pure function, and what the tuner writes."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kda_tui.agents.load import make_agent
from kda_tui.agents.replay import ReplayAgent
from kda_tui.agents.tuner.agent import TunerAgent, _restricted, _wishes
from kda_tui.agents.tuner.scores import speed, standing
from kda_tui.agents.tuner.search import Done, Next, descended, propose
from kda_tui.agents.tuner.space import Point, Space, read_space
from kda_tui.agents.tuner.texts import draft_text, plan_items, plan_text
from kda_tui.record.launch_plan import parse_launch_plan
from kda_tui.record.snapshot import RunInfo
from kda_tui.text import UserError
from tests.worker.make import KERNEL, confirm, judged, launch, snapshot


def space(**axes: tuple[int, ...]) -> Space:
    plan = parse_launch_plan(launch().encode())
    start = tuple((name, values[0]) for name, values in axes.items())
    return Space("loop", {"kernel.cu": KERNEL}, plan, tuple(axes.items()), start, "less work", ())


def run(grid: Space, truth: Callable[[Point], float | None], restarts: int = 1) -> tuple[Done, list[Point]]:
    """Search to the end, measuring with ``truth``."""
    measured: dict[Point, float | None] = {}
    order: list[Point] = []
    while isinstance(step := propose(grid, measured, restarts), Next):
        assert step.point not in measured, "nothing is measured twice"
        measured[step.point] = truth(step.point)
        order.append(step.point)
    return step, order


def test_the_declared_defaults_come_first_and_a_hill_is_climbed() -> None:
    grid = space(A=(1, 2, 3, 4), B=(1, 2, 3))
    done, order = run(grid, lambda p: 10.0 * dict(p)["A"] + dict(p)["B"])
    assert order[0] == grid.start
    assert done.best == (("A", 4), ("B", 3))


def test_points_that_do_not_pass_are_walked_around() -> None:
    grid = space(A=(1, 2, 3), B=(1, 2))
    done, _ = run(grid, lambda p: None if dict(p)["A"] == 3 else float(dict(p)["A"]))
    assert done.best is not None and dict(done.best)["A"] == 2
    nothing, order = run(grid, lambda p: None)
    assert nothing.best is None and order


def test_noise_below_half_a_percent_moves_nothing() -> None:
    grid = space(A=(1, 2, 3))
    measured: dict[Point, float | None] = {(("A", 1),): 1.0, (("A", 2),): 1.004, (("A", 3),): 1.003}
    assert descended(grid, measured) == Done((("A", 1),), 1.0)


def test_a_grid_without_tunables_is_one_point() -> None:
    done, order = run(space(), lambda p: 1.0)
    assert order == [()] and done.best == ()


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    values=st.lists(st.one_of(st.none(), st.floats(0.1, 10.0)), min_size=64, max_size=64),
    restarts=st.integers(0, 3),
)
def test_any_search_ends_at_a_point_that_no_neighbour_beats(
    sizes: list[int], values: list[float | None], restarts: int
) -> None:
    grid = space(**{f"X{i}": tuple(range(n)) for i, n in enumerate(sizes)})
    table: dict[Point, float | None] = {}

    def truth(point: Point) -> float | None:
        index = sum(int(v) * 4**i for i, (_, v) in enumerate(point))
        return table.setdefault(point, values[index])

    done, order = run(grid, truth, restarts)
    assert len(order) <= grid.size == math.prod(sizes)
    passed = [v for v in table.values() if v is not None]
    assert (done.best is None) == (not passed)
    if done.best is not None:
        assert done.score == max(passed)


def test_the_state_is_the_record_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "launch.toml").write_text(launch())
    grid = read_space(tmp_path, "loop")
    a = judged("c0001", defines={"THREADS": 16, "WORK": 8}, ratio=1.5, opponent="baseline")
    b = judged("c0002", defines={"THREADS": 32, "WORK": 8}, ratio=2.0, opponent="c0001")
    c = judged("c0003", defines={"THREADS": 64, "WORK": 8}, validity="incorrect", ratio=None)
    d = judged("c0004", defines={"THREADS": 64, "WORK": 1}, stage="compiled", validity="")
    snap = snapshot(candidates={x.id: x for x in (a, b, c, d)}, evaluations={})
    found = standing(snap, grid)
    assert speed(snap, "c0002") == pytest.approx(3.0), "through its opponent, over the baseline"
    by = {tuple(v for _, v in point): score for point, score in found.measured.items()}
    assert by == {(16, 8): 1.5, (32, 8): pytest.approx(3.0), (64, 8): None, (64, 1): None}
    assert [x.id for x in found.open] == ["c0004"]
    vetoed = standing(snapshot(candidates={"c0002": replace(b, decision="vetoed")}), grid)
    assert list(vetoed.measured.values()) == [None]


def test_verdicts_of_another_contract_are_open_again(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "launch.toml").write_text(launch())
    c = judged("c0001", defines={"THREADS": 16, "WORK": 8})
    snap = snapshot(
        candidates={"c0001": c}, evaluations={"e1": confirm("e1", "c0001", "baseline")}, run=RunInfo("r002", contract_sha="new")
    )  # fmt: skip
    assert [x.id for x in standing(snap, read_space(tmp_path, "loop")).open] == ["c0001"]


def test_a_launch_plan_of_a_point_can_be_read_and_says_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "launch.toml").write_text(launch())
    grid = read_space(tmp_path, "loop")
    text = grid.launch((("THREADS", 64), ("WORK", 1)), "all threads", ("c0003",))
    plan = tomllib.loads(text)
    assert plan["unit"][0]["defines"] == {"THREADS": 64, "WORK": 1}
    assert (plan["hypothesis"], plan["parents"], plan["family"]) == ("all threads", ["c0003"], "loop")
    assert plan["tune"] == {"THREADS": [16, 32, 64], "WORK": [8, 1]}
    parse_launch_plan(text.encode())


# --- texts and wishes ---


def test_the_draft_and_the_plan_say_what_will_be_done() -> None:
    snap = snapshot(run=RunInfo("r001", device={"bandwidth": 1e9}))
    assert snap.contract is not None
    grid = space(THREADS=(16, 32), WORK=(8, 1))
    draft = draft_text(snap, snap.contract, [grid])
    assert "`n256`: 2,048 bytes, 2.0 us at 1 GB/s" in draft
    assert "at most 1e-06" in draft and "THREADS in 16, 32" in draft and "## Risks" in draft
    items = plan_items([grid], 1)
    assert [ident for ident, _ in items] == ["P1", "P2", "P3", "P4", "P5"]
    text = plan_text(snap, snap.contract, [grid], 1, [{"who": "ann", "text": "skip WORK", "quote": "P3"}])
    assert all(title in text for _, title in items) and "ann" in text and "skip WORK" in text


@pytest.mark.parametrize(
    ("text", "left"),
    [("skip WORK", ["THREADS"]), ("Only WORK, please", ["WORK"]), ("nice", ["THREADS", "WORK"]), ("skip `WORK`.", ["THREADS"])],
)  # fmt: skip
def test_people_can_restrict_the_search(text: str, left: list[str]) -> None:
    grid = _restricted(space(THREADS=(16, 32), WORK=(8, 1)), _wishes([{"text": text}]))
    assert [name for name, values in grid.axes if len(values) > 1] == left
    assert dict(grid.start) == {"THREADS": 16, "WORK": 8}


def test_agents_by_name(tmp_path: Path) -> None:
    assert isinstance(make_agent("tuner"), TunerAgent)
    assert isinstance(make_agent(f"replay:{tmp_path}/t.jsonl"), ReplayAgent)
    for spec in ("oracle", "tuner:x", "replay:", ""):
        with pytest.raises(UserError, match="tuner, anthropic, replay:FILE"):
            make_agent(spec)
