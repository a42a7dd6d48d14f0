"""Every workspace under the configured folders; what waits for a person first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from textual.app import ComposeResult

from kda_tui.tui import status, words
from kda_tui.tui.files import FileReader, Loaded
from kda_tui.tui.line import Line, fit, join, plain, span
from kda_tui.tui.panes.pane import Pane
from kda_tui.tui.screens.prompt import PromptScreen
from kda_tui.tui.screens.screen import KeyScreen
from kda_tui.tui.send import Sender
from kda_tui.tui.summary import RunSummary, find_workspaces, stamp, summarise
from kda_tui.tui.widgets.rows import Bar

LOOK_S = 2.0  # how often folders and ledgers are looked at
SLICE_S = 0.25  # of reading in one look
READING = "reading…"
ORDERS: Sequence[str] = ("waits", "name", "last", "best")


class RunsPane(Pane):
    """A table of workspaces; the cursor stays on its workspace when the order changes."""

    scope = "runs"
    title = "workspaces"

    def __init__(self, opened: Callable[[Path], None]) -> None:
        super().__init__(id="page")
        self._open = opened
        self._all: dict[Path, RunSummary] = {}
        self._rows: list[RunSummary] = []
        self.text = ""
        self.order_by = "waits"
        self.where = ""
        self._now = 0.0

    def draw_all(self, summaries: dict[Path, RunSummary], now: float) -> None:
        self._all, self._now = summaries, now
        self.reorder()

    def reorder(self) -> None:
        selected = self.selected
        needle = self.text.lower()
        rows = [
            s for s in self._all.values() if needle in f"{s.name} {s.phase} {s.root} {self._waits(s)}".lower()
        ]
        if self.order_by == "name":
            rows.sort(key=lambda s: s.name)
        elif self.order_by == "best":
            rows.sort(key=lambda s: -(s.best or 0))
        else:
            rows.sort(key=lambda s: s.last, reverse=True)
            if self.order_by == "waits":
                rows.sort(key=lambda s: not s.needs)
        self._rows = rows
        self.keep(selected, None)

    def head(self) -> Sequence[Line]:
        waits = sum(bool(s.gates) for s in self._all.values())
        gone = sum(s.needs and not s.gates for s in self._all.values())
        parts: list[Line] = [(span(f"kda  {len(self._all)} workspaces in {self.where}", "bold"),)]
        parts += [plain(f"{waits} wait", "warn")] if waits else []
        parts += [plain(f"{gone} gone", "bad")] if gone else []
        parts += [plain(f"find '{self.text}'", "warn")] if self.text else []
        return (
            join(parts),
            plain(
                self._line("waits", "workspace", "run", "phase", "best", "floor", "budget", "last", "worker"),
                "head",
            ),
        )

    def _line(self, *cells: str) -> str:
        waits, name, run, phase, best, floor, budget, last, worker = cells
        room = max(10, self.size.width - 64)
        left = f"  {fit(waits, 9)} {fit(name, room)} {fit(run, 4)} {fit(phase, 13)}"
        return f"{left} {fit(best, 5, True)} {fit(floor, 5, True)} {fit(budget, 6, True)} {fit(last, 4, True)}  {fit(worker, 7)}"

    def _waits(self, s: RunSummary) -> str:
        if not s.gates:
            return "-"
        return f"{s.gates[0].kind} {words.age(s.gates[0].opened, self._now)}"

    def count(self) -> int:
        return len(self._rows)

    def key(self, i: int) -> str:
        return str(self._rows[i].root)

    def row(self, i: int) -> Line:
        s = self._rows[i]
        mark = ">" if i == self.cursor else " "
        if s.error:
            return (
                span(f"{mark} {fit(s.name, 24)} ", "bold"),
                span(s.error, "dim" if s.error == READING else "bad"),
            )
        phase = (
            f"{s.candidates} candidates" if s.foreign else f"{s.phase or 'no run'}{' HELD' if s.hold else ''}"
        )
        worker = (
            "foreign" if s.foreign else {"gone": "GONE", "foreign_host": "other"}.get(s.liveness, s.liveness)
        )
        text = self._line(
            self._waits(s), self._shown_name(s), s.run, phase, words.ratio(s.best), words.share(s.floor), words.share(s.budget),
            words.age(s.last, self._now) or "-", worker,
        )  # fmt: skip
        style = "bad" if worker == "GONE" else "warn" if s.needs or s.hold else "dim" if s.foreign else ""
        return (span(f"{mark}{text[1:]}", style),)

    def _shown_name(self, s: RunSummary) -> str:
        """The name; of workspaces that repositories keep under the same names in many places, with the folder before it."""
        room = max(10, self.size.width - 64)
        if not s.foreign or not self._all:
            return s.name
        whole = f"{s.root.parent.name}/{s.name}"
        return whole if len(whole) <= room else f"…{whole[-(room - 1) :]}"

    def opened(self) -> None:
        if self.selected is not None:
            self._open(Path(self.selected))


class RunsScreen(KeyScreen):
    """Looks at the folders every two seconds; a workspace is read again only when its files changed."""

    scope = "runs"

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__()
        self.folders = folders
        self.pane = RunsPane(self._open)
        self.pane.where = " ".join(_short(f) for f in folders)
        self.files = FileReader(self.post_message)
        self._summaries: dict[Path, RunSummary] = {}
        self._stamps: dict[Path, tuple[int, ...]] = {}
        self._said = ""

    def compose(self) -> ComposeResult:
        yield self.pane
        yield Bar(id="note")
        yield Bar(id="hints")

    def on_mount(self) -> None:
        self.files.start()
        self.pane.focus()
        self._look()
        self.set_interval(LOOK_S, self._look)

    def on_unmount(self) -> None:
        self.files.stop()

    def on_resize(self) -> None:
        self.call_after_refresh(self._chrome)

    def current(self) -> Pane | None:
        return self.pane

    def _look(self) -> None:
        if self.app.screen is self:
            self.files.ask("look", None, self._found)

    def _found(self) -> dict[Path, RunSummary]:
        """Runs in the reading thread: summaries of what is there, read again where files changed.

        What there is no time for in one look is listed by its name and read in the next one.
        """
        out: dict[Path, RunSummary] = {}
        until = time.monotonic() + SLICE_S
        for root in find_workspaces(self.folders):
            seen = stamp(root)
            known = self._summaries.get(root)
            if known is None or self._stamps.get(root) != seen or known.liveness in ("alive", "gone"):
                if time.monotonic() >= until:
                    known = known or RunSummary(root, root.name, error=READING)
                else:
                    known = summarise(root)
                    self._stamps[root] = seen
            out[root] = known
        return out

    def on_loaded(self, event: Loaded) -> None:
        if event.error:
            self.say(event.error)
            return
        value: Any = event.value
        self._summaries = value
        self.pane.draw_all(value, self.app.minute())
        if any(summary.error == READING for summary in value.values()):
            self._look()
        self._chrome()

    def _open(self, root: Path) -> None:
        self.app.open_workspace(root)

    def _chrome(self) -> None:
        cells = self.app.size.width
        self.query_one("#note", Bar).show(join([self.pane.note(), plain(self._said, "info")]))
        hints = status.hint_line(self.app.keymap, self.scope, cells, self.app.read_only)
        self.query_one("#hints", Bar).show(hints)

    def say(self, text: str) -> None:
        self._said = text
        self._chrome()

    def do_runs_order(self) -> None:
        self.pane.order_by = ORDERS[(ORDERS.index(self.pane.order_by) + 1) % len(ORDERS)]
        self.pane.reorder()
        self.say(f"order {self.pane.order_by}")

    async def do_find(self) -> None:
        def find(text: str | None) -> None:
            if text is not None:
                self.pane.text = text.strip()
                self.pane.reorder()

        await self.app.push_screen(PromptScreen("find workspaces", self.pane.text, "name, phase, gate"), find)

    async def do_runs_restart(self) -> None:
        root = self.pane.selected
        summary = self._summaries.get(Path(root)) if root else None
        if summary is None or summary.liveness != "gone":
            self.say("its worker is not gone")
            return
        await self.app.confirm_start(
            Sender(summary.root, self.app.read_only), summary.name, True, "", self.say
        )

    def do_escape(self) -> None:
        if self.pane.text:
            self.pane.text = ""
            self.pane.reorder()
        elif len(self.app.screen_stack) > 2:
            self.app.pop_screen()

    def do_leave(self) -> None:
        self.app.leave()


def _short(path: Path) -> str:
    home = str(Path.home())
    text = str(path)
    return "~" + text[len(home) :] if text == home or text.startswith(home + "/") else text


__all__ = ["RunsPane", "RunsScreen"]
