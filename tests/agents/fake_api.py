"""A stand-in for the Messages API on 127.0.0.1: speaks the real streaming protocol, answers by a script.

It is for tests only: no model is behind it. ``script(request)`` returns a :class:`Say` or a :class:`Fault`
for each POST to /v1/messages. What the real SDK insists on: every record has an ``event:`` line, message_start
comes first, tool input arrives through input_json_delta alone, message_delta carries the stop reason.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECE = 24  # characters in a delta


@dataclass(frozen=True)
class Request:
    """One call: its body and headers, and how many came before it."""

    number: int
    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def opening(self) -> str:
        """The first thing that was said in this conversation."""
        return "".join(b.get("text", "") for b in self.messages[0]["content"])

    @property
    def system(self) -> str:
        return "".join(b["text"] for b in self.body.get("system", ()))

    @property
    def results(self) -> list[dict[str, Any]]:
        """Every tool result of the conversation, in order."""
        return [b for m in self.messages for b in m["content"] if b.get("type") == "tool_result"]

    @property
    def turn(self) -> int:
        """How many times the model has spoken before."""
        return sum(m["role"] == "assistant" for m in self.messages)


@dataclass(frozen=True)
class Say:
    """A reply. ``cut``: stop after so many records, without an end; with ``error``, say so first."""

    blocks: tuple[dict[str, Any], ...]
    stop: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: int | None = None
    error: str = ""  # type of an error event in the middle
    chunked: bool = False  # then a cut is a protocol error, else the stream just ends
    cache_miss: str = ""
    refusal: str = ""


@dataclass(frozen=True)
class Fault:
    """An answer that is an error."""

    status: int
    type: str
    message: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)


Script = Callable[[Request], Say | Fault]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def thinking(words: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": "c2lnbmF0dXJl"}


def tool(name: str, **args: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{name}_{time.time_ns()}", "name": name, "input": args}


def say(*blocks: dict[str, Any], **more: Any) -> Say:
    return Say(tuple(blocks), **more)


class FakeApi:
    """Serves until closed; a context manager. ``requests`` are all calls, ``problems`` what was wrong with them."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.problems: list[str] = []
        self.arrived: list[float] = []  # time.perf_counter() of each request
        self.answered: list[float] = []  # and of the end of each answer
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def __enter__(self) -> FakeApi:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, body: dict[str, Any], headers: Mapping[str, str]) -> Request:
        with self.lock:
            self.arrived.append(time.perf_counter())
            request = Request(len(self.requests), body, headers)
            self.requests.append(request)
            self.problems += problems_of(body)
        return request


def problems_of(body: Mapping[str, Any]) -> list[str]:
    """What the real API would answer with a 400."""
    found = []
    choice = body.get("tool_choice") or {}
    if choice.get("type") in ("any", "tool"):
        found.append("forced tool_choice")
    if body.get("thinking", {}).get("type") == "disabled":
        found.append("thinking disabled")
    found += [f"{name} is gone" for name in ("temperature", "top_p", "top_k") if name in body]
    marks = json.dumps(body.get("system")).count("cache_control")
    if marks + json.dumps(body.get("messages")).count('"cache_control"') + ("cache_control" in body) > 4:
        found.append("more than 4 cache markers")
    expected: set[str] = set()
    role = "user"
    for message in body["messages"]:
        if message["role"] != role:
            found.append(f"a {message['role']} message where a {role} message belongs")
        role = "assistant" if message["role"] == "user" else "user"
        blocks = message["content"]
        if not blocks or any(b.get("type") == "text" and not b["text"] for b in blocks):
            found.append("empty content")
        answered = {b["tool_use_id"] for b in blocks if b.get("type") == "tool_result"}
        if answered != expected:
            found.append(f"tool results {sorted(answered)} for calls {sorted(expected)}")
        if any(b.get("type") == "thinking" and not b.get("signature") for b in blocks):
            found.append("a thinking block without signature")
        expected = {b["id"] for b in blocks if b.get("type") == "tool_use"}
    if body["messages"][-1]["role"] != "user" and not body["messages"][-1]["content"][-1].get(
        "type", ""
    ).startswith("server"):
        found.append("the last message is not the user's")
    return found


def _handler(api: FakeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            request = api.take(body, dict(self.headers))
            answer = api.script(request)
            try:
                if isinstance(answer, Fault):
                    self._fault(answer)
                else:
                    self._stream(request, answer)
                api.answered.append(time.perf_counter())
            except (BrokenPipeError, ConnectionResetError):
                pass

        def _fault(self, fault: Fault) -> None:
            error = {"type": fault.type, "message": fault.message}
            raw = json.dumps({"type": "error", "request_id": "req_fault", "error": error}).encode()
            self.send_response(fault.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.send_header("request-id", "req_fault")
            for name, value in fault.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        def _stream(self, request: Request, reply: Say) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream; charset=utf-8")
            self.send_header("request-id", f"req_{request.number:04d}")
            self.send_header("connection", "close")
            if reply.chunked:
                self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            for n, record in enumerate(records(request, reply)):
                if reply.cut is not None and n >= reply.cut:
                    if reply.error:
                        self._emit(
                            {"type": "error", "error": {"type": reply.error, "message": "busy"}}, reply
                        )
                    break
                self._emit(record, reply)
                if reply.delay_s:
                    time.sleep(reply.delay_s)
            else:
                if reply.chunked:
                    self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()

        def _emit(self, record: Mapping[str, Any], reply: Say) -> None:
            data = f"event: {record['type']}\ndata: {json.dumps(record)}\n\n".encode()
            if reply.chunked:
                data = f"{len(data):x}\r\n".encode() + data + b"\r\n"
            self.wfile.write(data)
            self.wfile.flush()

    return Handler


def records(request: Request, reply: Say) -> Iterator[dict[str, Any]]:
    """The records of a whole reply."""
    sizes = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 1000,
        "output_tokens": 50,
        **reply.usage,
    }
    out = sizes.pop("output_tokens")
    diagnostics = {
        "diagnostics": {"cache_miss_reason": {"type": reply.cache_miss, "cache_missed_input_tokens": 7}}
    }
    message: dict[str, Any] = {
        "id": f"msg_{request.number:04d}",
        "type": "message",
        "role": "assistant",
        "model": request.body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {**sizes, "output_tokens": 1, "service_tier": "standard"},
        **(diagnostics if reply.cache_miss else {}),
    }
    yield {"type": "message_start", "message": message}
    yield {"type": "ping"}
    for index, block in enumerate(reply.blocks):
        yield from _block(index, block)
    stop = reply.stop or ("tool_use" if any(b["type"] == "tool_use" for b in reply.blocks) else "end_turn")
    details = {"type": "refusal", "category": reply.refusal, "explanation": "no"} if reply.refusal else None
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None, "stop_details": details},
        "usage": {**sizes, "output_tokens": out},
    }
    yield {"type": "message_stop"}


def _block(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = block["type"]
    if kind == "tool_use":
        start = {**block, "input": {}}
        deltas = [
            {"type": "input_json_delta", "partial_json": p}
            for p in ["", *_pieces(json.dumps(block["input"]))]
        ]
    elif kind == "thinking":
        start = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": p} for p in _pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        start = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": p} for p in _pieces(block["text"])]
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _pieces(words: str) -> list[str]:
    return [words[i : i + PIECE] for i in range(0, len(words), PIECE)]
