"""Pane 3: what the agent said and did; a window of records around an anchor, whatever the file's size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kda_tui.record.records import TranscriptBlock
from kda_tui.record.snapshot import Finding, Snapshot, Steering
from kda_tui.tui import words
from kda_tui.tui.blocks import block_lines, usage_words
from kda_tui.tui.line import EMPTY, Line, join, plain, split, wrap
from kda_tui.tui.panes.pane import Keyed, TextPane

WINDOW = 200  # records laid out at a time
EDGE = 40  # rows from the window's edge at which the next window is asked for

Block = TranscriptBlock | Finding


class Records(Protocol):
    """What the pane needs of ``record.transcript.TranscriptFile``; used in the reading thread only."""

    def refresh(self) -> object: ...

    def __len__(self) -> int: ...

    def block(self, i: int) -> Block: ...

    def search(self, text: str, start: int, direction: int) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Window:
    """Records ``lo`` to ``lo + len(blocks)`` of ``total``; ``found`` is the record of a search."""

    lo: int
    blocks: tuple[Block, ...]
    total: int
    found: int | None = None


class TranscriptPane(TextPane):
    """The cursor is a row; while it is on the last row the pane follows, and never otherwise."""

    HAS_CURSOR = True
    number = 3
    title = "transcript"
    scope = "transcript"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.follow = True
        self.window = Window(0, (), 0)
        self.unfolded: set[int] = set()
        self._path: Path | None = None
        self._file: Records | None = None
        self._read_size = -1
        self._seen_total = 0
        self._laid: dict[tuple[int, bool, int, str], list[Line]] = {}
        self._searching = ""
        self.say: Callable[[str], None] = lambda text: None

    # --- reading ---------------------------------------------------------

    def draw(self, snapshot: Snapshot, now: float) -> None:
        state = snapshot.transcript
        if state.path != self._path:
            self._path, self._file, self._read_size = state.path, None, -1
            self.window, self.follow = Window(0, (), 0), True
            self._laid.clear()
        if state.path is not None and state.size != self._read_size:
            self._read_size = state.size
            self._want(self.window.lo, tail=self.follow)
        super().draw(snapshot, now)

    def _want(self, lo: int, tail: bool = False, search: tuple[str, int, int] | None = None) -> None:
        path = self._path
        if path is None:
            return

        def job() -> Window:
            if self._file is None:
                self._file = _open(path)
            return _window(self._file, lo, tail, search)

        self.ask("transcript:find" if search else "transcript", (str(path), lo, tail), job)

    def loaded(self, slot: str, key: object, value: Any, error: str) -> None:
        if not slot.startswith("transcript"):
            return
        if error or not isinstance(value, Window):
            self.say(error)
            return
        if slot == "transcript:find" and value.found is None:
            self.say(f"'{self._searching}' is not in the transcript")
            return
        if value.lo != self.window.lo or value.total < self.window.total:
            self._laid.clear()
        self.window = value
        if self.follow:
            self._seen_total = value.total
        self.rebuild()
        if value.found is not None:
            self.follow = False
            self.unfolded.add(value.found)
            self._laid.clear()
            self.rebuild()
            self._go_to(value.found)

    def _go_to(self, record: int) -> None:
        at = next((i for i in range(self.count()) if self.key(i).startswith(f"{record}:")), None)
        if at is not None:
            self.cursor = at
            self.top = max(0, at - self.room // 3)
            self._clamp()
            self.rebuild()
            self.say(f"'{self._searching}' in record {record + 1} of {self.window.total}")

    # --- layout ----------------------------------------------------------

    def layout_rows(self, snapshot: Snapshot, now: float, cells: int) -> tuple[Line, list[Keyed]]:
        rows: list[Keyed] = []
        steering = {note.decision: note for note in snapshot.steering}
        for n, block in enumerate(self.window.blocks):
            record = self.window.lo + n
            who, aside = _steered(block, steering)
            tag = (record, record in self.unfolded, cells, aside)
            lines = self._laid.get(tag)
            if lines is None:
                lines = self._laid[tag] = block_lines(block, record in self.unfolded, cells, who, aside)
            rows += [(f"{record}:{m}", line) for m, line in enumerate(lines)]
        at_end = self.window.lo + len(self.window.blocks) >= self.window.total
        live = snapshot.live
        if live is not None and live.streaming and at_end:
            for m, line in enumerate(split(live.streaming.rstrip("\n"))):
                for k, part in enumerate(
                    wrap((("         text   " if m == 0 else " " * 16, "info"), *line), cells, 16)
                ):
                    rows.append((f"live:{m}:{k}", part))
        if not rows:
            rows.append(("none", plain(self._none(snapshot), "dim")))
        return self._details(snapshot), rows

    def _none(self, snapshot: Snapshot) -> str:
        if snapshot.transcript.path is None:
            if snapshot.foreign:
                return "no recorded transcript was found (Claude Code or Codex JSON lines)"
            return "no transcript: this agent wrote none, or no run was started"
        return "reading…" if snapshot.transcript.size and not self.window.total else "nothing said yet"

    def _details(self, snapshot: Snapshot) -> Line:
        state = snapshot.transcript
        last = next((b for b in reversed(self.window.blocks) if isinstance(b, TranscriptBlock)), None)
        where = []
        if state.turns:
            where.append(f"turn {state.turns}")
        if last is not None and last.iter:
            where.append(f"iteration {last.iter}")
        spent = usage_words(state.tokens, state.usd)
        parts = [plain(", ".join([*where, *([spent] if spent else [])]))]
        pinned = [s for s in snapshot.steering if s.pinned]
        if pinned:
            parts.append(
                plain(
                    f"steer {pinned[-1].who}: {'not seen yet' if pinned[-1].seen_turn is None else 'seen'}",
                    "warn",
                )
            )
        new = self.window.total - self._seen_total
        if self.follow:
            parts.append(plain("FOLLOW", "good"))
        else:
            parts.append(
                plain(f"{new} new below, G" if new > 0 else "G follows", "warn" if new > 0 else "dim")
            )
        return join(parts)

    def rebuild(self) -> None:
        super().rebuild()
        if self.follow and self.count():
            self.cursor = self.count() - 1
            self._clamp()
            self.sync()

    def note(self) -> Line:
        if not self.window.total or not self.count():
            return EMPTY
        key = self.key(min(max(self.cursor, 0), self.count() - 1))
        record = key.split(":")[0]
        at = int(record) + 1 if record.isdigit() else self.window.total
        return plain(f"record {at} of {self.window.total}", "dim")

    def markdown(self) -> str:
        out = []
        for block in self.window.blocks:
            if isinstance(block, TranscriptBlock) and block.kind in (
                "text",
                "user",
                "steer",
                "question",
                "answer",
            ):
                out.append(f"**{block.kind}** {words.time_of_day(block.t)}\n\n{block.text}\n")
        return "\n".join(out)

    # --- moving ----------------------------------------------------------

    def move(self, rows: int) -> None:
        was_last = self.cursor >= self.count() - 1
        super().move(rows)
        self._after_move(down=rows > 0, was_last=was_last)

    def scroll_rows(self, rows: int) -> None:
        super().scroll_rows(rows)
        self._after_move(down=rows > 0, was_last=False)

    def _after_move(self, down: bool, was_last: bool) -> None:
        window = self.window
        at_end = window.lo + len(window.blocks) >= window.total
        on_last = self.cursor >= self.count() - 1
        if self.follow and not on_last:
            self._seen_total = window.total
        self.follow = on_last and at_end and (self.follow or down)
        if self.follow:
            self._seen_total = window.total
        if self.cursor < EDGE and window.lo > 0 and not down:
            self._want(max(0, window.lo - WINDOW // 2))
        elif down and not at_end and self.cursor > self.count() - EDGE:
            self._want(window.lo + WINDOW // 2)
        if self._snapshot is not None:
            self.heading = self.heading_of(self._details(self._snapshot))
            self.sync()

    def do_first(self) -> None:
        self.follow = False
        if self.window.lo > 0:
            self._want(0)
        super().do_first()

    def do_last(self) -> None:
        self.do_follow()

    def do_follow(self) -> None:
        self.follow = True
        self._want(self.window.lo, tail=True)
        self.rebuild()

    def do_fold(self) -> None:
        record = (self.selected or "").split(":")[0]
        if not record.isdigit():
            return
        self.unfolded ^= {int(record)}
        self.rebuild()

    def opened(self) -> None:
        self.do_fold()

    # --- searching -------------------------------------------------------

    def find(self, text: str) -> str:
        self._searching = text
        return self.find_step(False) if text else ""

    def find_step(self, forward: bool) -> str:
        if not self._searching:
            return ""
        record = (self.selected or "").split(":")[0]
        at = int(record) if record.isdigit() else self.window.total
        direction = 1 if forward else -1
        self._want(self.window.lo, search=(self._searching, at + direction, direction))
        return f"searching '{self._searching}'…"


def _steered(block: Block, steering: Mapping[str, Steering]) -> tuple[str, str]:
    """Who gave a steering note, and whether the agent has seen it."""
    if not isinstance(block, TranscriptBlock) or block.kind != "steer":
        return "", ""
    note = steering.get(str(block.extra.get("decision", "")))
    if note is None:
        return str(block.extra.get("who", "")), ""
    return note.who, f"seen in turn {note.seen_turn}" if note.seen_turn is not None else "not seen yet"


def _open(path: Path) -> Records:
    from kda_tui.record.transcript import TranscriptFile

    return TranscriptFile(path)


def _window(file: Records, lo: int, tail: bool, search: tuple[str, int, int] | None) -> Window:
    file.refresh()
    total = len(file)
    found = None
    if search is not None:
        found = file.search(*search)
        if found is None:
            return Window(lo, (), total)
        lo = max(0, found - WINDOW // 2)
    elif tail:
        lo = max(0, total - WINDOW)
    lo = max(0, min(lo, total - 1))
    return Window(lo, tuple(file.block(i) for i in range(lo, min(total, lo + WINDOW))), total, found)
