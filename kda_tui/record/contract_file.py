"""Reading contract.toml: every mistake with its key, its line, and what would be right."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from kda_tui.record.contract_checks import check_contract
from kda_tui.record.contract_model import Contract
from kda_tui.record.toml_lines import Lines, parse_toml
from kda_tui.text import UserError, clean_line

Key = tuple[str | int, ...]

_PLURAL = {"tensor": "tensors", "scalar": "scalars", "workload": "workloads"}
_SINGULAR = {plural: single for single, plural in _PLURAL.items()}


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the key as the file writes it, its line, and what would be right."""

    key: str
    line: int
    text: str


class FormatError(UserError):
    """A file with mistakes, all of them, one a line."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [
            f"{name}, line {p.line}: {p.key}: {p.text}" if p.key else f"{name}, line {p.line}: {p.text}"
            for p in problems
        ]
        super().__init__("\n".join(lines))


class ContractError(FormatError):
    """contract.toml cannot be used."""


def load_contract(path: Path) -> Contract:
    """Read and check a contract. Raises ContractError (or UserError when it cannot be read)."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}); a workspace needs a contract.toml"
        ) from error
    return parse_contract(data, str(path))


def parse_contract(data: bytes, name: str = "contract.toml") -> Contract:
    """The contract in some bytes; ``name`` is what errors call the file."""
    document, lines = parse_toml(data, name)
    body = _renamed(document)
    try:
        contract = Contract.model_validate({**body, "sha256": hashlib.sha256(data).hexdigest()})
    except ValidationError as error:
        raise ContractError(name, translate(error, Contract, lines, _SINGULAR)) from error
    problems = [
        Problem(shown(key, _SINGULAR), lines.of(spelled(key, _SINGULAR)), text)
        for key, text in check_contract(contract)
    ]
    if problems:
        raise ContractError(name, sorted(problems, key=lambda p: p.line))
    return contract


def _renamed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Repeated tables are singular in the file; ``hidden`` may stand as a ``[[workload]]`` of its own."""
    body = {_PLURAL.get(key, key): value for key, value in document.items() if key != "sha256"}
    workloads = body.get("workloads")
    if isinstance(workloads, list):
        hidden = [w for w in workloads if isinstance(w, dict) and set(w) == {"hidden"}]
        if hidden and "hidden" not in body:
            body["hidden"] = hidden[0]["hidden"]
            body["workloads"] = [w for w in workloads if w not in hidden]
    return body


def translate(
    error: ValidationError, model: type[BaseModel], lines: Lines, singular: Mapping[str, str]
) -> list[Problem]:
    """pydantic's errors in the file's own words, one a key, in order of line."""
    found: dict[str, Problem] = {}
    for item in error.errors(include_url=False):
        key = _without_tags(item["loc"])
        if len(key) > 3 and key[2] == "args":  # every member of the union complains: one word for all
            key = key[:4]
            item = {**item, "type": "argument"}
        name = shown(key, singular)
        problem = Problem(name, lines.of(spelled(key, singular)), _said(item, model, key))
        found.setdefault(name, problem)
    return sorted(found.values(), key=lambda p: p.line)


def _without_tags(loc: Iterable[str | int]) -> Key:
    """pydantic adds type names of union members to a location; keys of ours are lower case."""
    return tuple(
        p for p in loc if isinstance(p, int) or (p == p.lower() and "[" not in p and p not in ("int", "str"))
    )


def spelled(key: Key, singular: Mapping[str, str]) -> Key:
    return tuple(singular.get(p, p) if isinstance(p, str) and i == 0 else p for i, p in enumerate(key))


def shown(key: Key, singular: Mapping[str, str]) -> str:
    """``("tensors", 1, "shape", 0)`` is ``tensor[2].shape[1]``: counted from one, as people do."""
    out = ""
    for part in spelled(key, singular):
        out += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if out else part
    return out


def _said(item: Any, model: type[BaseModel], key: Key) -> str:
    kind, context, value = item["type"], item.get("ctx", {}), item.get("input")
    if kind == "extra_forbidden":
        known = _fields_at(model, key[:-1])
        near = difflib.get_close_matches(str(key[-1]), known, 1)
        return (
            f"unknown key; did you mean {near[0]}?"
            if near
            else f"unknown key; known here are {', '.join(known)}"
        )
    if kind == "argument":
        return "must be a name, or {tensor, offset}, {axis, as}, {scalar, as} or {value, as}"
    if kind == "missing":
        return "is missing"
    if kind == "literal_error":
        return f"{_short(value)} is not one of {str(context.get('expected', '')).replace(chr(39), '')}"
    return f"{item['msg'][0].lower()}{item['msg'][1:]}, it is {_short(value)}"


def _short(value: Any) -> str:
    return clean_line(repr(value))[:80]


def _fields_at(model: type[BaseModel], key: Key) -> list[str]:
    """Field names of the model that a key path leads to."""
    current: Any = model
    for part in key:
        if isinstance(part, int):
            continue
        field = current.model_fields.get(part) if _is_model(current) else None
        if field is None:
            return []
        current = _model_in(field.annotation)
    names = current.model_fields.items() if _is_model(current) else []
    return [
        _SINGULAR.get(field.alias or name, field.alias or name) for name, field in names if name != "sha256"
    ]


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
