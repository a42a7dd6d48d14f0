"""kill -9 at random moments, then resume: nothing lost, nothing doubled, verify clean each time."""

from __future__ import annotations

import sys

import pytest

from kda_tui.record.paths import Workspace
from tests.worker.killing import play

START = (sys.executable, "-m", "tests.worker.scripted_worker")


def check(ws: Workspace, seed: int, kills: int, longest_s: float) -> None:
    story = play(ws, (*START, str(ws.root)), seed, kills, longest_s)
    assert all(k.clean for k in story.kills), story.kills
    assert not story.problems, story.problems
    assert story.ended


@pytest.mark.parametrize("seed", [1, 2])
def test_two_kills_each_lose_nothing(ws: Workspace, seed: int) -> None:
    check(ws, seed, kills=2, longest_s=2.5)


@pytest.mark.slow
def test_thirty_kills_lose_nothing(ws: Workspace) -> None:
    check(ws, 7, kills=30, longest_s=1.6)
