"""Reading contract.toml: every mistake with its key, its line, and what would be right."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kda_tui.problems import FormatError, Problem, located, near, translate, tupled, unfilled, without
from kda_tui.record.contract_checks import check_contract
from kda_tui.record.contract_model import Contract
from kda_tui.record.plain_file import Refused, read_plain
from kda_tui.text import UserError
from kda_tui.toml_lines import MAX_BYTES, Key, Lines, TomlError, parse_toml

# Repeated tables are singular in the file and plural in the model.
NAMES = {"tensors": "tensor", "scalars": "scalar", "workloads": "workload"}
_FIELDS = {name: field for field, name in NAMES.items()}


class ContractError(FormatError):
    """contract.toml cannot be used."""


def load_contract(path: Path) -> Contract:
    """Read and check a contract. Raises ContractError, or UserError when the file cannot be read."""
    try:
        data = read_plain(path, path.parent, MAX_BYTES)
    except Refused as error:
        raise UserError(f"{path}: {error}; a workspace needs a contract.toml") from error
    return parse_contract(data, str(path))


def parse_contract(data: bytes, name: str = "contract.toml") -> Contract:
    """The contract in some bytes; ``name`` is what errors call the file. Raises ContractError."""
    try:
        document, lines = parse_toml(data, name)
    except TomlError as error:
        raise ContractError(name, [Problem("", error.line, error.what)]) from error
    document, lines = _hidden_apart(document, lines)
    problems = unknown_tables(document, lines, Contract.model_fields.keys() - {"sha256"}, NAMES)
    unknown = {problem.key for problem in problems}
    open_places = unfilled(document, lines)
    body = {_FIELDS.get(k, k): tupled(v) for k, v in document.items() if k not in unknown}
    try:
        contract = Contract.model_validate({**body, "sha256": hashlib.sha256(data).hexdigest()}, strict=True)
    except ValidationError as error:
        raise ContractError(
            name, without([*problems, *translate(error, Contract, lines, NAMES)], open_places)
        ) from error
    problems = without([*problems, *located(check_contract(contract), lines, NAMES)], open_places)
    if problems:
        raise ContractError(name, problems)
    return contract


def unknown_tables(
    document: Mapping[str, Any], lines: Lines, fields: frozenset[str] | set[str], names: Mapping[str, str]
) -> list[Problem]:
    """Top-level keys that the format has not, among them the model's own plurals."""
    known = {names.get(field, field) for field in fields}
    return [
        Problem(key, lines.of((key,)), f"unknown key; {near(key, known)}")
        for key in document
        if key not in known
    ]


def _hidden_apart(document: dict[str, Any], lines: Lines) -> tuple[dict[str, Any], Lines]:
    """``[[workload]] hidden = {...}`` says the same as ``[hidden]``: the document with the latter."""
    workloads = document.get("workload")
    if not isinstance(workloads, list) or "hidden" in document:
        return document, lines
    hidden = [i for i, w in enumerate(workloads) if isinstance(w, dict) and set(w) == {"hidden"}]
    if len(hidden) != 1:
        return document, lines
    at = hidden[0]

    def where(key: Key) -> Key:
        if key[:2] == ("workload", at):
            return key[2:] or key
        if len(key) > 1 and key[0] == "workload" and isinstance(key[1], int) and key[1] > at:
            return ("workload", key[1] - 1, *key[2:])
        return key

    rest = [w for i, w in enumerate(workloads) if i != at]
    return {**document, "workload": rest, "hidden": workloads[at]["hidden"]}, lines.moved(where)
