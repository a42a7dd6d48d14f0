"""The other screens on real files: transcript, detail, runs, help, palette, plots, export, copies."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from kda_tui.config import Config
from kda_tui.record.inbox import pending
from kda_tui.record.paths import Workspace
from kda_tui.record.reader import Reader
from kda_tui.tui import visits
from kda_tui.tui.app import KdaApp
from kda_tui.tui.clipboard import copy
from kda_tui.tui.export import main, screen_text
from kda_tui.tui.line import text_of
from kda_tui.tui.panes.transcript import TranscriptPane
from kda_tui.tui.plots import roofline
from kda_tui.tui.screens.palette import PaletteScreen
from kda_tui.tui.screens.reading import ReadingScreen
from kda_tui.tui.screens.runs import RunsScreen
from kda_tui.tui.screens.workspace import WorkspaceScreen
from kda_tui.tui.series import SeriesBook
from tests.record.make_workspace import make_workspace, run
from tests.tui.conftest import StageMaker, decisions_in


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three workspaces, for tests that change nothing."""
    base = tmp_path_factory.mktemp("ws")
    make_workspace(base / "softmax_rows", 12)
    make_workspace(base / "rms_norm", 2, phase="plan_review")
    make_workspace(base / "done", 3, phase="ended")
    return base


@asynccontextmanager
async def opened(
    root: Path, size: tuple[int, int] = (120, 40), read_only: bool = False
) -> AsyncIterator[tuple[KdaApp, Pilot[int]]]:
    app = KdaApp(root, read_only, Config())
    app.ears.deaf_s = 0.0
    app.hz = 20.0
    async with app.run_test(size=size) as pilot:
        await until(
            pilot, lambda: not isinstance(app.screen, WorkspaceScreen) or app.screen.snapshot is not None
        )
        await pilot.pause(0.2)
        yield app, pilot


async def until(pilot: Pilot[int], happened: object, tries: int = 150) -> None:
    assert callable(happened)
    for _ in range(tries):
        await pilot.pause(0.02)
        if happened():
            return
    raise AssertionError("it did not happen")


# --- transcript --------------------------------------------------------------


async def test_follow_never_snaps_while_one_reads_back(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w", 40)
    async with opened(root, (80, 24)) as (app, pilot):
        await pilot.press("3")
        pane = app.screen.query_one(TranscriptPane)
        await until(pilot, lambda: pane.count() > 20)
        assert "FOLLOW" in screen_text(app)
        await pilot.press(*["k"] * 25)
        before = [pane.line_at(y) for y in range(1, pane.size.height)]
        with run(root, "r001") as story:
            for n in range(5):
                story.say("text", f"new words {n}")
        await until(pilot, lambda: "new below, G" in screen_text(app))
        assert [pane.line_at(y) for y in range(1, pane.size.height)] == before
        await pilot.press("G")
        await until(pilot, lambda: "new words 4" in screen_text(app))
        assert "FOLLOW" in screen_text(app)
        with run(root, "r001") as story:
            story.say("text", "and one more")
        await until(pilot, lambda: "and one more" in screen_text(app))


async def test_a_long_transcript_is_a_window_and_search_goes_beyond_it(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w", 2)
    with run(root, "r001") as story:
        for n in range(1500):
            story.say("text", f"step {n} needle" if n == 3 else f"step {n}")
    async with opened(root, (80, 24)) as (app, pilot):
        await pilot.press("3")
        pane = app.screen.query_one(TranscriptPane)
        await until(pilot, lambda: "step 1499" in screen_text(app))
        assert len(pane.window.blocks) <= 200
        await pilot.press("slash", *"needle", "enter")
        await until(pilot, lambda: "step 3 needle" in screen_text(app))
        assert not pane.follow
        await pilot.press("n")
        await until(pilot, lambda: "is not in the transcript" in screen_text(app))
        await pilot.press("g")
        await until(pilot, lambda: pane.window.lo == 0)


async def test_resizing_keeps_the_record_under_the_cursor(shared: Path) -> None:
    async with opened(shared / "softmax_rows", (80, 24)) as (app, pilot):
        await pilot.press("3")
        pane = app.screen.query_one(TranscriptPane)
        await until(pilot, lambda: pane.count() > 10)
        await pilot.press(*["k"] * 8)
        record = (pane.selected or "").split(":")[0]
        await pilot.resize_terminal(61, 30)
        await pilot.pause(0.1)
        assert (pane.selected or "").split(":")[0] == record


# --- candidate detail --------------------------------------------------------


async def test_detail_has_verdict_source_diff_plan_notes(shared: Path) -> None:
    async with opened(shared / "softmax_rows") as (app, pilot):
        assert isinstance(app.screen, WorkspaceScreen)
        app.screen.candidates.select("c0008")
        await pilot.press("enter")
        await pilot.pause(0.3)
        text = screen_text(app)
        assert (
            "row 3 differs from the reference" in text
            and "expected 0.125" in text
            and "a row too far" in text
        )
        for word in (
            "__global__",
            "are the same text",
            "block =",
            "g++ 12",
            "threads a row",
            "was not timed",
        ):
            await pilot.press("l")
            await until(pilot, lambda word=word: word in screen_text(app))
        await pilot.press("q")
        assert isinstance(app.screen, WorkspaceScreen)


async def test_two_marks_are_compared(shared: Path) -> None:
    async with opened(shared / "softmax_rows") as (app, pilot):
        await pilot.press("space", "j", "space", "d")
        await until(pilot, lambda: "c0012/kernel.cu and c0011/kernel.cu" in screen_text(app))


# --- runs --------------------------------------------------------------------


async def test_runs_list_what_waits_first_and_open(shared: Path) -> None:
    async with opened(shared, (80, 24)) as (app, pilot):
        assert isinstance(app.screen, RunsScreen)
        await until(pilot, lambda: "done" in screen_text(app))
        text = screen_text(app)
        assert "kda  3 workspaces" in text and "2 wait" in text
        assert text.index("plan ") < text.index("done")
        assert "ended" in text and "GONE" in text
        await pilot.press("slash", *"rms", "enter")
        assert "softmax_rows" not in screen_text(app).split("workspace ", 1)[1]
        await pilot.press("enter")
        await until(pilot, lambda: "plan_review" in screen_text(app) or "plan review" in screen_text(app))


async def test_a_new_workspace_appears_in_the_list(tmp_path: Path) -> None:
    make_workspace(tmp_path / "all" / "one", 1)
    async with opened(tmp_path / "all", (80, 24)) as (app, pilot):
        await until(pilot, lambda: "one" in screen_text(app))
        make_workspace(tmp_path / "all" / "two", 1)
        await until(pilot, lambda: "kda  2 workspaces" in screen_text(app), 250)


async def test_a_workspace_that_cannot_be_read_is_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kda_tui.tui import summary

    make_workspace(tmp_path / "all" / "good", 1)
    (tmp_path / "all" / "bad").mkdir()
    (tmp_path / "all" / "bad" / "contract.toml").write_text("x")
    real = summary.of_snapshot

    def broken(shown: object) -> object:
        if getattr(shown, "name", "") == "bad":
            raise ValueError("broken")
        return real(shown)  # type: ignore[arg-type]

    monkeypatch.setattr(summary, "of_snapshot", broken)
    async with opened(tmp_path / "all", (80, 24)) as (app, pilot):
        await until(pilot, lambda: "ValueError: broken" in screen_text(app))
        assert "good" in screen_text(app)


# --- reading screens, palette, plots -----------------------------------------


async def test_help_lists_the_keys_of_the_pane(stage: StageMaker) -> None:
    async with stage() as s:
        await s.press("question_mark")
        assert isinstance(s.app.screen, ReadingScreen)
        assert "Candidates pane" in s.text() and "Show lineage as a tree." in s.text()
        await s.press("escape")
        assert s.app.screen is s.screen


async def test_palette_finds_by_words_and_asks_before_it_changes(stage: StageMaker, tmp_path: Path) -> None:
    async with stage() as s:
        await s.press("colon", *"hold")
        assert isinstance(s.app.screen, PaletteScreen)
        await s.press("enter")
        await s.pilot.pause(0.1)
        assert "Hold the run" in s.text()
        await s.press("escape")
        assert decisions_in(tmp_path / "softmax_rows") == []
    async with stage(read_only=True) as s:
        await s.press("colon", *"veto")
        assert "Veto the" not in s.text()


async def test_plots_are_drawn_on_demand(stage: StageMaker) -> None:
    words = ("us by measurement", "a roofline needs", "candidates by ratio", "ratio with its interval")
    async with stage(size=(120, 40)) as s:
        await s.press("5")
        for word in words:
            await s.press("o")
            await s.pilot.pause(0.1)
            assert word in s.text()
            await s.press("q")


def test_roofline_places_the_fastest_of_each_workload(tmp_path: Path) -> None:
    shown = Reader(make_workspace(tmp_path / "w", 6)).settle()
    assert shown.run is not None
    device = {"name": "box", "bandwidth": 1e11, "flops": {"float32": 2e12}}
    shown = replace(shown, run=replace(shown.run, device=device))
    book = SeriesBook()
    book.update(shown.bench)
    rows = [text_of(row) for row in roofline(shown, book, 100, 30)]
    assert "box, 100 GB/s" in rows[0]
    assert (
        rows[-3].startswith("r24_c1024 c0003: ")
        and "at 0.62 FLOP/byte" in rows[-3]
        and "of the roof" in rows[-3]
    )


async def test_findings_say_where(shared: Path, tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w", 2)
    with (root / "candidates.jsonl").open("a") as file:
        file.write("not json\n")
    async with opened(root) as (app, pilot):
        await pilot.press("i")
        await until(pilot, lambda: "candidates.jsonl:" in screen_text(app))


async def test_the_next_theme_is_used_and_bad_names_are_reported(stage: StageMaker) -> None:
    async with stage(theme="no-such-theme") as s:
        assert "theme 'no-such-theme' is not there" in s.text()
        before = s.app.look.name
        for _ in range(len(s.app.looks)):
            await s.press("comma")
            await s.pilot.pause(0.05)
            assert "c0042" in s.text()
        assert s.app.look.name == before


async def test_a_theme_file_is_loaded_again_when_saved(stage: StageMaker, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "kda" / "themes"
    folder.mkdir(parents=True)
    file = folder / "mine.toml"
    file.write_text("name = 'mine'\n[colors]\nprimary = '#102030'\n[styles]\ngood = '#00ff00'\n")
    async with stage(theme="mine") as s:
        assert s.app.look.style("good").color is not None
        s.app._watch_themes()
        file.write_text("name = 'mine'\n[colors]\nprimary = '#102030'\n[styles]\ngood = '#ff00ff'\n")
        os.utime(file, (1, 1))
        s.app._watch_themes()
        assert s.app.look.style("good").color.name == "#ff00ff"  # type: ignore[union-attr]
        file.write_text("[colors]\nprimary = 'nonsense'\n")
        os.utime(file, (2, 2))
        s.app._watch_themes()
        await s.pilot.pause()
        assert "nonsense" in s.text()


# --- out of the screen -------------------------------------------------------


async def test_export_writes_svg_and_text(
    stage: StageMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with stage() as s:
        await s.press("x")
        (svg,) = tmp_path.glob("kda-*.svg")
        assert svg.read_text().startswith("<svg") and "c0042" in svg.with_suffix(".txt").read_text()
        assert "written" in s.text()


def test_export_without_a_terminal(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(shared / "softmax_rows"), "--size", "80x24", "--keys", "1"]) == 0
    assert "objective" in capsys.readouterr().out


async def test_copy_says_which_way_it_went(
    stage: StageMaker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sent: list[str] = []
    monkeypatch.setattr("kda_tui.tui.clipboard.write_raw", lambda app, text: sent.append(text))
    async with stage() as s:
        await s.press("y")
        assert "OSC 52" in s.text() and "clipboard.txt" in (tmp_path / "state" / "kda" / "clipboard.txt").name
        text = base64.b64decode(sent[0].removeprefix("\x1b]52;c;").removesuffix("\x1b\\")).decode()
        assert text.startswith("| id | hypothesis |") and "| c0039 | row in registers |" in text
        assert "too long for OSC 52" in copy(s.app, "x" * 80_000)


async def test_a_note_is_shown_since_the_person_left(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w", 4)
    visits.remember(root, 1.0)
    async with opened(root) as (app, pilot):
        assert "since you left" in screen_text(app) and "evaluations" in screen_text(app)
        await pilot.press("q")
    left = visits.left_at(root)
    assert left is not None and left > 1.0


async def test_a_workspace_deleted_while_open_is_survived(tmp_path: Path) -> None:
    import shutil

    root = make_workspace(tmp_path / "w", 4)
    async with opened(root) as (app, pilot):
        shutil.rmtree(root)
        await pilot.pause(1.0)
        await pilot.press("2", "3", "6", "4", "enter")
        await pilot.pause(0.2)
        assert app.is_running


async def test_real_decisions_reach_the_real_inbox(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w", 8)
    async with opened(root) as (app, pilot):
        assert isinstance(app.screen, WorkspaceScreen)
        app.screen.candidates.select("c0007")
        await pilot.press("A", *"looks", "space", *"right", "enter")
        await until(pilot, lambda: "SENT" in screen_text(app))
    (sent,) = [p.decision for p in pending(Workspace(root))]
    assert sent is not None and sent.kind == "approve_promotion" and sent.target["cand"] == "c0007"
    assert sent.expect["incumbent"] == "c0003" and sent.expect["eval"] and sent.reason == "looks right"


async def test_read_only_writes_nothing(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w", 4)
    before = {p: p.stat().st_mtime_ns for p in root.rglob("*")}
    async with opened(root, read_only=True) as (_app, pilot):
        for key in "123456VAPHy":
            await pilot.press(key)
        await pilot.pause(0.2)
    assert {p: p.stat().st_mtime_ns for p in root.rglob("*")} == before
