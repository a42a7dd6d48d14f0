"""A run steered from the command line alone, with a real worker and the real judge on the cpu device."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Kda = Callable[..., Any]


@pytest.fixture
def run(small: Path, kda: Kda) -> Any:
    """A workspace whose worker waits for the plan to be approved; ended when the test is over."""
    started = kda("run", small, "--json")
    assert started.code == 0, started.err
    assert started.json["run"] == "r001"
    try:
        wait_for(kda, small, lambda s: s["phase"] == "plan_review")
        yield small
    finally:
        kda("end", "--now", small)
        wait_for(kda, small, lambda s: s["liveness"] != "alive")


def wait_for(kda: Kda, workspace: Path, reached: Callable[[Any], bool], within_s: float = 60.0) -> Any:
    deadline = time.monotonic() + within_s
    while True:
        status = kda("status", workspace, "--json").json
        if reached(status):
            return status
        assert time.monotonic() < deadline, status
        time.sleep(0.2)


def test_a_run_is_steered_from_the_command_line(run: Path, kda: Kda) -> None:
    here = ("-C", run)
    assert "waits      plan r1" in kda("status", run).out

    second = kda("run", run)
    assert second.code == 2
    assert "runs already" in second.err

    stale = kda("approve", "plan", *here, "--sha", "000000")
    assert (stale.code, stale.out.split(";")[0]) == (1, "approve plan r1: refused")
    assert kda("request-changes", *here).code == 2
    assert "the plan has" in kda("request-changes", "--line", "9999:why?", *here).err
    changed = kda("request-changes", "start with VEC", "--line", "1:too long", *here)
    assert (changed.code, changed.out) == (0, "request changes r1: taken\n")
    wait_for(kda, run, lambda s: any(g["target"].get("plan_rev") == 2 for g in s["waits"]))
    approved = kda("approve", *here, "-m", "order is right", "--json").json
    assert (approved["kind"], approved["outcome"], approved["who"]) == ("approve_plan", "taken", "tester")
    assert "nothing waits" in kda("decline", *here).err

    wait_for(kda, run, lambda s: s["counts"].get("judged", 0) >= 1 or s["counts"].get("passed", 0) >= 1)
    own = run.parent / "own"
    shutil.copytree(run / "baseline", own)
    (own / "kernel.cu").write_text((own / "kernel.cu").read_text() + "\n// mine\n")
    submitted = kda("submit", own, "-t", "by hand", *here)
    assert submitted.code == 0
    assert "taken; submitted as c" in submitted.out
    assert "no launch.toml beside it" in kda("submit", _lonely(run.parent), *here).err

    assert "there is no candidate 999" in kda("veto", "999", *here).err
    vetoed = kda("veto", "1", *here, "-m", "not that one")
    assert (vetoed.code, vetoed.out.split(";")[0].strip()) == (0, "veto c0001: taken")
    again = kda("veto", "c1", *here)
    assert again.code == 0
    assert "veto c0001: moot" in again.out

    assert kda("pause", run).code == 0
    assert wait_for(kda, run, lambda s: s["hold"] == "person")["phase"] != "ended"
    assert kda("resume", run).code == 0
    assert kda("budget", "candidates", "3", *here).code == 0
    assert kda("steer", "try PASSES = 2", *here).code == 0

    assert kda("end", "--now", run, "-m", "seen enough").code == 0
    wait_for(kda, run, lambda s: s["phase"] == "ended" and s["liveness"] != "alive")

    # Nobody is alive now: the command applies the decision itself.
    back = kda("unveto", "c0001", *here, "--json").json
    assert back["outcome"] == "taken"
    assert kda("verify", run).code == 0
    head = kda("verify", run, "--json").json["head"]
    assert kda("verify", run, "--against", head).code == 0
    listed = kda("list", run.parent, "--json").json
    assert [(entry["workspace"], entry["phase"]) for entry in listed] == [(str(run), "ended")]
    told = kda("watch", run, "--until-end").out
    assert "tester: veto c0001: taken" in told

    ledger = run / "candidates.jsonl"
    ledger.write_text(ledger.read_text().replace("tuner", "tumer", 1))
    broken = kda("verify", run)
    assert broken.code == 1
    assert "candidates.jsonl:1" in broken.out


def _lonely(folder: Path) -> Path:
    """A kernel without a launch plan."""
    (folder / "lonely").mkdir()
    kernel = folder / "lonely" / "kernel.cu"
    kernel.write_text("// nothing\n")
    return kernel


def test_a_decision_without_a_run_is_refused_before_it_is_sent(workspace: Path, kda: Kda) -> None:
    answer = kda("pause", workspace)
    assert answer.code == 2
    assert "there is no run yet" in answer.err
    assert not (workspace / "inbox").exists()
