"""Themes as TOML files: checked colours and a rich style for each style word.

A theme file has ``name``, ``dark``, optionally ``ansi`` (use the terminal's own 16 colours), a table
``[colors]`` for surfaces and a table ``[styles]`` for words. Missing words get the plain look, so a
short file is a valid theme; a wrong colour is an error that names file and key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.errors import StyleSyntaxError
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from kda_tui.config import share_path, user_folder
from kda_tui.text import UserError

COLORS: tuple[str, ...] = (
    "foreground", "background", "surface", "panel", "primary", "secondary", "accent",
    "success", "warning", "error",
)  # fmt: skip

WORDS: Mapping[str, str] = {
    "dim": "secondary text: ages, units, what is absent",
    "bold": "emphasis",
    "title": "title row of a pane",
    "title_focus": "title row of the pane that has the keys",
    "head": "column headings",
    "bar": "status line and hint line",
    "wait": "the line that says what waits for a person",
    "good": "passed, faster, taken, alive",
    "bad": "failed, slower, refused, gone",
    "warn": "held, stale, sent, inconclusive",
    "info": "running now",
    "key": "a key in a hint",
    "cursor": "the selected row",
    "mark": "a marked row, a found text",
    "thinking": "the agent's thinking",
    "tool": "a tool call",
    "person": "what a person said",
    "add": "an added line of a diff",
    "del": "a removed line of a diff",
    "hunk": "the position line of a diff",
    "src_keyword": "source: keywords",
    "src_type": "source: types",
    "src_string": "source: strings",
    "src_number": "source: numbers",
    "src_comment": "source: comments",
    "src_name": "source: functions and names",
}

DEFAULT_THEME = "kda-dark"


class ThemeError(UserError):
    """A theme file that cannot be used: file, key, and what would be right."""


@dataclass(frozen=True)
class Look:
    """A checked theme."""

    name: str
    dark: bool
    ansi: bool
    colors: Mapping[str, str]
    styles: Mapping[str, Style] = field(default_factory=dict)
    path: str = ""

    def style(self, word: str) -> Style:
        """The rich style of a style word; an unknown word is plain."""
        return self.styles.get(word, _PLAIN)

    def to_textual(self) -> Theme:
        like = BUILTIN_THEMES["ansi-dark" if self.dark else "ansi-light"]
        colors = dict(self.colors)
        return Theme(
            name=self.name,
            dark=self.dark,
            ansi=self.ansi,
            variables=dict(like.variables) if self.ansi else {},
            primary=colors.pop("primary"),
            **colors,  # type: ignore[arg-type]
        )


_PLAIN = Style()


def parse_theme(text: str, name: str) -> Look:
    """A theme from TOML text; raises :class:`ThemeError` naming ``name`` and the key."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ThemeError(f"{name}: not TOML: {error}") from None
    known = {"name", "dark", "ansi", "colors", "styles"}
    for key in data:
        if key not in known:
            raise ThemeError(f"{name}: {key}: unknown key; a theme has {', '.join(sorted(known))}")
    ansi = _boolean(data, "ansi", False, name)
    colors = {
        key: _color(value, f"{name}: colors.{key}") for key, value in _table(data, "colors", name).items()
    }
    for key in colors:
        if key not in COLORS:
            raise ThemeError(f"{name}: colors.{key}: unknown colour; there are {', '.join(COLORS)}")
    if "primary" not in colors:
        raise ThemeError(f"{name}: colors.primary is missing; it is the one colour a theme must have")
    styles: dict[str, Style] = {}
    for key, value in _table(data, "styles", name).items():
        if key not in WORDS:
            raise ThemeError(f"{name}: styles.{key}: unknown word; there are {', '.join(WORDS)}")
        styles[key] = _style(value, f"{name}: styles.{key}")
    title = data.get("name", Path(name).stem)
    if not isinstance(title, str) or not title:
        raise ThemeError(f"{name}: name: must be a text")
    return Look(title, _boolean(data, "dark", True, name), ansi, colors, styles, name)


def load_themes(folders: Iterable[Path]) -> tuple[dict[str, Look], list[str]]:
    """Every theme of the folders by name (later folders win) and the messages of those refused."""
    looks: dict[str, Look] = {}
    failed: list[str] = []
    for folder in folders:
        try:
            files = sorted(folder.glob("*.toml"))
        except OSError:
            continue
        for path in files:
            try:
                look = parse_theme(path.read_text(encoding="utf-8"), str(path))
            except (ThemeError, OSError, UnicodeDecodeError) as error:
                failed.append(str(error))
                continue
            looks[look.name] = look
    return looks, failed


def theme_folders() -> list[Path]:
    """Where themes are looked for: shipped ones, then the user's own."""
    return [share_path("themes"), user_folder() / "themes"]


def _table(data: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise ThemeError(f"{name}: {key}: must be a table [{key}]")
    return value


def _boolean(data: Mapping[str, Any], key: str, default: bool, name: str) -> bool:
    value = data.get(key, default)
    if not isinstance(value, bool):
        raise ThemeError(f"{name}: {key}: must be true or false")
    return value


def _color(value: Any, where: str) -> str:
    try:
        Color.parse(value)
    except (ColorParseError, TypeError, ValueError):
        raise ThemeError(f'{where}: {value!r} is not a colour; write "#rrggbb" or "ansi_green"') from None
    return str(value)


def _style(value: Any, where: str) -> Style:
    try:
        return Style.parse(value)
    except (StyleSyntaxError, TypeError, AttributeError):
        message = f'{where}: {value!r} is not a style; write for example "bold #rrggbb on #rrggbb"'
        raise ThemeError(message) from None
