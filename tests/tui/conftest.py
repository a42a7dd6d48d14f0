"""Every test gets its own state folder, and apps with a fixed clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input

from kda_tui.config import Config
from kda_tui.record.snapshot import Snapshot
from kda_tui.tui.app import KdaApp
from kda_tui.tui.export import screen_text
from kda_tui.tui.follow import Arrived
from kda_tui.tui.screens.workspace import WorkspaceScreen
from tests.tui.sample import NOW, Played, snapshot


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No developer's settings, state, clipboard or colours in a test."""
    for name in ("TMUX", "NO_COLOR", "COLORTERM", "KDA_CONFIG", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("KDA_USER", "kl")
    monkeypatch.setenv("TERM", "xterm-256color")


@dataclass
class Stage:
    """A running app with what tests look at."""

    app: KdaApp
    pilot: Pilot[int]
    source: Played
    messages: list[Message] = field(default_factory=list)

    @property
    def screen(self) -> WorkspaceScreen:
        return next(s for s in self.app.screen_stack if isinstance(s, WorkspaceScreen))

    def text(self) -> str:
        return screen_text(self.app)

    def seen(self, kind: type[Message]) -> list[Message]:
        return list({id(m): m for m in self.messages if isinstance(m, kind)}.values())

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def enter(self, text: str) -> None:
        """Type a text into the open question and press Enter; one key at a time would take long."""
        self.app.screen.query_one("#typed", Input).insert_text_at_cursor(text)
        await self.press("enter")

    async def play(self, shown: Snapshot) -> None:
        """Hand a snapshot to the follower and wait until it is drawn."""
        self.source.play(shown)
        for _ in range(100):
            await self.pilot.pause(0.02)
            if self.screen.snapshot is shown:
                return
        raise AssertionError("the snapshot did not arrive")


StageMaker = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def stage(tmp_path: Path) -> StageMaker:
    """Open an app on a snapshot: ``async with stage(size=(80, 24)) as s``."""

    @asynccontextmanager
    async def make(
        shown: Snapshot | None = None, size: tuple[int, int] = (80, 24), read_only: bool = False, **ui: Any
    ) -> AsyncIterator[Stage]:
        root = tmp_path / "softmax_rows"
        root.mkdir(exist_ok=True)
        (root / "contract.toml").touch()
        first = shown if shown is not None else snapshot(root)
        source = Played(first)
        config = Config.model_validate({"ui": ui})
        app = KdaApp(root, read_only, config, lambda path, ro: source, lambda: NOW)
        app.ears.deaf_s = 0.0
        app.hz = 50.0
        messages: list[Message] = []
        async with app.run_test(size=size, message_hook=messages.append) as pilot:
            made = Stage(app, pilot, source, messages)
            for _ in range(100):
                await pilot.pause(0.02)
                if made.seen(Arrived) and made.screen.snapshot is not None:
                    break
            await pilot.pause()
            yield made

    return make


def decisions_in(root: Path) -> list[dict[str, Any]]:
    """The decisions that were sent, oldest first."""
    import json

    folder = root / "inbox"
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    return [json.loads(f.read_text()) for f in files]
