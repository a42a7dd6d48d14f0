"""The judge as a process: verdicts arrive whole, a death is an infrastructure error, a kill leaves nobody."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from kda_tui.evaluation.client import JudgeProcess, JudgeRequest, judge_environment
from kda_tui.evaluation.verdict import CompileReport, Mismatch, Progress, SampleFile, Verdict, WorkloadResult
from kda_tui.evaluation.wire import verdict_from, verdict_line

HOSTILE = Path(__file__).parents[1] / "hostile"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def request_of(name: str, cache: Path, **changes: object) -> JudgeRequest:
    request = JudgeRequest(
        op="evaluate",
        workspace=str(HOSTILE / "contracts" / "center"),
        candidate=str(HOSTILE / name),
        cand_id=name,
        level="smoke",
        cache_dir=str(cache),
        seeds=("s",),
    )
    return replace(request, **changes)  # type: ignore[arg-type]


def test_a_verdict_survives_the_wire() -> None:
    verdict = Verdict(
        validity="incorrect", speed="mixed", gates={"oracle": "failed"}, ratio=1.1, aa=None,
        workloads=(WorkloadResult("w", 1.5, error=2.0),), rows=({"n": 3},), samples=(SampleFile("a", "b", 3),),
        compile=CompileReport(True, warnings=("x",), binaries={"u": "/p"}),
        mismatch=Mismatch("w", "y", "s", (1, 2), "nan", 1.0, 1, 2, ((0, 1), (2, 3)), ("#.",), "g", 1.0, None),
        stage_seconds={"build": 0.1}, extra={"k": [1]},
    )  # fmt: skip
    assert verdict_from(json.loads(json.dumps(verdict_line(verdict)))) == verdict
    assert verdict_from(json.loads(json.dumps(verdict_line(Verdict("passed"))))) == Verdict("passed")


def test_requests_survive_the_wire(cache: Path) -> None:
    request = request_of("no_op", cache, options={"workloads": ["w"]}, k=4)
    assert JudgeRequest.from_line(json.loads(json.dumps(request.line()))) == request


async def test_one_judge_answers_one_request_after_another(cache: Path, tmp_path: Path) -> None:
    judge = await JudgeProcess.start(cache, tmp_path / "log")
    seen: list[Progress] = []
    try:
        compiled = await judge.run(request_of("honest_baseline_copy", cache, op="compile"), seen.append)
        assert compiled.validity == "passed" and compiled.compile is not None and compiled.compile.ok
        right = await judge.run(request_of("honest_baseline_copy", cache), seen.append)
        wrong = await judge.run(request_of("no_op", cache), seen.append)
        broken = await judge.run(request_of("does_not_compile", cache, op="compile"), seen.append)
    finally:
        await judge.close()
    assert (right.validity, wrong.validity, broken.validity) == ("passed", "incorrect", "compile_error")
    assert wrong.mismatch is not None and wrong.mismatch.guess.startswith("nothing was written")
    assert seen and all(0.0 <= p.fraction <= 1.0 for p in seen)


async def test_what_the_contract_lacks_is_not_the_candidates_fault(cache: Path, tmp_path: Path) -> None:
    ws = tmp_path / "ws"
    shutil.copytree(HOSTILE / "contracts" / "center", ws)
    (ws / "reference.py").write_text("def reference(inputs, scalars):\n    return 1 / 0\n")
    judge = await JudgeProcess.start(cache, tmp_path / "log")
    try:
        broken = await judge.run(
            request_of("honest_baseline_copy", cache, workspace=str(ws)), lambda progress: None
        )
        text = (ws / "contract.toml").read_text()
        (ws / "contract.toml").write_text(text.replace('device = "cpu"', 'device = "cuda"'))
        elsewhere = await judge.run(
            request_of("honest_baseline_copy", cache, workspace=str(ws)), lambda progress: None
        )
    finally:
        await judge.close()
    assert broken.validity == "infrastructure_error" and broken.reason.startswith("reference.py:2: ")
    assert elsewhere.validity == "infrastructure_error"


async def test_a_kill_during_a_launch_ends_everything(cache: Path, tmp_path: Path) -> None:
    ws = tmp_path / "ws"
    shutil.copytree(HOSTILE / "contracts" / "center", ws)
    text = (ws / "contract.toml").read_text()
    (ws / "contract.toml").write_text(text.replace("timeout_s = 1.5", "timeout_s = 60"))
    judge = await JudgeProcess.start(cache, tmp_path / "log")
    launched = asyncio.Event()

    def on_progress(progress: Progress) -> None:
        if progress.stage == "smoke":
            launched.set()

    running = asyncio.create_task(judge.run(request_of("never_ends", cache, workspace=str(ws)), on_progress))
    await asyncio.wait_for(launched.wait(), 30)
    family = [psutil.Process(judge.pid)]
    for _ in range(100):
        family += [p for p in psutil.Process(judge.pid).children(recursive=True) if p not in family]
        if len(family) > 1:
            break
        await asyncio.sleep(0.05)
    assert len(family) > 1
    assert os.getpgid(judge.pid) == judge.pgid
    judge.kill()
    verdict = await asyncio.wait_for(running, 10)
    assert verdict.validity == "infrastructure_error" and "signal 9" in verdict.reason
    await judge.close()
    _, alive = psutil.wait_procs(family, timeout=5)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def test_the_judge_gets_no_secrets() -> None:
    kept = judge_environment(
        {"PATH": "/bin", "ANTHROPIC_API_KEY": "x", "AWS_SECRET": "y", "CUDA_VISIBLE_DEVICES": "0"}
    )
    assert set(kept) == {"PATH", "CUDA_VISIBLE_DEVICES", "PYTHONPATH"}
