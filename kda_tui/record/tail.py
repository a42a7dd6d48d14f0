"""One followed file: whole lines as they are appended, and a new beginning when the file is another one."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from itertools import accumulate, count
from pathlib import Path

from kda_tui.record.lines import READABLE_LINE, TORN
from kda_tui.record.plain_file import Absent, Refused, open_plain
from kda_tui.record.snapshot import Finding
from kda_tui.text import clean_line

CHUNK = 128 * 1024  # bytes read at a time
WITNESS = 4096  # bytes before the offset that must still be the same
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD = 200  # bytes kept of a line that is too long


# A whole line: its offset in bytes (-1 in a file that is not UTF-8), its number from 1, its bytes without line end.
# A plain tuple: a workspace has hundreds of thousands of them.
TailLine = tuple[int, int, bytes]


class TailedFile:
    """Follows one file of lines. Reads nothing until :meth:`look` has seen that there is something.

    ``#torn`` lines are dropped; lines over 256 KB are skipped with a finding. Findings go to ``found``.
    """

    def __init__(self, path: Path, root: Path, found: Callable[[Finding], None]) -> None:
        self.path = path
        self.name = path.relative_to(root).as_posix()
        self.size = 0  # as last looked at
        self.trouble: Finding | None = None  # why the file cannot be read at this moment
        self.root = root
        self._found = found
        self._seen: tuple[int, ...] | None = None  # of the file as last looked at
        self._forget()

    def _forget(self) -> None:
        self.offset = 0  # bytes taken in
        self._number = 0
        self._partial = b""
        self._partial_at = 0
        self._skipped = 0  # bytes of an overlong line whose end has not come yet
        self._witness = b""
        self._identity: tuple[int, int] | None = None
        self._utf16: codecs.IncrementalDecoder | None = None
        self._crlf_said = False

    @property
    def pending(self) -> int:
        """Bytes that are in the file and were not taken in."""
        return max(0, self.size - self.offset)

    @property
    def held(self) -> int:
        """Bytes so far of a last line that is too long and has not ended."""
        return self._skipped

    @property
    def tail(self) -> TailLine | None:
        """What follows the last newline, if anything: a line still being written, or cut short."""
        if not self._partial or self._skipped:
            return None
        return (self._partial_at, self._number + 1, self._partial)

    def look(self) -> bool:
        """Look at the file without opening it; whether it changed since the last time."""
        try:
            facts = self.path.stat()
        except OSError:
            seen: tuple[int, ...] | None = None
        else:
            seen = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)
        changed = seen != self._seen
        self._seen = seen
        self.size = seen[2] if seen is not None else 0
        if changed and seen is None:
            self.trouble = self._gone()
        return changed

    def _gone(self) -> Finding | None:
        if self._identity is None:
            return None
        return Finding(self.name, 0, "is not there any more", "what was read of it is still shown", "error")

    def read(self, limit: int) -> list[TailLine] | None:
        """The lines that end in the next ``limit`` bytes; None if this is not the file it was.

        After None the file is at its beginning again and whoever folded its lines begins again too.
        """
        if self._seen is None:
            return []
        try:
            fd = open_plain(self.path, self.root)
        except Absent:
            return []  # between two looks; the next one says so
        except Refused as error:
            self.size = self.offset
            self.trouble = Finding(self.name, 0, str(error), "not read", "error")
            return []
        try:
            return self._read(fd, limit)
        except OSError as error:
            self.size = self.offset
            self.trouble = Finding(self.name, 0, f"cannot be read ({error.strerror})", "not read on", "error")
            return []
        finally:
            os.close(fd)

    def _read(self, fd: int, limit: int) -> list[TailLine] | None:
        facts = os.fstat(fd)
        identity = (facts.st_dev, facts.st_ino)
        self.size = facts.st_size
        if self._identity is not None and not self._is_same(fd, identity):
            self._forget()
            return None
        self._identity, self.trouble = identity, None
        data = os.pread(fd, max(limit, len(codecs.BOM_UTF8)), self.offset)
        if self.offset == 0 and any(mark.startswith(data) and mark != data for mark in _BYTE_ORDER_MARKS):
            self.size = 0  # the beginning of a mark, or nothing: the next look will tell
            return []
        self._witness = (self._witness + data)[-WITNESS:]
        start, self.offset = self.offset, self.offset + len(data)
        if start == 0:
            data, start = self._without_mark(data)
        if self._utf16 is not None:
            data, start = self._utf16.decode(data).encode("utf-8", "replace"), -1
        return self._split(data, start)

    def _is_same(self, fd: int, identity: tuple[int, int]) -> bool:
        if identity != self._identity or self.size < self.offset:
            return False
        at = self.offset - len(self._witness)
        return os.pread(fd, len(self._witness), at) == self._witness

    def _without_mark(self, data: bytes) -> tuple[bytes, int]:
        """The data and its offset after a byte order mark, which is reported."""
        if data.startswith(codecs.BOM_UTF8):
            self._say(1, "a byte order mark", "left out", "note")
            return data[3:], 3
        if data.startswith(_BYTE_ORDER_MARKS):
            self._say(1, "the file is UTF-16", "read as such", "note")
            self._utf16 = codecs.getincrementaldecoder("utf-16")("replace")
        return data, 0

    def _split(self, data: bytes, start: int) -> list[TailLine]:
        parts = data.split(b"\n")
        rest = parts.pop()
        lines: list[TailLine] = []
        if parts:
            self._begin_at(start)
            self._end_line(parts[0], lines)
            sizes = [len(part) + 1 for part in parts]
            starts = list(accumulate(sizes, initial=start)) if start >= 0 else [-1] * (len(parts) + 1)
            if max(sizes) > READABLE_LINE or b"" in parts or _is_special(data):
                for at, part in zip(starts[1:], parts[1:], strict=False):
                    self._begin_at(at)
                    self._end_line(part, lines)
            else:
                lines += zip(starts[1:], count(self._number + 1), parts[1:], strict=False)
                self._number += len(parts) - 1
            start = starts[-1]
        self._begin_at(start)
        self._keep(rest)
        return lines

    def _begin_at(self, start: int) -> None:
        if not self._partial and not self._skipped:
            self._partial_at = start

    def _keep(self, rest: bytes) -> None:
        """Hold the beginning of a line until its end comes; of an overlong one only its head and its size."""
        if self._skipped:
            self._skipped += len(rest)
            return
        self._partial += rest
        if len(self._partial) > READABLE_LINE:
            self._skipped = len(self._partial)
            self._partial = self._partial[:_HEAD]

    def _end_line(self, end: bytes, lines: list[TailLine]) -> None:
        self._number += 1
        self._keep(end)
        data, self._partial = self._partial, b""
        if self._skipped:
            head = clean_line(data.decode("utf-8", "replace"), 60)
            self._say(self._number, f"{self._skipped} bytes on one line: {head}", "not parsed", "warning")
            self._skipped = 0
            return
        if data.endswith(b"\r"):
            data = data[:-1]
            if not self._crlf_said:
                self._crlf_said = True
                self._say(self._number, "CR LF line ends", "read as LF", "note")
        if data.endswith(TORN) or not data:
            return
        lines.append((self._partial_at, self._number, data))

    def _say(self, line: int, seen: str, done: str, severity: str) -> None:
        self._found(Finding(self.name, line, seen, done, severity))


def _is_special(data: bytes) -> bool:
    """Whether a chunk has line ends that must be looked at one by one. Single bytes are found ten times faster."""
    return b"\r" in data or (b"#" in data and TORN in data)
