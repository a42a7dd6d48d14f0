"""What all screens share: keys are looked up in the keymap and become calls of ``do_<action>``."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, getters
from textual.screen import Screen

from kda_tui.tui import terminal
from kda_tui.tui.actions import Action
from kda_tui.tui.panes.pane import Pane
from kda_tui.tui.screens.prompt import PromptScreen

if TYPE_CHECKING:
    from kda_tui.tui.app import KdaApp


class KeyScreen(Screen[None], inherit_bindings=False):
    """A screen whose keys come from the registry of actions."""

    scope = "everywhere"
    if TYPE_CHECKING:
        app = getters.app(KdaApp)

    @property
    def read_only(self) -> bool:
        """Whether every action that changes something is refused here."""
        return self.app.read_only

    def key_scope(self) -> str:
        """The scope whose keys are in force now."""
        return self.scope

    def current(self) -> Pane | None:
        """The pane that find, copy, editor and pager are about."""
        return None

    async def on_key(self, event: events.Key) -> None:
        if self.app.screen is not self or self.app.ears.drops(event.time):
            event.stop()
            return
        action = self.app.keymap.action(self.key_scope(), event.key)
        if action is not None:
            event.stop()
            event.prevent_default()
            await self.perform(action)

    async def perform(self, action: Action) -> None:
        """Run an action here."""
        if action.changes and self.read_only:
            self.say(f"read-only: {action.words} is refused here")
            return
        handler = self.handler(action)
        if handler is None:
            self.say(f"{action.words} does nothing here")
            return
        result = handler()
        if inspect.isawaitable(result):
            await result

    def handler(self, action: Action) -> Callable[[], object] | None:
        """``do_<id>`` of the focused widget, of this screen, or of the app."""
        for owner in (self.focused, self, self.app):
            found: Callable[[], object] | None = getattr(owner, f"do_{action.id}", None)
            if found is not None:
                return found
        return None

    def say(self, text: str) -> None:
        """Show one line to the person."""
        self.app.say(text)

    # --- actions that every screen has -----------------------------------

    def do_escape(self) -> None:
        """Close this screen."""
        self.app.go_back()

    def do_leave(self) -> None:
        self.app.go_back()

    async def do_find(self) -> None:
        pane = self.current()
        if pane is None:
            return

        def find(text: str | None) -> None:
            if text:
                self.say(pane.find(text))

        await self.app.push_screen(
            PromptScreen(f"find in the {pane.title}", hint="text; n and N go on"), find
        )

    def do_find_next(self) -> None:
        self._step(True)

    def do_find_previous(self) -> None:
        self._step(False)

    def _step(self, forward: bool) -> None:
        pane = self.current()
        if pane is not None:
            self.say(pane.find_step(forward) or "nothing is searched; / starts")

    def do_copy(self) -> None:
        pane = self.current()
        if pane is not None:
            self.say(self.app.copy(pane.markdown()))

    def do_export(self) -> None:
        self.say(self.app.export())

    def do_editor(self) -> None:
        self._outside(terminal.editor_command)

    def do_pager(self) -> None:
        self._outside(terminal.pager_command)

    def _outside(self, command: Callable[[str], list[str]]) -> None:
        """Show a copy of the pane's text in another program; edits of the copy change nothing."""
        pane = self.current()
        if pane is None:
            return
        name, text = pane.document()
        with tempfile.TemporaryDirectory(prefix="kda-") as folder:
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
            path.chmod(0o400)
            fault = self.app.run_outside(command(str(path)))
        self.say(fault or f"{name} was a copy: what was changed in it is gone")
