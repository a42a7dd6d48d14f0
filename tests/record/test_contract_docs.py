"""docs/contract.md: its examples are right, and it names every key of both formats."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from kda_tui.record.contract import Contract, parse_contract
from kda_tui.record.launch_plan import LaunchPlan, parse_launch_plan

DOC = Path(__file__).resolve().parents[2] / "docs" / "contract.md"
TEXT = DOC.read_text(encoding="utf-8")
CONTRACT, LAUNCH = re.findall(r"^```toml\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def test_the_examples_are_right_and_belong_together() -> None:
    contract = parse_contract(CONTRACT.encode(), "docs/contract.md")
    parse_launch_plan(LAUNCH.encode(), "docs/contract.md", contract)


def keys(model: type[BaseModel]) -> set[str]:
    """Every key of a model and of the models inside it, as the file writes them."""
    found: set[str] = set()
    for name, field in model.model_fields.items():
        found.add(field.alias or name)
        for inner in _models(field.annotation):
            found |= keys(inner)
    return found


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def test_every_key_of_both_formats_is_named() -> None:
    tables = {"tensors", "scalars", "workloads", "units", "steps", "tensor_maps", "sha256"}
    prose = re.sub(r"^```toml\n.*?^```", "", TEXT, flags=re.DOTALL | re.MULTILINE)
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", prose))))
    assert (keys(Contract) | keys(LaunchPlan)) - tables - named == set()
