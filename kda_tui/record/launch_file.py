"""Reading and writing launch.toml: every mistake with its key, its line, and what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from kda_tui.problems import FormatError, Problem, located, translate, tupled, unfilled, without
from kda_tui.record.contract_file import unknown_tables
from kda_tui.record.contract_model import Contract
from kda_tui.record.launch_checks import check_launch_plan
from kda_tui.record.launch_model import LaunchPlan
from kda_tui.record.plain_file import Refused, read_plain
from kda_tui.text import UserError
from kda_tui.toml_lines import MAX_BYTES, TomlError, parse_toml

# Repeated tables are singular in the file and plural in the model.
NAMES = {"units": "unit", "tensor_maps": "tensor_map", "steps": "step", "scratch": "scratch"}
_FIELDS = {name: field for field, name in NAMES.items()}
_ORDER = ("hypothesis", "parents", "family", "unit", "scratch", "tensor_map", "step", "tune")


class LaunchPlanError(FormatError):
    """launch.toml cannot be used."""


def load_launch_plan(path: Path, contract: Contract | None = None) -> LaunchPlan:
    """Read and check a launch plan; with a contract, its names are checked too.

    Raises LaunchPlanError, or UserError when the file cannot be read.
    """
    try:
        data = read_plain(path, path.parent, MAX_BYTES)
    except Refused as error:
        raise UserError(f"{path}: {error}; a candidate needs a launch.toml") from error
    return parse_launch_plan(data, str(path), contract)


def parse_launch_plan(data: bytes, name: str = "launch.toml", contract: Contract | None = None) -> LaunchPlan:
    """The launch plan in some bytes. Raises LaunchPlanError with all problems."""
    try:
        document, lines = parse_toml(data, name)
    except TomlError as error:
        raise LaunchPlanError(name, [Problem("", error.line, error.what)]) from error
    problems = unknown_tables(document, lines, set(LaunchPlan.model_fields), NAMES)
    unknown = {problem.key for problem in problems}
    open_places = unfilled(document, lines)
    body = {_FIELDS.get(k, k): tupled(v) for k, v in document.items() if k not in unknown}
    try:
        plan = LaunchPlan.model_validate(body, strict=True)
    except ValidationError as error:
        raise LaunchPlanError(
            name, without([*problems, *translate(error, LaunchPlan, lines, NAMES)], open_places)
        ) from error
    problems = without([*problems, *located(check_launch_plan(plan, contract), lines, NAMES)], open_places)
    if problems:
        raise LaunchPlanError(name, problems)
    return plan


def with_defines(plan: LaunchPlan, defines: Mapping[str, Any], **changes: Any) -> LaunchPlan:
    """The plan with other values for defines that its units have, and other fields: hypothesis, parents."""
    units = tuple(
        unit.model_copy(
            update={"defines": {k: defines.get(k, v) for k, v in unit.defines.items()}},
        )
        for unit in plan.units
    )
    return plan.model_copy(update={"units": units, **changes})


def dump_launch_plan(plan: LaunchPlan, defines: Mapping[str, Any] | None = None, **changes: Any) -> str:
    """The plan as launch.toml, keys that have their default left out.

    ``defines`` replace those of every unit that has them; ``changes`` replace fields (hypothesis,
    parents, family). Parsing the text gives an equal plan.
    """
    if defines or changes:
        plan = with_defines(plan, defines or {}, **changes)
    body = plan.model_dump(mode="python", by_alias=True, exclude_defaults=True, exclude_none=True)
    for step, given in zip(plan.steps, body.get("steps", ()), strict=False):
        if step.kernel is not None:
            given.update(grid=step.grid, block=step.block)  # required, even where they are the default
    out = {NAMES.get(key, key): value for key, value in body.items()}
    return tomli_w.dumps({key: out[key] for key in _ORDER if key in out})
