"""The workspace screen: what it shows at each size, where keys go, what stays when things change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kda_tui.record.records import Candidate
from kda_tui.tui.follow import Arrived, Lost
from kda_tui.tui.panes.candidates import CandidatesPane
from tests.tui.conftest import StageMaker
from tests.tui.sample import CANDIDATES, at, snapshot


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_one_message_brings_the_snapshot_and_it_is_shown(
    stage: StageMaker, size: tuple[int, int]
) -> None:
    async with stage(size=size) as s:
        assert len(s.seen(Arrived)) == 1
        text = s.text()
        assert "c0039" in text and "row in registers" in text and "1.21 [1.18 1.23]" in text
        assert "2 wait for you: promote c0039 14m, question q3 3m" in text
        assert "timing" in text and "71%" in text
        assert len(text.split("\n")) == size[1] + 1


async def test_sizes_show_one_three_or_six_panes(stage: StageMaker) -> None:
    async with stage(size=(80, 24)) as s:
        assert s.screen.visible_numbers() == (4,)
        await s.pilot.resize_terminal(120, 40)
        await s.pilot.pause()
        assert s.screen.visible_numbers() == (3, 4, 2)
        await s.pilot.resize_terminal(200, 50)
        await s.pilot.pause()
        assert s.screen.visible_numbers() == (1, 2, 3, 4, 5, 6)
        for title in ("1 CONTRACT", "2 PLAN", "3 TRANSCRIPT", "4 CANDIDATES", "5 BENCHMARKS", "6 HOTSPOTS"):
            assert title in s.text()


async def test_too_small_says_what_it_needs_and_comes_back(stage: StageMaker) -> None:
    async with stage(size=(59, 19)) as s:
        assert "needs 60x20" in s.text()
        await s.pilot.resize_terminal(60, 20)
        await s.pilot.pause()
        assert "c0042" in s.text()


async def test_digits_go_to_panes(stage: StageMaker) -> None:
    words = {
        "1": "objective",
        "2": "IN FORCE",
        "3": "turn 41",
        "5": "4096x4096",
        "6": "no profile",
        "4": "c0039",
    }
    async with stage() as s:
        for key, word in words.items():
            await s.press(key)
            await s.pilot.pause(0.1)
            assert word in s.text()
            assert s.screen.focused is s.screen.pane(int(key))


async def test_selection_stays_on_its_candidate_when_rows_arrive_and_sort(stage: StageMaker) -> None:
    async with stage() as s:
        await s.press("j")
        assert s.screen.candidates.selected == "c0039"
        new = Candidate("c0043", seq=70, t=at(0), hypothesis="newest", stage="submitted")
        before = s.screen.snapshot
        assert before is not None
        await s.play(replace(before, version=2, candidates={**before.candidates, "c0043": new}))
        assert s.screen.candidates.selected == "c0039"
        await s.press("o")
        assert s.screen.candidates.selected == "c0039"
        assert "> c0039" in s.text()


async def test_resizing_keeps_selection_and_pane(stage: StageMaker) -> None:
    async with stage(size=(200, 50)) as s:
        await s.press("j", "j")
        selected = s.screen.candidates.selected
        await s.press("2")
        await s.pilot.resize_terminal(80, 24)
        await s.pilot.pause()
        assert s.screen.focused is s.screen.plan
        await s.press("4")
        assert s.screen.candidates.selected == selected


async def test_zoom_fills_the_screen_and_escape_comes_back(stage: StageMaker) -> None:
    async with stage(size=(200, 50)) as s:
        await s.press("z")
        assert s.screen.visible_numbers() == (4,)
        await s.press("escape")
        assert len(s.screen.visible_numbers()) == 6


async def test_filter_keeps_matching_rows_and_says_what_is_wrong(stage: StageMaker) -> None:
    async with stage() as s:
        await s.press("slash")
        await s.enter("reg<!")
        assert "needs a number" in s.text()
        await s.press(*["backspace"] * 5)
        await s.enter("faster reg<38")
        assert s.screen.candidates.filter_text == "faster reg<38"
        assert [s.screen.candidates.key(i) for i in range(s.screen.candidates.count())] == ["c0031", "c0022"]
        await s.press("escape")
        assert s.screen.candidates.count() == len(CANDIDATES)


async def test_tree_shows_lineage(stage: StageMaker) -> None:
    async with stage(size=(120, 40)) as s:
        await s.press("t")
        text = s.text().split("hypothesis", 1)[1]
        assert text.index("c0022") < text.index("c0029") < text.index("c0031") < text.index("c0039")
        assert "└ c0042" in text or "└ c00" in text


async def test_enter_opens_the_candidate_and_q_closes_it(stage: StageMaker) -> None:
    async with stage() as s:
        await s.press("j", "enter")
        assert [m.cand for m in s.seen(CandidatesPane.Opened)] == ["c0039"]  # type: ignore[attr-defined]
        await s.pilot.pause(0.1)
        assert "row in registers" in s.text() and "[verdict]" in s.text()
        await s.press("q")
        assert s.app.screen is s.screen


async def test_w_goes_to_what_waits(stage: StageMaker) -> None:
    async with stage() as s:
        await s.press("w")
        assert s.screen.candidates.selected == "c0039"
        assert "A approve" in s.text()


async def test_frozen_display_stands_still_and_catches_up(stage: StageMaker) -> None:
    async with stage() as s:
        await s.press("p")
        assert "FROZEN" in s.text()
        later = snapshot(phase="autotune", version=2)
        s.source.play(later)
        await s.pilot.pause(0.3)
        assert "autotune" not in s.text()
        await s.press("p")
        await s.play(snapshot(phase="ended", version=3))
        assert "ended" in s.text()


async def test_a_reader_that_fails_is_said_and_recovers(stage: StageMaker) -> None:
    async with stage() as s:
        real = s.source.poll

        def broken() -> None:
            raise OSError("stale file handle")

        s.source.poll = broken  # type: ignore[method-assign, assignment]
        await s.pilot.pause(0.4)
        assert len(s.seen(Lost)) == 1
        assert "reading failed: OSError: stale file handle" in s.text()
        s.source.poll = real  # type: ignore[method-assign]
        await s.play(snapshot(version=2))
        await s.pilot.pause()
        assert "reading failed" not in s.text()


async def test_ctrl_c_says_how_to_leave_and_stays(stage: StageMaker) -> None:
    async with stage() as s:
        await s.press("ctrl+c")
        assert "q leaves, the run goes on" in s.text()
        assert s.app.is_running


async def test_q_leaves_with_code_zero(stage: StageMaker) -> None:
    async with stage() as s:
        await s.press("q")
        await s.pilot.pause()
        assert s.app.return_value == 0


async def test_gone_worker_and_hold_are_said_in_words(stage: StageMaker) -> None:
    async with stage(snapshot(gates=(), liveness="gone")) as s:
        assert "worker is gone; Y starts it" in s.text()
        await s.play(snapshot(gates=(), hold="gpu_busy", hold_why="pid 99 of jw", version=2))
        assert "HELD gpu_busy" in s.text() and "the GPU is busy: pid 99 of jw" in s.text()


async def test_mouse_selects_and_opens(stage: StageMaker) -> None:
    async with stage() as s:
        await s.pilot.click("#candidates", offset=(5, 3))
        assert s.screen.candidates.selected == "c0039"
        await s.pilot.click("#candidates", offset=(5, 3))
        await s.pilot.pause()
        assert s.app.screen is not s.screen


async def test_nothing_is_repainted_when_nothing_changed(stage: StageMaker) -> None:
    async with stage(size=(200, 50)) as s:
        before = s.screen.snapshot
        assert before is not None
        painted: list[tuple[object, ...]] = []
        for widget in s.screen.query("*"):
            widget._set_dirty = lambda *r: painted.append(r)  # type: ignore[method-assign, assignment, misc]
        await s.play(replace(before, version=2, events=62))
        await s.pilot.pause(0.1)
        assert painted == []


async def test_one_changed_number_repaints_a_few_cells(stage: StageMaker) -> None:
    async with stage(size=(200, 50)) as s:
        before = s.screen.snapshot
        assert before is not None and before.live is not None
        regions: list[object] = []
        for widget in s.screen.query("*"):
            widget._set_dirty = lambda *r: regions.extend(r)  # type: ignore[method-assign, assignment, misc]
        await s.play(replace(before, version=2, live=replace(before.live, fraction=0.72)))
        await s.pilot.pause(0.1)
        assert 0 < sum(r.area for r in regions) < 20  # type: ignore[attr-defined]


async def test_ascii_draws_with_ascii_only(stage: StageMaker) -> None:
    async with stage(size=(200, 50), ascii=True) as s:
        await s.press("t", "V")
        assert s.text().isascii()


async def test_the_cursor_stays_on_the_newest_row_until_it_is_moved(stage: StageMaker) -> None:
    async with stage() as s:
        before = s.screen.snapshot
        assert before is not None and s.screen.candidates.selected == "c0042"
        new = {
            n: Candidate(n, seq=70, t=at(0), hypothesis="new", stage="submitted") for n in ("c0043", "c0044")
        }
        await s.play(replace(before, version=2, candidates={**before.candidates, "c0043": new["c0043"]}))
        assert s.screen.candidates.selected == "c0043"
        await s.press("j", "k", "j")
        assert s.screen.candidates.selected == "c0042"
        await s.play(replace(before, version=3, candidates={**before.candidates, **new}))
        assert s.screen.candidates.selected == "c0042"
        assert "c0044" in s.text()
        await s.press("g")
        assert s.screen.candidates.selected == "c0044"
