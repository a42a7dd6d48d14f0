"""One conversation: turns until the model ends it. Tools run only after a complete reply."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kda_tui.agents.anthropic.connection import Connection
from kda_tui.agents.anthropic.failures import Failure
from kda_tui.agents.anthropic.prices import estimate, price_of
from kda_tui.agents.anthropic.stream import Call, Listener, Reply
from kda_tui.agents.interface import Desk, Interrupted, Turn
from kda_tui.agents.tools.tool import Answer, Tool
from kda_tui.config import AgentConfig

MAX_TURNS = 60
MAX_CUT = 3  # replies in a row that hit max_tokens
QUICK_RETRIES = 3  # before the run is held
QUICK_WAIT_S = 1.0  # doubled each time
PATIENCE_S = 20.0  # an API that asks for more than this gets a hold instead
HOLD_S = 30.0  # doubled each time
LONGEST_HOLD_S = 900.0

NOT_RUN = "not run: your reply hit the limit of tokens, so this call may be cut. Send it again, shorter."
CUT = "Your reply hit the limit of tokens. Go on in smaller steps."

Ended = Literal["ended", "handed_in", "refused", "too_long", "cut", "turns"]
Stuck = Callable[[Failure, int], Awaitable[None]]


@dataclass(slots=True)
class Talk:
    """A conversation called ``name``. ``stuck`` is asked what to do with a failure that quick retries do not mend."""

    desk: Desk
    connection: Connection
    settings: AgentConfig
    model: str
    system: str
    tools: Sequence[Tool]
    name: str
    stuck: Stuck
    op: Literal["turn", "review"] = "turn"
    key: str = ""
    cand: str = ""
    used: list[str] = field(default_factory=list)  # tools, in order
    refusal: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _given: set[str] = field(default_factory=set)  # notes that stand in a message
    _previous: str | None = None
    _declared: list[dict[str, Any]] = field(default_factory=list)

    async def run(self, opening: str) -> Ended:
        """Until the model ends its turn, hands something in, or cannot go on."""
        self._declared = [tool.declaration() for tool in self.tools]
        await self._say("user", opening)
        notes = self._new_notes()
        self._add("user", [{"type": "text", "text": opening}], notes)
        cut = 0
        for _ in range(MAX_TURNS):
            try:
                reply = await self._turn()
            except Failure as failure:
                if failure.kind != "context":
                    raise
                return await self._give_up("too_long", f"the conversation is too long: {failure.text}")
            cut = cut + 1 if reply.stop_reason == "max_tokens" else 0
            if cut == MAX_CUT:
                return await self._give_up("cut", f"{MAX_CUT} replies in a row hit max_tokens")
            ended = await self._follow(reply)
            if ended is not None:
                return ended
        return await self._give_up("turns", f"{MAX_TURNS} turns without an end")

    async def _follow(self, reply: Reply) -> Ended | None:
        """What comes after a reply, by its stop_reason."""
        reason = reply.stop_reason
        if reason == "refusal":
            self.refusal = reply.refusal or "no category told"
            return await self._give_up("refused", f"the model refused ({self.refusal})")
        if reason == "model_context_window_exceeded":
            return await self._give_up("too_long", "the context window is full")
        content = _usable(reply.content)
        if reason == "max_tokens":
            self._add("assistant", content or [{"type": "text", "text": "(cut off)"}])
            self._add(
                "user", [_result(c, Answer(NOT_RUN, is_error=True)) for c in reply.calls] or [_text(CUT)]
            )
            return None
        if content:
            self._add("assistant", content)
        if reply.calls and reason == "tool_use":
            return await self._use_tools(reply.calls)
        if reason == "pause_turn":
            return None
        return "ended"

    # --- tools ---

    async def _use_tools(self, calls: Sequence[Call]) -> Ended | None:
        results = []
        handed_in = False
        for call in calls:
            answer = await self._use(call)
            results.append(_result(call, answer))
            tool = self._tool(call.tool)
            handed_in = handed_in or (tool is not None and tool.ends and not answer.is_error)
        if handed_in:
            return "handed_in"
        notes = self._new_notes()
        self._add("user", results, notes)
        return None

    async def _use(self, call: Call) -> Answer:
        tool = self._tool(call.tool)
        started = time.monotonic()
        self.used.append(call.tool)
        if tool is None:
            answer = Answer(f"there is no tool {call.tool}", is_error=True)
        else:
            answer = await tool.call(call.args)
        took = round(time.monotonic() - started, 3)
        await self._say(
            "tool_result",
            answer.text,
            call=call.id,
            tool=call.tool,
            is_error=answer.is_error,
            cand=answer.cand,
            dur_s=took,
        )
        return answer

    def _tool(self, name: str) -> Tool | None:
        return next((t for t in self.tools if t.name == name), None)

    # --- turns ---

    async def _turn(self) -> Reply:
        """One reply, however long it takes to get: quick retries, then ``stuck``. Raises Failure (context)."""
        tries = 0
        while True:
            try:
                reply = await self.desk.turn(
                    self._request,
                    op=self.op,
                    key=self.key,
                    model=self.model,
                    est_usd=self._estimate(),
                    cand=self.cand,
                )
            except Interrupted:
                continue
            except Failure as failure:
                if failure.kind == "context":
                    raise
                tries += 1
                await self._wait(failure, tries)
                continue
            await self.desk.seen(sorted(self._given))
            self._previous = reply.message or None
            return reply

    async def _wait(self, failure: Failure, tries: int) -> None:
        wait = failure.retry_s if failure.retry_s is not None else QUICK_WAIT_S * 2 ** (tries - 1)
        if failure.kind == "transient" and tries <= QUICK_RETRIES and wait <= PATIENCE_S:
            await self._say("notice", f"{failure.text}; tries again in {wait:.1f} s", is_error=True)
            await asyncio.sleep(wait)
        else:
            await self.stuck(failure, tries)

    async def _request(self, turn: Turn) -> Reply:
        price = price_of(self.settings.prices, self.model)
        desk = _Labelled(self.desk, self.name)
        listener = Listener(desk, turn, self.model, price)
        request: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.settings.max_tokens,
            "system": [{"type": "text", "text": self.system, "cache_control": {"type": "ephemeral"}}],
            "tools": self._declared,
            "messages": self.messages,
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": self.settings.effort},
            "cache_control": {"type": "ephemeral"},
            "diagnostics": {"previous_message_id": self._previous},
        }
        return await listener.read(self.connection, request)

    def _estimate(self) -> float | None:
        state = self.desk.snapshot.transcript
        usual = state.tokens.get("out", 0) // state.turns if state.turns else self.settings.max_tokens // 4
        return estimate(
            len(self.system) + sum(self._sizes), usual, price_of(self.settings.prices, self.model)
        )

    # --- messages ---

    def _add(
        self, role: str, content: Sequence[Mapping[str, Any]], more: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        message = {"role": role, "content": [*content, *more]}
        self.messages.append(message)
        self._sizes.append(len(json.dumps(message, default=str)))

    def _new_notes(self) -> list[dict[str, Any]]:
        """Steering notes that no message holds yet; those in the opening are given by it."""
        waiting = [n for n in self.desk.snapshot.steering if n.pinned and n.seen_turn is None]
        new = [n for n in waiting if n.decision not in self._given]
        self._given |= {n.decision for n in waiting}
        return [_text(f"Note from {n.who or 'a person'}, which binds you: {n.text}") for n in new]

    async def _give_up(self, how: Ended, words: str) -> Ended:
        await self._say("notice", words, is_error=True)
        return how

    async def _say(self, kind: str, text: str, **fields: Any) -> None:
        await self.desk.say(kind, text, talk=self.name, **fields)


@dataclass(frozen=True, slots=True)
class _Labelled:
    """The part of a desk that a listener uses, with the name of the conversation on every block."""

    desk: Desk
    talk: str

    async def say(self, kind: str, text: str, **fields: Any) -> None:
        await self.desk.say(kind, text, talk=self.talk, **fields)

    def stream(self, text: str) -> None:
        self.desk.stream(text)


async def hold_until_mended(desk: Desk, failure: Failure, tries: int) -> None:
    """The agent's way: hold the run with its cause. What passes is tried again by itself, the rest waits for a person."""
    if failure.kind == "transient":
        backoff = min(LONGEST_HOLD_S, HOLD_S * 2 ** max(0, tries - QUICK_RETRIES - 1))
        await desk.hold("api", failure.text, retry_s=max(backoff, failure.retry_s or 0.0))
    elif failure.kind in ("auth", "budget"):
        await desk.hold("auth" if failure.kind == "auth" else "budget", failure.text)
    else:
        await desk.hold("api", failure.text)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _result(call: Call, answer: Answer) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": answer.text or "(nothing)",
        "is_error": answer.is_error,
    }


def _usable(content: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What may go back: all as it came, but empty texts and thoughts that were cut before their signature."""
    return [
        block
        for block in content
        if not (block.get("type") == "text" and not str(block.get("text") or "").strip())
        and not (block.get("type") == "thinking" and not block.get("signature"))
    ]
