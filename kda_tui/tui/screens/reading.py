"""A screen to read: help, findings, decisions, a diff, a plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult

from kda_tui.tui import status
from kda_tui.tui.line import Line, join, plain
from kda_tui.tui.panes.pane import Keyed, Pane, TextPane
from kda_tui.tui.screens.screen import KeyScreen
from kda_tui.tui.widgets.rows import Bar

Build = Callable[[int], Sequence[Keyed]]


class Page(TextPane):
    """Rows made by a function of the width; made again when the width changes."""

    scope = "reading"

    def __init__(self, title: str, build: Build) -> None:
        super().__init__(id="page")
        self.title = title
        self._build = build

    def rebuild(self) -> None:
        if self.size.width:
            heading = (plain(self.title, "bold"),) if self.title else ()
            self.show(heading, list(self._build(self.size.width)))


class ReadingScreen(KeyScreen):
    """One page with a note line and the keys."""

    scope = "reading"

    def __init__(self, title: str, build: Build) -> None:
        super().__init__()
        self.page = Page(title, build)
        self._said = ""

    def compose(self) -> ComposeResult:
        yield self.page
        yield Bar(id="note")
        yield Bar(id="hints")

    def on_mount(self) -> None:
        self.page.focus()
        self._chrome()

    def on_resize(self) -> None:
        self.call_after_refresh(self._chrome)

    def current(self) -> Pane | None:
        return self.page

    def say(self, text: str) -> None:
        self._said = text
        self._chrome()

    def _chrome(self) -> None:
        cells = self.app.size.width
        note: Line = join([self.page.note(), plain(self._said, "info")])
        self.query_one("#note", Bar).show(note)
        self.query_one("#hints", Bar).show(status.hint_line(self.app.keymap, self.scope, cells, False))
