"""A contract that cannot tell right from wrong is refused, one that can is accepted."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from kda_tui.evaluation.debug import debug
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.selftest import SelfTestError, run_selftest, selftest_verdict
from kda_tui.evaluation.workbench import Workbench

HOSTILE = Path(__file__).parents[1] / "hostile"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("name", ["center", "pick", "update", "masked"])
def test_every_mutant_is_rejected_and_the_honest_are_accepted(bench: Workbench, name: str) -> None:
    report = run_selftest(HOSTILE / "contracts" / name, bench.cache, bench)
    assert report.ok, [row for row in report.rows if not row.ok]
    assert {"reference", "baseline", "M1", "M9", "M12", "M14"} <= {row.mutant for row in report.rows}


def test_a_loose_contract_is_refused_and_says_why(bench: Workbench, tmp_path: Path) -> None:
    ws = tmp_path / "ws"
    shutil.copytree(HOSTILE / "contracts" / "center", ws)
    text = (
        (ws / "contract.toml")
        .read_text()
        .replace("rel_l2 = 2e-6", "rel_l2 = 0.4")
        .replace(", vs_baseline = 4.0", "")
    )
    (ws / "contract.toml").write_text(text)
    request = JudgeRequest(op="selftest", workspace=str(ws), candidate="")
    verdict = selftest_verdict(request, bench, lambda progress: None)
    assert verdict.validity == "incorrect" and "cannot tell right from wrong" in verdict.reason
    accepted = [row["mutant"] for row in verdict.extra["rows"] if not row["ok"]]
    assert "M7" in accepted and "M1" not in accepted


def test_a_baseline_that_is_wrong_is_found(bench: Workbench, tmp_path: Path) -> None:
    ws = tmp_path / "ws"
    shutil.copytree(HOSTILE / "contracts" / "center", ws)
    source = ws / "baseline" / "kernel.cu"
    source.write_text(source.read_text().replace("row[c] - mean", "row[c] + mean"))
    report = run_selftest(ws, bench.cache, bench)
    assert not report.ok and next(r for r in report.rows if r.mutant == "baseline").got.startswith(
        "incorrect"
    )
    source.write_text("not C\n")
    with pytest.raises(SelfTestError, match="does not compile"):
        run_selftest(ws, bench.cache, bench)


def test_debug_looks_and_gives_no_verdict(bench: Workbench, tmp_path: Path) -> None:
    shutil.copytree(HOSTILE / "tail_skipped", tmp_path / "c")
    source = (tmp_path / "c" / "kernel.cu").read_text()
    source = "#include <cstdio>\n" + source.replace(
        "    const float mean",
        '    if (threadIdx.x == 0)\n        printf("block %d\\n", blockIdx.x);\n    const float mean',
    )
    (tmp_path / "c" / "kernel.cu").write_text(source)
    request = JudgeRequest(
        op="debug", workspace=str(HOSTILE / "contracts" / "center"), candidate=str(tmp_path / "c"), cand_id="c9",
        options={"workloads": ["r3_c70"]}, seeds=("s",),
    )  # fmt: skip
    found = debug(request, bench)
    assert found.validity == "incorrect" and found.reason == "a look, not a verdict" and not found.gates
    assert found.mismatch is not None and found.mismatch.box == ((0, 2), (64, 69))
    assert "block 2" in found.extra["output"]
    got, want = (np.load(bench.cache / "debug" / "c9" / "r3_c70" / f"{n}.npy") for n in ("y", "y.expected"))
    assert got.shape == want.shape == (3, 70) and np.allclose(got[:, :64], want[:, :64], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax_rows", "rms_norm_rows", "causal_conv3d_cat_pad"])
def test_the_templates_pass_their_self_test(bench: Workbench, name: str) -> None:
    assert run_selftest(ROOT / "workspaces" / name, bench.cache, bench).ok
