"""What the six panes have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kda_tui.record.snapshot import Snapshot
from kda_tui.tui.line import EMPTY, Line, join, plain, span, text_of, width
from kda_tui.tui.widgets.rows import Lines, Rows

Ask = Callable[[str, object, Callable[[], Any]], None]

Keyed = tuple[str, Line]


class Pane(Rows):
    """A part of the workspace screen. ``scope`` names its keys, ``number`` is the digit that focuses it."""

    number = 0
    title = ""
    ask: Ask

    def draw(self, snapshot: Snapshot, now: float) -> None:
        """Show a snapshot."""

    def loaded(self, slot: str, key: object, value: Any, error: str) -> None:
        """An answer of the file reader for this pane."""

    def note(self) -> Line:
        """What the line under the panes says about this one: place, filter."""
        count, room = self.count(), self.room
        if count <= room:
            return EMPTY
        return plain(f"{self.top + 1}-{min(count, self.top + room)} of {count}", "dim")

    def markdown(self) -> str:
        """What ``y`` copies."""
        lines = [text_of(line) for line in self.head()] + [text_of(self.row(i)) for i in range(self.count())]
        return "\n".join(lines) + "\n"

    def document(self) -> tuple[str, str]:
        """A file name and a text: what $EDITOR and $PAGER get."""
        return f"{self.title or 'page'}.md", self.markdown()

    def find(self, text: str) -> str:
        """Start a search; returns words for the note line."""
        return f"nothing to find in the {self.title}"

    def find_step(self, forward: bool) -> str:
        return ""


class TextPane(Lines, Pane):
    """A pane that is laid out as a list of lines whenever its snapshot or its width changes."""

    HAS_CURSOR = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="pane")
        self._snapshot: Snapshot | None = None
        self._now = 0.0
        self._found = ""

    def layout_rows(self, snapshot: Snapshot, now: float, cells: int) -> tuple[Line, list[Keyed]]:
        """The title's details, and the rows."""
        return EMPTY, []

    def draw(self, snapshot: Snapshot, now: float) -> None:
        self._snapshot, self._now = snapshot, now
        self.rebuild()

    def rebuild(self) -> None:
        if self._snapshot is None or not self.size.width:
            return
        details, rows = self.layout_rows(self._snapshot, self._now, self.size.width)
        self.show(self.heading_of(details), rows)

    def heading_of(self, details: Line) -> Sequence[Line]:
        return (title_line(self, details),)

    def resized(self) -> None:
        self.rebuild()
        super().resized()

    def find(self, text: str) -> str:
        self._found = text.lower()
        return self.find_step(True)

    def find_step(self, forward: bool) -> str:
        if not self._found:
            return ""
        hits = [i for i in range(self.count()) if self._found in text_of(self.row(i)).lower()]
        if not hits:
            return f"'{self._found}' is not here"
        at = self.cursor if self.HAS_CURSOR else self.top
        later = [i for i in hits if (i > at if forward else i < at)]
        goal = (later[0] if forward else later[-1]) if later else (hits[0] if forward else hits[-1])
        self.move(goal - at)
        return f"'{self._found}' {hits.index(goal) + 1} of {len(hits)}"


def title_line(pane: Pane, details: Line) -> Line:
    return join([(span(f"{pane.number} {pane.title.upper()}", "bold"),), details])


def keyed(prefix: str, lines: Sequence[Line]) -> list[Keyed]:
    """Lines with keys ``prefix:n``."""
    return [(f"{prefix}:{n}", line) for n, line in enumerate(lines)]


def bar(share: float | None, cells: int) -> str:
    """A progress bar of ``cells`` cells; an unknown share is an empty bar."""
    done = 0 if share is None or share != share else round(max(0.0, min(1.0, share)) * cells)
    return "█" * done + "░" * (cells - done)


__all__ = ["Ask", "Keyed", "Pane", "TextPane", "bar", "keyed", "title_line", "width"]
