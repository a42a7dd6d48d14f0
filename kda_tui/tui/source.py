"""Source text with highlighting, as lines; diffs of two texts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import lru_cache

from kda_tui.text import clean
from kda_tui.tui.line import Line, plain, span

MAX_HIGHLIGHT = 400_000  # characters; longer texts are shown plain


@lru_cache(maxsize=8)
def highlight(text: str, language: str = "cuda") -> list[Line]:
    """The text as lines with style words; a language that is not known is plain."""
    text = clean(text).expandtabs(4)
    if len(text) > MAX_HIGHLIGHT:
        return [((part, ""),) for part in text.split("\n")]
    lines: list[Line] = []
    row: list[tuple[str, str]] = []
    for style, value in _tokens(text, language):
        parts = value.split("\n")
        for n, part in enumerate(parts):
            if n:
                lines.append(tuple(row))
                row = []
            if part:
                row.append((part, style))
    lines.append(tuple(row))
    return lines


def _tokens(text: str, language: str) -> list[tuple[str, str]]:
    from pygments.lexers import CppLexer, CudaLexer, MarkdownLexer, PythonLexer, TOMLLexer
    from pygments.token import Token

    lexers = {
        "cuda": CudaLexer,
        "cpp": CppLexer,
        "python": PythonLexer,
        "toml": TOMLLexer,
        "markdown": MarkdownLexer,
    }
    lexer = lexers.get(language)
    if lexer is None:
        return [("", text)]
    styles: Mapping[object, str] = {
        Token.Keyword.Type: "src_type",
        Token.Keyword: "src_keyword",
        Token.Literal.String: "src_string",
        Token.Literal.Number: "src_number",
        Token.Comment.Preproc: "src_keyword",
        Token.Comment: "src_comment",
        Token.Name.Function: "src_name",
        Token.Name.Builtin: "src_name",
        Token.Name.Class: "src_type",
        Token.Generic.Heading: "bold",
    }
    out = []
    for token, value in lexer(stripnl=False, ensurenl=False).get_tokens(text):
        kind = token
        while kind is not None and kind not in styles:
            kind = kind.parent
        out.append((styles[kind] if kind is not None else "", value))
    return out


def language_of(name: str) -> str:
    """The highlighting language of a file name."""
    suffix = name.rsplit(".", 1)[-1]
    return {
        "cu": "cuda",
        "cuh": "cuda",
        "h": "cpp",
        "cpp": "cpp",
        "py": "python",
        "toml": "toml",
        "md": "markdown",
    }.get(suffix, "")


def diff_lines(before: str, after: str, before_name: str, after_name: str, context: int = 3) -> list[Line]:
    """A unified diff; equal texts say so."""
    old, new = clean(before).split("\n"), clean(after).split("\n")
    if old == new:
        return [plain(f"{before_name} and {after_name} are the same text", "dim")]
    out: list[Line] = []
    for line in difflib.unified_diff(old, new, before_name, after_name, lineterm="", n=context):
        if line.startswith(("---", "+++")):
            style = "bold"
        else:
            style = {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "")
        out.append((span(line.expandtabs(4), style),))
    return out
