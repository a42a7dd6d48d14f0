"""The workspace screen: six panes, a status line, what waits, the last decision, the keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from kda_tui.record.snapshot import Snapshot
from kda_tui.text import UserError
from kda_tui.tui import status, words
from kda_tui.tui.actions import Action
from kda_tui.tui.files import FileReader, Loaded
from kda_tui.tui.filter import FilterError, compile_filter
from kda_tui.tui.folder import inside, read_text
from kda_tui.tui.follow import Arrived, Follower, Lost, Source
from kda_tui.tui.intents import Here, Intent, NotNow, intend, intended
from kda_tui.tui.line import Line, crop, join, plain, spread, wrap
from kda_tui.tui.pages import decision_rows, finding_rows
from kda_tui.tui.panes.benchmarks import BenchmarksPane
from kda_tui.tui.panes.candidates import CandidatesPane
from kda_tui.tui.panes.contract import ContractPane
from kda_tui.tui.panes.hotspots import HotspotsPane
from kda_tui.tui.panes.pane import Keyed, Pane
from kda_tui.tui.panes.plan import PlanPane
from kda_tui.tui.panes.transcript import TranscriptPane
from kda_tui.tui.plots import PLOTS, plot_rows
from kda_tui.tui.screens.confirm import ConfirmScreen
from kda_tui.tui.screens.detail import DetailScreen
from kda_tui.tui.screens.prompt import PromptScreen
from kda_tui.tui.screens.reading import ReadingScreen
from kda_tui.tui.screens.screen import KeyScreen
from kda_tui.tui.send import Sender
from kda_tui.tui.source import diff_lines
from kda_tui.tui.widgets.rows import Bar

SMALLEST = (60, 20)
WIDE_COLUMNS, WIDE_ROWS = 110, 30  # from here three panes
ALL_COLUMNS, ALL_ROWS = 160, 40  # from here all six
NOTE_S = 8.0  # how long a message stays on the note line


class WorkspaceScreen(KeyScreen):
    """One workspace, live or past."""

    scope = "workspace"

    def __init__(self, source: Source, sender: Sender, who: str = "") -> None:
        super().__init__()
        self.sender = sender
        self.who = who
        self.snapshot: Snapshot | None = None
        self.focus_number = 4
        self.right_number = 2
        self.zoomed = False
        self.frozen = False
        self._plots = 0
        self._sent = ""  # the decision that the message is about
        self._message = ""
        self._message_until = 0.0
        self._lost = ""
        self._source = source
        self._follower: Follower | None = None
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

    def on_mount(self) -> None:
        self.files.start()
        self._arrange()
        self._follower = Follower(self._source, self.post_message, self.app.hz)
        self._follower.start()
        self.set_interval(5.0, self._tick)

    def on_unmount(self) -> None:
        self.files.stop()
        if self._follower is not None:
            self._follower.stop()

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

    def _arrange(self) -> None:
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
        self._redraw()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._arrange)

    def go_to_pane(self, number: int) -> None:
        self.focus_number = number
        if number in (1, 2, 5, 6):
            self.right_number = number
        self._arrange()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, Pane) and event.widget.number != self.focus_number:
            self.focus_number = event.widget.number
            self._chrome()

    # --- drawing ---------------------------------------------------------

    def on_arrived(self, event: Arrived) -> None:
        if not self.frozen:
            first = self.snapshot is None
            self.snapshot = event.snapshot
            if any(d.id == self._sent for d in event.snapshot.decisions[-8:]):
                self._sent, self._message = "", ""  # the decision line says what became of it
            with self.app.batch_update():
                self._redraw()
            if first:
                self.app.attached(event.snapshot)
            self.app.changed(event.snapshot)
            top = self.app.screen
            if isinstance(top, DetailScreen) and top.snapshot.workspace == event.snapshot.workspace:
                top.draw(event.snapshot)
        if self._follower is not None:
            self._follower.taken()

    def on_lost(self, event: Lost) -> None:
        self._lost = event.why
        self._chrome()

    def on_loaded(self, event: Loaded) -> None:
        for pane in self._panes.values():
            pane.loaded(event.slot, event.key, event.value, event.error)

    def _redraw(self) -> None:
        if self.snapshot is not None:
            now = self.app.now()
            for number in self.visible_numbers():
                self._panes[number].draw(self.snapshot, now)
        self._chrome()

    def _chrome(self) -> None:
        """The lines around the panes."""
        cells, now = self.app.size.width, self.app.now()
        snapshot = self.snapshot
        hints = status.hint_line(self.app.keymap, self.key_scope(), cells, self.app.read_only, self._useful)
        self.query_one("#hints", Bar).show(hints)
        self.query_one("#note", Bar).show(self._note(cells))
        self.query_one("#tabs", Bar).show(status.tabs_line(self.focus_number, snapshot, cells))
        if snapshot is None:
            self.query_one("#status", Bar).show(plain(f"{self.sender.workspace.name}  reading…"))
            return
        self.query_one("#status", Bar).show(status.status_line(snapshot, now, cells))
        self.query_one("#waits", Bar).show(status.waits_line(snapshot, now, cells))

    def _useful(self, action: Action) -> bool:
        """Whether an action has something to act on now."""
        try:
            intend(action.id, self.here())
        except NotNow:
            return False
        except KeyError:
            return True
        return True

    def _note(self, cells: int) -> Line:
        """A message, else the place in the pane and the last decision."""
        if self._lost:
            return crop(plain(f"reading failed: {self._lost}", "bad"), cells)
        if self._message and self.app.now() < self._message_until:
            return crop(plain(self._message, "info"), cells)
        place = self.focused_pane.note()
        left = join([plain("FROZEN, p goes on", "warn") if self.frozen else plain(""), place], " ")
        right = status.decision_line(self.snapshot, max(20, cells * 2 // 3)) if self.snapshot else plain("")
        return spread(left, right, cells)

    def _tick(self) -> None:
        """Ages and the clock move; nothing is written when no minute turned."""
        if self.app.screen is self and not self.frozen:
            self._redraw()

    def say(self, text: str) -> None:
        self._message, self._message_until = text, self.app.now() + NOTE_S
        self._chrome()

    # --- decisions -------------------------------------------------------

    def here(self) -> Here:
        if self.snapshot is None:
            raise NotNow("The record is still being read.")
        return Here(
            self.snapshot, self.focused_pane.scope, self.candidates.selected or "", self.plan.comment_lines()
        )

    async def decide(self, action: str) -> None:
        """Open the confirmation of an action; target and expect are fixed now."""
        try:
            self.sender.refuse_read_only()
            intent = intend(action, self.here())
        except UserError as error:
            self.say(str(error))
            return

        def confirmed(typed: dict[str, Any] | None) -> None:
            if typed is None:
                self.say(f"not sent: {intent.title.lower()}")
            else:
                self._send(intent, typed)

        self.app.ears.close()
        await self.app.push_screen(ConfirmScreen(intent, self.who), confirmed)

    def _send(self, intent: Intent, typed: dict[str, Any]) -> None:
        try:
            decision = self.sender.send(intent, typed)
        except UserError as error:
            self.say(str(error))
            return
        if intent.kind == "request_changes":
            self.plan.comments.clear()
            self.plan.rebuild()
        self._sent = decision.id
        alive = self.snapshot is not None and self.snapshot.liveness == "alive"
        then = "the worker takes it or says why not" if alive else "it is taken when a worker starts (Y)"
        self.say(f"{words.decision_name(decision.kind)} {words.target_of(decision)} SENT; {then}")

    # --- actions ---------------------------------------------------------

    def handler(self, action: Action) -> Callable[[], object] | None:
        if action.id in intended():
            return partial(self.decide, action.id)
        if action.id.startswith("pane_"):
            return partial(self.go_to_pane, int(action.id.removeprefix("pane_")))
        return super().handler(action)

    def do_zoom(self) -> None:
        self.zoomed = not self.zoomed
        self._arrange()

    def do_escape(self) -> None:
        if self.zoomed:
            self.do_zoom()
        elif self.candidates.filter_text and self.focus_number == 4:
            self.candidates.set_filter("")
        self._chrome()

    def do_next_pane(self) -> None:
        self.go_to_pane(self.focus_number % 6 + 1)

    def do_previous_pane(self) -> None:
        self.go_to_pane((self.focus_number - 2) % 6 + 1)

    def do_freeze(self) -> None:
        self.frozen = not self.frozen
        self._redraw()

    def do_waiting(self) -> None:
        """Go to where the oldest waiting thing is decided."""
        gates = self.snapshot.gates if self.snapshot else ()
        if not gates:
            self.say("nothing waits for you")
            return
        gate = gates[0]
        if gate.kind == "promotion":
            self.go_to_pane(4)
            self.candidates.select(str(gate.target.get("cand")))
        elif gate.kind == "plan":
            self.go_to_pane(2)
        assert self.snapshot is not None
        self.say(f"{words.gate_words(gate, self.snapshot)}: {words.AGENT_GATE_KEYS.get(gate.kind, '')}")

    async def do_filter(self) -> None:
        def filtered(text: str | None) -> None:
            if text is not None:
                self.candidates.set_filter(text)
                self._chrome()

        hint = "words, or faster reg<64 ratio>1.1 !vetoed"
        await self.app.push_screen(
            PromptScreen("filter", self.candidates.filter_text, hint, _filter_fault), filtered
        )

    async def do_find(self) -> None:
        if self.focus_number == 4:
            await self.do_filter()
        else:
            await super().do_find()

    def current(self) -> Pane | None:
        return self.focused_pane

    def do_leave(self) -> None:
        self.app.leave()

    def on_candidates_pane_selected(self, event: CandidatesPane.Selected) -> None:
        hotspots = self._panes[6]
        assert isinstance(hotspots, HotspotsPane)
        hotspots.cand = event.cand
        if self.snapshot is not None and 6 in self.visible_numbers():
            hotspots.draw(self.snapshot, self.app.now())
        self._chrome()

    def on_candidates_pane_opened(self, event: CandidatesPane.Opened) -> None:
        if self.snapshot is not None:
            self.app.show_candidate(self.snapshot, event.cand)

    def do_diff(self) -> None:
        """The two marked candidates, else the selected one against its parent."""
        marked = self.candidates.marked
        cand = marked[1] if len(marked) == 2 else self.candidates.selected
        if cand is not None and self.snapshot is not None:
            self.app.show_candidate(self.snapshot, cand, "diff", marked[0] if len(marked) == 2 else "")

    def do_plan_diff(self) -> None:
        """The newest plan against the revision before it."""
        revisions = self.snapshot.plan.revisions if self.snapshot else ()
        if len(revisions) < 2:
            self.say("there is only one revision of the plan" if revisions else "there is no plan yet")
            return
        workspace = self.sender.workspace
        old, new = revisions[-2:]
        paths = [workspace.root / rev.file for rev in (old, new)]
        texts = [read_text(path) if inside(workspace, path) else "" for path in paths]
        rows = diff_lines(texts[0], texts[1], f"r{old.rev}", f"r{new.rev}")

        def build(cells: int) -> list[Keyed]:
            return [
                (f"{n}:{m}", part) for n, row in enumerate(rows) for m, part in enumerate(wrap(row, cells, 2))
            ]

        self.app.push_screen(ReadingScreen(f"PLAN r{old.rev} -> r{new.rev}", build))

    async def do_comment(self) -> None:
        under = self.plan.line_under_cursor()
        if under is None:
            self.say("put the cursor on a line of the plan's text")
            return
        number, quote = under

        def commented(text: str | None) -> None:
            if text is not None:
                self.plan.set_comment(number, quote, text)
                self._chrome()

        await self.app.push_screen(
            PromptScreen(f"comment on line {number}", hint=quote.strip()[:60]), commented
        )

    def do_findings(self) -> None:
        snapshot = self.snapshot
        if snapshot is not None:
            self.app.push_screen(ReadingScreen("FINDINGS", partial(finding_rows, snapshot)))

    def do_decisions(self) -> None:
        snapshot = self.snapshot
        if snapshot is not None:
            self.app.push_screen(ReadingScreen("DECISIONS", partial(decision_rows, snapshot)))

    def do_plot(self) -> None:
        """The next kind of plot, over what is measured now."""
        pane = self._panes[5]
        assert isinstance(pane, BenchmarksPane)
        if self.snapshot is None:
            return
        kind = PLOTS[self._plots % len(PLOTS)]
        self._plots += 1
        height = self.app.size.height - 4
        build = partial(plot_rows, kind, self.snapshot, pane.book, height)
        self.app.push_screen(ReadingScreen(f"PLOT {kind}; o on the benchmarks gives the next", build))

    async def do_restart(self) -> None:
        if self.snapshot is None:
            return
        if self.snapshot.liveness in ("alive", "foreign_host"):
            self.say("a worker is there already")
            return
        run = self.snapshot.run
        resume = run is not None and self.snapshot.phase != "ended"
        agent = run.agent if run is not None and not resume else ""
        await self.app.confirm_start(self.sender, self.snapshot.name, resume, agent, self.say)


def _filter_fault(text: str) -> str:
    try:
        compile_filter(text)
    except FilterError as error:
        return str(error)
    return ""
