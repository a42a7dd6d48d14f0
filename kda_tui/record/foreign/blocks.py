"""Lines of recorded coding agents as transcript blocks: Claude Code sessions, its stream-json, Codex sessions and --json."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from kda_tui.record.records import TranscriptBlock
from kda_tui.record.typed import block_of, mapping, number, text, whole

Line = Mapping[str, Any]


def any_block(line: Line) -> TranscriptBlock:
    """A line of any known transcript as one block; an unknown one is a notice with all it says."""
    if "type" not in line and ("kind" in line or not line):
        return block_of(line)
    if isinstance(line.get("payload"), dict):
        return _codex_session(line)
    if isinstance(line.get("item"), dict):
        return _codex_item(line)
    if isinstance(line.get("message"), dict):
        return _claude_message(line)
    return _other(line)


def is_transcript(line: Line) -> bool:
    """Whether a line looks like one of a transcript that :func:`any_block` understands."""
    kind = text(line.get("type"))
    claude = kind in ("user", "assistant", "system", "summary", "result") and (
        "message" in line or "sessionId" in line
    )
    stream = kind == "system" and "session_id" in line
    codex = kind.startswith(("thread.", "turn.", "item.")) or (
        kind in _CODEX and isinstance(line.get("payload"), dict)
    )
    return claude or stream or codex or (kind == "summary" and "summary" in line)


_CODEX = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})

# --- Claude --------------------------------------------------------------------------------------------------


def _claude_message(line: Line) -> TranscriptBlock:
    message = mapping(line.get("message"))
    content = message.get("content")
    parts = [p for p in content if isinstance(p, dict)] if isinstance(content, list) else []
    common: dict[str, Any] = {
        "t": text(line.get("timestamp")),
        "msg": text(message.get("id")) or text(line.get("uuid")),
        "model": text(message.get("model")),
        "usage": _usage(message.get("usage")),
    }
    if isinstance(content, str):
        return TranscriptBlock(
            kind="user" if message.get("role") == "user" else "text", text=content, **common
        )
    call = next((p for p in parts if p.get("type") == "tool_use"), None)
    if call is not None and len(parts) == 1:
        return TranscriptBlock(
            kind="tool_call",
            call=text(call.get("id")),
            tool=text(call.get("name")),
            args=call.get("input"),
            **common,
        )
    result = next((p for p in parts if p.get("type") == "tool_result"), None)
    if result is not None:
        return TranscriptBlock(
            kind="tool_result",
            text="\n".join(_part(p) for p in parts),
            call=text(result.get("tool_use_id")),
            is_error=bool(result.get("is_error")),
            **common,
        )
    thinks = bool(parts) and all(p.get("type") in ("thinking", "redacted_thinking") for p in parts)
    kind = "thinking" if thinks else "user" if message.get("role") == "user" else "text"
    return TranscriptBlock(kind=kind, text="\n".join(_part(p) for p in parts), **common)


def _part(part: Line) -> str:
    kind = part.get("type")
    if kind == "text":
        return text(part.get("text"))
    if kind == "thinking":
        return text(part.get("thinking"))
    if kind == "tool_use":
        return f"-> {text(part.get('name'))} {_json(part.get('input'))}"
    if kind == "tool_result":
        return _flat(part.get("content"))
    return f"[{text(kind) or 'part'}]"


def _flat(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part(p) if isinstance(p, dict) else text(p) for p in content)
    return "" if content is None else _json(content)


def _usage(value: Any) -> Mapping[str, int] | None:
    """Token counts under our names, from Claude's or Codex's."""
    given = mapping(value)
    names = {
        "in": ("input_tokens",),
        "out": ("output_tokens",),
        "cache_read": ("cache_read_input_tokens", "cached_input_tokens"),
        "cache_write": ("cache_creation_input_tokens",),
    }
    found = {
        ours: count
        for ours, theirs in names.items()
        for name in theirs
        if (count := whole(given.get(name))) is not None
    }
    return found or None


# --- Codex ---------------------------------------------------------------------------------------------------


def _codex_item(line: Line) -> TranscriptBlock:
    """An event of ``codex exec --json``."""
    item = mapping(line.get("item"))
    kind = text(item.get("type")) or text(item.get("item_type"))
    partial = line.get("type") != "item.completed"
    call = text(item.get("id"))
    if kind in ("agent_message", "assistant_message"):
        return TranscriptBlock(kind="text", text=text(item.get("text")), partial=partial)
    if kind == "reasoning":
        return TranscriptBlock(kind="thinking", text=text(item.get("text")), partial=partial)
    if kind == "command_execution" and partial:
        return TranscriptBlock(
            kind="tool_call", tool="shell", call=call, args={"command": item.get("command")}
        )
    if kind == "command_execution":
        code = whole(item.get("exit_code"))
        head = f"$ {text(item.get('command'))}\n"
        output = text(item.get("aggregated_output"))
        return TranscriptBlock(
            kind="tool_result", tool="shell", call=call, text=head + output, is_error=code not in (0, None)
        )
    if kind == "error":
        return TranscriptBlock(kind="notice", text=text(item.get("message")), is_error=True)
    rest = {key: value for key, value in item.items() if key not in ("id", "type")}
    return TranscriptBlock(kind="tool_call", tool=kind, call=call, args=rest, partial=partial)


def _codex_session(line: Line) -> TranscriptBlock:
    """A line of a recorded Codex session: an envelope with a payload."""
    payload, t = mapping(line.get("payload")), text(line.get("timestamp"))
    kind = text(payload.get("type"))
    call = text(payload.get("call_id"))
    if kind == "message":
        said = _codex_text(payload.get("content"))
        return TranscriptBlock(kind="text" if payload.get("role") == "assistant" else "user", t=t, text=said)
    if kind == "reasoning":
        return TranscriptBlock(kind="thinking", t=t, text=_codex_text(payload.get("summary")))
    if kind in ("function_call", "custom_tool_call", "local_shell_call"):
        args = payload.get("arguments") or payload.get("input") or payload.get("action")
        return TranscriptBlock(
            kind="tool_call", t=t, call=call, tool=text(payload.get("name")) or kind, args=_parsed(args)
        )
    if kind in ("function_call_output", "custom_tool_call_output"):
        return TranscriptBlock(kind="tool_result", t=t, call=call, text=_flat(payload.get("output")))
    if kind == "token_count":
        usage = _usage(mapping(mapping(payload.get("info")).get("last_token_usage")))
        return TranscriptBlock(kind="usage", t=t, usage=usage)
    said = text(payload.get("message")) or text(payload.get("text")) or _json(payload)
    return TranscriptBlock(kind="notice", t=t, text=f"{kind or text(line.get('type'))}: {said}")


def _codex_text(value: Any) -> str:
    listed = value if isinstance(value, list) else []
    return "\n".join(text(part.get("text")) for part in listed if isinstance(part, dict))


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


# --- what remains --------------------------------------------------------------------------------------------


def _other(line: Line) -> TranscriptBlock:
    kind, t = text(line.get("type")), text(line.get("timestamp"))
    if kind in ("result", "turn.completed"):
        said = text(line.get("result"))
        usd = number(line.get("total_cost_usd"))
        block = TranscriptBlock(kind="usage", t=t, text=said, usage=_usage(line.get("usage")), usd=usd)
        return block if not said or block.usage else TranscriptBlock(kind="notice", t=t, text=said, usd=usd)
    for key in ("summary", "message", "error", "content"):
        if isinstance(line.get(key), str):
            return TranscriptBlock(
                kind="notice", t=t, text=f"{kind or key}: {line[key]}", is_error=kind == "error"
            )
    return TranscriptBlock(kind="notice", t=t, text=f"{kind or 'line'}: {_json(line)}")


def _json(value: Any) -> str:
    encode: Callable[..., str] = json.dumps
    return encode(value, ensure_ascii=False, default=str)
