"""What can go wrong with a request, sorted by what to do about it."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from kda_tui.text import clean_line

Kind = Literal["transient", "auth", "budget", "context", "request"]

TOO_LONG = ("prompt is too long", "context window", "context limit", "maximum context", "too many tokens")
MONEY = ("billing_error", "credit balance", "spend limit", "spending limit")
WAIT_AND_RETRY = frozenset({408, 409, 425, 429, 499})
PASSING_TYPES = frozenset({"overloaded_error", "api_error", "rate_limit_error", "timeout_error"})


class Failure(Exception):
    """A request that brought no usable reply. ``retry_s``: how long the API asks to wait."""

    def __init__(self, kind: Kind, text: str, retry_s: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.retry_s = retry_s


def failure_of(error: BaseException) -> Failure | None:
    """How an error of the SDK or its transport is to be taken; None for one that is neither."""
    import anthropic
    import httpx2

    if isinstance(error, Failure):
        return error
    if isinstance(error, anthropic.APIStatusError):
        return _of_status(error)
    if isinstance(error, anthropic.CredentialsError):
        return Failure("auth", f"the API key cannot be used: {clean_line(str(error), 200)}")
    if isinstance(error, anthropic.APIError | httpx2.HTTPError):  # before the headers, or in the stream
        return Failure("transient", f"the connection to the API failed: {_words(error)}")
    if isinstance(error, ValueError) and "tool parameter JSON" in str(error):
        return Failure("transient", "the model's tool input was not JSON")
    if isinstance(error, RuntimeError) and "event order" in str(error):
        return Failure("transient", "the API's stream was out of order")
    return None


def _of_status(error: Any) -> Failure:
    status, kind = int(error.status_code), str(error.type or "")
    said = clean_line(str(error.api_message or error.message), 200)
    text = f"the API answered {status} {kind or type(error).__name__}: {said}"
    request = f" (request {error.request_id})" if error.request_id else ""
    lower = f"{kind} {error.error_code or ''} {said}".lower()
    if status == 402 or any(word in lower for word in MONEY):
        return Failure("budget", f"{text}{request}")
    if status in (401, 403):
        return Failure("auth", f"{text}{request}")
    if status == 413 or (status == 400 and any(word in lower for word in TOO_LONG)):
        return Failure("context", text)
    # 200: an ``error`` event in the middle of the stream.
    if status in WAIT_AND_RETRY or status >= 500 or (status == 200 and kind in PASSING_TYPES):
        return Failure("transient", f"{text}{request}", retry_after(error.response.headers))
    return Failure("request", f"{text}{request}")


def retry_after(headers: Any) -> float | None:
    """Seconds that the API asks to wait: ``retry-after-ms``, or ``retry-after`` in seconds or as a date."""
    try:
        if (ms := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(ms) / 1000)
        if (seconds := headers.get("retry-after")) is None:
            return None
        if seconds.strip().replace(".", "", 1).isdigit():
            return float(seconds)
        return max(0.0, parsedate_to_datetime(seconds).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def _words(error: BaseException) -> str:
    name = type(error).__name__
    said = clean_line(str(error), 200)
    return f"{name}: {said}" if said else name
