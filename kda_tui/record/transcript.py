"""A transcript of any size, ours or a coding agent's: the places of its lines in memory, its blocks read when they are looked at."""

from __future__ import annotations

import json
import os
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kda_tui.record.foreign.blocks import any_block
from kda_tui.record.lines import READABLE_LINE, TORN
from kda_tui.record.plain_file import Refused, open_plain, read_beginning
from kda_tui.record.records import TranscriptBlock
from kda_tui.record.rough_json import read_object
from kda_tui.record.snapshot import Finding
from kda_tui.text import clean_line

END = 256 * 1024  # bytes at the end that :meth:`TranscriptFile.tail` reads
SLICE = 4 << 20  # bytes searched at a time
MAX_TEXT = 1 << 20  # characters of a text that are shown

_READ = 1 << 20
_WITNESS = 4096
_BRACE = ord("}")  # the end of nearly every line
_BOM = b"\xef\xbb\xbf"
_SHA = re.compile(r"[0-9a-f]{64}")

Block = TranscriptBlock | Finding
Parse = Callable[[Mapping[str, Any]], TranscriptBlock]


class TranscriptFile:
    """One transcript.jsonl. Not thread-safe; opens the file for each call and holds nothing but offsets.

    A file that cannot be read, or is not there, is an empty one; ``trouble`` says why.
    """

    def __init__(self, path: Path, root: Path | None = None, parse: Parse = any_block) -> None:
        """``root``: the file must lie below it, links resolved; the run's folder unless given."""
        self.path = path
        self.trouble = ""
        self._root = path.parent if root is None else root
        self._parse = parse
        self._forget()

    def _forget(self) -> None:
        self._starts = array("Q")  # of the lines that are whole and not torn
        self._end = 0  # after the last newline
        self._identity: tuple[int, int] | None = None
        self._witness = b""

    def __len__(self) -> int:
        """Blocks known since the last :meth:`refresh`."""
        return len(self._starts)

    # --- the index --------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Take in what was appended; whether the number of blocks changed. A replaced file is indexed anew."""
        before = len(self._starts)
        fd = self._open()
        if fd is None:
            self._forget()
            return before > 0
        try:
            replaced = not self._is_same(fd)
            if replaced:
                self._forget()
            self._index(fd)
            self._identity = _identity(fd)
            self._witness = os.pread(fd, min(_WITNESS, self._end), max(0, self._end - _WITNESS))
        except OSError as error:
            self.trouble = f"cannot be read ({error.strerror})"
            return False
        finally:
            os.close(fd)
        return replaced or len(self._starts) != before

    def _open(self) -> int | None:
        try:
            fd = open_plain(self.path, self._root)
        except Refused as error:
            self.trouble = str(error)
            return None
        self.trouble = ""
        return fd

    def _is_same(self, fd: int) -> bool:
        if self._identity is None:
            return True
        if _identity(fd) != self._identity or os.fstat(fd).st_size < self._end:
            return False
        return os.pread(fd, len(self._witness), self._end - len(self._witness)) == self._witness

    def _index(self, fd: int) -> None:
        """Find the newlines after ``_end``. One buffer for all reads: allocating each anew costs more than reading."""
        buffer = bytearray(_READ)
        at = self._end
        while count := os.preadv(fd, [buffer], at):
            newline = buffer.find(b"\n", 0, count)
            while newline >= 0:
                if (newline and buffer[newline - 1] == _BRACE) or not _is_torn(fd, at + newline):
                    self._starts.append(self._end)
                self._end = at + newline + 1
                newline = buffer.find(b"\n", newline + 1, count)
            at += count

    # --- blocks -----------------------------------------------------------------------------------

    def block(self, i: int) -> Block:
        """Block ``i``, or a finding where the line cannot be read as one. Raises IndexError."""
        start = self._starts[i]
        number = i % len(self._starts) + 1
        fd = self._open()
        if fd is None:
            return Finding(self.path.name, number, self.trouble, "not shown", "error")
        try:
            data = os.pread(fd, READABLE_LINE + 2, start)
        except OSError as error:
            return Finding(self.path.name, number, f"cannot be read ({error.strerror})", "not shown", "error")
        finally:
            os.close(fd)
        line, newline, _ = data.partition(b"\n")
        if not newline:
            size = (self._starts[number] if number < len(self._starts) else self._end) - start
            head = clean_line(line[:200].decode("utf-8", "replace"), 60)
            return Finding(self.path.name, number, f"{size} bytes on one line: {head}", "not parsed")
        return self._block(line, number)

    def tail(self, n: int) -> list[Block]:
        """Up to ``n`` of the newest blocks, out of the last 256 KB; needs no :meth:`refresh`."""
        fd = self._open()
        if fd is None:
            return []
        try:
            start = max(0, os.fstat(fd).st_size - END)
            data = os.pread(fd, END, start)
        except OSError:
            return []
        finally:
            os.close(fd)
        lines = data.split(b"\n")[:-1]
        whole = [line for line in (lines[1:] if start else lines) if not line.endswith(TORN)]
        return [self._block(line, 0) for line in whole[max(0, len(whole) - n) :]]

    def _block(self, line: bytes, number: int) -> Block:
        body, problem = read_object(line.removeprefix(_BOM))
        if body is None:
            head = clean_line(line[:200].decode("utf-8", "replace"), 60)
            return Finding(self.path.name, number, f"{problem}: {head}", "not shown as a block")
        return self._parse(body)

    def text_of(self, block: TranscriptBlock, limit: int = MAX_TEXT) -> str:
        """The whole text of a block, also where it lies in a blob; cut after ``limit`` bytes, and says so."""
        if not _SHA.fullmatch(block.blob):
            return block.text
        try:
            data = read_beginning(self.path.parent / "blobs" / block.blob, self._root, limit)
        except Refused as error:
            return f"{block.text}\n[the rest, blob {block.blob[:12]}, {error}]"
        cut = f"\n[cut after {limit} bytes]" if len(data) >= limit else ""
        return data.decode("utf-8", "replace") + cut

    # --- searching --------------------------------------------------------------------------------

    def search(
        self, text: str, start: int, direction: int, stop: Callable[[float], bool] | None = None
    ) -> int | None:
        """The next block from ``start`` on (included) whose text, tool or arguments hold ``text``; None if there is none.

        ``direction``: 1 forward, -1 backward. Case counts only if ``text`` has capitals. Texts in blobs are
        searched only as far as their beginning stands in the line. ``stop`` is asked after each 4 MB with
        the share that was searched; if it says so, the search ends with None.
        """
        needle = _Needle(text)
        fd = self._open() if text else None
        if fd is None:
            return None
        try:
            for lo, hi, share in self._slices(start, direction):
                found = self._search_slice(fd, needle, lo, hi, direction)
                if found is not None:
                    return found
                if stop is not None and stop(share):
                    return None
        except OSError as error:
            self.trouble = f"cannot be read ({error.strerror})"
        finally:
            os.close(fd)
        return None

    def _slices(self, start: int, direction: int) -> Iterator[tuple[int, int, float]]:
        """Ranges of blocks of about 4 MB, and the share of the way that lies behind after each."""
        count = len(self._starts)
        if direction > 0:
            lo = max(0, start)
            whole = max(1, count - lo)
            while lo < count:
                hi = max(lo + 1, bisect_left(self._starts, self._starts[lo] + SLICE))
                yield lo, hi, 1 - (count - hi) / whole
                lo = hi
        else:
            hi = min(start + 1, count)
            whole = max(1, hi)
            while hi > 0:
                lo = min(hi - 1, bisect_left(self._starts, max(0, self._stop(hi - 1) - SLICE)))
                yield lo, hi, 1 - lo / whole
                hi = lo

    def _stop(self, i: int) -> int:
        return self._starts[i + 1] if i + 1 < len(self._starts) else self._end

    def _search_slice(self, fd: int, needle: _Needle, lo: int, hi: int, direction: int) -> int | None:
        first, size = self._starts[lo], self._stop(hi - 1) - self._starts[lo]
        if hi == lo + 1 and size > READABLE_LINE:
            return None
        data = os.pread(fd, size, first)
        folded = needle.fold(data)
        at = 0 if direction > 0 else len(data)
        while (at := needle.find(folded, at) if direction > 0 else needle.rfind(folded, at)) >= 0:
            i = bisect_right(self._starts, first + at) - 1
            begin, end = self._starts[i] - first, self._stop(i) - first
            line = data[begin:end].partition(b"\n")[0]
            if len(line) <= READABLE_LINE and needle.is_shown(self._block(line, i + 1)):
                return i
            at = end if direction > 0 else begin
        return None


class _Needle:
    """A searched text, as it may stand in the bytes of a JSON line."""

    def __init__(self, text: str) -> None:
        self._any_case = text == text.lower()
        self._text = text
        forms = {
            json.dumps(text, ensure_ascii=ascii)[1:-1].encode("utf-8", "replace") for ascii in (False, True)
        }
        self._forms = sorted(form.lower() if self._any_case else form for form in forms)

    def fold(self, data: bytes) -> bytes:
        """The bytes in which :meth:`find` and :meth:`rfind` look."""
        return data.lower() if self._any_case else data

    def find(self, folded: bytes, start: int) -> int:
        return min((at for form in self._forms if (at := folded.find(form, start)) >= 0), default=-1)

    def rfind(self, folded: bytes, end: int) -> int:
        return max(folded.rfind(form, 0, end) for form in self._forms)

    def is_shown(self, block: Block) -> bool:
        """Whether the text is in what people see of the block, not only in a key of its line."""
        if isinstance(block, Finding):
            return False
        parts = (block.text, block.tool, block.cand, block.item, *_texts(block.args))
        return any(self._text in (part.lower() if self._any_case else part) for part in parts)


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting += [*item, *item.values()]
        elif isinstance(item, list):
            waiting += item


def _is_torn(fd: int, newline: int) -> bool:
    """Whether the line that ends at this offset was cut by a crash and closed later."""
    begin = max(0, newline - len(TORN))
    return os.pread(fd, newline - begin, begin) == TORN


def _identity(fd: int) -> tuple[int, int]:
    facts = os.fstat(fd)
    return facts.st_dev, facts.st_ino
