"""Cleaning and redacting text, and the error that a user is meant to read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any


class UserError(Exception):
    """A mistake or a state that the user can mend: one line that says what, where, and how."""


# --- cleaning -------------------------------------------------------------------------------------

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    r"\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"  # invisible marks, bidi, separators, surrogates, tags
)


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)  # the control's own picture: ESC is shown as one cell
    if code == 0x7F:
        return "\u2421"
    if code < 0xA0:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8, as surrogateescape keeps it
        return f"\\x{code - 0xDC00:02x}"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"<U+{code:04X}>"


def clean(s: str) -> str:
    """Text that is safe to send to a terminal: no control but newline and tab, nothing invisible.

    Colours are dropped, CR LF becomes LF; every other control, direction override, invisible mark
    or undecodable byte is replaced by something that can be seen.
    """
    if not _UNSAFE.search(s):
        return s
    return _UNSAFE.sub(_visible, _COLOUR.sub("", s).replace("\r\n", "\n"))


def cell_width(s: str) -> int:
    """Terminal cells that clean text takes: wide characters two, combining marks none."""
    if s.isascii():
        return len(s)
    return sum(_char_width(c) for c in s)


def _char_width(c: str) -> int:
    if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1


def clean_line(s: str, width: int | None = None) -> str:
    """:func:`clean` on one line: newlines and tabs become spaces; cut to ``width`` cells with an ellipsis."""
    if width is not None:
        s = s[: 4 * width + 64]  # the rest of a huge text cannot be seen; combining marks get some room
    line = " ".join(clean(s).replace("\t", " ").splitlines())
    if width is None or cell_width(line) <= width:
        return line
    if width <= 0:
        return ""
    kept: list[str] = []
    used = 0
    for c in line:
        used += _char_width(c)
        if used > width - 1:
            break
        kept.append(c)
    return "".join(kept) + "…"


# --- redaction ------------------------------------------------------------------------------------

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]?[a-z]+|[A-Z]+")
_NUMBER = re.compile(r"[+-]?[0-9][0-9_.,]*(?:[eE][+-]?[0-9]+)?")
SHORTEST_SECRET = 16


def is_secret(name: str, value: str) -> bool:
    """Whether an environment variable holds a secret: by its name, and a value that is no word or number."""
    return (
        _SECRET_NAME.search(name) is not None
        and len(value) >= SHORTEST_SECRET
        and _WORD.fullmatch(value) is None
        and _NUMBER.fullmatch(value) is None
    )


class Redactor:
    """Replaces the values of known secrets by ``[redacted NAME]``."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """``secrets``: value by name. Where one value contains another, the longer one wins."""
        self._names = {value: name for name, value in sorted(secrets.items(), reverse=True)}
        values = sorted(self._names, key=len, reverse=True)
        self.longest = len(values[0]) if values else 0
        self._pattern = re.compile("|".join(re.escape(v) for v in values)) if values else None

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Redactor:
        """A redactor for the secrets in ``env`` (see :func:`is_secret`), surrounding space ignored."""
        stripped = {name: value.strip() for name, value in env.items()}
        return cls({name: value for name, value in stripped.items() if is_secret(name, value)})

    def _mark(self, match: re.Match[str]) -> str:
        return f"[redacted {self._names[match.group()]}]"

    def redact_text(self, text: str) -> str:
        return self._pattern.sub(self._mark, text) if self._pattern else text

    def redact(self, obj: Any) -> Any:
        """A copy of a parsed value with secrets replaced in its strings and keys; other values as they are."""
        if self._pattern is None:
            return obj
        if isinstance(obj, str):
            return self.redact_text(obj)
        if isinstance(obj, Mapping):
            return {self.redact(key): self.redact(value) for key, value in obj.items()}
        if isinstance(obj, list | tuple):
            return [self.redact(item) for item in obj]
        return obj

    def holds_secret(self, text: str) -> str | None:
        """The name of a secret whose value stands in ``text``, or None."""
        found = self._pattern.search(text) if self._pattern else None
        return self._names[found.group()] if found else None

    def split_stream(self, text: str) -> tuple[str, str]:
        """Split streamed text into what may be shown now, redacted, and what could still become a secret."""
        if self._pattern is None:
            return text, ""
        out: list[str] = []
        at = 0
        # A match that starts before this point has room for the longest secret, so it is final.
        safe = len(text) - (self.longest - 1)
        for match in self._pattern.finditer(text):
            if match.start() >= safe:
                break
            out += (text[at : match.start()], self._mark(match))
            at = match.end()
        cut = max(at, safe, 0)
        return "".join(out) + text[at:cut], text[cut:]


class StreamRedactor:
    """Redacts text that arrives in pieces: holds back what may be the beginning of a secret.

    The pieces that :meth:`feed` and :meth:`flush` return, joined, are the redacted whole text.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, text: str) -> str:
        """Take the next piece; return what can be shown now, already redacted."""
        shown, self._held = self._redactor.split_stream(self._held + text)
        return shown

    def flush(self) -> str:
        """The rest, redacted; the stream has ended."""
        rest, self._held = self._redactor.redact_text(self._held), ""
        return rest
