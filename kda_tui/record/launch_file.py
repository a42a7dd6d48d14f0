"""Reading launch.toml: every mistake with its key, its line, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from kda_tui.expressions import ExpressionError, check, names_in
from kda_tui.record.contract_file import FormatError, Key, Problem, shown, spelled, translate
from kda_tui.record.contract_model import Contract, Expr
from kda_tui.record.launch_model import AxisArg, LaunchPlan, ScalarArg, Step, TensorArg, Unit, ValueArg
from kda_tui.record.sizes import DEVICE_FACTS, known_names
from kda_tui.record.toml_lines import parse_toml
from kda_tui.text import UserError

Found = Iterator[tuple[Key, str]]

_PLURAL = {"unit": "units", "tensor_map": "tensor_maps", "step": "steps"}
_SINGULAR = {plural: single for single, plural in _PLURAL.items()}
_FILE = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\.(cu|ptx)$")
_NAME = re.compile(r"^[A-Za-z_]\w*$")


class LaunchPlanError(FormatError):
    """launch.toml cannot be used."""


def load_launch_plan(path: Path, contract: Contract | None = None) -> LaunchPlan:
    """Read and check a launch plan; with a contract, its names are checked too."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}); a candidate needs a launch.toml"
        ) from error
    return parse_launch_plan(data, str(path), contract)


def parse_launch_plan(data: bytes, name: str = "launch.toml", contract: Contract | None = None) -> LaunchPlan:
    """The launch plan in some bytes. Raises LaunchPlanError with all problems."""
    document, lines = parse_toml(data, name)
    body = {_PLURAL.get(key, key): value for key, value in document.items()}
    try:
        plan = LaunchPlan.model_validate(body)
    except ValidationError as error:
        raise LaunchPlanError(name, translate(error, LaunchPlan, lines, _SINGULAR)) from error
    problems = [
        Problem(shown(key, _SINGULAR), lines.of(spelled(key, _SINGULAR)), text)
        for key, text in check_launch_plan(plan, contract)
    ]
    if problems:
        raise LaunchPlanError(name, sorted(problems, key=lambda p: p.line))
    return plan


def dump_launch_plan(plan: LaunchPlan, defines: Mapping[str, Any] | None = None) -> str:
    """The plan as launch.toml; ``defines`` replace those of every unit that has them."""
    body = plan.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True)
    for unit, given in zip(plan.units, body.get("units", []), strict=False):
        changed = {k: v for k, v in (defines or {}).items() if k in unit.defines}
        if changed:
            given["defines"] = {**unit.defines, **changed}
    out = {_SINGULAR.get(key, key): value for key, value in body.items()}
    return tomli_w.dumps({k: v for k, v in out.items() if v not in ({}, [])})


def check_launch_plan(plan: LaunchPlan, contract: Contract | None) -> list[tuple[Key, str]]:
    """Every problem of a well-typed plan."""
    return [
        *_units(plan),
        *_buffers(plan, contract),
        *_maps(plan, contract),
        *_steps(plan, contract),
        *_tune(plan),
    ]


def _units(plan: LaunchPlan) -> Found:
    seen: set[str] = set()
    for i, unit in enumerate(plan.units):
        at: Key = ("units", i)
        if unit.file.endswith(".py"):
            yield (
                (*at, "file"),
                "Python (Triton) sources are not accepted yet; compile to .ptx and submit that",
            )
        elif not _FILE.match(unit.file):
            yield (
                (*at, "file"),
                f"'{unit.file}' must be a plain .cu or .ptx name inside the candidate's folder",
            )
        if not _NAME.match(unit.name) or unit.name in seen:
            yield (*at, "name"), f"'{unit.name}' must be a name of its own"
        seen.add(unit.name)
        for name in unit.defines:
            if not _NAME.match(name):
                yield (*at, "defines", name), f"'{name}' is no macro name"
    if not plan.units:
        yield ("units",), "is empty; leave it out for one unit of kernel.cu"


def _tensors(contract: Contract | None) -> dict[str, str]:
    return {t.name: t.role for t in contract.tensors} if contract is not None else {}


def _buffers(plan: LaunchPlan, contract: Contract | None) -> Found:
    taken = set(_tensors(contract))
    for i, scratch in enumerate(plan.scratch):
        if not _NAME.match(scratch.name) or scratch.name in taken:
            yield ("scratch", i, "name"), f"'{scratch.name}' must be a name of its own, no tensor's"
        taken.add(scratch.name)
        for j, length in enumerate(scratch.shape):
            yield from _expression(("scratch", i, "shape", j), length, _all_names(plan, contract))


def _maps(plan: LaunchPlan, contract: Contract | None) -> Found:
    buffers = set(_tensors(contract)) | {s.name for s in plan.scratch}
    for i, one in enumerate(plan.tensor_maps):
        at: Key = ("tensor_maps", i)
        rank = len(one.dims)
        if not 1 <= rank <= 5:
            yield (*at, "dims"), f"has {rank} entries; a tensor map has 1 to 5"
        for field, want in (("strides", rank - 1), ("box", rank)):
            if len(getattr(one, field)) != want:
                yield (
                    (*at, field),
                    f"has {len(getattr(one, field))} entries; {want} are needed for {rank} dims",
                )
        if one.element_strides and len(one.element_strides) != rank:
            yield (*at, "element_strides"), f"has {len(one.element_strides)} entries; {rank} are needed"
        if contract is not None and one.tensor not in buffers:
            yield (*at, "tensor"), f"'{one.tensor}' is no tensor or scratch"
        for field in ("dims", "strides", "box", "element_strides"):
            for j, value in enumerate(getattr(one, field)):
                yield from _expression((*at, field, j), value, _all_names(plan, contract))


def _steps(plan: LaunchPlan, contract: Contract | None) -> Found:
    if not plan.steps:
        yield ("steps",), "is empty; at least one [[step]] with kernel, grid, block and args is needed"
    for i, step in enumerate(plan.steps):
        at: Key = ("steps", i)
        if (step.kernel is None) == (step.memset is None):
            yield at, "needs exactly one of kernel and memset"
        elif step.memset is not None:
            yield from _memset(step, at, plan, contract)
        else:
            yield from _kernel(step, at, plan, contract)
        if step.when is not None:
            yield from _expression((*at, "when"), step.when, _all_names(plan, contract))


def _memset(step: Step, at: Key, plan: LaunchPlan, contract: Contract | None) -> Found:
    roles = _tensors(contract)
    scratch = {s.name for s in plan.scratch}
    if (
        contract is not None
        and step.memset not in scratch
        and roles.get(step.memset or "") not in ("out", "inout")
    ):
        yield (*at, "memset"), f"'{step.memset}' is no scratch and no tensor with role out or inout"
    if not 0 <= step.value <= 255:
        yield (*at, "value"), f"{step.value} is no byte; 0 to 255"
    if step.args:
        yield (*at, "args"), "a memset takes no args"


def unit_of(plan: LaunchPlan, kernel: str) -> tuple[Unit | None, str]:
    """The unit that a step's kernel belongs to, and the kernel's own name."""
    head, dot, tail = kernel.partition(".")
    for unit in plan.units:
        if dot and unit.name == head:
            return unit, tail
    return (plan.units[0] if plan.units else None), kernel


def _kernel(step: Step, at: Key, plan: LaunchPlan, contract: Contract | None) -> Found:
    unit, name = unit_of(plan, step.kernel or "")
    if not name.strip():
        yield (*at, "kernel"), "needs a kernel's name, or unit.name"
    for field in ("grid", "block"):
        if field not in step.model_fields_set:
            yield (*at, field), "is missing"
    known = _names(unit, contract)
    for field in ("grid", "block", "cluster"):
        for j, value in enumerate(getattr(step, field) or ()):
            yield from _expression((*at, field, j), value, known)
    yield from _expression((*at, "shared_bytes"), step.shared_bytes, known)
    for j, arg in enumerate(step.args):
        yield from _arg(arg, (*at, "args", j), plan, contract, known)


def _arg(
    arg: Any, at: Key, plan: LaunchPlan, contract: Contract | None, known: frozenset[str] | None
) -> Found:
    if isinstance(arg, ValueArg):
        yield from _expression((*at, "value"), arg.value, known)
        return
    if isinstance(arg, TensorArg):
        yield from _expression((*at, "offset"), arg.offset, known)
    if contract is None:
        return
    tensors = set(_tensors(contract)) | {s.name for s in plan.scratch}
    axes = {axis for w in contract.workloads for axis in w.axes}
    scalars = {s.name for s in contract.scalars}
    maps = {m.name for m in plan.tensor_maps}
    if isinstance(arg, TensorArg) and arg.tensor not in tensors:
        yield (
            (*at, "tensor"),
            f"'{arg.tensor}' is no tensor or scratch; known are {', '.join(sorted(tensors))}",
        )
    elif isinstance(arg, AxisArg) and arg.axis not in axes:
        yield (*at, "axis"), f"'{arg.axis}' is no axis; known are {', '.join(sorted(axes))}"
    elif isinstance(arg, ScalarArg) and arg.scalar not in scalars:
        yield (
            (*at, "scalar"),
            f"'{arg.scalar}' is no scalar; known are {', '.join(sorted(scalars)) or 'none'}",
        )
    elif isinstance(arg, str) and arg not in tensors | axes | scalars | maps:
        yield at, f"'{arg}' is no tensor, scratch, tensor map, scalar or axis"


def _names(unit: Unit | None, contract: Contract | None) -> frozenset[str] | None:
    """Names that a step's expressions may use; None = cannot be known without a contract."""
    if contract is None:
        return None
    return (
        known_names(contract) | frozenset(unit.defines if unit is not None else ()) | frozenset(DEVICE_FACTS)
    )


def _all_names(plan: LaunchPlan, contract: Contract | None) -> frozenset[str] | None:
    known = _names(None, contract)
    return None if known is None else known | {name for unit in plan.units for name in unit.defines}


def _expression(key: Key, expression: Expr, known: frozenset[str] | None) -> Found:
    try:
        if known is None:
            known = names_in(expression)  # parses; any name will do
        check(expression, known)
    except ExpressionError as error:
        yield key, str(error)


def _tune(plan: LaunchPlan) -> Found:
    defines = {name: value for unit in plan.units for name, value in unit.defines.items()}
    for name, values in plan.tune.items():
        at: Key = ("tune", name)
        if name not in defines:
            yield at, "is no define of any unit"
        elif not values:
            yield at, "is empty; list the values to try"
        elif defines[name] not in values:
            yield at, f"the default {defines[name]!r} is not among {list(values)!r}"
        elif any(isinstance(v, list | dict) for v in values):
            yield at, "values must be numbers, texts or booleans"
