"""Text from outside: escapes, markup, bidi, wide and zero-width characters stay text in every pane."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kda_tui.record.records import Decision
from kda_tui.record.snapshot import Finding, Gate, Plan, PlanItem, PlanRevision, Question, Snapshot
from tests.tui.conftest import StageMaker
from tests.tui.sample import CANDIDATES, at, contract, snapshot

HOSTILE = "a[0]=b[/] [red]x[/red] \x1b]52;c;ZXZpbA==\x1b\\\x1b[31mRED\x9b31m\u202egnp.exe 宽字 e\u200d\u0301"
VISIBLE = ("a[0]=b[/]", "[red]x[/red]")


def hostile(root: Path) -> Snapshot:
    """Every free text of a snapshot is the hostile one."""
    (root / "docs").mkdir(parents=True, exist_ok=True)
    (root / "docs" / "r9.md").write_text(f"# {HOSTILE}\n\n- {HOSTILE}\n")
    (root / "profile" / "c0042").mkdir(parents=True, exist_ok=True)
    base = snapshot(root)
    cands = {
        c.id: replace(c, hypothesis=HOSTILE, reason=HOSTILE, family=HOSTILE, item="[/x]", parents=("[/y]",))
        for c in CANDIDATES
    }
    rev = PlanRevision(9, "docs/r9.md", "ab" * 32, HOSTILE, at(1))
    item = PlanItem("P1", HOSTILE, "doing")
    task = {"name": HOSTILE, "objective": HOSTILE, "device": "cuda"}
    return replace(
        base,
        name=HOSTILE,
        candidates=cands,
        contract=contract(task=task),
        plan=Plan(rev, HOSTILE, at(1), None, (rev,), (item,)),
        gates=(Gate("g", "question", {"question": HOSTILE}, default=HOSTILE, opened=at(1)),),
        questions={HOSTILE: Question(HOSTILE, HOSTILE, (HOSTILE,))},
        hold="person",
        hold_why=HOSTILE,
        decisions=(
            Decision(
                "d",
                "veto",
                at(1),
                HOSTILE,
                "ui",
                {"cand": HOSTILE},
                reason=HOSTILE,
                outcome="refused",
                why=HOSTILE,
            ),
        ),
        findings=(Finding("x", 1, HOSTILE, HOSTILE),),
        live=replace(base.live, streaming=HOSTILE, stage=HOSTILE),  # type: ignore[type-var]
    )


def assert_harmless(text: str) -> None:
    for bad in ("\x1b", "\x9b", "\u202e", "\x07"):
        assert bad not in text


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_every_pane_shows_hostile_text_as_text(
    stage: StageMaker, tmp_path: Path, size: tuple[int, int]
) -> None:
    async with stage(hostile(tmp_path / "softmax_rows"), size=size) as s:
        for key in "123456":
            await s.press(key, "z")
            await s.pilot.pause(0.15)
            text = s.text()
            assert_harmless(text)
            if key in "1234":
                assert all(part in text for part in VISIBLE[: 1 if size[0] < 100 else 2]), (key, text)
            await s.press("z")


async def test_screens_and_questions_show_hostile_text_as_text(stage: StageMaker, tmp_path: Path) -> None:
    async with stage(hostile(tmp_path / "softmax_rows"), size=(120, 40)) as s:
        for key in ("i", "a", "enter"):
            await s.press(key)
            await s.pilot.pause(0.15)
            assert_harmless(s.text())
            assert "a[0]=b[/]" in s.text(), key
            await s.press("q")
        for key in ("V", "R", "U"):
            await s.press(key)
            assert_harmless(s.text())
            assert "a[0]=b[/]" in s.text() or key == "V"
            await s.press("escape")


async def test_a_transcript_of_hostile_text(stage: StageMaker, tmp_path: Path) -> None:
    import json

    root = tmp_path / "softmax_rows"
    path = root / "runs" / "r002" / "transcript.jsonl"
    path.parent.mkdir(parents=True)
    kinds = ("text", "thinking", "tool_call", "tool_result", "steer", "question", "notice")
    lines = [
        {"seq": n, "kind": kind, "text": HOSTILE, "tool": HOSTILE, "args": {HOSTILE: HOSTILE}}
        for n, kind in enumerate(kinds)
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in lines) + "not json [/]\n")
    shown = snapshot(root)
    shown = replace(shown, transcript=replace(shown.transcript, path=path, size=path.stat().st_size))
    async with stage(shown, size=(120, 40)) as s:
        await s.press("3", "z")
        await s.pilot.pause(0.3)
        text = s.text()
        assert_harmless(text)
        assert text.count("a[0]=b[/]") >= 5
        await s.press("k", "k", "k", "k", "t")
        assert_harmless(s.text())
