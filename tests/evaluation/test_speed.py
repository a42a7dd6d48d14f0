"""Decisions about speed, on a stand-in device whose clock is written down."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kda_tui.evaluation.confirm import hidden_workloads
from kda_tui.evaluation.evaluator import evaluate
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.verdict import Progress, Verdict
from kda_tui.evaluation.workbench import Workbench
from kda_tui.record.contract import parse_contract
from tests.evaluation.stand_in import Behaviour, Rows, StandInDevice, center

CENTER = Path(__file__).parents[1] / "hostile" / "contracts" / "center"
Clock = Callable[[int, str, int], float]


def steady(us: float, wobble: float = 0.002) -> Clock:
    """A clock with a small reproducible wobble around ``us``."""

    def clock(child: int, arm: str, call: int) -> float:
        rng = np.random.default_rng([child, call, *arm.encode()])
        return us * math.exp(wobble * rng.standard_normal())

    return clock


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    ws = tmp_path / "ws"
    shutil.copytree(CENTER, ws)
    text = (ws / "contract.toml").read_text().replace("min_speedup = 1.05", "min_speedup = 1.02")
    (ws / "contract.toml").write_text(text.replace("blocks = 4", "blocks = 8"))
    for name in ("baseline", "candidate", "incumbent"):
        folder = ws / name
        folder.mkdir(exist_ok=True)
        shutil.copy(CENTER / "baseline" / "launch.toml", folder)
        (folder / "kernel.cu").write_text(f"// stand-in: {name}\n")
    return ws


def judge(
    ws: Path, level: str = "time", seen: list[Progress] | None = None, **programs: Behaviour
) -> Verdict:
    """Judge ``candidate`` against ``incumbent`` where given, else against ``baseline`` (100 us)."""
    programs.setdefault("baseline", Behaviour(steady(100.0)))
    incumbent = "incumbent" in programs
    bench = Workbench(ws / "cache", lambda kind, cache: StandInDevice(programs))
    request = JudgeRequest(
        op="confirm" if level == "confirm" else "evaluate",
        workspace=str(ws),
        candidate=str(ws / "candidate"),
        incumbent=str(ws / "incumbent") if incumbent else "",
        cand_id="c0001",
        incumbent_id="c0000" if incumbent else "baseline",
        level=level,
        k=3,
        samples_dir=str(ws / "runs" / "r001" / "samples" / "e0001"),
        seeds=("s1", "s2"),
    )
    try:
        return evaluate(request, bench, (seen if seen is not None else []).append)
    finally:
        bench.close()


def test_a_clear_gain_is_faster_with_its_evidence(workspace: Path) -> None:
    found = judge(workspace, candidate=Behaviour(steady(80.0)))
    assert (found.validity, found.speed, found.stage_reached) == ("passed", "faster", "time")
    assert found.ratio == pytest.approx(1.25, rel=0.01) and found.lo is not None and found.lo > 1.2
    assert {w.workload for w in found.workloads} == {"r3_c70", "r5_c129"}
    assert all(w.time_us == pytest.approx(80, rel=0.01) and w.error is not None for w in found.workloads)
    assert not [g for g, word in found.gates.items() if word != "passed"]
    arms = {(row["workload"], row["arm"]) for row in found.rows}
    assert arms == {(w, a) for w in ("r3_c70", "r5_c129") for a in ("candidate", "incumbent", "incumbent2")}
    assert all("," not in str(value) for row in found.rows for value in row.values())


def test_samples_are_written_and_named_relative_to_the_run(workspace: Path) -> None:
    found = judge(workspace, candidate=Behaviour(steady(80.0)))
    (file,) = found.samples
    assert file.path == "samples/e0001/c0001-time.jsonl"
    data = (workspace / "runs" / "r001" / file.path).read_bytes()
    assert len(data) == file.bytes
    lines = [json.loads(line) for line in data.splitlines()]
    assert {line["arm"] for line in lines} == {"candidate", "incumbent", "incumbent2"}
    assert sum(len(line["us"]) for line in lines if line["arm"] == "candidate") == 8 * 2 * 2 * 2


def test_equal_is_not_faster_and_a_small_gain_is_only_the_same(workspace: Path) -> None:
    assert judge(workspace, candidate=Behaviour(steady(100.0))).speed == "same"
    assert judge(workspace, candidate=Behaviour(steady(99.0, 0.0005))).speed == "same"


def test_clearly_slower_stops_after_two_blocks(workspace: Path) -> None:
    found = judge(workspace, candidate=Behaviour(steady(150.0)))
    assert (found.validity, found.speed, found.stage_reached) == ("passed", "slower", "screen")
    assert found.gates["oracle"] == "not_evaluated"


def test_noise_is_inconclusive(workspace: Path) -> None:
    found = judge(workspace, candidate=Behaviour(steady(96.0, 0.4)))
    assert found.speed == "inconclusive" and found.validity == "passed"


def test_an_incumbent_that_differs_from_itself_says_nothing(workspace: Path) -> None:
    def clock(child: int, arm: str, call: int) -> float:
        return 100.0 if arm == "incumbent" else 103.0

    found = judge(workspace, candidate=Behaviour(steady(97.0)), baseline=Behaviour(clock))
    assert found.speed == "inconclusive" and "differs from itself" in found.reason
    assert found.gates["aa"] == "not_evaluated"
    confirmed = judge(workspace, "confirm", candidate=Behaviour(steady(97.0)), baseline=Behaviour(clock))
    assert confirmed.validity == "infrastructure_error" and confirmed.alpha_spent is None


def test_noise_is_no_excuse_against_a_gain_far_beyond_it(workspace: Path) -> None:
    def clock(child: int, arm: str, call: int) -> float:
        return 100.0 if arm == "incumbent" else 103.0

    found = judge(workspace, candidate=Behaviour(steady(50.0)), baseline=Behaviour(clock))
    assert found.speed == "faster" and found.gates["aa"] == "passed"


def test_a_rival_slowed_down_by_its_neighbour_says_nothing(workspace: Path) -> None:
    def clock(child: int, arm: str, call: int) -> float:
        return 100.0 if call <= 4 else 110.0  # two workloads of two launches alone, then beside

    found = judge(workspace, candidate=Behaviour(steady(100.0)), baseline=Behaviour(clock))
    assert found.speed == "inconclusive" and "slower beside the candidate than alone" in found.reason


def test_faster_than_light_is_impossible(workspace: Path) -> None:
    contract = workspace / "contract.toml"
    contract.write_text(contract.read_text() + '\n[cost]\nbytes = "8 * rows * cols"\n')
    text = contract.read_text().replace('cache = "warm"', 'cache = "cold"')
    contract.write_text(text)
    found = judge(workspace, candidate=Behaviour(steady(0.1)))
    assert (
        found.validity == "impossible" and found.gates["floor"] == "failed" and found.speed == "not_measured"
    )
    assert judge(workspace, candidate=Behaviour(steady(80.0))).validity == "passed"


def test_without_a_valid_sample_nothing_is_known(workspace: Path) -> None:
    found = judge(workspace, candidate=Behaviour(steady(80.0), voided=True))
    assert (found.validity, found.speed) == ("passed", "inconclusive") and found.ratio is None


def test_right_when_checked_and_wrong_when_timed(workspace: Path) -> None:
    def lazy(x: Rows, y: Rows) -> None:
        y[...] = 0.0

    found = judge(workspace, candidate=Behaviour(steady(50.0), timed=lazy))
    assert found.validity == "incorrect" and found.gates["timed_outputs"] == "failed"
    assert found.mismatch is not None and found.mismatch.guess == "all zeros"


def test_a_memo_of_earlier_answers_finds_nothing_it_knows(workspace: Path) -> None:
    known: list[bytes] = []
    hits: list[int] = []

    def remembering(x: Rows, y: Rows) -> None:
        hits.append(x.tobytes() in known)
        known.append(x.tobytes())
        center(x, y)

    judge(workspace, candidate=Behaviour(steady(80.0), timed=remembering))
    assert len(hits) > 60 and not any(hits)


def test_three_arms_when_the_incumbent_is_not_the_baseline(workspace: Path) -> None:
    found = judge(workspace, candidate=Behaviour(steady(50.0)), incumbent=Behaviour(steady(60.0)))
    assert found.speed == "faster"
    assert found.ratio == pytest.approx(1.2, rel=0.01) and found.vs_baseline == pytest.approx(2.0, rel=0.01)
    assert {row["arm"] for row in found.rows} == {"candidate", "incumbent", "incumbent2", "baseline"}
    assert {row["candidate"] for row in found.rows} == {"c0001", "c0000", "baseline"}


def test_a_confirmation_promotes_by_the_rule(workspace: Path) -> None:
    seen: list[Progress] = []
    found = judge(workspace, "confirm", candidate=Behaviour(steady(80.0)), seen=seen)
    assert found.rule_passed and found.speed == "faster" and found.stage_reached == "confirm"
    assert found.k == 3 and found.alpha_spent == pytest.approx(0.01 / 12)
    assert found.extra["blocks"] == 24 and len(found.extra["child_means"]) == 3
    fractions = [p.fraction for p in seen]
    assert fractions == sorted(fractions) and seen[-1].stage == "confirm"


def test_a_confirmation_declines_what_one_child_does_not_see(workspace: Path) -> None:
    def clock(child: int, arm: str, call: int) -> float:
        return steady(99.5 if child % 3 == 0 else 85.0)(child, arm, call)

    found = judge(workspace, "confirm", candidate=Behaviour(clock))
    assert found.validity == "passed" and not found.rule_passed and found.gates["confirm"] == "failed"
    assert "the mean of child" in found.reason and found.alpha_spent is not None


def test_hidden_shapes_come_from_the_seed_alone() -> None:
    text = (
        CENTER / "contract.toml"
    ).read_text() + "\n[hidden]\ncount = 3\nranges = {rows = [1, 9], cols = [2, 200]}\n"
    contract = parse_contract(text.encode())
    drawn = [w.axes for w in hidden_workloads(contract, "secret")]
    assert drawn == [w.axes for w in hidden_workloads(contract, "secret")]
    assert drawn != [w.axes for w in hidden_workloads(contract, "another")]
    assert len(drawn) == 3 and all(1 <= a["rows"] <= 9 and 2 <= a["cols"] <= 200 for a in drawn)


def test_a_kernel_for_the_listed_shapes_fails_the_hidden_ones(workspace: Path) -> None:
    contract = workspace / "contract.toml"
    contract.write_text(contract.read_text() + "\n[hidden]\ncount = 2\nranges = {cols = [200, 300]}\n")

    def narrow(x: Rows, y: Rows) -> None:
        center(x, y)
        if x.shape[1] > 150:
            y[:, 150:] = 0.0

    found = judge(workspace, "confirm", candidate=Behaviour(steady(80.0), run=narrow))
    assert found.validity == "incorrect" and found.gates["hidden"] == "failed"
    assert found.mismatch is None and "hidden" in found.reason


def test_a_file_that_changes_meanwhile_voids_the_evaluation(workspace: Path) -> None:
    def editing(x: Rows, y: Rows) -> None:
        (workspace / "reference.py").write_text("# emptied\n")
        center(x, y)

    found = judge(workspace, candidate=Behaviour(steady(80.0), run=editing))
    assert found.validity == "infrastructure_error" and "changed during the evaluation" in found.reason
