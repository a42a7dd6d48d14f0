"""Collecting a profile: states with their remedies anywhere, a real one on the GPU."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from kda_tui.profiling.collect import REMEDIES, Wanted, collect
from kda_tui.profiling.collect.states import state_of

TASK = Path(__file__).parents[2] / "workspaces" / "softmax_rows"


def wanted(tmp_path: Path, ncu: str, timeout_s: float = 20.0) -> Wanted:
    return Wanted(
        workspace=TASK, folder=TASK / "baseline", cand="baseline", workload="r24_c1024", cache=tmp_path / "cache",
        target=tmp_path / "profile", ncu=ncu, timeout_s=timeout_s,
    )  # fmt: skip


def fake_ncu(tmp_path: Path, script: str) -> str:
    """A stand-in for ncu that only says something."""
    path = tmp_path / "ncu"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("script", "state"),
    [
        ("echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1", "no_permission"),
        ("echo '==WARNING== No kernels were profiled.'", "no_kernel"),
        ("echo 'launch failed: incorrect: y is wrong' >&2; exit 3", "launch_failed"),
        ("echo 'cannot launch: device cuda: no GPU is visible' >&2; exit 4", "no_gpu"),
    ],
)
def test_what_ncu_says_is_a_state_with_its_remedy(tmp_path: Path, script: str, state: str) -> None:
    pytest.importorskip("cuda.bindings", reason="needs kda-tui[cuda]")
    found = asyncio.run(collect(wanted(tmp_path, fake_ncu(tmp_path, script))))
    assert found.state == state
    assert REMEDIES[state] in found.text
    assert found.summary is not None
    assert REMEDIES[state] in found.summary["unavailable"]


def test_a_profiler_that_hangs_is_ended(tmp_path: Path) -> None:
    found = asyncio.run(collect(wanted(tmp_path, fake_ncu(tmp_path, "sleep 60"), timeout_s=0.5)))
    assert found.state == "timeout"


def test_no_ncu_is_said(tmp_path: Path) -> None:
    found = asyncio.run(collect(wanted(tmp_path, "/nowhere/ncu")))
    assert found.state == "no_ncu"
    assert "/nowhere/ncu" in found.text


def test_every_state_has_words() -> None:
    assert state_of("nothing known") == ""
    assert all(REMEDIES[state] for state in REMEDIES if state != "ok")


@pytest.mark.gpu
def test_a_profile_of_the_softmax_baseline(tmp_path: Path) -> None:
    from kda_tui.cli.entry import run
    from kda_tui.record.scaffold import new_from_template

    root = new_from_template("softmax_rows", tmp_path / "ws", "cuda")
    assert run(["profile", "baseline", "-C", str(root), "-w", "r4096_c1023"]) == 0
    summary = json.loads((root / "profile" / "baseline" / "summary.json").read_text())
    assert summary["state"] == "ok"
    assert (root / "profile" / "baseline" / "r4096_c1023.ncu-rep").stat().st_size > 10_000
    (kernel,) = summary["kernels"]
    assert kernel["name"] == "softmax_rows"
    assert kernel["hotspots"], kernel["no_hotspots"]
    assert kernel["hotspots"][0]["text"], "the source was imported"
