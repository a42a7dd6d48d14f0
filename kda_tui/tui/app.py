"""The app: opens workspaces, holds keymap and theme, restores the terminal whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from textual import events

from kda_tui.record.snapshot import Snapshot
from kda_tui.tui import columns, terminal
from kda_tui.tui.base import BaseApp, Ears
from kda_tui.tui.follow import Source, open_reader
from kda_tui.tui.keymap import build_keymap
from kda_tui.tui.screens.workspace import WorkspaceScreen
from kda_tui.tui.send import Sender
from kda_tui.tui.themes import DEFAULT_THEME, load_themes, theme_folders

OpenSource = Callable[[Path, bool], Source]


class KdaApp(BaseApp, inherit_bindings=False):
    """The cockpit on a workspace, or on a folder of workspaces."""

    CSS_PATH = Path(__file__).with_name("styles.tcss")
    ENABLE_COMMAND_PALETTE = False
    TITLE = "kda"

    def __init__(
        self,
        root: Path,
        read_only: bool = False,
        config: object | None = None,
        open_source: OpenSource = open_reader,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.ears = Ears()
        self.clock = clock
        super().__init__()
        self.root = root
        self.read_only = read_only
        self.config = config
        self.open_source = open_source
        self.keymap = build_keymap()
        self.columns: Sequence[str] = columns.DEFAULT
        self.hz = 4.0
        self.looks, failed = load_themes(theme_folders())
        for look in self.looks.values():
            self.register_theme(look.to_textual())
        self.look = self.looks[DEFAULT_THEME]
        self.theme = self.look.name
        self.failed_themes = failed

    def on_mount(self) -> None:
        terminal.catch_signals(self)
        self.push_screen(self.workspace_screen(self.root))

    def workspace_screen(self, root: Path) -> WorkspaceScreen:
        return WorkspaceScreen(self.open_source(root, self.read_only), Sender(root, self.read_only))

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            if self.ears.drops(event.time):
                return
            if isinstance(event, events.Key) and event.key == "ctrl+c":
                self.say(f"{self.keymap.key('leave')} leaves, the run goes on")
                return
        await super().on_event(event)

    def say(self, text: str) -> None:
        """One line for the person, on the note line of the workspace below."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, WorkspaceScreen):
                screen.say(text)
                return

    def attached(self, snapshot: Snapshot) -> None:
        """The first snapshot of a workspace is on the screen."""

    def changed(self, snapshot: Snapshot) -> None:
        """A snapshot is on the screen."""

    def leave(self) -> None:
        self.exit(0)

    def go_back(self) -> None:
        """Close the screen on top; the last one leaves."""
        if len(self.screen_stack) > 2:
            self.pop_screen()
        else:
            self.leave()

    def do_redraw(self) -> None:
        self.screen.refresh()

    def do_theme(self) -> None:
        """The next theme."""
        names = sorted(self.looks)
        self.use_theme(names[(names.index(self.look.name) + 1) % len(names)])
        self.say(f"theme {self.look.name}")

    def use_theme(self, name: str) -> None:
        self.look = self.looks[name]
        self.theme = name


def run_app(root: Path, read_only: bool = False, config: object | None = None, mouse: bool = True) -> int:
    """Run the screen until the person leaves; the exit code."""
    app = KdaApp(root, read_only, config)
    return app.run(mouse=mouse) or 0
