"""Asks for one line of text: a filter, a search, a comment."""

from __future__ import annotations

from collections.abc import Callable

from textual import events, getters
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from kda_tui.tui.base import BaseApp
from kda_tui.tui.line import plain
from kda_tui.tui.screens.confirm import QuietInput
from kda_tui.tui.widgets.rows import Bar


class PromptScreen(ModalScreen[str | None], inherit_bindings=False):
    """Dismisses with the text, or None. ``check`` says what is wrong with a text, or ""."""

    app = getters.app(BaseApp)

    def __init__(
        self, title: str, value: str = "", hint: str = "", check: Callable[[str], str] = lambda text: ""
    ) -> None:
        super().__init__()
        self.heading = title
        self.value = value
        self.hint = hint
        self.check = check

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="bottom"):
            yield Bar([plain(self.heading, "bold")], id="question")
            yield QuietInput(self.hint, self.value, id="typed")
            yield Bar(id="fault")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            self.dismiss(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        fault = self.check(event.value)
        if fault:
            self.query_one("#fault", Bar).show(plain(fault, "bad"))
            return
        self.dismiss(event.value)
