"""One candidate whole: verdict, source, diff, launch plan, compile report, notes, samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.app import ComposeResult

from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Snapshot
from kda_tui.tui import detail, foreign, status
from kda_tui.tui.files import FileReader, Loaded
from kda_tui.tui.folder import Folder, Samples, read_folder, read_named, read_samples
from kda_tui.tui.line import Line, join, plain, span
from kda_tui.tui.panes.pane import Keyed, Pane
from kda_tui.tui.screens.reading import Page
from kda_tui.tui.screens.screen import KeyScreen
from kda_tui.tui.widgets.rows import Bar

TABS: Sequence[str] = ("verdict", "source", "diff", "launch plan", "compile", "notes", "samples")
FOREIGN_TABS: Sequence[str] = ("row", "source", "diff", "measurements")


class DetailScreen(KeyScreen):
    """Follows its candidate while the run goes on."""

    scope = "detail"

    def __init__(self, snapshot: Snapshot, cand: str, tab: str = "verdict", against: str = "") -> None:
        super().__init__()
        self.snapshot = snapshot
        self.cand = cand
        self.tabs = FOREIGN_TABS if snapshot.foreign else TABS
        self.tab = tab if tab in self.tabs else self.tabs[0]
        self.rivals = self._rivals(against)
        self.rival = 0
        self.files = FileReader(self.post_message)
        self._folders: dict[str, Folder] = {}
        self._samples: Samples | None = None
        self._sampled = ""
        self._said = ""
        self.page = Page("", self._rows)

    def compose(self) -> ComposeResult:
        yield Bar(id="tabs")
        yield self.page
        yield Bar(id="note")
        yield Bar(id="hints")

    def on_mount(self) -> None:
        self.files.start()
        for cand in (self.cand, *self.rivals):
            self._read(cand)
        self.page.focus()
        self.draw(self.snapshot)

    def on_unmount(self) -> None:
        self.files.stop()

    def on_resize(self) -> None:
        self.call_after_refresh(self._chrome)

    def current(self) -> Pane | None:
        return self.page

    @property
    def candidate(self) -> Candidate:
        beside = (e for e in self.snapshot.extra.get("events", ()) if e.id == self.cand)
        return self.snapshot.candidates.get(self.cand) or next(beside, Candidate(self.cand))

    def _rivals(self, against: str) -> list[str]:
        """Whom a diff can be against: the one asked for, the parents, the incumbent, the baseline."""
        parents = self.candidate.parents
        found = [against, *parents, self.snapshot.incumbent.cand, "baseline"]
        return [c for c in dict.fromkeys(found) if c and c != self.cand]

    def _read(self, cand: str) -> None:
        workspace = Workspace(self.snapshot.workspace)
        if self.snapshot.foreign:
            known = self.snapshot.candidates.get(cand) or Candidate(cand)
            self.files.ask(f"folder:{cand}", cand, lambda: read_named(workspace, known))
            return
        contract = self.snapshot.contract
        folder = (contract.baseline.candidate if contract else None) or "baseline"
        self.files.ask(f"folder:{cand}", cand, lambda: read_folder(workspace, cand, folder))

    def draw(self, snapshot: Snapshot) -> None:
        """Show a newer snapshot."""
        self.snapshot = snapshot
        newest = next((e for e in detail.evaluations_of(snapshot, self.cand) if e.extra.get("samples")), None)
        if newest is None:
            self._samples = {}
        elif newest.id != self._sampled:
            self._sampled = newest.id
            workspace = Workspace(snapshot.workspace)
            self.files.ask("samples", newest.id, lambda: read_samples(workspace, newest))
        self.page.rebuild()
        self._chrome()

    def on_loaded(self, event: Loaded) -> None:
        value: Any = event.value
        if isinstance(value, Folder):
            self._folders[value.name] = value
        elif event.slot == "samples":
            self._samples = value if isinstance(value, dict) else {}
        if event.error:
            self.say(event.error)
        self.page.rebuild()
        self._chrome()

    def _rows(self, cells: int) -> Sequence[Keyed]:
        cand, own = self.candidate, self._folders.get(self.cand)
        match self.tab:
            case "source":
                return detail.source(own, self._main_source(own), cells)
            case "launch plan":
                return detail.source(own, "launch.toml", cells)
            case "diff":
                other = self.rivals[self.rival] if self.rivals else ""
                return detail.diff(self._folders.get(other) if other else Folder("nothing"), own, cells)
            case "compile":
                return detail.compile_report(self.snapshot, cand, cells)
            case "notes":
                return detail.notes(own, cand, cells)
            case "measurements":
                return foreign.measured_rows(self.snapshot, self.cand, cells)
            case "samples":
                return detail.samples(self._samples, cells)
            case "row":
                return foreign.overview(self.snapshot, cand, cells)
        return detail.overview(self.snapshot, cand, self.app.minute(), cells)

    def _main_source(self, own: Folder | None) -> str:
        """kernel.cu; of a workspace that no kda wrote the first file that the candidate's row names."""
        names = list(own.files) if own is not None and self.snapshot.foreign else []
        return names[0] if names else "kernel.cu"

    def _chrome(self) -> None:
        cells = self.app.size.width
        tabs = [
            plain(f"[{t}]" if t == self.tab else t, "bold" if t == self.tab else "dim") for t in self.tabs
        ]
        self.query_one("#tabs", Bar).show(join([(span(self.cand, "bold"),), *tabs], " "))
        rival = self.rivals[self.rival] if self.rivals else "nothing"
        about: Line = plain(f"against {rival}, d changes", "dim") if self.tab == "diff" else ()
        self.query_one("#note", Bar).show(join([self.page.note(), about, plain(self._said, "info")]))
        hints = status.hint_line(self.app.keymap, self.scope, cells, self.app.read_only)
        self.query_one("#hints", Bar).show(hints)

    def say(self, text: str) -> None:
        self._said = text
        self._chrome()

    def _show(self, tab: str) -> None:
        self.tab = tab
        self.page.top = 0
        self.page.rebuild()
        self._chrome()

    def do_next_tab(self) -> None:
        self._show(self.tabs[(self.tabs.index(self.tab) + 1) % len(self.tabs)])

    def do_previous_tab(self) -> None:
        self._show(self.tabs[(self.tabs.index(self.tab) - 1) % len(self.tabs)])

    def do_detail_diff(self) -> None:
        if self.tab == "diff" and self.rivals:
            self.rival = (self.rival + 1) % len(self.rivals)
        self._show("diff")
