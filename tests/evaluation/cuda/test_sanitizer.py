"""On the GPU: compute-sanitizer rejects what only it sees, passes honest code, and says when it is missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
pytest.importorskip("pycuda", reason="needs kda-tui[cuda]")

from kda_tui.evaluation.devices.cuda import device as device_module
from kda_tui.evaluation.devices.cuda.watched import sanitizer_path
from kda_tui.evaluation.faults import CANDIDATE, Rejected
from kda_tui.evaluation.sanitizer import sanitize
from kda_tui.evaluation.workbench import Workbench
from kda_tui.record.paths import Workspace
from tests.bench.hostile_table import HOSTILE, contracts_for

RACE = """
extern "C" __global__ void center(const float* __restrict__ x, float* __restrict__ y, int cols)
{
    __shared__ float total;
    const float* row = x + (size_t)blockIdx.x * cols;
    float* out = y + (size_t)blockIdx.x * cols;
    if (threadIdx.x == 40) {
        float sum = 0.0f;
        for (int c = 0; c < cols; ++c)
            sum += row[c];
        total = sum / cols;
    }
    for (int c = threadIdx.x; c < cols; c += 64)
        out[c] = row[c] - total;
}
"""


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path / "cache")


def judge(bench: Workbench, tmp_path: Path, source: str) -> str:
    root = contracts_for("cuda", tmp_path) / "center"
    folder = tmp_path / "candidate"
    shutil.copytree(root / "baseline", folder)
    if source:
        (folder / "kernel.cu").write_text(source)
    stand = bench.stand(Workspace(root))
    arm = bench.arm(stand, CANDIDATE, "c", folder)
    assert arm.report.ok, arm.report.log
    return sanitize(stand, arm, stand.contract.workloads[:1], "seed").word


def test_an_honest_kernel_passes(bench: Workbench, tmp_path: Path) -> None:
    if not sanitizer_path():
        pytest.skip("no compute-sanitizer")
    assert judge(bench, tmp_path, "") == "passed"


def test_a_race_in_shared_memory_is_found(bench: Workbench, tmp_path: Path) -> None:
    if not sanitizer_path():
        pytest.skip("no compute-sanitizer")
    with pytest.raises(Rejected, match="racecheck on r3_c70: Race reported"):
        judge(bench, tmp_path, RACE)


def test_a_read_outside_everything_is_found(bench: Workbench, tmp_path: Path) -> None:
    if not sanitizer_path():
        pytest.skip("no compute-sanitizer")
    source = (HOSTILE / "contracts" / "center" / "baseline" / "kernel.cu").read_text()
    with pytest.raises(Rejected, match="memcheck on r3_c70: Invalid __global__ read"):
        judge(bench, tmp_path, source.replace("sum += row[c]", "sum += row[c] + 0.0f * row[c + (1 << 22)]"))


def test_a_missing_tool_is_not_a_pass(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "sanitizer_path", lambda: "")
    assert judge(bench, tmp_path, "") == "not_evaluated"
