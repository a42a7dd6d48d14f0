"""A recorded transcript, played into a run and taken up where it was left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kda_tui.agents.replay import ReplayAgent
from kda_tui.record.paths import Workspace
from kda_tui.record.verify import verify
from tests.worker.make import make_workspace
from tests.worker.stage import journal, stage


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return make_workspace(tmp_path / "scale")


async def test_a_transcript_is_played_once_even_across_workers(ws: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    blocks = [{"kind": "text", "text": f"block {n}", "turn": n} for n in range(20)]
    file.write_text("".join(json.dumps(b) + "\n" for b in blocks) + "not json\n")

    def played() -> list[str]:
        lines = journal(ws.run("r001").transcript)
        return [x["text"] for x in lines if "replayed" in x]

    async with stage(ws, yes=("plan",), agent=ReplayAgent(file, pause_s=0.02)) as s:
        await s.until(lambda x: len(played()) >= 5)
    assert len(played()) < 20
    async with stage(ws, yes=("plan", "end"), agent=ReplayAgent(file, pause_s=0.0), resume=True) as s:
        assert await s.ended() == "ended"
    assert played() == [f"block {n}" for n in range(20)]
    assert verify(ws).ok


async def test_a_missing_transcript_holds_the_run_with_its_reason(ws: Workspace, tmp_path: Path) -> None:
    async with stage(ws, agent=ReplayAgent(tmp_path / "none.jsonl")) as s:
        await s.until(lambda x: x.hold == "api")
        assert "none.jsonl" in s.snap.hold_why
