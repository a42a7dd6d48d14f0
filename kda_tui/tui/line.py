"""Lines of styled text as plain values: what panes make and what the row widget paints.

A line is a tuple of spans, a span is (text, style word). Style words say what a text *is*
(``good``, ``bad``, ``dim``, ...); the theme says how it looks (:mod:`kda_tui.tui.themes`). Texts are
never parsed as markup. Everything that comes from outside passes :func:`span` or :func:`plain`,
which clean it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, get_character_cell_size, set_cell_size

from kda_tui.text import clean, clean_line

Span = tuple[str, str]
Line = tuple[Span, ...]

EMPTY: Line = ()


def span(text: object, style: str = "") -> Span:
    """A cleaned span of one line; tabs and newlines become visible spaces."""
    return (clean_line(str(text)), style)


def plain(text: object, style: str = "") -> Line:
    """A line of one cleaned span."""
    return (span(text, style),)


def split(text: object, style: str = "") -> list[Line]:
    """A text of several lines, cleaned, tabs expanded, one line each."""
    return [((part, style),) for part in clean(str(text)).expandtabs(4).split("\n")]


def text_of(line: Line) -> str:
    """The characters of a line, without styles."""
    return "".join(part for part, _ in line)


def width(line: Line) -> int:
    """Terminal cells that a line takes."""
    return sum(cell_len(part) for part, _ in line)


def crop(line: Line, cells: int, more: str = "…") -> Line:
    """The line cut to ``cells``, with ``more`` at its end when something was cut."""
    if cells <= 0:
        return EMPTY
    if width(line) <= cells:
        return line
    room = max(0, cells - cell_len(more))
    out: list[Span] = []
    for part, style in line:
        length = cell_len(part)
        if length > room:
            out.append((set_cell_size(part, room), style))
            break
        out.append((part, style))
        room -= length
    style = out[-1][1] if out else ""
    return (*out, (more, style)) if cell_len(more) <= cells else tuple(out)


def fit(text: str, cells: int, right: bool = False, more: str = "…") -> str:
    """A cell of a table: ``text`` cut or padded to exactly ``cells``."""
    length = cell_len(text)
    if length > cells:
        return set_cell_size(text, max(0, cells - 1)) + more if cells > 0 else ""
    pad = " " * (cells - length)
    return pad + text if right else text + pad


def join(parts: Iterable[Line], between: str = "  ") -> Line:
    """Non-empty lines side by side."""
    out: list[Span] = []
    for part in parts:
        if not any(text for text, _ in part):
            continue
        if out:
            out.append((between, ""))
        out.extend(part)
    return tuple(out)


def spread(left: Line, right: Line, cells: int) -> Line:
    """``left`` at the left and ``right`` at the right edge; the right one wins when space is short."""
    room = cells - width(right)
    if room <= 0:
        return crop(right, cells)
    left = crop(left, room - 1)
    return (*left, (" " * (room - width(left)), ""), *right)


def wrap(line: Line, cells: int, indent: int = 0) -> list[Line]:
    """The line broken at spaces to at most ``cells``; further rows are indented."""
    if cells <= 4 or width(line) <= cells:
        return [line]
    pad: Line = ((" " * indent, ""),) if 0 < indent < cells // 2 else EMPTY
    rows: list[Line] = []
    row: list[Span] = []
    used = 0
    for word, style in _words(line):
        size = cell_len(word)
        if used + cell_len(word.rstrip(" ")) > cells and used > 0 and width(tuple(row)) > width(pad):
            rows.append(_rstrip(row))
            row, used = list(pad), width(pad)
            if not word.strip(" "):
                continue
        while used + cell_len(word.rstrip(" ")) > cells:
            head, word = _break(word, cells - used)
            rows.append((*row, (head, style)))
            row, used = list(pad), width(pad)
        size = cell_len(word)
        if word:
            row.append((word, style))
            used += size
    if row and (not rows or tuple(row) != pad):
        rows.append(_rstrip(row))
    return rows


def _words(line: Line) -> list[Span]:
    """Spans cut after each run of spaces."""
    out: list[Span] = []
    for part, style in line:
        start = 0
        for i in range(1, len(part)):
            if part[i - 1] == " " and part[i] != " ":
                out.append((part[start:i], style))
                start = i
        out.append((part[start:], style))
    return out


def _break(word: str, cells: int) -> tuple[str, str]:
    """Cut a word that is longer than a row; always makes progress."""
    used = 0
    for i, char in enumerate(word):
        used += get_character_cell_size(char)
        if used > cells:
            at = max(1, i)
            return word[:at], word[at:]
    return word, ""


def _rstrip(row: Sequence[Span]) -> Line:
    out = list(row)
    while out and not out[-1][0].strip(" "):
        out.pop()
    if out:
        out[-1] = (out[-1][0].rstrip(" "), out[-1][1])
    return tuple(out)
