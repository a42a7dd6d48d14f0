"""A block that heat disturbed counts for nothing, is kept in the samples, and is measured again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kda_tui.evaluation.evaluator import evaluate
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.verdict import Verdict
from kda_tui.evaluation.workbench import Workbench
from tests.evaluation.stand_in import Behaviour, StandInDevice

CENTER = Path(__file__).parents[1] / "hostile" / "contracts" / "center"
HOT = ("hardware thermal slowdown",)


def judge(tmp_path: Path, heat: list[tuple[str, ...]]) -> Verdict:
    ws = tmp_path / "ws"
    shutil.copytree(CENTER, ws)
    (ws / "candidate").mkdir()
    shutil.copy(ws / "baseline" / "launch.toml", ws / "candidate")
    for name in ("baseline", "candidate"):
        (ws / name / "kernel.cu").write_text(f"// stand-in: {name}\n")
    programs = {"baseline": Behaviour(lambda *_: 100.0), "candidate": Behaviour(lambda *_: 80.0)}
    device = StandInDevice(programs, heat=heat)
    bench = Workbench(tmp_path / "cache", lambda kind, cache: device)
    request = JudgeRequest(
        op="evaluate", workspace=str(ws), candidate=str(ws / "candidate"), cand_id="c0001",
        samples_dir=str(tmp_path / "samples" / "e0001"), seeds=("s1", "s2"),
    )  # fmt: skip
    try:
        return evaluate(request, bench, lambda progress: None)
    finally:
        bench.close()


def test_a_hot_block_is_measured_again_and_kept_as_void(tmp_path: Path) -> None:
    screen: list[tuple[str, ...]] = [(), ()]
    found = judge(tmp_path, [*screen, (), HOT, ()])
    assert (found.validity, found.speed) == ("passed", "faster")
    lines = [
        json.loads(line) for line in next((tmp_path / "samples").rglob("*.jsonl")).read_text().splitlines()
    ]
    void = {line["block"] for line in lines if line.get("void")}
    blocks = {line["block"] for line in lines if line["block"] >= 0}
    assert void == {1} and len(blocks) == 5, "four that count and one that does not"


def test_endless_heat_is_nobodys_fault(tmp_path: Path) -> None:
    found = judge(tmp_path, [(), (), *[HOT] * 50])
    assert found.validity == "infrastructure_error"
    assert "disturbed" in found.reason and "thermal" in found.reason


@pytest.mark.parametrize("heat", [[], [HOT]])
def test_a_screen_is_repeated_too(tmp_path: Path, heat: list[tuple[str, ...]]) -> None:
    assert judge(tmp_path, heat).validity == "passed"
