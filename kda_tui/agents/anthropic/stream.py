"""One turn: the request is streamed, each finished block is recorded as it ends, what is cut off too."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kda_tui.agents.anthropic.connection import Connection
from kda_tui.agents.anthropic.failures import Failure, failure_of
from kda_tui.agents.anthropic.prices import CHARS_A_TOKEN, cost, usage_of
from kda_tui.agents.interface import Turn
from kda_tui.config import Price
from kda_tui.text import clean_line

TRUNCATED = "the stream ended without its end: what came is kept, nothing of it is used"


class Scribe(Protocol):
    """Where a listener writes: the part of a desk that it needs."""

    async def say(self, kind: str, text: str, **fields: Any) -> None: ...

    def stream(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model wants to be used."""

    id: str
    tool: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete reply. ``content`` goes back to the API as it came."""

    content: tuple[dict[str, Any], ...]
    stop_reason: str
    calls: tuple[Call, ...] = ()
    text: str = ""
    message: str = ""
    refusal: str = ""  # its category, where one is told


@dataclass(slots=True)
class Listener:
    """Reads one stream for ``turn``. The transcript gets blocks as they end, live.json what is under way."""

    desk: Scribe
    turn: Turn
    model: str
    price: Price | None
    _recorded: int = 0
    _started: float = field(default_factory=time.monotonic)

    async def read(self, connection: Connection, request: Mapping[str, Any]) -> Reply:
        """Raises Failure; a cancelled reading leaves what came in the transcript, marked partial."""
        stream: Any = None
        try:
            async with connection.client().messages.stream(**request) as stream:
                async for event in stream:
                    await self._take(event, stream)
                message = await stream.get_final_message()
        except BaseException as error:
            await self._cut_off(stream, "" if isinstance(error, Exception) else "cancelled")
            failure = failure_of(error)
            if failure is None:
                raise
            self.turn.fault = failure.text
            raise failure from error
        return await self._finished(message)

    async def _take(self, event: Any, stream: Any) -> None:
        kind = event.type
        if kind in ("text", "thinking"):
            self.desk.stream(event.snapshot)
        elif kind == "input_json":
            self.desk.stream(_live(event.snapshot))
        elif kind == "content_block_stop":
            message = stream.current_message_snapshot
            await self._record(message, event.index)
            self._recorded = event.index + 1
            self.desk.stream("")

    async def _record(self, message: Any, index: int, partial: bool = False) -> None:
        block = message.content[index]
        labels: dict[str, Any] = {
            "turn": self.turn.number,
            "msg": message.id,
            "block": index,
            "model": message.model,
            "claim": self.turn.claim,
            "partial": partial,
        }
        if block.type == "text":
            await self.desk.say("text", block.text, **labels)
        elif block.type == "thinking":
            await self.desk.say("thinking", block.thinking, **labels)
        elif block.type == "redacted_thinking":
            await self.desk.say("thinking", "(not shown by the API)", **labels)
        elif block.type == "tool_use":
            args = dict(block.input) if isinstance(block.input, Mapping) else block.input
            await self.desk.say("tool_call", "", call=block.id, tool=block.name, args=args, **labels)
        else:
            await self.desk.say("notice", f"a block of kind {clean_line(block.type, 60)}", **labels)

    async def _finished(self, message: Any) -> Reply:
        self._book(usage_of(message.usage))
        self.turn.stop_reason = str(message.stop_reason or "")
        if message.stop_reason is None:  # a close-delimited stream that was cut raises nothing at all
            if self._recorded < len(message.content):
                await self._record(message, len(message.content) - 1, partial=True)
            await self._usage(message, "cut off")
            self.turn.fault = TRUNCATED
            raise Failure("transient", TRUNCATED)
        await self._usage(message, self.turn.stop_reason)
        details = message.stop_details
        return Reply(
            content=tuple(_echo(b) for b in message.content),
            stop_reason=self.turn.stop_reason,
            calls=tuple(Call(b.id, b.name, b.input) for b in message.content if b.type == "tool_use"),
            text="".join(b.text for b in message.content if b.type == "text"),
            message=message.id,
            refusal=str(getattr(details, "category", None) or "") if details is not None else "",
        )

    async def _cut_off(self, stream: Any, why: str) -> None:
        """Record the block that was under way, and book what has been used as far as it is known."""
        message = _snapshot(stream)
        if message is None:
            return
        for index in range(self._recorded, len(message.content)):
            await self._record(message, index, partial=True)
        usage = usage_of(message.usage)
        usage["out"] = max(usage["out"], sum(len(_text(b)) for b in message.content) // CHARS_A_TOKEN)
        self._book(usage)
        await self._usage(message, why or "cut off")

    def _book(self, usage: dict[str, int]) -> None:
        self.turn.usage = usage
        self.turn.usd = cost(usage, self.price)

    async def _usage(self, message: Any, stop_reason: str) -> None:
        await self.desk.say(
            "usage",
            "",
            turn=self.turn.number,
            msg=message.id,
            model=message.model,
            claim=self.turn.claim,
            stop_reason=stop_reason,
            usage=dict(self.turn.usage),
            usd=self.turn.usd,
            cache_miss=_cache_miss(message),
            dur_s=round(time.monotonic() - self._started, 3),
        )


def _snapshot(stream: Any) -> Any:
    """The message as far as it came; None before its start."""
    try:
        return stream.current_message_snapshot if stream is not None else None
    except AssertionError:
        return None


def _echo(block: Any) -> dict[str, Any]:
    sent: dict[str, Any] = block.to_dict()
    sent.pop("parsed_output", None)  # the SDK's own field
    return sent


def _text(block: Any) -> str:
    for name in ("text", "thinking"):
        if isinstance(found := getattr(block, name, None), str):
            return found
    return str(getattr(block, "input", ""))


def _live(snapshot: Any) -> str:
    """A tool input while it is written: of a candidate the kernel, else the longest text in it."""
    if not isinstance(snapshot, Mapping):
        return ""
    texts = [v for v in snapshot.values() if isinstance(v, str)]
    return max(texts, key=len, default="")


def _cache_miss(message: Any) -> str:
    """Why the prompt cache missed, if the API says so."""
    reason = getattr(getattr(message, "diagnostics", None), "cache_miss_reason", None)
    return str(getattr(reason, "type", "") or "")
