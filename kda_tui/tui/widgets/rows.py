"""A list of lines that repaints only the cells that changed.

Textual writes a refreshed widget's whole region to the terminal. This widget keeps the lines it has
painted and refreshes the span of cells that differ, so one changed number costs a few bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events, getters
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from kda_tui.tui.base import BaseApp
from kda_tui.tui.line import EMPTY, Line, crop, width

# What this package draws with, for terminals and fonts that have ASCII only; one cell for one cell.
ASCII = str.maketrans("…─│└├┌┐┘┤┬┴┼█░▁▂▃▄▅▆▇▴▾", ".-|`|..'|+++#-_.,-~=*^v")


class Painted(Widget):
    """Draws ``line_at(y)`` for each row of its region; :meth:`sync` finds what changed.

    Subclasses override :meth:`line_at` (pure, cheap) and call :meth:`sync` after a change.
    """

    ALLOW_SELECT = False
    app = getters.app(BaseApp)

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: list[tuple[Line, str]] = []
        self._painted_width = -1
        self._strips: dict[tuple[Line, str], Strip] = {}

    def line_at(self, y: int) -> Line:
        """The line of screen row ``y`` of this widget."""
        return EMPTY

    def row_style(self, y: int) -> str:
        """A style word for the whole row, or ""."""
        return ""

    def sync(self) -> None:
        """Compare with what is painted and refresh the cells that differ."""
        if not self.is_mounted or not self.size:
            return
        cells, height = self.size
        fresh = [(crop(self.line_at(y), cells), self.row_style(y)) for y in range(height)]
        if cells != self._painted_width or len(self._lines) != height:
            self._painted_width = cells
            self._lines = fresh
            self.refresh()
            return
        for y, (old, new) in enumerate(zip(self._lines, fresh, strict=True)):
            if old != new:
                self._lines[y] = new
                self.refresh(self._changed(y, old, new))

    def _changed(self, y: int, old: tuple[Line, str], new: tuple[Line, str]) -> Region:
        """The cells of row ``y`` that differ."""
        cells = self.size.width
        if old[1] != new[1]:
            return Region(0, y, cells, 1)
        before, after = _cells(old[0], cells), _cells(new[0], cells)
        first = next((x for x in range(cells) if before[x] != after[x]), 0)
        last = next((x for x in range(cells - 1, -1, -1) if before[x] != after[x]), cells - 1)
        while last + 1 < cells and (before[last + 1][0] == "" or after[last + 1][0] == ""):
            last += 1
        while first > 0 and (before[first][0] == "" or after[first][0] == ""):
            first -= 1
        return Region(first, y, last - first + 1, 1)

    def render_line(self, y: int) -> Strip:
        cells = self.size.width
        if cells != self._painted_width or y >= len(self._lines):
            self._painted_width = cells
            self._lines = [(crop(self.line_at(i), cells), self.row_style(i)) for i in range(self.size.height)]
        if y >= len(self._lines):
            return Strip.blank(cells, self.rich_style)
        return self._strip(self._lines[y], cells)

    def _strip(self, key: tuple[Line, str], cells: int) -> Strip:
        strip = self._strips.get(key)
        if strip is None or strip.cell_length != cells:
            if len(self._strips) > 400:
                self._strips.clear()
            line, row = key
            look = self.app.look
            base = self.rich_style + look.style(row) if row else self.rich_style
            if self.app.ascii_only:
                line = tuple((part.translate(ASCII), word) for part, word in line)
            segments = [Segment(part, base + look.style(word) if word else base) for part, word in line]
            strip = self._strips[key] = Strip(segments).extend_cell_length(cells, _ground(base))
            if strip.cell_length > cells:
                strip = self._strips[key] = strip.crop(0, cells)
        return strip

    def notify_style_update(self) -> None:
        """Colours may have changed (theme, focus): forget the strips."""
        super().notify_style_update()
        self._strips.clear()

    def on_resize(self, event: events.Resize) -> None:
        self.resized()
        self.sync()

    def resized(self) -> None:
        """Called before the repaint of a new size; lay out for ``self.size`` here."""

    def as_text(self) -> list[str]:
        """What is on the screen, as plain text."""
        return ["".join(part for part, _ in self.line_at(y)) for y in range(self.size.height)]


def _ground(style: Style) -> Style:
    return Style(color=style.color, bgcolor=style.bgcolor, reverse=style.reverse)


def _cells(line: Line, cells: int) -> list[tuple[str, str]]:
    """One (character, style word) per terminal cell; the second cell of a wide character is ""."""
    out: list[tuple[str, str]] = []
    for part, word in line:
        if part.isascii():
            out.extend((char, word) for char in part)
            continue
        for char in part:
            size = cell_len(char)
            if size == 0 and out:
                out[-1] = (out[-1][0] + char, out[-1][1])
            elif size:
                out.append((char, word))
                out.extend([("", word)] * (size - 1))
    if len(out) < cells:
        out.extend([(" ", "")] * (cells - len(out)))
    return out[:cells]


class Bar(Painted):
    """One or a few rows of text; not focusable."""

    def __init__(
        self, lines: Sequence[Line] = (), *, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._shown: Sequence[Line] = lines

    def show(self, *lines: Line) -> None:
        self._shown = lines
        self.sync()

    def line_at(self, y: int) -> Line:
        return self._shown[y] if y < len(self._shown) else EMPTY


class Rows(Painted, can_focus=True):
    """A scrolling list under pinned head rows, with an optional cursor.

    Place and selection are kept by row key: a re-sorted or re-wrapped list keeps the same row under
    the eye. Subclasses provide :meth:`count`, :meth:`row` and :meth:`key`.
    """

    HAS_CURSOR = True
    scope = "list"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.top = 0
        self.cursor = 0

    def head(self) -> Sequence[Line]:
        """Pinned rows: title, column headings."""
        return ()

    def count(self) -> int:
        return 0

    def row(self, i: int) -> Line:
        return EMPTY

    def key(self, i: int) -> str:
        """A name of row ``i`` that survives a rebuild."""
        return str(i)

    def index(self, key: str) -> int | None:
        """Where the row of a key is now."""
        return next((i for i in range(self.count()) if self.key(i) == key), None)

    @property
    def room(self) -> int:
        """Rows of the list that fit under the head."""
        return max(1, self.size.height - len(self.head()))

    @property
    def selected(self) -> str | None:
        """The key under the cursor."""
        return self.key(self.cursor) if 0 <= self.cursor < self.count() else None

    def line_at(self, y: int) -> Line:
        head = self.head()
        if y < len(head):
            return head[y]
        i = self.top + y - len(head)
        return self.row(i) if i < self.count() else EMPTY

    def row_style(self, y: int) -> str:
        pinned = len(self.head())
        if y == 0 and pinned:
            return "title_focus" if self.has_focus else "title"
        if y < pinned:
            return "head"
        on_cursor = self.HAS_CURSOR and self.top + y - pinned == self.cursor and self.count() > 0
        return "cursor" if on_cursor else ""

    def keep(self, cursor_key: str | None, top_key: str | None) -> None:
        """Put cursor and top back on the rows of these keys after a rebuild, then repaint."""
        count = self.count()
        at = self.index(cursor_key) if cursor_key is not None else None
        before = self.cursor - self.top
        if at is not None:
            self.cursor = at
        self.cursor = max(0, min(self.cursor, count - 1))
        if not self.HAS_CURSOR:
            anchor = self.index(top_key) if top_key is not None else None
            self.top = anchor if anchor is not None else self.top
        elif at is not None and self.cursor > 0:
            self.top = self.cursor - before
        self._clamp()
        self.sync()

    def _clamp(self) -> None:
        self.top = max(0, min(self.top, self.count() - self.room))
        if self.HAS_CURSOR:
            self.top = max(0, min(self.top, self.cursor))
            self.top = max(self.top, self.cursor - self.room + 1)

    def resized(self) -> None:
        self._clamp()

    def move(self, rows: int) -> None:
        """Move the cursor, or the view where there is no cursor."""
        if self.HAS_CURSOR:
            before = self.cursor
            self.cursor = max(0, min(self.count() - 1, self.cursor + rows))
            if self.cursor != before:
                self.cursor_moved()
        else:
            self.top += rows
        self._clamp()
        self.sync()

    def scroll_rows(self, rows: int) -> None:
        """Scroll the view; a cursor stays inside it."""
        self.top = max(0, min(self.top + rows, self.count() - self.room))
        if self.HAS_CURSOR:
            cursor = min(max(self.cursor, self.top), self.top + self.room - 1)
            if cursor != self.cursor:
                self.cursor = cursor
                self.cursor_moved()
        self.sync()

    def select(self, key: str) -> bool:
        """Put the cursor on the row of a key."""
        at = self.index(key)
        if at is None:
            return False
        self.move(at - self.cursor)
        return True

    def cursor_moved(self) -> None:
        """Called when the selection changed."""

    def opened(self) -> None:
        """Called for Enter or a click on the selected row."""

    def on_focus(self, event: events.Focus) -> None:
        self.sync()

    def on_blur(self, event: events.Blur) -> None:
        self.sync()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-3)

    def on_click(self, event: events.Click) -> None:
        at = self.top + event.y - len(self.head())
        if event.y >= len(self.head()) and at < self.count():
            event.stop()
            if not self.HAS_CURSOR:
                return
            if at == self.cursor:
                self.opened()
            else:
                self.move(at - self.cursor)

    # actions of the scope "list"
    def do_down(self) -> None:
        self.move(1)

    def do_up(self) -> None:
        self.move(-1)

    def do_page_down(self) -> None:
        self.move(self.room)

    def do_page_up(self) -> None:
        self.move(-self.room)

    def do_half_down(self) -> None:
        self.move(self.room // 2)

    def do_half_up(self) -> None:
        self.move(-(self.room // 2))

    def do_first(self) -> None:
        self.move(-self.count())

    def do_last(self) -> None:
        self.move(self.count())

    def do_open(self) -> None:
        self.opened()


class Lines(Rows):
    """Rows that are simply a list of (key, line)."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.rows: Sequence[tuple[str, Line]] = ()
        self.heading: Sequence[Line] = ()

    def head(self) -> Sequence[Line]:
        return self.heading

    def count(self) -> int:
        return len(self.rows)

    def row(self, i: int) -> Line:
        return self.rows[i][1]

    def key(self, i: int) -> str:
        return self.rows[i][0]

    def show(self, heading: Sequence[Line], rows: Sequence[tuple[str, Line]]) -> None:
        """Replace the content; place and selection stay with their keys."""
        cursor_key = self.selected
        top_key = self.key(self.top) if 0 <= self.top < self.count() else None
        self.heading, self.rows = heading, rows
        self.keep(cursor_key, top_key)


def longest(lines: Sequence[Line]) -> int:
    """Cells of the longest line."""
    return max((width(line) for line in lines), default=0)
