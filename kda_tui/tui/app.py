"""The app: opens workspaces, holds keymap and theme, restores the terminal whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from textual import events, work

from kda_tui.config import Config, load_config
from kda_tui.record.snapshot import Snapshot
from kda_tui.text import UserError, clean_line
from kda_tui.tui import clipboard, columns, terminal, visits, words
from kda_tui.tui.actions import Action
from kda_tui.tui.base import BaseApp, Ears
from kda_tui.tui.export import screen_svg, screen_text
from kda_tui.tui.follow import Source, open_reader
from kda_tui.tui.intents import Intent
from kda_tui.tui.keymap import build_keymap
from kda_tui.tui.pages import help_rows
from kda_tui.tui.screens.confirm import ConfirmScreen
from kda_tui.tui.screens.detail import DetailScreen
from kda_tui.tui.screens.palette import PaletteScreen
from kda_tui.tui.screens.reading import ReadingScreen
from kda_tui.tui.screens.runs import RunsScreen
from kda_tui.tui.screens.screen import KeyScreen
from kda_tui.tui.screens.workspace import WorkspaceScreen
from kda_tui.tui.send import Sender
from kda_tui.tui.summary import is_one_workspace
from kda_tui.tui.themes import DEFAULT_THEME, load_themes, theme_folders

OpenSource = Callable[[Path, bool], Source]
THEMES_S = 2.0  # how often theme files are looked at


class KdaApp(BaseApp, inherit_bindings=False):
    """The cockpit on a workspace, or on a folder of workspaces."""

    CSS_PATH = Path(__file__).with_name("styles.tcss")
    ENABLE_COMMAND_PALETTE = False
    TITLE = "kda"

    def __init__(
        self,
        root: Path,
        read_only: bool = False,
        config: Config | None = None,
        open_source: OpenSource = open_reader,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.ears = Ears()
        self.clock = clock
        super().__init__()
        self.root = root.absolute()
        self.is_one = is_one_workspace(self.root)  # else a folder of workspaces
        self.config = config if config is not None else load_config(self.root)
        self.read_only = read_only
        self.open_source = open_source
        ui = self.config.ui
        self.ascii_only = ui.ascii
        self.hz = ui.updates_per_second
        self.keymap = build_keymap(ui.keys)
        self.columns, unknown = columns.known(ui.columns)
        self.signals: terminal.Signals | None = None
        self._gates_known: frozenset[str] | None = None
        self._titled = ""
        self._stamp: tuple[tuple[str, int], ...] = ()
        self.complaints = [*self.config.problems, *self.keymap.problems, *unknown]
        self._load_themes()
        self.use_theme(ui.theme)
        self.set_class(ui.ascii, "-ascii")

    # --- start and end ---------------------------------------------------

    def on_mount(self) -> None:
        self.signals = terminal.Signals(self.leave_with)
        if not self.is_headless:
            self.signals.install()
        terminal.push_title(self)
        if self.is_one or not self.root.is_dir():
            self.push_screen(self.workspace_screen(self.root))
        else:
            self.push_screen(RunsScreen(self.folders()))
        self.set_interval(THEMES_S, self._watch_themes)

    def workspace_screen(self, root: Path) -> WorkspaceScreen:
        return WorkspaceScreen(self.open_source(root, self.read_only), Sender(root, self.read_only))

    def leave(self) -> None:
        self.leave_with(0)

    def leave_with(self, code: int) -> None:
        """End the app in order; the run is another process and goes on."""
        for screen in self.screen_stack:
            if isinstance(screen, WorkspaceScreen) and screen.snapshot is not None:
                visits.remember(screen.snapshot.workspace, self.now())
        terminal.pop_title(self)
        self.exit(code)

    def folders(self) -> list[Path]:
        """Where workspaces are listed from."""
        named = [Path(f).expanduser() for f in self.config.workspaces.folders]
        if not self.is_one and self.root.is_dir():
            return [self.root]
        return named or [self.root.parent]

    def open_workspace(self, root: Path) -> None:
        """Show a workspace in place of the one that is open."""
        self._gates_known = None
        for screen in list(self.screen_stack[1:]):
            if isinstance(screen, WorkspaceScreen) and screen.sender.workspace.root == root:
                while self.screen is not screen:
                    self.pop_screen()
                return
        self.push_screen(self.workspace_screen(root))

    def go_back(self) -> None:
        """Close the screen on top; the last one leaves."""
        if len(self.screen_stack) > 2:
            self.pop_screen()
        else:
            self.leave()

    # --- input -----------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            if self.ears.drops(event.time):
                return
            if isinstance(event, events.Key) and event.key == "ctrl+c":
                self.say(f"{self.keymap.key('leave')} leaves, the run goes on")
                return
        await super().on_event(event)

    def say(self, text: str) -> None:
        """One line for the person, on the topmost screen that has a note line."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, KeyScreen) and type(screen).say is not KeyScreen.say:
                screen.say(clean_line(text))
                return

    # --- attention -------------------------------------------------------

    def attached(self, snapshot: Snapshot) -> None:
        """The first snapshot of a workspace is on the screen."""
        line = visits.since_left(snapshot, self.now())
        if self.complaints:
            line = _short(self.complaints[0]) + (
                f" (and {len(self.complaints) - 1} more, ?)" if len(self.complaints) > 1 else ""
            )
        if line:
            self.say(line)

    def changed(self, snapshot: Snapshot) -> None:
        """A snapshot is on the screen: title, and a bell for what newly waits."""
        waiting = len(snapshot.gates)
        title = f"{'(' + str(waiting) + ') ' if waiting else ''}{snapshot.name} {snapshot.phase or 'kda'}"
        if title != self._titled:
            self._titled = title
            terminal.title(self, title)
        gates = frozenset(gate.id for gate in snapshot.gates)
        gone = frozenset({"gone"}) if snapshot.liveness == "gone" else frozenset()
        ended = frozenset({"ended"}) if snapshot.phase == "ended" else frozenset()
        held = (
            frozenset({f"hold {snapshot.hold}"})
            if snapshot.hold and snapshot.hold != "person"
            else frozenset()
        )
        now_known = gates | gone | ended | held
        if self._gates_known is not None and now_known - self._gates_known:
            self._call(snapshot, now_known - self._gates_known)
        self._gates_known = now_known

    def _call(self, snapshot: Snapshot, fresh: frozenset[str]) -> None:
        """Say outside the screen what newly needs a person."""
        names = [words.gate_words(g, snapshot) for g in snapshot.gates if g.id in fresh]
        names += ["the worker is gone"] if "gone" in fresh else []
        names += ["the run has ended"] if "ended" in fresh else []
        names += [words.HOLD_WORDS.get(f.removeprefix("hold "), f) for f in fresh if f.startswith("hold ")]
        attention = self.config.attention
        terminal.notify(self, f"{snapshot.name}: {', '.join(names)}", attention.bell, attention.osc)

    # --- actions that work everywhere ------------------------------------

    def do_redraw(self) -> None:
        self.refresh(layout=True)

    def do_suspend(self) -> None:
        """The shell, by job control; fg comes back."""
        self.action_suspend_process()

    def do_theme(self) -> None:
        """The next theme."""
        names = sorted(self.looks)
        self.use_theme(names[(names.index(self.look.name) + 1) % len(names)])
        self.say(f"theme {self.look.name}; [ui] theme in kda.toml keeps it")

    def do_help(self) -> None:
        screen = self.screen
        scope = screen.key_scope() if isinstance(screen, KeyScreen) else "everywhere"
        keymap = self.keymap
        self.push_screen(ReadingScreen("KEYS", lambda cells: help_rows(keymap, scope, cells)))

    async def do_palette(self) -> None:
        screen = self.screen
        if not isinstance(screen, KeyScreen):
            return

        def chosen(action: Action | None) -> None:
            if action is not None:
                self.call_later(screen.perform, action)

        actions = self.keymap.in_scope(screen.key_scope())
        await self.push_screen(PaletteScreen(self.keymap, actions, screen.read_only), chosen)

    def do_runs(self) -> None:
        self.push_screen(RunsScreen(self.folders()))

    def show_candidate(self, snapshot: Snapshot, cand: str, tab: str = "verdict", against: str = "") -> None:
        self.push_screen(DetailScreen(snapshot, cand, tab, against))

    def copy(self, text: str) -> str:
        """Copy a text; which way it went."""
        return clipboard.copy(self, text)

    def export(self) -> str:
        """Write the screen as SVG and as text; where."""
        moment = datetime.fromtimestamp(self.now(), UTC).strftime("%Y%m%d-%H%M%S")
        stem = Path.cwd() / f"kda-{self.root.name}-{moment}"
        try:
            stem.with_suffix(".svg").write_text(screen_svg(self), encoding="utf-8")
            stem.with_suffix(".txt").write_text(screen_text(self), encoding="utf-8")
        except OSError as error:
            return f"{stem}.svg cannot be written: {error.strerror}"
        return f"written {stem}.svg and .txt"

    def run_outside(self, command: Sequence[str]) -> str:
        """Give the terminal to another program; what went wrong, or ""."""
        return terminal.run_outside(self, self.signals, command)

    async def confirm_start(
        self, sender: Sender, name: str, resume: bool, agent: str, say: Callable[[str], None]
    ) -> None:
        """Ask, then start a worker as a process of its own."""

        def confirmed(typed: dict[str, Any] | None) -> None:
            if typed is not None:
                say("starting a worker…")
                self._start_worker(sender, resume, agent, say)

        command = f"kda run {sender.workspace.root}{' --resume' if resume else ''}"
        intent = Intent("start", f"Start a worker on {name}", (command, "It runs detached; nothing is lost."))
        self.ears.close()
        await self.push_screen(ConfirmScreen(intent), confirmed)

    @work(group="start", thread=True)
    def _start_worker(self, sender: Sender, resume: bool, agent: str, say: Callable[[str], None]) -> None:
        try:
            said = sender.start_worker(resume, agent)
        except UserError as error:
            said = str(error)
        self.call_from_thread(say, said)

    # --- themes ----------------------------------------------------------

    def _load_themes(self) -> None:
        self.looks, failed = load_themes(theme_folders())
        for look in self.looks.values():
            self.register_theme(look.to_textual())
        self.complaints += failed

    def use_theme(self, name: str) -> None:
        """Show a theme; an unknown one is reported and the default used."""
        if name not in self.looks:
            self.complaints.append(f"theme '{name}' is not there; there are {', '.join(sorted(self.looks))}")
            name = DEFAULT_THEME
        self.look = self.looks[name]
        self.theme = name

    def _watch_themes(self) -> None:
        """Load themes again when a file changed."""
        stamp = _theme_stamp()
        if self._stamp and stamp != self._stamp:
            before = len(self.complaints)
            self._load_themes()
            name = self.look.name if self.look.name in self.looks else DEFAULT_THEME
            self.use_theme(name)
            self.refresh_css()
            self.screen.refresh(layout=True)
            self.say(
                _short(self.complaints[-1]) if len(self.complaints) > before else f"theme {name} loaded again"
            )
        self._stamp = stamp


def _theme_stamp() -> tuple[tuple[str, int], ...]:
    out = []
    for folder in theme_folders():
        try:
            out += [(str(p), p.stat().st_mtime_ns) for p in sorted(folder.glob("*.toml"))]
        except OSError:
            continue
    return tuple(out)


def _short(complaint: str) -> str:
    """A complaint for one row: files by name, without their folders."""
    for folder in theme_folders():
        complaint = complaint.replace(f"{folder}/", "")
    return complaint


def run_app(
    root: Path, read_only: bool = False, config: Config | None = None, mouse: bool | None = None
) -> int:
    """Run the screen until the person leaves; the exit code."""
    app = KdaApp(root, read_only, config)
    return app.run(mouse=app.config.ui.mouse if mouse is None else mouse) or 0
