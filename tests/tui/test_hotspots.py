"""Hotspots: from the digest the worker wrote, from a file through a child, or why there are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kda_tui.record.paths import Workspace
from kda_tui.tui.profiles import Seen, read_seen
from tests.record.make_workspace import make_workspace

SPOT = {
    "line": 7,
    "share": 0.41,
    "words": "waits for global memory",
    "stall_share": 0.9,
    "waits_how": "waits for the load of",
    "waits_on": [5],
}
DIGEST: dict[str, Any] = {
    "state": "ok", "version": "2025.3.1",
    "kernels": [
        {"name": "small", "samples": 10, "hotspots": []},
        {"name": "softmax [a](b)", "samples": 9000, "verdict": "memory bound", "hotspots": [SPOT, {"line": None, "share": "x"}]},
    ],
}  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    ws = Workspace(make_workspace(tmp_path / "w", 2))
    (ws.profile / "c0001").mkdir(parents=True)
    return ws


def test_the_summary_is_read_and_the_kernel_with_most_samples_is_shown(workspace: Workspace) -> None:
    (workspace.profile / "c0001" / "summary.json").write_text(json.dumps(DIGEST))
    seen = read_seen(workspace, "c0001")
    assert (seen.kernel, seen.version, seen.verdict) == ("softmax [a](b)", "ncu 2025.3.1", "memory bound")
    assert seen.spots[0].line == 7 and seen.spots[0].words == "waits for global memory (90%)"
    assert seen.spots[0].more == "waits for the load of line 5"
    assert any("__global__" in row for row in seen.source)


@pytest.mark.parametrize(("text", "why"), [
    ('{"unavailable": "no permission; ask root"}', "no permission; ask root"), ("[1]", "not an object"), ("{", "not JSON"), ("{}", "no kernel"),
])  # fmt: skip
def test_why_there_are_none_is_said(workspace: Workspace, text: str, why: str) -> None:
    (workspace.profile / "c0001" / "summary.json").write_text(text)
    assert why in read_seen(workspace, "c0001").why_none
    assert "no profile; I profiles it" in read_seen(workspace, "c0002").why_none


def test_a_file_without_digest_is_read_by_a_child(workspace: Workspace) -> None:
    (workspace.profile / "c0001" / "broken.csv").write_text("not a profile")
    seen = read_seen(workspace, "c0001")
    assert isinstance(seen, Seen) and not seen.spots and seen.why_none


async def test_the_pane_shows_lines_with_bars_words_and_source(workspace: Workspace) -> None:
    from kda_tui.tui.export import render

    (workspace.profile / "c0001" / "summary.json").write_text(json.dumps(DIGEST))
    _svg, text = await render(workspace.root, (120, 40), ("j", "6", "z"))
    assert "41%" in text and "waits for global memory (90%)" in text and "softmax [a](b)" in text
    assert ">" in text and "waits for the load of line 5" in text
