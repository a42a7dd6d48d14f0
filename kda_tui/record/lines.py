"""Lines of ledgers as bytes: encoding, parsing, reading a file line by line, making a long line short."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

TORN = b"#torn"
MAX_LINE = 64 * 1024  # bytes of an encoded line with its newline
READABLE_LINE = 256 * 1024  # a longer one is never parsed

_SURROGATE = re.compile(r"[\ud800-\udfff]")
# Raw in JSON, but able to fool whoever looks at a ledger with cat or less.
_RISKY = re.compile(r"[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
_EXCERPT = 400


class Line(NamedTuple):
    """A complete line of a file: where it begins, its number from 1, and its bytes without the newline."""

    offset: int
    number: int
    data: bytes


def encode_line(body: Mapping[str, Any]) -> bytes:
    """One JSON object as UTF-8 without newline. Numbers that are not finite become null, lone surrogates U+FFFD."""
    try:
        text = _dumps(body)
    except ValueError:
        text = _dumps(_finite(body))
    text = _RISKY.sub(lambda m: f"\\u{ord(m.group()):04x}", _SURROGATE.sub("\ufffd", text))
    return text.encode()


def _dumps(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):  # a NumPy scalar
        return value.item()
    raise TypeError(f"a record cannot hold a {type(value).__name__}")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if hasattr(value, "item"):
        return _finite(value.item())
    return value


def canonical(body: Mapping[str, Any]) -> bytes:
    """The form of a JSON object that is hashed: ASCII, keys sorted, no spaces."""
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii")


def parse_line(data: bytes) -> dict[str, Any] | None:
    """The object on a line, or None: torn, too long, or not a JSON object."""
    if data.endswith(TORN) or len(data) > READABLE_LINE:
        return None
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def link_of(data: bytes) -> str:
    """What the next line of the same ledger says of this one: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:16]


def read_lines(path: Path) -> Iterator[Line]:
    """The complete lines of a file, torn ones included; a tail without newline is left out, no file is no line."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        offset = 0
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                return
            yield Line(offset, number, raw[:-1])
            offset += len(raw)


def last_lines(path: Path, window: int = 2 * READABLE_LINE) -> list[bytes]:
    """The complete lines within the last ``window`` bytes, without reading the rest. For ledgers that may be huge."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            start = max(0, size - window)
            file.seek(start)
            data = file.read(size - start)
    except FileNotFoundError:
        return []
    lines = data.split(b"\n")[:-1]
    return lines[1:] if start else lines


def shorten(body: dict[str, Any], keep: Callable[[bytes], str], limit: int) -> dict[str, Any]:
    """The body made to fit ``limit`` bytes: its longest parts go through ``keep`` into blobs.

    ``keep`` stores bytes and returns their SHA-256. Rows go first (``rows_blob``, a JSON array), then
    the longest texts: each becomes its beginning and a mark with the blob's hash, and stays a text. ``blobs``
    lists every hash that the line brought. Raises ValueError if only short values are left.
    """
    blobs: list[str] = list(body.get("blobs", ()))
    if len(encode_line(body)) > limit and body.get("rows"):
        rows = [json.loads(encode_line(row)) for row in body["rows"]]
        blobs.append(keep(json.dumps(rows, ensure_ascii=False).encode()))
        body = {**{k: v for k, v in body.items() if k != "rows"}, "rows_blob": blobs[-1]}
    while len(encode_line({**body, "blobs": blobs})) > limit:
        text = max(_texts(body), key=len, default="")
        if len(text) <= 2 * _EXCERPT:
            raise ValueError("a line of so many values does not fit a ledger; put them into rows or a blob")
        data = _SURROGATE.sub("\ufffd", text).encode()
        blobs.append(keep(data))
        short = f"{text[:_EXCERPT]}… [{len(data)} bytes, blob {blobs[-1]}]"
        body = _replace(body, text, short)
    return {**body, "blobs": blobs} if blobs else body


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _replace(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return new if value == old else value
    if isinstance(value, Mapping):
        return {key: _replace(item, old, new) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace(item, old, new) for item in value]
    return value
