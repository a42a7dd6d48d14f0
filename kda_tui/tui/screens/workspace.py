"""The workspace screen: follows a record, opens what belongs to it, and asks before it sends a decision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kda_tui.text import UserError
from kda_tui.tui import words
from kda_tui.tui.actions import Action
from kda_tui.tui.filter import FilterError, compile_filter
from kda_tui.tui.folder import inside, read_text
from kda_tui.tui.follow import Arrived, Follower, Lost, Source
from kda_tui.tui.intents import Here, Intent, NotNow, intend, intended
from kda_tui.tui.line import wrap
from kda_tui.tui.pages import decision_rows, finding_rows, wiki_rows
from kda_tui.tui.panes.benchmarks import BenchmarksPane
from kda_tui.tui.panes.candidates import CandidatesPane
from kda_tui.tui.panes.hotspots import HotspotsPane
from kda_tui.tui.panes.pane import Keyed, Pane
from kda_tui.tui.plots import PLOTS, plot_rows
from kda_tui.tui.screens.confirm import ConfirmScreen
from kda_tui.tui.screens.detail import DetailScreen
from kda_tui.tui.screens.prompt import PromptScreen
from kda_tui.tui.screens.reading import ReadingScreen
from kda_tui.tui.screens.six_panes import PanesScreen
from kda_tui.tui.send import Sender
from kda_tui.tui.source import diff_lines


class WorkspaceScreen(PanesScreen):
    """One workspace, live or past: follows the record, and sends decisions."""

    def __init__(self, source: Source, sender: Sender, who: str = "") -> None:
        super().__init__(sender.workspace.name)
        self.sender = sender
        self.who = who
        self._plots = 0
        self._drawn = 0.0  # the minute that is on the screen
        self._sent = ""  # the decision that the message is about
        self._source = source
        self._follower: Follower | None = None

    def on_mount(self) -> None:
        self.files.start()
        self.arrange_panes()
        self._follower = Follower(self._source, self.post_message, self.app.hz)
        self._follower.start()
        self.set_interval(1.0, self._tick)

    def on_unmount(self) -> None:
        self.files.stop()
        if self._follower is not None:
            self._follower.stop()

    def on_arrived(self, event: Arrived) -> None:
        if not self.frozen:
            first = self.snapshot is None
            self.snapshot = event.snapshot
            if event.snapshot.foreign or event.snapshot.read_only:
                self.sender.read_only = True
            if any(d.id == self._sent for d in event.snapshot.decisions[-8:]):
                self._sent, self.message = "", ""  # the decision line says what became of it
            with self.app.batch_update():
                self.redraw()
            if first:
                self.app.attached(event.snapshot)
            self.app.changed(event.snapshot)
            top = self.app.screen
            if isinstance(top, DetailScreen) and top.snapshot.workspace == event.snapshot.workspace:
                top.draw(event.snapshot)
        if self._follower is not None:
            self._follower.taken()

    def on_lost(self, event: Lost) -> None:
        self.lost = event.why
        self.chrome()

    def _tick(self) -> None:
        """Once a minute ages and the clock move; a message that is old enough goes."""
        if self.app.screen is not self or self.frozen:
            return
        if self.app.minute() != self._drawn:
            self._drawn = self.app.minute()
            self.redraw()
        elif self.message and self.app.now() >= self.message_until:
            self.message = ""
            self.chrome()

    # --- decisions -------------------------------------------------------

    @property
    def read_only(self) -> bool:
        return self.sender.read_only

    def useful(self, action: Action) -> bool:
        """Whether an action has something to act on now."""
        try:
            intend(action.id, self.here())
        except NotNow:
            return False
        except KeyError:
            return True
        return True

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
        self.arrange_panes()

    def do_escape(self) -> None:
        if self.zoomed:
            self.do_zoom()
        elif self.candidates.filter_text and self.focus_number == 4:
            self.candidates.set_filter("")
        self.chrome()

    def do_next_pane(self) -> None:
        self.go_to_pane(self.focus_number % 6 + 1)

    def do_previous_pane(self) -> None:
        self.go_to_pane((self.focus_number - 2) % 6 + 1)

    def do_freeze(self) -> None:
        self.frozen = not self.frozen
        self.redraw()

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
                self.chrome()

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
        self.chrome()

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
                self.chrome()

        await self.app.push_screen(
            PromptScreen(f"comment on line {number}", hint=quote.strip()[:60]), commented
        )

    async def do_wiki(self) -> None:
        def searched(words: str | None) -> None:
            if words:
                self.app.push_screen(ReadingScreen(f"SKILLS: {words}", partial(wiki_rows, words)))

        hint = "for example bank conflicts, or ERR_NVGPUCTRPERM"
        await self.app.push_screen(PromptScreen("search the skills", hint=hint), searched)

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
