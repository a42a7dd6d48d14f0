"""Search over the pages of skills: headings, tags and text, ranked by SQLite's FTS5 (BM25)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kda_tui.skills.skill import Skill
from kda_tui.text import UserError

_HEADING = re.compile(r"^(#{1,4})\s+(.+?)\s*#*$")
_TAGS = re.compile(r"^tags:\s*(.+)$", re.IGNORECASE)
_WORD = re.compile(r"\w+", re.UNICODE)


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a page under one heading."""

    skill: str
    path: Path
    line: int
    page: str  # the page's title
    heading: str
    tags: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    section: Section
    snippet: str
    score: float  # smaller is better (BM25)


def sections(skill: Skill) -> list[Section]:
    """A skill's pages cut at their headings; code fences are not searched for headings."""
    found: list[Section] = []
    for path in skill.pages():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        found += _cut(skill.name, path, lines)
    return found


def _cut(skill: str, path: Path, lines: list[str]) -> list[Section]:
    title, heading, tags, start = path.stem, "", "", 1
    body: list[str] = []
    found: list[Section] = []
    fenced = False

    def close() -> None:
        if heading or any(line.strip() for line in body):
            found.append(Section(skill, path, start, title, heading or title, tags, "\n".join(body).strip()))
        body.clear()

    for number, line in enumerate(lines, start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        match = None if fenced else _HEADING.match(line)
        if match is not None:
            close()
            heading, start = match[2], number
            title = match[2] if len(match[1]) == 1 else title
            continue
        marked = _TAGS.match(line)
        if marked is not None and not fenced:
            tags = marked[1]
        body.append(line)
    close()
    return found


class SkillIndex:
    """An in-memory index; building 100 pages takes a few milliseconds, so nothing is stored."""

    def __init__(self, skills: Iterable[Skill]) -> None:
        self._sections = [section for skill in skills for section in sections(skill)]
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            self._db.execute(
                "CREATE VIRTUAL TABLE pages USING fts5(page, heading, tags, text, tokenize='porter unicode61')"
            )
        except sqlite3.OperationalError as error:
            raise UserError("this Python's SQLite has no FTS5; use a Python built with it") from error
        self._db.executemany(
            "INSERT INTO pages(rowid, page, heading, tags, text) VALUES (?, ?, ?, ?, ?)",
            [(i, s.page, s.heading, s.tags, s.text) for i, s in enumerate(self._sections)],
        )

    def __len__(self) -> int:
        return len(self._sections)

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """The best sections for some words. Any text is a query; its words are or-ed and prefix-matched."""
        words = [w for w in _WORD.findall(query)[:16] if w]
        if not words:
            return []
        match = " OR ".join(f'"{word}"*' for word in words)
        rows = self._db.execute(
            "SELECT rowid, snippet(pages, -1, '', '', ' ... ', 24), bm25(pages, 6.0, 4.0, 5.0, 1.0) AS score "
            "FROM pages WHERE pages MATCH ? ORDER BY score LIMIT ?",
            (match, limit),
        )
        return [Hit(self._sections[row], " ".join(text.split()), score) for row, text, score in rows]
