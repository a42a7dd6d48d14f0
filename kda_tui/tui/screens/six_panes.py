"""Six panes and the lines around them, laid out for the size of the terminal."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from kda_tui.record.snapshot import Snapshot
from kda_tui.tui import status
from kda_tui.tui.actions import Action
from kda_tui.tui.files import FileReader, Loaded
from kda_tui.tui.line import Line, crop, join, plain, spread
from kda_tui.tui.panes.benchmarks import BenchmarksPane
from kda_tui.tui.panes.candidates import CandidatesPane
from kda_tui.tui.panes.contract import ContractPane
from kda_tui.tui.panes.hotspots import HotspotsPane
from kda_tui.tui.panes.pane import Pane
from kda_tui.tui.panes.plan import PlanPane
from kda_tui.tui.panes.transcript import TranscriptPane
from kda_tui.tui.screens.screen import KeyScreen
from kda_tui.tui.widgets.rows import Bar

SMALLEST = (60, 20)
WIDE_COLUMNS, WIDE_ROWS = 110, 30  # from here three panes
ALL_COLUMNS, ALL_ROWS = 160, 40  # from here all six
NOTE_S = 8.0  # how long a message stays on the note line


class PanesScreen(KeyScreen):
    """Lays out six panes for the size of the terminal and draws a snapshot in those that fit."""

    scope = "workspace"

    def __init__(self, name: str) -> None:
        super().__init__()
        self.workspace_name = name
        self.snapshot: Snapshot | None = None
        self.focus_number = 4
        self.right_number = 2
        self.zoomed = False
        self.frozen = False
        self.message = ""
        self.message_until = 0.0
        self.lost = ""
        self.files = FileReader(self.post_message)
        self._panes: dict[int, Pane] = {}

    # --- widgets ---------------------------------------------------------

    def compose(self) -> ComposeResult:
        columns = self.app.columns
        panes = (
            ContractPane(id="contract"), PlanPane(id="plan"), TranscriptPane(id="transcript"),
            CandidatesPane(columns, id="candidates"), BenchmarksPane(id="benchmarks"), HotspotsPane(id="hotspots"),
        )  # fmt: skip
        for pane in panes:
            pane.ask = self.files.ask
            self._panes[pane.number] = pane
        panes[2].say = self.say
        yield Bar(id="status")
        yield Bar(id="tabs")
        yield Bar(id="waits")
        with Horizontal(id="panes"):
            with Vertical(id="left"):
                yield panes[3]
                yield panes[2]
            with Vertical(id="right"):
                yield panes[0]
                yield panes[1]
                yield panes[4]
                yield panes[5]
        yield Bar(id="small")
        yield Bar(id="note")
        yield Bar(id="hints")

    def pane(self, number: int) -> Pane:
        return self._panes[number]

    @property
    def focused_pane(self) -> Pane:
        return self._panes[self.focus_number]

    @property
    def candidates(self) -> CandidatesPane:
        pane = self._panes[4]
        assert isinstance(pane, CandidatesPane)
        return pane

    @property
    def plan(self) -> PlanPane:
        pane = self._panes[2]
        assert isinstance(pane, PlanPane)
        return pane

    def key_scope(self) -> str:
        return self.focused_pane.scope

    # --- layout ----------------------------------------------------------

    def visible_numbers(self) -> tuple[int, ...]:
        """Which panes the size of the terminal shows."""
        cells, rows = self.app.size
        if cells < SMALLEST[0] or rows < SMALLEST[1]:
            return ()
        if self.zoomed or cells < WIDE_COLUMNS or rows < WIDE_ROWS:
            return (self.focus_number,)
        if cells >= ALL_COLUMNS and rows >= ALL_ROWS:
            return (1, 2, 3, 4, 5, 6)
        return (3, 4, self.right_number)

    def arrange_panes(self) -> None:
        """Show the panes that fit and give the focused one the keys."""
        shown = self.visible_numbers()
        cells = self.app.size.width
        for number, pane in self._panes.items():
            pane.display = number in shown
        self.query_one("#left").display = bool({3, 4} & set(shown))
        right = self.query_one("#right")
        right.display = bool({1, 2, 5, 6} & set(shown))
        right.set_class(self.query_one("#left").display, "beside")
        small = self.query_one("#small", Bar)
        small.display = not shown
        self.query_one("#panes").display = bool(shown)
        self.query_one("#tabs").display = len(shown) != 6 and bool(shown)
        if not shown:
            rows = self.app.size.height
            small.show(
                plain(f"{cells}x{rows} is too small: kda needs {SMALLEST[0]}x{SMALLEST[1]}"),
                plain("The run goes on. q leaves."),
            )
        if shown and self.focused is not self.focused_pane:
            self.focused_pane.focus()
        self.redraw()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.arrange_panes)

    def go_to_pane(self, number: int) -> None:
        self.focus_number = number
        if number in (1, 2, 5, 6):
            self.right_number = number
        self.arrange_panes()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, Pane) and event.widget.number != self.focus_number:
            self.focus_number = event.widget.number
            self.chrome()

    # --- drawing ---------------------------------------------------------

    def on_loaded(self, event: Loaded) -> None:
        for pane in self._panes.values():
            pane.loaded(event.slot, event.key, event.value, event.error)

    def redraw(self) -> None:
        if self.snapshot is not None:
            now = self.app.minute()
            for number in self.visible_numbers():
                self._panes[number].draw(self.snapshot, now)
        self.chrome()

    def chrome(self) -> None:
        """The lines around the panes."""
        cells, now = self.app.size.width, self.app.minute()
        snapshot = self.snapshot
        hints = status.hint_line(self.app.keymap, self.key_scope(), cells, self.read_only, self.useful)
        self.query_one("#hints", Bar).show(hints)
        self.query_one("#note", Bar).show(self._note(cells))
        self.query_one("#tabs", Bar).show(status.tabs_line(self.focus_number, snapshot, cells))
        if snapshot is None:
            self.query_one("#status", Bar).show(plain(f"{self.workspace_name}  reading…"))
            return
        self.query_one("#status", Bar).show(status.status_line(snapshot, now, cells))
        self.query_one("#waits", Bar).show(status.waits_line(snapshot, now, cells))

    def useful(self, action: Action) -> bool:
        """Whether an action that changes something has anything to act on now."""
        return True

    def _note(self, cells: int) -> Line:
        """A message, else the place in the pane and the last decision."""
        if self.lost:
            return crop(plain(f"reading failed: {self.lost}", "bad"), cells)
        if self.message and self.app.now() < self.message_until:
            return crop(plain(self.message, "info"), cells)
        place = self.focused_pane.note()
        left = join([plain("FROZEN, p goes on", "warn") if self.frozen else plain(""), place], " ")
        right = status.decision_line(self.snapshot, max(20, cells * 2 // 3)) if self.snapshot else plain("")
        return spread(left, right, cells)

    def say(self, text: str) -> None:
        self.message, self.message_until = text, self.app.now() + NOTE_S
        self.chrome()
