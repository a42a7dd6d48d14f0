"""The palette: find an action by its words and run it."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events, getters
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from kda_tui.tui.actions import Action
from kda_tui.tui.base import BaseApp
from kda_tui.tui.keymap import Keymap
from kda_tui.tui.line import Line, fit, span
from kda_tui.tui.screens.confirm import QuietInput
from kda_tui.tui.widgets.rows import Lines


class Choices(Lines, can_focus=False):
    """Actions that match, best first."""


class PaletteScreen(ModalScreen[Action | None], inherit_bindings=False):
    """Dismisses with the action chosen. Running it asks first where it changes something."""

    app = getters.app(BaseApp)

    def __init__(self, keymap: Keymap, actions: Sequence[Action], read_only: bool) -> None:
        super().__init__()
        self.keymap = keymap
        self.actions = [a for a in actions if a.id != "palette" and not (read_only and a.changes)]
        self.matches: list[Action] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="palette"):
            yield QuietInput("an action: veto, tree, export…", id="typed")
            yield Choices(id="choices")

    def on_mount(self) -> None:
        self._match("")
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._match(event.value)

    def _match(self, text: str) -> None:
        found = [(score, n, a) for n, a in enumerate(self.actions) if (score := rank(text, a)) is not None]
        self.matches = [action for _, _, action in sorted(found, key=lambda f: f[:2])]
        choices = self.query_one(Choices)
        choices.cursor = choices.top = 0
        choices.show((), [(a.id, self._line(a)) for a in self.matches])

    def _line(self, action: Action) -> Line:
        asks = " (asks first)" if action.changes else ""
        return (
            span(fit(self.keymap.key(action.id), 9), "key"),
            span(fit(action.words, 18), "bold"),
            span(action.help + asks, "dim"),
        )

    def on_key(self, event: events.Key) -> None:
        choices = self.query_one(Choices)
        if event.key == "escape":
            self.dismiss(None)
        elif event.key in ("down", "ctrl+n"):
            choices.move(1)
        elif event.key in ("up", "ctrl+p"):
            choices.move(-1)
        else:
            return
        event.stop()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        at = self.query_one(Choices).cursor
        self.dismiss(self.matches[at] if at < len(self.matches) else None)


def rank(text: str, action: Action) -> int | None:
    """How well an action fits a typed text: 0 best; None when a word is nowhere."""
    words = text.lower().split()
    name, help_ = action.words.lower(), action.help.lower()
    score = 0
    for word in words:
        if name.startswith(word) or action.id.startswith(word):
            continue
        if word in name or word in action.id:
            score += 1
        elif word in help_:
            score += 2
        else:
            return None
    return score
