"""What a launch plan must satisfy beyond the types of its keys. Each check yields (key path, what is right)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kda_tui.expressions import ExpressionError, check, names_in
from kda_tui.problems import near
from kda_tui.record.contract_checks import RESERVED, is_name
from kda_tui.record.contract_model import Contract, Expr
from kda_tui.record.launch_model import (
    AxisArg,
    LaunchPlan,
    ScalarArg,
    Step,
    TensorArg,
    Unit,
    ValueArg,
    unit_of,
)
from kda_tui.record.sizes import known_names
from kda_tui.toml_lines import Key

Found = Iterator[tuple[Key, str]]

_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}\.(cu|ptx)")
_KERNEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*(<[\w:, <>*-]+>)?|[A-Za-z_$][\w$]*")
_LAUNCH_KEYS = ("grid", "block", "cluster", "cooperative", "pdl", "shared_bytes", "args")


@dataclass(frozen=True, slots=True)
class _Names:
    """What names mean here; without a contract only the plan's own are known, and any other may be right."""

    contract: bool
    roles: dict[str, str]
    scratch: frozenset[str]
    maps: frozenset[str]
    scalars: frozenset[str]
    axes: frozenset[str]
    expressions: frozenset[str]

    @property
    def buffers(self) -> frozenset[str]:
        return frozenset(self.roles) | self.scratch


def check_launch_plan(plan: LaunchPlan, contract: Contract | None) -> list[tuple[Key, str]]:
    """Every problem of a well-typed plan."""
    names = _names_of(plan, contract)
    return [
        *_units(plan, names),
        *_own_names(plan, names),
        *_scratch(plan, names),
        *_maps(plan, names),
        *_steps(plan, names),
        *_tune(plan),
    ]


def _names_of(plan: LaunchPlan, contract: Contract | None) -> _Names:
    scratch = frozenset(s.name for s in plan.scratch)
    maps = frozenset(m.name for m in plan.tensor_maps)
    if contract is None:
        nothing: frozenset[str] = frozenset()
        return _Names(False, {}, scratch, maps, nothing, nothing, nothing)
    return _Names(
        True,
        {t.name: t.role for t in contract.tensors},
        scratch,
        maps,
        frozenset(s.name for s in contract.scalars),
        frozenset(axis for w in contract.workloads for axis in w.axes),
        known_names(contract),
    )


def _units(plan: LaunchPlan, names: _Names) -> Found:
    if not plan.units:
        yield ("units",), "is empty; leave it out for one unit of kernel.cu"
    counts = Counter(unit.name for unit in plan.units)
    for i, unit in enumerate(plan.units):
        at: Key = ("units", i)
        if unit.file.endswith(".py"):
            yield (*at, "file"), "Python (Triton) sources are not accepted; compile to .ptx and submit that"
        elif not _FILE.fullmatch(unit.file):
            yield (*at, "file"), f"'{unit.file}' must be a plain .cu or .ptx name in the candidate's folder"
        if not is_name(unit.name):
            yield (*at, "name"), f"'{unit.name}' is no name; letters, digits and _"
        elif counts[unit.name] > 1:
            yield (*at, "name"), f"'{unit.name}' is used twice; every unit has its own name"
        for name, value in unit.defines.items():
            if not is_name(name):
                yield (*at, "defines", name), f"'{name}' is no macro name"
            elif name in RESERVED:
                yield (*at, "defines", name), f"'{name}' has a meaning of its own in expressions"
            elif name in names.expressions:
                yield (*at, "defines", name), f"'{name}' is also an axis or a scalar"
            elif isinstance(value, str) and ("\n" in value or "\x00" in value):
                yield (*at, "defines", name), "must be one line"


def _own_names(plan: LaunchPlan, names: _Names) -> Found:
    places: list[tuple[Key, str]] = [(("scratch", i, "name"), s.name) for i, s in enumerate(plan.scratch)]
    places += [(("tensor_maps", i, "name"), m.name) for i, m in enumerate(plan.tensor_maps)]
    counts = Counter(name for _, name in places)
    taken = frozenset(names.roles) | names.scalars | names.axes
    for key, name in places:
        if not is_name(name):
            yield key, f"'{name}' is no name; letters, digits and _"
        elif counts[name] > 1 or name in taken:
            yield (
                key,
                f"'{name}' is taken; every tensor, scalar, axis, scratch and tensor map has its own name",
            )


def _scratch(plan: LaunchPlan, names: _Names) -> Found:
    for i, scratch in enumerate(plan.scratch):
        yield from _each(("scratch", i, "shape"), scratch.shape, names, plan.units)


def _maps(plan: LaunchPlan, names: _Names) -> Found:
    for i, one in enumerate(plan.tensor_maps):
        at: Key = ("tensor_maps", i)
        rank = len(one.dims)
        if not 1 <= rank <= 5:
            yield (*at, "dims"), f"has {rank} entries; a tensor map has 1 to 5"
        for field, want in (("strides", rank - 1), ("box", rank), ("element_strides", rank)):
            have = len(getattr(one, field))
            if have != want and (have or field != "element_strides"):
                yield (*at, field), f"has {have} entries; {rank} dims need {want}"
        if names.contract and one.tensor not in names.roles:
            yield (*at, "tensor"), f"'{one.tensor}' is no tensor; {near(one.tensor, names.roles)}"
        for field in ("dims", "strides", "box", "element_strides"):
            yield from _each((*at, field), getattr(one, field), names, plan.units)


def _steps(plan: LaunchPlan, names: _Names) -> Found:
    if not any(step.kernel is not None for step in plan.steps):
        yield ("steps",), "has no kernel; at least one [[step]] with kernel, grid, block and args is needed"
    for i, step in enumerate(plan.steps):
        at: Key = ("steps", i)
        units: Sequence[Unit] = plan.units
        if (step.kernel is None) == (step.memset is None):
            yield at, "needs exactly one of kernel and memset"
        elif step.memset is not None:
            yield from _memset(step, at, names)
        else:
            yield from _kernel(step, at, plan, names)
            unit = unit_of(plan, step.kernel or "")[0]
            units = (unit,) if unit is not None else plan.units
        if step.when is not None:
            yield from _one((*at, "when"), step.when, names, units)


def _memset(step: Step, at: Key, names: _Names) -> Found:
    target = step.memset or ""
    if names.contract and target not in names.scratch and names.roles.get(target) not in ("out", "inout"):
        if target in names.roles:
            yield (*at, "memset"), f"'{target}' has role {names.roles[target]}; a memset needs out or inout"
        else:
            yield (*at, "memset"), f"'{target}' is no tensor or scratch; {near(target, names.buffers)}"
    if not 0 <= step.value <= 255:
        yield (*at, "value"), f"{step.value} is no byte; 0 to 255"
    for key in _LAUNCH_KEYS:
        if key in step.model_fields_set:
            yield (*at, key), "is for kernels; a memset has value and when"


def _kernel(step: Step, at: Key, plan: LaunchPlan, names: _Names) -> Found:
    unit, name = unit_of(plan, step.kernel or "")
    if unit is None:
        head = (step.kernel or "").partition(".")[0]
        yield (*at, "kernel"), f"there is no unit {head}; {near(head, [u.name for u in plan.units])}"
    elif not _KERNEL.fullmatch(name):
        yield (*at, "kernel"), f"'{step.kernel}' must be a function's name, or unit.function"
    for field in ("grid", "block"):
        if field not in step.model_fields_set:
            yield (*at, field), "is missing; give three lengths"
    if "value" in step.model_fields_set:
        yield (*at, "value"), "is for memset; remove it"
    units = (unit,) if unit is not None else plan.units
    for field in ("grid", "block", "cluster"):
        yield from _each((*at, field), getattr(step, field) or (), names, units)
    yield from _one((*at, "shared_bytes"), step.shared_bytes, names, units)
    for j, arg in enumerate(step.args):
        yield from _arg(arg, (*at, "args", j), names, units)


def _arg(arg: Any, at: Key, names: _Names, units: Sequence[Unit]) -> Found:
    if isinstance(arg, ValueArg):
        yield from _one((*at, "value"), arg.value, names, units)
    elif isinstance(arg, TensorArg):
        yield from _one((*at, "offset"), arg.offset, names, units)
        yield from _named((*at, "tensor"), arg.tensor, names.buffers, "tensor or scratch", names)
    elif isinstance(arg, AxisArg):
        yield from _named((*at, "axis"), arg.axis, names.axes, "axis", names)
    elif isinstance(arg, ScalarArg):
        yield from _named((*at, "scalar"), arg.scalar, names.scalars, "scalar", names)
    else:
        known = names.buffers | names.maps | names.scalars | names.axes
        yield from _named(at, arg, known, "tensor, scratch, tensor map, scalar or axis", names)


def _named(key: Key, name: str, known: frozenset[str], what: str, names: _Names) -> Found:
    if names.contract and name not in known:
        yield key, f"'{name}' is no {what}; {near(name, known)}"


def _each(key: Key, expressions: Iterable[Expr], names: _Names, units: Sequence[Unit]) -> Found:
    """:func:`_one` for every entry of a list."""
    for j, expression in enumerate(expressions):
        yield from _one((*key, j), expression, names, units)


def _one(key: Key, expression: Expr, names: _Names, units: Sequence[Unit]) -> Found:
    """An expression may use the contract's names, device facts, and the defines of these units."""
    try:
        own = {name for unit in units for name in unit.defines}
        check(expression, names.expressions | own if names.contract else names_in(expression))
    except ExpressionError as error:
        yield key, str(error)


def _tune(plan: LaunchPlan) -> Found:
    defines = {name: value for unit in reversed(plan.units) for name, value in unit.defines.items()}
    for name, values in plan.tune.items():
        at: Key = ("tune", name)
        if name not in defines:
            yield at, f"is no define of any unit; {near(name, defines)}"
        elif not values:
            yield at, "is empty; list the values to try"
        elif any(not isinstance(v, int | float | str) for v in values):
            yield at, "must list numbers, texts, true or false"
        elif not any(_same(defines[name], v) for v in values):
            yield at, f"does not list {defines[name]!r}, the value in force; add it"
        elif len({(type(v), v) for v in values}) < len(values):
            yield at, "lists a value twice"


def _same(a: object, b: object) -> bool:
    return type(a) is type(b) and a == b
