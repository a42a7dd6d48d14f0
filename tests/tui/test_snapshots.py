"""Pictures of the fixed workspace at three sizes in dark, light and ansi themes.

``pytest tests/tui/test_snapshots.py --snapshot-update`` draws them anew; look at what changed before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from kda_tui.config import Config
from kda_tui.tui.app import KdaApp
from kda_tui.tui.screens.workspace import WorkspaceScreen
from tests.tui.sample import NOW, Played, snapshot


def fixed_app(theme: str) -> KdaApp:
    config = Config.model_validate({"ui": {"theme": theme}})
    root = Path("/nowhere/softmax_rows")
    return KdaApp(root, False, config, lambda path, read_only: Played(snapshot()), lambda: NOW)


async def drawn(pilot: Pilot[int]) -> None:
    """Wait for the snapshot and for what panes read from files."""
    for _ in range(100):
        await pilot.pause(0.02)
        screen = pilot.app.screen
        if isinstance(screen, WorkspaceScreen) and screen.snapshot is not None:
            break
    await pilot.pause(0.2)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("theme", ["kda-dark", "kda-light", "kda-ansi-dark"])
def test_workspace(snap_compare: Any, theme: str, size: tuple[int, int]) -> None:
    assert snap_compare(fixed_app(theme), terminal_size=size, run_before=drawn)


def test_confirmation(snap_compare: Any) -> None:
    async def ask(pilot: Pilot[int]) -> None:
        await drawn(pilot)
        await pilot.press("j", "V")
        await pilot.pause(0.1)

    assert snap_compare(fixed_app("kda-dark"), terminal_size=(80, 24), run_before=ask)
