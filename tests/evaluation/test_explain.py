"""One kernel timed in every way, with a reason for each; never a verdict."""

from __future__ import annotations

from pathlib import Path

from kda_tui.evaluation.explain import WORD, explain
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.workbench import Workbench

HOSTILE = Path(__file__).parents[1] / "hostile"


def ask(tmp_path: Path, candidate: Path, **options: object) -> JudgeRequest:
    return JudgeRequest(
        op="explain", workspace=str(HOSTILE / "contracts" / "center"), candidate=str(candidate), cand_id="c",
        seeds=("s",), options=options,
    )  # fmt: skip


def test_every_way_has_a_time_and_a_reason(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    baseline = HOSTILE / "contracts" / "center" / "baseline"
    found = explain(ask(tmp_path, baseline, workloads=["r5_c129"]), bench)
    assert (found.validity, found.reason, found.ratio) == ("passed", WORD, None)
    rows = found.extra["rows"]
    assert [r["way"] for r in rows][:4] == ["cold", "warm", "batch", "repeat"], "a cpu has no graphs"
    assert all(r["us"] > 0 and r["why"] and r["workload"] == "r5_c129" for r in rows)
    bench.close()


def test_what_does_not_compile_is_said(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    found = explain(ask(tmp_path, HOSTILE / "does_not_compile"), bench)
    assert found.validity == "compile_error" and "error" in found.reason
    bench.close()
