"""What all screens share: keys are looked up in the keymap and become calls of ``do_<action>``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events, getters
from textual.screen import Screen

from kda_tui.tui.actions import Action

if TYPE_CHECKING:
    from kda_tui.tui.app import KdaApp


class KeyScreen(Screen[None], inherit_bindings=False):
    """A screen whose keys come from the registry of actions."""

    scope = "everywhere"
    if TYPE_CHECKING:
        app = getters.app(KdaApp)

    def key_scope(self) -> str:
        """The scope whose keys are in force now."""
        return self.scope

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
        if action.changes and self.app.read_only:
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
        """Show one line to the person; screens with a note line show it there."""
        self.app.say(text)

    def do_escape(self) -> None:
        """Close this screen."""
        self.app.go_back()

    def do_leave(self) -> None:
        self.app.go_back()
