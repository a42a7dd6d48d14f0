"""The screen on workspaces that no kda wrote: what is shown, hostile text, live changes, the chooser."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from kda_tui.config import Config
from kda_tui.tui.app import KdaApp
from kda_tui.tui.export import screen_text
from kda_tui.tui.panes.benchmarks import fit_name
from kda_tui.tui.screens.detail import DetailScreen
from kda_tui.tui.screens.runs import RunsScreen
from kda_tui.tui.screens.workspace import WorkspaceScreen

ROWS = [
    {"id": "base", "status": "baseline", "latency_us": 10.0},
    {"id": "look", "kind": "profile", "parent": "base", "status": "complete"},
    {
        "id": "v1-wide-vectors", "parent": "look", "status": "PROMOTED (idle gpu)", "speedup": 1.25, "passed": True,
        "colour": "\x1b[31mred\x1b]0;evil\x07", "source_files": ["src/k.cu", "../secret.txt"],
    },
    {"id": "v2", "parent": "v1-wide-vectors", "status": "rejected", "speedup": 9.0, "passed": False},
]  # fmt: skip


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    root = tmp_path / "kernels" / "kernel"
    (root / "docs").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "candidates.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS) + "{torn\n")
    (root / "benchmark.csv").write_text(
        "candidate,case,metric,cycles,notes\nv1-wide-vectors,big,,8000,fine\nv2,big,,n/a,it hung\n"
    )
    (root / "prompt.md").write_text("# Make it \x1b[5mfast\n\nas fast as copying\n")
    (root / "docs" / "draft.md").write_text("# Draft\n\nuse wide loads\n")
    (root / "docs" / "results.md").write_text("# Results\n\n1.25x\n")
    (root / "src" / "k.cu").write_text("__global__ void wide() {}\n")
    (tmp_path / "secret.txt").write_text("do not show\n")
    return root


@asynccontextmanager
async def opened(root: Path, size: tuple[int, int] = (100, 30)) -> AsyncIterator[tuple[KdaApp, Pilot[int]]]:
    app = KdaApp(root, config=Config())
    app.ears.deaf_s = 0.0
    app.hz = 50.0
    async with app.run_test(size=size) as pilot:
        yield app, pilot


async def until(app: KdaApp, pilot: Pilot[int], text: str) -> str:
    for _ in range(150):
        await pilot.pause(0.02)
        if text in screen_text(app):
            return screen_text(app)
    raise AssertionError(f"{text!r} is not on the screen:\n{screen_text(app)}")


async def press(pilot: Pilot[int], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause()


@pytest.mark.parametrize(
    ("name", "cells", "shown"),
    [
        ("helios__f32__M8640N5120 [device]", 20, "helios__f3… [device]"),
        ("big [wall]", 12, "big [wall]  "),
        ("helios__f32", 8, "helios_…"),
        ("s [a very long kind of metric]", 12, "s [a very l…"),
    ],
)
def test_a_cut_name_keeps_what_tells_series_apart(name: str, cells: int, shown: str) -> None:
    assert fit_name(name, cells) == shown


async def test_every_pane_shows_what_is_there(kernel: Path) -> None:
    async with opened(kernel, (80, 24)) as (app, pilot):
        shown = await until(app, pilot, "BEST promoted")
        assert "READ-ONLY" in shown
        assert "1 events hidden" in shown
        assert "\x1b" not in shown
        await press(pilot, "1")
        assert "Make it" in await until(app, pilot, "v1-wide-vectors  1.250x (candidates.jsonl:3)")
        await press(pilot, "2", "t")
        await until(app, pilot, "use wide loads")
        await press(pilot, "t", "t")
        await until(app, pilot, "1.25x")
        await press(pilot, "3")
        await until(app, pilot, "no recorded transcript")
        await press(pilot, "5")
        assert "big [cycles]" in await until(app, pilot, "notes=it hung")
        await press(pilot, "6")
        await until(app, pilot, "nothing of ncu was found")
        await press(pilot, "i")
        await until(app, pilot, "candidates.jsonl:5")


async def test_events_unknown_keys_and_named_files(kernel: Path) -> None:
    async with opened(kernel, (120, 60)) as (app, pilot):
        await until(app, pilot, "BEST promoted")
        await press(pilot, "s")
        await until(app, pilot, "1 events shown")
        screen = app.screen
        assert isinstance(screen, WorkspaceScreen)
        screen.candidates.select("v1-wide-vectors")
        await press(pilot, "enter")
        assert isinstance(app.screen, DetailScreen)
        shown = await until(app, pilot, "PROMOTED (idle gpu)")
        assert '"colour"' in shown
        assert "evil" in shown  # as text, its escapes made harmless
        assert "\x1b" not in shown
        assert "outside" in shown
        await press(pilot, "tab")
        await until(app, pilot, "__global__")
        await press(pilot, "shift+tab", "shift+tab")
        assert "8000 cycles" in await until(app, pilot, "benchmark.csv:2")
        assert "do not show" not in screen_text(app)


async def test_a_decision_is_refused_and_nothing_is_written(kernel: Path) -> None:
    before = sorted(str(p) for p in kernel.rglob("*"))
    async with opened(kernel) as (app, pilot):
        await until(app, pilot, "BEST promoted")
        await press(pilot, "V")
        await until(app, pilot, "read-only")
        assert isinstance(app.screen, WorkspaceScreen)
    assert sorted(str(p) for p in kernel.rglob("*")) == before


async def test_a_ledger_rewritten_under_the_eyes_is_shown_anew(kernel: Path) -> None:
    async with opened(kernel) as (app, pilot):
        await until(app, pilot, "BEST promoted")
        (kernel / "candidates.jsonl").write_text('{"id": "fresh-start", "status": "planned"}\n')
        shown = await until(app, pilot, "fresh-start")
        assert "BEST" not in shown
        (kernel / "candidates.jsonl").unlink()
        os.mkfifo(kernel / "candidates.jsonl")  # must not stop the reading thread
        await asyncio.sleep(0.3)
        await press(pilot, "i")
        await until(app, pilot, "is a FIFO")


async def test_a_folder_of_workspaces_is_a_chooser(kernel: Path, make_own: Callable[[Path], Path]) -> None:
    own = make_own(kernel.parent / "own")
    (kernel.parent / "empty").mkdir()
    async with opened(kernel.parent, (120, 30)) as (app, pilot):
        shown = await until(app, pilot, "foreign")
        assert isinstance(app.screen, RunsScreen)
        assert "2 workspaces" in shown
        assert own.name in shown
        app.screen.pane.select(str(kernel))
        await press(pilot, "enter")
        await until(app, pilot, "BEST promoted")


@pytest.fixture
def make_own() -> Callable[[Path], Path]:
    from tests.record.make_workspace import make_workspace

    return make_workspace
