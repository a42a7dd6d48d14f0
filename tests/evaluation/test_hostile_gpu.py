"""On the GPU: every hostile candidate gets its verdict, and no honest control is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
pytest.importorskip("pycuda", reason="needs kda-tui[cuda]")

from kda_tui.evaluation.evaluator import evaluate
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.workbench import Workbench
from tests.bench.hostile_table import HOSTILE, contracts_for, expected

NAMES = sorted(p.parent.name for p in HOSTILE.glob("*/expect.toml"))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workbench, Path]]:
    folder = tmp_path_factory.mktemp("hostile")
    bench = Workbench(folder / "cache")
    yield bench, contracts_for("cuda", folder)
    bench.close()


@pytest.mark.parametrize("name", NAMES)
def test_candidate_gets_its_verdict(bench: tuple[Workbench, Path], name: str) -> None:
    expect = expected(name, "cuda")
    if "skip" in expect:
        pytest.skip(expect["skip"])
    request = JudgeRequest(
        op="evaluate", workspace=str(bench[1] / expect["contract"]), candidate=str(HOSTILE / name), cand_id=name,
        level=expect["level"], seeds=("5eed", "5eee"),
    )  # fmt: skip
    found = evaluate(request, bench[0], lambda progress: None)
    validity, gate = expect["validity"], expect.get("gate", [])
    assert found.validity in ([validity] if isinstance(validity, str) else validity), found.reason
    failed = [g for g, word in found.gates.items() if word == "failed"]
    allowed = [gate] if isinstance(gate, str) else gate
    assert (failed[0] in allowed) if allowed else not failed, (failed, found.reason)
    if "speed" in expect:
        assert found.speed in expect["speed"]
