"""Mistakes in a file that people write: key, line and what would be right, all of them at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from kda_tui.text import UserError, clean_line
from kda_tui.toml_lines import Key, Lines

FILL_IN = "FILL_IN"  # what a draft says where a person must say something
SHOWN = 20  # problems that a message lists
LONGEST = 400  # characters of one
Found = Iterable[tuple[Key, str]]
Names = Mapping[str, str]  # the model's name of a top-level key -> the file's


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the key as the file writes it, its line, and what would be right."""

    key: str
    line: int
    text: str


class FormatError(UserError):
    """A file with mistakes: one line each, ``problems`` has all of them."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        cleaned = (Problem(p.key, p.line, clean_line(p.text, LONGEST)) for p in problems)
        self.problems = tuple(sorted(cleaned, key=lambda p: p.line))
        lines = [
            f"{name}, line {p.line}: {p.key}: {p.text}" if p.key else f"{name}, line {p.line}: {p.text}"
            for p in self.problems[:SHOWN]
        ]
        if len(self.problems) > SHOWN:
            lines.append(f"{name}: and {len(self.problems) - SHOWN} more")
        super().__init__("\n".join(lines))


def tupled(value: Any) -> Any:
    """Lists as tuples, all the way down: what strict models with tuple fields take."""
    if isinstance(value, list):
        return tuple(tupled(v) for v in value)
    if isinstance(value, dict):
        return {k: tupled(v) for k, v in value.items()}
    return value


def located(found: Found, lines: Lines, names: Names) -> list[Problem]:
    """Problems of a well-typed document, in the file's own spelling."""
    return [Problem(shown(key, names), lines.of(spelled(key, names)), text) for key, text in found]


def translate(error: ValidationError, model: type[BaseModel], lines: Lines, names: Names) -> list[Problem]:
    """pydantic's errors in the file's own words, one a key."""
    items: dict[Key, list[Any]] = {}
    for item in error.errors(include_url=False):
        key = _without_tags(item["loc"], lines, names)
        if len(key) > 3 and key[2] == "args":  # every form of an argument complains, at different depths
            key = key[:4]
        items.setdefault(key, []).append(item)
    return [
        Problem(shown(key, names), lines.of(spelled(key, names)), _said(found, model, key, names))
        for key, found in items.items()
    ]


def unfilled(document: Any, lines: Lines) -> list[Problem]:
    """The places of a draft that still say FILL_IN."""
    found: list[Problem] = []

    def look(value: Any, key: Key) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                look(inner, (*key, name))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                look(inner, (*key, index))
        elif isinstance(value, str) and FILL_IN in value:
            found.append(
                Problem(shown(key, {}), lines.of(key), f"is still {FILL_IN}; the comment there says what")
            )

    look(document, ())
    return found


def without(problems: Iterable[Problem], filled: Sequence[Problem]) -> list[Problem]:
    """Problems, less those at places that are to be filled in, and then those places."""
    open_places = {p.key for p in filled}
    return [*(p for p in problems if p.key not in open_places), *filled]


def near(word: str, known: Iterable[str]) -> str:
    """``did you mean X?`` where one of the known words is close, else the known words."""
    words = sorted(known)
    close = difflib.get_close_matches(word[:80], words, 1)
    if close:
        return f"did you mean {close[0]}?"
    return f"known here are {', '.join(words)}" if words else "none are known here"


def short(value: Any) -> str:
    """A value of the file, safe to show."""
    try:
        return clean_line(repr(list(value) if isinstance(value, tuple) else value)[:400], 60)
    except ValueError:  # Python prints no integer of more than 4300 digits
        return "a number of thousands of digits"


def spelled(key: Key, names: Names) -> Key:
    return tuple(names.get(p, p) if isinstance(p, str) and i == 0 else p for i, p in enumerate(key))


def shown(key: Key, names: Names) -> str:
    """``("tensors", 1, "shape", 0)`` is ``tensor[2].shape[1]``: counted from one, as people do."""
    out = ""
    for part in spelled(key, names):
        if isinstance(part, int):
            out += f"[{part + 1}]"
        else:
            out += f"{'.' if out else ''}{clean_line(part, 60)}"
    return out


_NEEDED: Mapping[str, str] = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "string_pattern_mismatch": "does not look right",
}


def _without_tags(loc: Iterable[str | int], lines: Lines, names: Names) -> Key:
    """pydantic adds the types of union members to a location; those are no keys of the file."""
    key: Key = ()
    for part in loc:
        if isinstance(part, int) or not _is_tag(part) or lines.has(spelled((*key, part), names)):
            key = (*key, part)
    return key


def _is_tag(part: str) -> bool:
    return part in ("int", "str", "float", "bool", "none") or "[" in part or part.endswith("Arg")


def _said(items: Sequence[Any], model: type[BaseModel], key: Key, names: Names) -> str:
    """What would be right for a key; several ``items`` are the complaints of a union's members."""
    item, value = items[0], items[0].get("input")
    kind, context = item["type"], item.get("ctx", {})
    if len(key) == 4 and key[2] == "args":
        return "must be a name, or {tensor, offset}, {axis, as}, {scalar, as} or {value, as}"
    if kind == "extra_forbidden":
        return f"unknown key; {near(str(key[-1]), _fields_at(model, key[:-1], names))}"
    if kind == "missing":
        return "is missing"
    if kind == "literal_error":
        expected = str(context.get("expected", "")).replace("'", "").replace(" or ", ", ")
        return f"{short(value)} is not one of {expected}"
    if kind == "tuple_type" and len(key) == 1 and key[0] in names:
        return f"a table of its own for each: write [[{names[str(key[0])]}]]"
    if kind in ("too_long", "too_short"):
        most = kind == "too_long"
        bound = context["max_length" if most else "min_length"]
        return f"must have at {'most' if most else 'least'} {bound} entries"
    needed = _UNIONS.get(frozenset(i["type"] for i in items)) or _NEEDED.get(kind)
    message = needed or str(item["msg"]).replace("Input ", "").replace("String", "text")
    return f"{message}, it is {short(value)}"


_UNIONS: Mapping[frozenset[str], str] = {
    frozenset({"int_type", "string_type"}): "must be a whole number or an expression",
    frozenset({"float_type", "int_type"}): "must be a number",
    frozenset(
        {"int_type", "float_type", "string_type", "bool_type"}
    ): "must be a number, a text, true or false",
    frozenset({"string_type", "tuple_type"}): "must be a text or a list of texts",
}


def _fields_at(model: type[BaseModel], key: Key, names: Names) -> list[str]:
    """Keys, as the file spells them, of the table that a key path leads to."""
    current: Any = model
    free = False  # the next part is a name that the file chose: a key of a dict
    for part in key:
        if isinstance(part, int) or free:
            free = False
            continue
        field = current.model_fields.get(part) if _is_model(current) else None
        if field is None:
            return []
        free = get_origin(field.annotation) is dict
        current = _model_in(field.annotation)
    if not _is_model(current):
        return []
    return [names.get(f.alias or n, f.alias or n) for n, f in current.model_fields.items() if n != "sha256"]


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)


def _model_in(annotation: Any) -> Any:
    if _is_model(annotation):
        return annotation
    for inner in get_args(annotation):
        found = _model_in(inner)
        if found is not None:
            return found
    return None
