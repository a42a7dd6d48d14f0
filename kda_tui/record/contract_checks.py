"""What a contract must satisfy beyond the types of its keys: names, workloads, numbers, places.

Each check yields (key path, what would be right); contract_tensors.py has those of the tensors.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from keyword import iskeyword
from typing import Any, get_args

from kda_tui.expressions import FUNCTIONS, ExpressionError, check
from kda_tui.record.contract_model import Contract, DType, Expr, ScalarSpec, WorkloadSpec
from kda_tui.record.contract_tensors import FLOATS, MAX_ELEMENTS, check_tensors, inside
from kda_tui.record.sizes import DEVICE_FACTS, contract_names
from kda_tui.toml_lines import Key

Found = Iterator[tuple[Key, str]]

MIN_SPEEDUP = 1.01  # a smaller margin promotes noise
COMPILE_OPTIONS = frozenset({"maxrregcount", "fast_math"})
RESERVED = FUNCTIONS | set(DEVICE_FACTS)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
_ARCH = re.compile(r"sm_\d{2,3}[af]?")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def check_contract(contract: Contract) -> list[tuple[Key, str]]:
    """Every problem of a well-typed contract."""
    return [
        *_task(contract),
        *_names(contract),
        *_workloads(contract),
        *_scalars(contract),
        *check_tensors(contract),
        *_cost(contract),
        *_numbers(contract),
        *_hidden(contract),
        *_baseline(contract),
    ]


def is_name(name: str) -> bool:
    """Whether expressions can use it: letters, digits and _, not starting with a digit, at most 64."""
    return _NAME.fullmatch(name) is not None


def _task(contract: Contract) -> Found:
    if not contract.task.name.strip():
        yield ("task", "name"), "is empty; give the task a name"
    places: tuple[tuple[Key, str | None], ...] = (
        (("task", "arch"), contract.task.arch),
        (("compile", "arch"), contract.compile.arch),
    )
    for key, arch in places:
        if arch is None:
            continue
        if contract.task.device == "cpu":
            yield key, 'has no meaning for device = "cpu"; remove it'
        elif not _ARCH.fullmatch(arch):
            yield key, f"'{arch}' is no architecture; write for example \"sm_90a\""
    if contract.task.arch and contract.compile.arch and contract.task.arch != contract.compile.arch:
        yield ("compile", "arch"), f"differs from task.arch, {contract.task.arch}; give one of them"
    for i, option in enumerate(contract.compile.allowed):
        if option not in COMPILE_OPTIONS:
            known = ", ".join(sorted(COMPILE_OPTIONS))
            yield ("compile", "allowed", i), f"'{option}' is no option; known are {known}"
    for i, include in enumerate(contract.compile.include):
        if not _SHA256.fullmatch(include.sha256):
            yield ("compile", "include", i, "sha256"), "must be the 64 hex digits of the tree's sha256"


def _names(contract: Contract) -> Found:
    axes = {axis for w in contract.workloads for axis in w.axes}
    places = [(("tensors", i, "name"), t.name) for i, t in enumerate(contract.tensors)]
    places += [(("scalars", i, "name"), s.name) for i, s in enumerate(contract.scalars)]
    counts = Counter(name for _, name in places)
    for key, name in places:
        if not is_name(name):
            yield key, f"'{name}' is no name; letters, digits and _, not starting with a digit, at most 64"
        elif name in RESERVED or (key[0] == "scalars" and iskeyword(name)):
            yield key, f"'{name}' has a meaning of its own in expressions; choose another name"
        elif counts[name] > 1:
            yield key, f"'{name}' is used twice; every tensor and scalar has its own name"
        elif name in axes:
            yield key, f"'{name}' is also an axis; rename one of them"


def _workloads(contract: Contract) -> Found:
    if not contract.workloads:
        yield ("workloads",), "is empty; at least one [[workload]] with id and axes is needed"
        return
    axes = {axis for w in contract.workloads for axis in w.axes}
    counts = Counter(w.id for w in contract.workloads)
    for i, workload in enumerate(contract.workloads):
        at: Key = ("workloads", i)
        if not _ID.fullmatch(workload.id):
            yield (*at, "id"), f"'{workload.id}' is no id; letters, digits, _ . and -, at most 80"
        elif counts[workload.id] > 1:
            yield (*at, "id"), f"'{workload.id}' is used twice; every workload has its own id"
        for axis in sorted(axes - set(workload.axes)):
            yield (*at, "axes"), f"axis {axis} is missing; every workload gives every axis"
        yield from _axes(workload, at)
        if not 0 < workload.weight < math.inf:
            yield (*at, "weight"), f"{workload.weight} must be above 0 and finite"
        if workload.floor is not None and not 0 < workload.floor <= 1:
            yield (*at, "floor"), f"{workload.floor} must lie in (0, 1]: the lowest admissible ratio"
        for name, value in workload.params.items():
            if not _is_plain(value):
                yield (*at, "params", name), "must be a number, a text, true, false, or a list of those"
    if not any(w.timed for w in contract.workloads):
        yield ("workloads",), "no workload is timed; leave timed = false out of at least one"


def _axes(workload: WorkloadSpec, at: Key) -> Found:
    for axis, value in workload.axes.items():
        key = (*at, "axes", axis)
        if not is_name(axis):
            yield key, f"'{axis}' is no name; letters, digits and _, not starting with a digit"
        elif axis in RESERVED or iskeyword(axis):
            yield key, f"'{axis}' has a meaning of its own in expressions; choose another name"
        elif not 0 <= value <= MAX_ELEMENTS:
            yield key, f"{value} is out of range; 0 to {MAX_ELEMENTS}"


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(v) for v in value)
    return isinstance(value, str | int | float)


def _scalars(contract: Contract) -> Found:
    axes = {axis for w in contract.workloads for axis in w.axes}
    for i, scalar in enumerate(contract.scalars):
        if scalar.axis is not None and scalar.axis not in axes:
            yield ("scalars", i, "axis"), f"no workload has an axis {scalar.axis}"
        if scalar.axis is not None and scalar.value is not None:
            yield ("scalars", i, "value"), "value and axis exclude each other; keep one"
        if scalar.value is not None:
            yield from _fits(scalar, scalar.value, ("scalars", i, "value"))
    specs = {s.name: s for s in contract.scalars}
    for i, workload in enumerate(contract.workloads):
        for name, value in workload.scalars.items():
            key: Key = ("workloads", i, "scalars", name)
            if name not in specs:
                yield key, "there is no [[scalar]] of this name"
            else:
                yield from _fits(specs[name], value, key)
        for scalar in contract.scalars:
            if scalar.value is None and scalar.axis is None and scalar.name not in workload.scalars:
                yield (
                    ("workloads", i, "scalars"),
                    f"has no value for scalar {scalar.name}; give it here, or value or axis in its [[scalar]]",
                )


def _fits(scalar: ScalarSpec, value: float | int, key: Key) -> Found:
    if scalar.dtype in FLOATS:
        return
    if value != value or abs(value) > 1 << 63 or value != int(value):
        yield key, f"{value} is no {scalar.dtype}; give a whole number, or another dtype"


def _cost(contract: Contract) -> Found:
    cost = contract.cost
    expressions: tuple[tuple[Key, Expr | None], ...] = (
        (("cost", "bytes"), cost.bytes),
        (("cost", "flops"), cost.flops),
    )
    for key, expression in expressions:
        if expression is None or cost.facts:  # facts() brings names that only the reference knows
            continue
        try:
            check(expression, contract_names(contract))
        except ExpressionError as error:
            yield key, str(error)
    if cost.flops_dtype is not None and cost.flops_dtype not in (*get_args(DType), "tf32"):
        yield ("cost", "flops_dtype"), f"'{cost.flops_dtype}' is no dtype; write for example \"bfloat16\""


def _numbers(contract: Contract) -> Found:
    promotion, bench, right = contract.promotion, contract.benchmark, contract.correctness
    if not MIN_SPEEDUP <= promotion.min_speedup < 1000:
        yield (
            ("promotion", "min_speedup"),
            f"{promotion.min_speedup} must be at least {MIN_SPEEDUP}: a smaller margin promotes noise",
        )
    if not 0 < promotion.floor <= 1:
        yield ("promotion", "floor"), f"{promotion.floor} must lie in (0, 1]: the lowest admissible ratio"
    rules: tuple[tuple[Key, float | None, float, float], ...] = (
        (("benchmark", "steps"), bench.steps, 1, 10_000),
        (("benchmark", "launches"), bench.launches, 1, 10_000),
        (("benchmark", "blocks"), bench.blocks, 4, 1000),
        (("benchmark", "timeout_s"), bench.timeout_s, 0.1, 86_400),
        (("compile", "timeout_s"), contract.compile.timeout_s, 0.1, 86_400),
        (("correctness", "seeds"), right.seeds, 1, 1000),
        (("correctness", "repeats"), right.repeats, 1, 1000),
        (("correctness", "prior_calls"), right.prior_calls, 0, 1000),
        (("correctness", "spread"), right.spread, 0, 1),
        (("gates", "max_open"), contract.gates.max_open, 1, 100),
        (("gates", "question_timeout_s"), contract.gates.question_timeout_s, 0, 1e9),
        (("gates", "promotion_timeout_s"), contract.gates.promotion_timeout_s, 0, 1e9),
    )
    for key, value, low, high in rules:
        if value is not None and not low <= value <= high:
            yield key, f"{value} is out of range; {low:g} to {high:g}"
    for axis in ("candidates", "hours", "usd"):
        limit = getattr(contract.budget, axis)
        if limit is not None and not 0 < limit < math.inf:
            yield ("budget", axis), f"{limit} must be above 0; leave it out for no limit"
    if not right.deterministic and right.spread is None:
        yield (
            ("correctness", "spread"),
            "is missing; deterministic = false needs the allowed relative L2 between repeats",
        )
    if right.deterministic and right.spread is not None:
        yield ("correctness", "spread"), "is for deterministic = false; remove one of the two"


def _hidden(contract: Contract) -> Found:
    if contract.hidden is None:
        return
    if not 1 <= contract.hidden.count <= 100:
        yield ("hidden", "count"), f"{contract.hidden.count} is out of range; 1 to 100"
    axes = {axis for w in contract.workloads for axis in w.axes}
    for axis, (low, high) in contract.hidden.ranges.items():
        if axis not in axes:
            yield ("hidden", "ranges", axis), "no workload has this axis"
        elif not 0 < low <= high <= MAX_ELEMENTS:
            yield ("hidden", "ranges", axis), f"[{low}, {high}] is no range; 0 < low <= high"
    if not contract.hidden.ranges:
        yield ("hidden", "ranges"), "is empty; give [low, high] for the axes that vary"


def _baseline(contract: Contract) -> Found:
    baseline = contract.baseline
    if (baseline.candidate is None) == (baseline.python is None):
        yield ("baseline",), 'needs exactly one of candidate = "folder" and python = "module:function"'
    elif baseline.candidate is not None:
        yield from inside(("baseline", "candidate"), baseline.candidate, "it names a folder of the workspace")
    elif baseline.python is not None and not _FUNCTION.fullmatch(baseline.python):
        yield ("baseline", "python"), f"'{baseline.python}' must be module:function"
