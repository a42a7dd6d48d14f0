"""kill -9 at random moments, then resume: nothing lost, nothing doubled, verify clean each time."""

from __future__ import annotations

import sys

import pytest

from kda_tui.record.paths import Workspace
from tests.worker.killing import Story, play

START = (sys.executable, "-m", "tests.worker.scripted_worker")


def check(ws: Workspace, seed: int, kills: int, longest_s: float, pause_s: float) -> Story:
    start = [*START, str(ws.root), str(pause_s)]
    story = play(ws, lambda resume: [*start, "--resume"] if resume else start, seed, kills, longest_s)
    assert all(k.clean for k in story.kills), story.kills
    assert not story.problems, story.problems
    assert story.ended
    return story


@pytest.mark.parametrize("seed", [1, 2])
def test_two_kills_each_lose_nothing(ws: Workspace, seed: int) -> None:
    check(ws, seed, kills=2, longest_s=2.5, pause_s=0.03)


@pytest.mark.slow
def test_thirty_kills_lose_nothing(ws: Workspace) -> None:
    seed = ws.seeds / "loop" / "launch.toml"
    seed.write_text(
        seed.read_text().replace("[16, 32, 64]", "[16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128]")
    )
    story = check(ws, 7, kills=30, longest_s=2.2, pause_s=0.15)
    assert len(story.kills) == 30
