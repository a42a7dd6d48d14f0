"""The workspace screen made of Textual's own widgets, to compare costs: same reader, same six parts."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import DataTable, Footer, Header, RichLog, Sparkline, Static

from kda_tui.record.reader import Reader
from kda_tui.record.snapshot import Snapshot
from kda_tui.record.transcript import TranscriptFile
from kda_tui.tui.follow import Arrived, Follower

COLUMNS = ("id", "hypothesis", "verdict", "us", "ratio", "decision")


class StockScreen(App[None]):
    CSS = """
    #left { width: 3fr; } #right { width: 2fr; }
    DataTable, RichLog { height: 1fr; border: round $primary; }
    Static { height: 1fr; border: round $primary; } Sparkline { height: 2; }
    """
    BINDINGS = (("q", "quit", "Leave"), ("A", "approve", "Approve"), ("V", "veto", "Veto"))

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.seen: dict[str, tuple[str, ...]] = {}
        self.file: TranscriptFile | None = None
        self.blocks = 0

    def compose(self) -> ComposeResult:
        yield Header(show_clock=False)
        with Horizontal():
            with Vertical(id="left"):
                yield DataTable(id="candidates", cursor_type="row")
                yield RichLog(id="log", wrap=True, min_width=0, max_lines=5000)
            with Vertical(id="right"):
                yield Static(id="contract", markup=False)
                yield Static(id="plan", markup=False)
                yield Sparkline(id="spark")
                yield Static(id="hotspots", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        for name in COLUMNS:
            table.add_column(name, key=name)
        table.focus()
        self.follower = Follower(Reader(self.root, True), self.post_message, 2.0)
        self.follower.start()

    def on_arrived(self, event: Arrived) -> None:
        self.draw(event.snapshot)
        self.follower.taken()

    def draw(self, s: Snapshot) -> None:
        self.sub_title = f"{s.phase} {s.liveness} {s.live.fraction if s.live else ''}"
        table = self.query_one(DataTable)
        for cand in s.candidates.values():
            row = (
                cand.id,
                cand.hypothesis[:24],
                cand.speed or cand.validity,
                f"{cand.time_us or 0:.1f}",
                f"{cand.ratio or 0:.2f}",
                cand.decision,
            )
            old = self.seen.get(cand.id)
            if old is None:
                table.add_row(*row, key=cand.id)
            elif old != row:
                for name, before, after in zip(COLUMNS, old, row, strict=True):
                    if before != after:
                        table.update_cell(cand.id, name, after)
            self.seen[cand.id] = row
        if s.transcript.path is not None:
            self.file = self.file or TranscriptFile(s.transcript.path)
            self.file.refresh()
            self.blocks = max(self.blocks, len(self.file) - 200)
            for i in range(self.blocks, len(self.file)):
                self.query_one(RichLog).write(getattr(self.file.block(i), "text", ""))
            self.blocks = len(self.file)
        budget = "\n".join(f"{b.axis} {b.used:.2f} of {b.limit}" for b in s.budget.values())
        self.query_one("#contract", Static).update(
            f"{s.name}\n{s.contract.task.objective if s.contract else ''}\n{budget}"
        )
        self.query_one("#plan", Static).update("\n".join(f"{i.id} {i.state} {i.title}" for i in s.plan.items))
        self.query_one(Sparkline).data = [c.time_us or 0.0 for c in s.candidates.values()]
        self.query_one("#hotspots", Static).update(f"incumbent {s.incumbent.cand}")


if __name__ == "__main__":
    StockScreen(Path(sys.argv[1])).run()
