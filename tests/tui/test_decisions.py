"""Keys that change something: asked once, signed, sent as a file; refused where they must be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kda_tui.record.records import Decision
from kda_tui.record.snapshot import Gate, Plan, PlanRevision
from kda_tui.tui.actions import ACTIONS
from kda_tui.tui.intents import Here, NotNow, check_typed, intend, intended
from kda_tui.tui.screens.confirm import ConfirmScreen
from kda_tui.tui.send import ReadOnly, Sender
from tests.tui.conftest import StageMaker, decisions_in
from tests.tui.sample import at, snapshot

PLAN_GATE = Gate("g7", "plan", {"plan_rev": 3}, sha="91d0" * 16, blocking=True, opened=at(5), seq=70)


async def test_veto_asks_once_and_sends_what_was_seen(stage: StageMaker, tmp_path: Path) -> None:
    async with stage() as s:
        await s.press("j", "V")
        assert isinstance(s.app.screen, ConfirmScreen)
        assert "Veto c0039" in s.text()
        await s.press(*"numerics", "enter")
        sent = decisions_in(tmp_path / "softmax_rows")
        assert [(d["kind"], d["target"], d["reason"], d["who"], d["via"]) for d in sent] == [
            ("veto", {"cand": "c0039"}, "numerics", "kl", "ui")
        ]
        assert "veto c0039 SENT" in s.text()


async def test_target_is_fixed_when_the_question_opens(stage: StageMaker, tmp_path: Path) -> None:
    async with stage() as s:
        await s.press("j", "P")
        before = s.screen.snapshot
        assert before is not None
        changed = {**before.candidates, "c0039": replace(before.candidates["c0039"], eval="e9")}
        await s.play(replace(before, version=2, candidates=changed))
        await s.press(*"good", "enter")
        (sent,) = decisions_in(tmp_path / "softmax_rows")
        assert sent["target"] == {"cand": "c0039"}
        assert sent["expect"] == {"eval": "e5", "incumbent": "c0031"}


async def test_escape_sends_nothing(stage: StageMaker, tmp_path: Path) -> None:
    async with stage() as s:
        await s.press("H", "escape")
        assert decisions_in(tmp_path / "softmax_rows") == []
        assert "not sent" in s.text()


@pytest.mark.parametrize("typed", ["", "y", "Y", "yes", "  "])
async def test_y_or_nothing_never_confirms(stage: StageMaker, tmp_path: Path, typed: str) -> None:
    async with stage() as s:
        await s.press("H", *[{" ": "space"}.get(c, c) for c in typed], "enter")
        assert isinstance(s.app.screen, ConfirmScreen)
        assert decisions_in(tmp_path / "softmax_rows") == []


async def test_typed_ahead_keys_do_nothing(stage: StageMaker, tmp_path: Path) -> None:
    async with stage() as s:
        s.app.ears.deaf_s = 0.3
        await s.press("A", "V", "P", "space", "y", "enter")
        assert decisions_in(tmp_path / "softmax_rows") == []
        screens = [x for x in s.app.screen_stack if isinstance(x, ConfirmScreen)]
        assert len(screens) <= 1
        await s.pilot.pause(0.5)
        if screens:
            assert screens[0].query_one("#typed").value == ""  # type: ignore[attr-defined]


async def test_a_paste_into_the_reason_is_one_line_and_does_not_send(
    stage: StageMaker, tmp_path: Path
) -> None:
    from textual.events import Paste

    async with stage() as s:
        await s.press("H")
        s.app.screen.query_one("#typed").post_message(Paste("two\nlines\n"))
        await s.pilot.pause()
        assert decisions_in(tmp_path / "softmax_rows") == []
        await s.press("enter")
        (sent,) = decisions_in(tmp_path / "softmax_rows")
        assert sent["reason"] == "two lines"


async def test_approving_the_plan_names_its_hash(stage: StageMaker, tmp_path: Path) -> None:
    async with stage(snapshot(tmp_path / "softmax_rows", gates=(PLAN_GATE,), phase="plan_review")) as s:
        assert "plan r3 5m (blocks)" in s.text()
        await s.press("2", "A", *"fine", "enter")
        (sent,) = decisions_in(tmp_path / "softmax_rows")
        assert sent["kind"] == "approve_plan"
        assert sent["target"] == {"gate": "g7", "plan_rev": 3}
        assert sent["expect"] == {"plan_sha": "91d0" * 16}


async def test_comments_on_lines_go_with_the_request(stage: StageMaker, tmp_path: Path) -> None:
    root = tmp_path / "softmax_rows"
    (root / "docs" / "plans").mkdir(parents=True)
    (root / "docs" / "plans" / "r003.md").write_text("# Plan\n\n- P1 a thing\n")
    rev = PlanRevision(3, "docs/plans/r003.md", "91d0" * 16)
    shown = snapshot(root, gates=(PLAN_GATE,), plan=Plan(proposed=rev, revisions=(rev,)))
    async with stage(shown) as s:
        await s.press("2")
        await s.pilot.pause(0.2)
        await s.press("G", "k", "c", *"why", "enter")
        assert "> why" in s.text()
        await s.press("C")
        await s.enter("see comment")
        (sent,) = decisions_in(root)
        assert sent["kind"] == "request_changes"
        assert sent["lines"][0]["line"] == 3 and sent["lines"][0]["text"] == "why"
        assert sent["lines"][0]["quote"] == "- P1 a thing"


async def test_steer_reply_and_budget_carry_their_text(stage: StageMaker, tmp_path: Path) -> None:
    async with stage() as s:
        await s.press("S")
        await s.enter("try swizzle")
        await s.press("R")
        assert "May the sum be taken in bf16?" in s.text() and "keep fp32 | bf16" in s.text()
        await s.enter("keep fp32")
        await s.press("B")
        await s.enter("usd")
        assert "for example: usd 40" in s.text()
        await s.enter(" 40 tonight")
        kinds = {d["kind"]: d for d in decisions_in(tmp_path / "softmax_rows")}
        assert kinds["steer"]["text"] == "try swizzle"
        assert kinds["answer"]["text"] == "keep fp32" and kinds["answer"]["target"]["question"] == "q3"
        assert kinds["set_budget"]["amount"] == {"axis": "usd", "value": 40}
        assert kinds["set_budget"]["reason"] == "tonight"


async def test_sent_then_refused_with_the_reason(stage: StageMaker) -> None:
    base = snapshot()
    sent = Decision("d9", "veto", at(0), "kl", "ui", {"cand": "c0029"})
    async with stage(replace(base, pending=(sent,))) as s:
        assert "veto c0029 SENT" in s.text()
        refused = replace(sent, outcome="refused", why="c0029 is vetoed already (by jw)")
        await s.play(replace(base, version=2, decisions=(*base.decisions, refused)))
        assert "veto c0029 refused: c0029 is vetoed already (by jw)" in s.text()


async def test_read_only_refuses_every_changing_key(stage: StageMaker, tmp_path: Path) -> None:
    changing = [action for action in ACTIONS if action.changes]
    assert len(changing) > 20
    async with stage(read_only=True) as s:
        for action in changing:
            s.screen.say("")
            await s.screen.perform(action)
            await s.pilot.pause()
            assert s.app.screen is s.screen
            assert "read-only" in s.text(), action.id
        assert decisions_in(tmp_path / "softmax_rows") == []


def test_read_only_is_enforced_below_the_screen(tmp_path: Path) -> None:
    intent = intend("hold", Here(snapshot()))
    with pytest.raises(ReadOnly, match="read-only"):
        Sender(tmp_path, True).send(intent, {"reason": "because"})
    with pytest.raises(ReadOnly):
        Sender(tmp_path, True).start_worker(False)
    assert list(tmp_path.iterdir()) == []


async def test_a_foreign_workspace_is_always_read_only(stage: StageMaker, tmp_path: Path) -> None:
    async with stage(snapshot(foreign=True)) as s:
        await s.press("V")
        assert s.app.screen is s.screen and "read-only" in s.text()
        with pytest.raises(ReadOnly):
            s.screen.sender.send(intend("hold", Here(snapshot())), {"reason": "because"})
        assert decisions_in(tmp_path / "softmax_rows") == []


async def test_read_only_is_visible(stage: StageMaker) -> None:
    async with stage(snapshot(read_only=True), read_only=True) as s:
        assert "READ-ONLY" in s.text()
        assert "V veto" not in s.text()


def test_nobody_promotes_what_is_incorrect() -> None:
    with pytest.raises(NotNow, match="nobody can promote"):
        intend("promote", Here(snapshot(), cand="c0037"))


def test_approve_is_about_the_selected_candidate_or_says_which_one_waits() -> None:
    assert intend("approve", Here(snapshot(), cand="c0039")).target == {"gate": "g1", "cand": "c0039"}
    with pytest.raises(NotNow, match="c0031 asks for nothing; w goes to promote c0039"):
        intend("approve", Here(snapshot(), cand="c0031"))


def test_veto_says_what_will_happen() -> None:
    assert "cancelled" in intend("veto", Here(snapshot(), cand="c0042")).happens[0]
    assert "incumbent" in intend("veto", Here(snapshot(), cand="c0031")).happens[0]


def test_every_decision_is_an_action_and_every_kind_is_known() -> None:
    from kda_tui.record.inbox import KINDS

    ids = {a.id for a in ACTIONS if a.changes}
    assert intended() <= ids
    everything = snapshot(
        gates=(PLAN_GATE, Gate("a", "ambiguous", {"claim": "k1"}), Gate("q", "question", {"question": "q3"}))
    )
    for action in intended():
        try:
            intent = intend(action, Here(everything, cand="c0039"))
        except NotNow:
            continue
        assert intent.kind in KINDS
        assert intent.happens


def test_amount_needs_axis_number_and_reason() -> None:
    intent = intend("budget", Here(snapshot()))
    assert check_typed(intent, "hours 12.5 weekend") == {
        "amount": {"axis": "hours", "value": 12.5},
        "reason": "weekend",
    }
    for bad in ("usd 40", "gold 3 x", "usd nan x", "usd -1 x", ""):
        with pytest.raises(NotNow):
            check_typed(intent, bad)
