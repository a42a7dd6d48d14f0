"""Recorded coding agents as transcript blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.record.foreign.blocks import any_block, is_transcript
from kda_tui.record.records import TranscriptBlock
from kda_tui.record.transcript import TranscriptFile


def said(*content: dict[str, Any] | str, role: str = "assistant") -> dict[str, Any]:
    body = content[0] if content and isinstance(content[0], str) else list(content)
    return {
        "type": role,
        "timestamp": "T",
        "sessionId": "s",
        "message": {"role": role, "id": "m", "content": body},
    }


CLAUDE = [
    (said("hello", role="user"), "user", "hello"),
    (said({"type": "text", "text": "a"}, {"type": "text", "text": "b"}), "text", "a\nb"),
    (said({"type": "thinking", "thinking": "hm"}), "thinking", "hm"),
    (
        said(
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "out"}]},
            role="user",
        ),
        "tool_result",
        "out",
    ),
    ({"type": "summary", "summary": "all done", "leafUuid": "x"}, "notice", "summary: all done"),
]
CODEX = [
    ({"type": "item.completed", "item": {"type": "agent_message", "text": "hi"}}, "text", "hi"),
    ({"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}}, "thinking", "hm"),
    (
        {
            "type": "item.completed",
            "item": {
                "type": "command_execution",
                "command": "ls",
                "aggregated_output": "x\n",
                "exit_code": 2,
            },
        },
        "tool_result",
        "$ ls\nx\n",
    ),
    (
        {
            "type": "response_item",
            "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        },
        "user",
        "go",
    ),
    (
        {
            "type": "response_item",
            "payload": {"type": "function_call_output", "call_id": "c", "output": "42"},
        },
        "tool_result",
        "42",
    ),
    (
        {"type": "event_msg", "payload": {"type": "agent_reasoning", "text": "so"}},
        "notice",
        "agent_reasoning: so",
    ),
]


@pytest.mark.parametrize(("line", "kind", "text"), CLAUDE + CODEX)
def test_lines_of_known_agents(line: dict[str, Any], kind: str, text: str) -> None:
    block = any_block(line)
    assert (block.kind, block.text) == (kind, text)
    assert is_transcript(line)


def test_calls_keep_their_name_arguments_and_number() -> None:
    claude = any_block(said({"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}))
    assert (claude.kind, claude.tool, claude.args, claude.call) == (
        "tool_call",
        "Bash",
        {"command": "ls"},
        "c1",
    )
    payload = {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c2"}
    codex = any_block({"type": "response_item", "timestamp": "T", "payload": payload})
    assert (codex.kind, codex.tool, codex.args, codex.call, codex.t) == (
        "tool_call",
        "shell",
        {"command": ["ls"]},
        "c2",
        "T",
    )


def test_usage_has_our_names() -> None:
    line = {
        "type": "turn.completed",
        "usage": {"input_tokens": 5, "cached_input_tokens": 3, "output_tokens": 2},
    }
    assert any_block(line).usage == {"in": 5, "out": 2, "cache_read": 3}


def test_our_own_lines_stay_what_they_are() -> None:
    line = {"v": 1, "kind": "tool_call", "tool": "submit", "args": {"a": 1}, "message": "?"}
    assert any_block(line) == TranscriptBlock(
        kind="tool_call", tool="submit", args={"a": 1}, extra={"message": "?"}
    )


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda c: st.lists(c, max_size=3) | st.dictionaries(st.text(max_size=5), c, max_size=3), max_leaves=8)  # fmt: skip
KEYS = st.sampled_from(
    [
        "type",
        "message",
        "item",
        "payload",
        "content",
        "role",
        "text",
        "summary",
        "usage",
        "info",
        "kind",
        "result",
    ]
)


@given(st.dictionaries(KEYS, st.one_of(JSON, st.dictionaries(KEYS, JSON, max_size=4)), max_size=5))
def test_any_object_is_some_block(line: dict[str, Any]) -> None:
    block = any_block(line)
    assert isinstance(block.text, str)
    assert isinstance(is_transcript(line), bool)


def test_a_transcript_file_of_an_agent_with_broken_lines(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    lines = [json.dumps(line) for line, _, _ in CLAUDE]
    path.write_text("\n".join([*lines[:2], "{broken", *lines[2:]]) + "\n")
    file = TranscriptFile(path)
    file.refresh()
    assert len(file) == len(CLAUDE) + 1
    assert file.search("hm", 0, 1) == 3
