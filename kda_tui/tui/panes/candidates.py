"""Pane 4: the candidates as a table or a tree; only rows on the screen are laid out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from textual.message import Message

from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Claim, Snapshot
from kda_tui.tui import columns, words
from kda_tui.tui.filter import FilterError, compile_filter
from kda_tui.tui.line import EMPTY, Line, join, plain, span, text_of
from kda_tui.tui.lineage import tree
from kda_tui.tui.panes.pane import Pane, bar, title_line

MAX_BRANCH = 14  # cells of a tree's drawing; deeper ones lose their left part
ORDERS: Sequence[str] = ("age", "us", "ratio", "floor", "verdict", "reg", "decision", "id")


class CandidatesPane(Pane):
    """Selection is by candidate id: it stays when rows arrive, sort or go.

    Until the cursor is moved it stays on the newest row, so that a screen left alone shows what is new.
    """

    number = 4
    title = "candidates"
    scope = "candidates"

    class Selected(Message):
        """Another candidate is under the cursor."""

        def __init__(self, cand: str) -> None:
            super().__init__()
            self.cand = cand

    class Opened(Message):
        """A candidate was opened with Enter or a click."""

        def __init__(self, cand: str) -> None:
            super().__init__()
            self.cand = cand

    def __init__(self, names: Sequence[str] = columns.DEFAULT, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="pane")
        self.names = names
        self.order_by = "age"
        self.reversed = False
        self.as_tree = False
        self.with_events = False  # of somebody's ledger: the rows between candidates
        self.filter_text = ""
        self.marked: list[str] = []
        self._filter: Callable[[Candidate], bool] = lambda cand: True
        self._ids: list[str] = []
        self._at: dict[str, int] = {}
        self._branch: dict[str, str] = {}
        self._branch_cells = 0
        self._id_cells = 0  # of the longest id, where people made them up
        self.follows = True  # the cursor stays on the newest row until it is moved; g takes it back there
        self._snapshot: Snapshot | None = None
        self._candidates: Mapping[str, Candidate] = {}
        self._cells_context: columns.Context | None = None
        self._chosen: list[tuple[columns.Column, int]] = []
        self._cache: dict[str, tuple[object, Line]] = {}

    # --- what is shown ---------------------------------------------------

    def draw(self, snapshot: Snapshot, now: float) -> None:
        known = self._snapshot
        self._snapshot = snapshot
        claims: dict[str, Claim] = {claim.cand: claim for claim in snapshot.claims if claim.cand}
        self._cells_context = columns.Context(snapshot, claims, now, self.size.width >= 110)
        if known is None or known.candidates is not snapshot.candidates:
            self._take(snapshot)
            self._arrange()
        else:
            self.sync()

    def _take(self, snapshot: Snapshot) -> None:
        """The rows to show; events of a foreign ledger stand among the candidates in the order of their rows."""
        self._candidates = snapshot.candidates
        events = snapshot.extra.get("events", ())
        if self.with_events and events:
            both = sorted((*snapshot.candidates.values(), *events), key=lambda c: c.seq)
            self._candidates = {cand.id: cand for cand in both}
        self._id_cells = max((len(name) for name in self._candidates), default=0) if snapshot.foreign else 0

    def _arrange(self) -> None:
        """Filter and order; the cursor stays on its candidate, or on the newest row when it was there."""
        selected = self.selected
        newest_first = self.order_by == "age" and not self.as_tree and not self.reversed
        follows = newest_first and self.follows
        if self.as_tree:
            pairs = [(c, b) for c, b in tree(self._candidates) if self._filter(self._candidates[c])]
            self._ids = [cand for cand, _ in pairs]
            self._branch = dict(pairs)
            self._branch_cells = min(MAX_BRANCH, max((len(b) for b in self._branch.values()), default=0))
        else:
            self._branch, self._branch_cells = {}, 0
            self._ids = self._ordered([c for c in self._candidates.values() if self._filter(c)])
        self._at = {cand: i for i, cand in enumerate(self._ids)}
        if follows:
            self.cursor = self.top = 0
            self.sync()
        else:
            stays = self.top if newest_first else None
            self.keep(selected, None)
            if stays == 0 and self.cursor < self.room:  # new rows push in from above while there is room
                self.top = 0
                self.sync()
        if self.selected != selected:
            self.cursor_moved()

    def _ordered(self, found: list[Candidate]) -> list[str]:
        if self.order_by == "age":
            ids = [cand.id for cand in found]
            return ids if self.reversed else ids[::-1]
        column = columns.COLUMNS[self.order_by]
        key = columns.sort_key(column)
        known = [cand for cand in found if not key(cand)[0]]
        absent = [cand for cand in found if key(cand)[0]]
        known.sort(key=lambda cand: key(cand)[1], reverse=self.reversed)  # type: ignore[arg-type, return-value]
        return [cand.id for cand in known] + [cand.id for cand in absent]

    def head(self) -> Sequence[Line]:
        if self._snapshot is None:
            return (title_line(self, plain("reading…", "dim")),)
        self._layout()
        heading = columns.header(self._chosen, self.order_by, self.reversed)
        return (title_line(self, self._details(self._snapshot)), heading)

    def _layout(self) -> None:
        if self._cells_context is not None:
            foreign = self._cells_context.snapshot.foreign
            names = columns.FOREIGN if foreign and tuple(self.names) == tuple(columns.DEFAULT) else self.names
            self._chosen = columns.choose(names, self.size.width, self._branch_cells, self._id_cells)

    def _details(self, snapshot: Snapshot) -> Line:
        total = len(snapshot.candidates)
        counts = snapshot.counts
        parts = [plain(f"{len(self._ids)} of {total}" if self.filter_text else str(total))]
        for word in ("passed", "promoted"):
            if counts.get(word):
                parts.append(plain(f"{counts[word]} {word}"))
        if counts.get("events"):
            parts.append(
                plain(f"{counts['events']} events {'shown' if self.with_events else 'hidden, s'}", "dim")
            )
        running = next((claim for claim in snapshot.claims if claim.cand), None)
        live = snapshot.live
        if running is not None and live is not None and live.fraction is not None and self.size.width >= 60:
            gauge = bar(live.fraction, 10)
            parts.append(
                (
                    span(f"{running.cand} {live.stage} ", "info"),
                    span(gauge, "info"),
                    span(f" {words.share(live.fraction)}", "info"),
                )
            )
        parts.append(
            plain(
                f"order {'tree' if self.as_tree else 'time' if self.order_by == 'age' else self.order_by}",
                "dim",
            )
        )
        if self.filter_text:
            parts.append(plain(f"filter {self.filter_text}", "warn"))
        if self.marked:
            parts.append(plain(f"marked {' '.join(self.marked)}", "info"))
        return join(parts)

    def count(self) -> int:
        return len(self._ids)

    def key(self, i: int) -> str:
        return self._ids[i]

    def index(self, key: str) -> int | None:
        return self._at.get(key)

    def row(self, i: int) -> Line:
        cand = self._candidates[self._ids[i]]
        mark = ">" if i == self.cursor else "*" if cand.id in self.marked else " "
        return ((f"{mark} ", "bold"), *self._cells(cand))

    def _cells(self, cand: Candidate) -> Line:
        context = self._cells_context
        if context is None or not self._chosen:
            return EMPTY
        snapshot = context.snapshot
        claim = context.claims.get(cand.id)
        tag = (
            cand, claim, (snapshot.live, snapshot.liveness) if claim else None, self._chosen, snapshot.incumbent.cand, snapshot.gates, snapshot.pending,
            int(context.now // 60), self._branch.get(cand.id),
        )  # fmt: skip
        known = self._cache.get(cand.id)
        if known is not None and known[0] == tag:
            return known[1]
        if len(self._cache) > 1000:
            self._cache.clear()
        line = columns.cells_of(cand, self._chosen, context, self._branch.get(cand.id, ""))
        self._cache[cand.id] = (tag, line)
        return line

    def resized(self) -> None:
        if self._cells_context is not None:
            context = self._cells_context
            self._cells_context = columns.Context(
                context.snapshot, context.claims, context.now, self.size.width >= 110
            )
            self._layout()
        super().resized()

    def note(self) -> Line:
        order = f"order {self.order_by}{' reversed' if self.reversed else ''}"
        return join(
            [super().note(), plain(order, "dim"), plain(f"filter {self.filter_text or 'none'}", "dim")], ", "
        )

    def markdown(self) -> str:
        """The rows shown, as a Markdown table."""
        chosen = [column for column, _ in columns.choose(self.names, 400)]
        if self._cells_context is None:
            return ""
        out = ["| " + " | ".join(column.title for column in chosen) + " |", "|" + " --- |" * len(chosen)]
        for name in self._ids:
            cells = (text_of(column.show(self._candidates[name], self._cells_context)) for column in chosen)
            out.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return "\n".join(out) + "\n"

    # --- what keys do ----------------------------------------------------

    def set_filter(self, text: str) -> str:
        """Filter by a text; returns what is wrong with it, or ""."""
        try:
            self._filter = compile_filter(text)
        except FilterError as error:
            return str(error)
        self.filter_text = text.strip()
        self._arrange()
        return ""

    def find(self, text: str) -> str:
        return self.set_filter(text) or f"{len(self._ids)} candidates"

    def cursor_moved(self) -> None:
        if self.selected is not None:
            self.post_message(self.Selected(self.selected))

    def move(self, rows: int) -> None:
        super().move(rows)
        self.follows = self.cursor == 0 and self.top == 0 and rows < 0

    def scroll_rows(self, rows: int) -> None:
        super().scroll_rows(rows)
        self.follows = self.cursor == 0 and self.top == 0 and self.follows

    def opened(self) -> None:
        if self.selected is not None:
            self.post_message(self.Opened(self.selected))

    def do_order(self) -> None:
        self.as_tree = False
        self.order_by = ORDERS[(ORDERS.index(self.order_by) + 1) % len(ORDERS)]
        self._arrange()

    def do_reverse(self) -> None:
        self.reversed = not self.reversed
        self._arrange()

    def do_tree(self) -> None:
        self.as_tree = not self.as_tree
        self._arrange()

    def do_events(self) -> None:
        self.with_events = not self.with_events
        if self._snapshot is not None:
            self._take(self._snapshot)
            self._arrange()

    def do_mark(self) -> None:
        if self.selected is None:
            return
        if self.selected in self.marked:
            self.marked.remove(self.selected)
        else:
            self.marked = [*self.marked, self.selected][-2:]
        self.sync()
