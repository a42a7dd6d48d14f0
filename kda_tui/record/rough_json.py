"""JSON objects out of lines that may have been written by anybody: what can be kept is kept, and why not is said."""

from __future__ import annotations

import json
import re
from typing import Any

from kda_tui.record.lines import READABLE_LINE

_DECODER = json.JSONDecoder(strict=False)  # a raw tab or escape inside a string is no reason to lose the line
_MAX_DIGITS = 4000  # Python itself refuses to convert longer integers

_LONG_NUMBER = re.compile(rf"[:\[,]\s*-?\d{{{_MAX_DIGITS + 1}}}")


def read_object(data: bytes) -> tuple[dict[str, Any] | None, str]:
    """The object on a line and, in words, what is wrong with the line ('' if nothing).

    Both at once: the object could be read, but not everything in it is as it should be.
    """
    try:
        text = data.decode()
        body, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return _read_carefully(data)
    if end == len(text) and isinstance(body, dict):
        return body, ""
    return _read_carefully(data)


def _read_carefully(data: bytes) -> tuple[dict[str, Any] | None, str]:
    if len(data) > READABLE_LINE:
        return None, f"{len(data)} bytes on one line"
    problems: list[str] = []
    if b"\0" in data:
        problems.append(f"{data.count(0)} NUL bytes")
        data = data.replace(b"\0", b"")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        problems.append("bytes that are not UTF-8")
        text = data.decode("utf-8", "surrogateescape")
    if not text.strip():
        return None, ", ".join(problems) or "empty"
    try:
        body = json.loads(text, strict=False, parse_int=_whole)
    except RecursionError:
        return None, "nested too deeply"
    except ValueError as error:
        where = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        return None, ", ".join((*problems, f"not JSON{where}"))
    if not isinstance(body, dict):
        return None, ", ".join((*problems, f"a JSON {_name(body)}, not an object"))
    if _has_long_number(text):
        problems.append("a number of thousands of digits, kept as text")
    return body, ", ".join(problems)


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MAX_DIGITS else digits


def _has_long_number(text: str) -> bool:
    return len(text) > _MAX_DIGITS and _LONG_NUMBER.search(text) is not None


def _name(value: Any) -> str:
    names = {list: "list", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
