"""Pane 2: the plan, who approved it, what is proposed, the state of its items, the draft and the reviews."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kda_tui.record.paths import Workspace
from kda_tui.record.snapshot import Plan, PlanRevision, Snapshot
from kda_tui.text import clean_line
from kda_tui.tui import words
from kda_tui.tui.foreign import document, documents_of, read_documents
from kda_tui.tui.line import Line, join, plain, span, split, wrap
from kda_tui.tui.panes.pane import Keyed, TextPane

STATE_MARK = {
    "done": ("done", "good"),
    "doing": ("doing", "info"),
    "dropped": ("dropped", "dim"),
    "open": ("open", ""),
}
VIEWS = ("plan", "draft", "reviews")
FOREIGN_VIEWS = (*VIEWS, "notes")  # somebody's other documents: results, reports, logs


class PlanPane(TextPane):
    """Rows carry the line of the document they show, so that a comment knows what it is about."""

    HAS_CURSOR = True
    number = 2
    title = "plan"
    scope = "plan"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view = "plan"
        self.comments: dict[tuple[int, int], tuple[str, str]] = {}  # (rev, line) -> quote, text
        self._texts: dict[str, str] = {}
        self._asked: dict[str, object] = {}

    def draw(self, snapshot: Snapshot, now: float) -> None:
        self._fetch(snapshot)
        super().draw(snapshot, now)

    def _fetch(self, snapshot: Snapshot) -> None:
        """Ask for the document of this view when it is not the one read already."""
        newest = snapshot.plan.newest
        wanted: dict[str, object] = {
            "plan": (newest.file, newest.sha) if newest else ("docs/plan.md", snapshot.last_activity),
            "draft": snapshot.draft_sha or snapshot.last_activity,
            "reviews": snapshot.last_activity,
            "notes": "",
        }
        names = documents_of(snapshot, self.view) if snapshot.foreign else ()
        key = (names, snapshot.version) if snapshot.foreign else wanted[self.view]
        if self._asked.get(self.view) == key:
            return
        self._asked[self.view] = key
        workspace = Workspace(snapshot.workspace)
        view = self.view
        file = newest.file if newest else "docs/plan.md"
        if snapshot.foreign:
            self.ask(f"plan:{view}", key, lambda: read_documents(workspace.root, names))
        else:
            self.ask(f"plan:{view}", key, lambda: _read_view(workspace, view, file))

    def loaded(self, slot: str, key: object, value: Any, error: str) -> None:
        if slot.startswith("plan:"):
            self._texts[slot.removeprefix("plan:")] = error if error else str(value)
            self.rebuild()

    def layout_rows(self, snapshot: Snapshot, now: float, cells: int) -> tuple[Line, list[Keyed]]:
        plan = snapshot.plan
        rows: list[Keyed] = []
        rows += [(f"state:{n}", line) for n, line in enumerate(self._state_lines(snapshot, now, cells))]
        if self.view == "plan":
            rows += [(f"item:{n}", line) for n, line in enumerate(_items(plan, cells))]
        rows.append(("rule", plain("─" * min(cells, 60), "dim")))
        text = self._texts.get(self.view)
        if text is None:
            rows.append(("none", plain("reading…", "dim")))
        elif not text.strip():
            rows.append(("none", plain(f"there is no {self.view} yet", "dim")))
        else:
            rows += self._document(text, cells, plan.newest)
        views = join([plain(v, "bold" if v == self.view else "dim") for v in _views(snapshot)], " ")
        return join([_title(plan, snapshot, now), views]), rows

    def _state_lines(self, snapshot: Snapshot, now: float, cells: int) -> list[Line]:
        out: list[Line] = []
        gate = next((g for g in snapshot.gates if g.kind == "plan"), None)
        if gate is not None:
            waits = words.age(gate.opened, now)
            out += wrap(
                plain(f"!! waits for you {waits}: A approve, C ask for changes, d diff", "wait"), cells
            )
            if (review := snapshot.review_of(gate)) is not None:
                out += wrap(
                    plain(
                        clean_line(review.words), "dim" if review.verdict in ("accept", "none") else "warn"
                    ),
                    cells,
                    2,
                )
        count = len(self.comments)
        if count:
            out.append(plain(f"{count} comments not sent; C sends them", "warn"))
        return out

    def _document(self, text: str, cells: int, newest: PlanRevision | None) -> list[Keyed]:
        rows: list[Keyed] = []
        rev = newest.rev if newest else 0
        for number, line in enumerate(split(text), 1):
            for m, part in enumerate(wrap(_markdown(line), cells - 2, 2)):
                rows.append((f"line:{number}:{m}", part))
            comment = self.comments.get((rev, number)) if self.view == "plan" else None
            if comment is not None:
                for m, part in enumerate(wrap(plain(f"  > {comment[1]}", "warn"), cells - 2, 4)):
                    rows.append((f"comment:{number}:{m}", part))
        return rows

    def line_under_cursor(self) -> tuple[int, str] | None:
        """Number and text of the document's line under the cursor."""
        key = self.selected or ""
        if not key.startswith(("line:", "comment:")) or self.view != "plan":
            return None
        number = int(key.split(":")[1])
        lines = self._texts.get("plan", "").split("\n")
        return (number, lines[number - 1]) if number <= len(lines) else None

    def set_comment(self, number: int, quote: str, text: str) -> None:
        """Put a comment on a line of the newest revision; an empty text takes it away."""
        rev = self._snapshot.plan.newest.rev if self._snapshot and self._snapshot.plan.newest else 0
        if text.strip():
            self.comments[(rev, number)] = (quote, text.strip())
        else:
            self.comments.pop((rev, number), None)
        self.rebuild()

    def comment_lines(self) -> tuple[dict[str, Any], ...]:
        """Comments as request_changes carries them."""
        items = self._snapshot.plan.items if self._snapshot else ()
        return tuple(
            {
                "rev": rev,
                "item": next((i.id for i in items if i.id in quote), ""),
                "line": line,
                "quote": quote,
                "text": text,
            }
            for (rev, line), (quote, text) in sorted(self.comments.items())
        )

    def document(self) -> tuple[str, str]:
        return f"{self.view}.md", self._texts.get(self.view, "")

    def markdown(self) -> str:
        return self._texts.get(self.view, "")

    def do_plan_view(self) -> None:
        views = _views(self._snapshot)
        self.view = views[(views.index(self.view) + 1) % len(views)]
        self.top = self.cursor = 0
        if self._snapshot is not None:
            self.draw(self._snapshot, self._now)


def _views(snapshot: Snapshot | None) -> Sequence[str]:
    return FOREIGN_VIEWS if snapshot is not None and snapshot.foreign else VIEWS


def _title(plan: Plan, snapshot: Snapshot, now: float) -> Line:
    parts: list[Line] = []
    if plan.in_force is not None:
        by = f" ({plan.approved_by} {words.time_of_day(plan.approved_t)[:5]})" if plan.approved_by else ""
        parts.append(plain(f"r{plan.in_force.rev} IN FORCE{by}", "good"))
    if snapshot.foreign:
        count = len(plan.revisions)
        parts.append(plain(f"{count} file{'s' if count != 1 else ''}" if count else "no plan", "dim"))
    elif plan.proposed is not None:
        parts.append(plain(f"r{plan.proposed.rev} PROPOSED {words.age(plan.proposed.t, now)}", "warn"))
    if not parts:
        parts.append(plain("none yet", "dim"))
    return join(parts)


def _items(plan: Plan, cells: int) -> list[Line]:
    out: list[Line] = []
    for item in plan.items:
        word, style = STATE_MARK.get(item.state, (item.state, ""))
        out += wrap((span(f"{item.id:<4} ", "bold"), span(f"{word:<8}", style), span(item.title)), cells, 13)
    return out


def _markdown(line: Line) -> Line:
    """Headings and quotes stand out; nothing else is interpreted."""
    text = line[0][0] if line else ""
    if text.startswith("#"):
        return ((text, "bold"),)
    if text.startswith(("> ", "```")):
        return ((text, "dim"),)
    return line


def _read_view(workspace: Workspace, view: str, plan_file: str) -> str:
    if view == "draft":
        return document(workspace.root, "docs/draft.md")
    if view == "reviews":
        try:
            names = sorted(p.name for p in workspace.reviews.iterdir() if p.suffix == ".md")
        except OSError:
            return ""
        return "\n\n".join(
            f"# {name}\n\n{document(workspace.root, f'docs/reviews/{name}')}" for name in reversed(names)
        )
    return document(workspace.root, plan_file)
