"""Asks once before a decision is sent: what will happen, a reason, Enter. ``y`` never confirms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual import events, getters
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from kda_tui.tui.base import BaseApp
from kda_tui.tui.intents import Intent, NotNow, check_typed
from kda_tui.tui.line import Line, plain, span, wrap
from kda_tui.tui.widgets.rows import Bar

ASKS: Mapping[str, str] = {
    "reason": "why? (Enter sends, Esc leaves it)",
    "text": "what? (Enter sends, Esc leaves it)",
    "amount": "axis number reason, for example: usd 40 one more night",
}


class QuietInput(Input):
    """A one-line input that writes nothing while nobody types, and takes pastes as one line."""

    def __init__(self, placeholder: str = "", value: str = "", id: str | None = None) -> None:
        super().__init__(value=value, placeholder=placeholder, id=id, select_on_focus=False)
        self.cursor_blink = False

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.insert_text_at_cursor(" ".join(event.text.split()))


class ConfirmScreen(ModalScreen[dict[str, Any] | None], inherit_bindings=False):
    """Dismisses with what was typed (``reason``, ``text`` or ``amount``), or None."""

    app = getters.app(BaseApp)

    def __init__(self, intent: Intent, who: str = "") -> None:
        super().__init__()
        self.intent = intent
        self.who = who

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Bar(id="question")
            yield QuietInput(ASKS[self.intent.ask], id="typed")
            yield Bar(id="fault")

    def on_mount(self) -> None:
        self.app.ears.close()
        self._lay_out()
        self.query_one(Input).focus()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        cells = max(20, min(76, self.app.size.width - 6))
        lines: list[Line] = [plain(self.intent.title, "bold"), plain("")]
        for text in self.intent.happens:
            lines += wrap(plain(text), cells)
        for comment in self.intent.lines:
            lines += wrap(
                (span(f"line {comment.get('line')}: ", "dim"), span(comment.get("text", ""))), cells, 4
            )
        if self.intent.options:
            lines.append((span("options: ", "dim"), span(" | ".join(self.intent.options))))
        if self.who:
            lines.append(plain(f"signed {self.who}", "dim"))
        lines.append(plain(""))
        room = max(3, self.app.size.height - 8)
        shown = lines if len(lines) <= room else [*lines[: room - 1], plain("…", "dim")]
        question = self.query_one("#question", Bar)
        question.styles.height = len(shown)
        question.show(*shown)

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            self.dismiss(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            typed = check_typed(self.intent, event.value)
        except NotNow as error:
            self.query_one("#fault", Bar).show(plain(str(error), "bad"))
            return
        self.dismiss(typed)
