"""What a contract must satisfy beyond the types of its keys. Each check yields (key path, what would be right)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from kda_tui.expressions import ExpressionError, check
from kda_tui.record.contract_model import Contract, Expr, TensorSpec, WorkloadSpec
from kda_tui.record.sizes import known_names, storage_elements, tensor_shape, tensor_strides, workload_names

Key = tuple[str | int, ...]
Found = Iterator[tuple[Key, str]]

MAX_ELEMENTS = 1 << 40
_NAME = re.compile(r"^[A-Za-z_]\w*$")
_ID = re.compile(r"^[A-Za-z0-9][\w.-]{0,79}$")
_FLOATS = frozenset(
    {"float64", "float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2", "complex64", "complex128"}
)


def check_contract(contract: Contract) -> list[tuple[Key, str]]:
    """Every problem of a well-typed contract."""
    return [
        *_names(contract),
        *_workloads(contract),
        *_tensors(contract),
        *_expressions(contract),
        *_numbers(contract),
        *_baseline(contract),
        *_layouts(contract),
    ]


def _names(contract: Contract) -> Found:
    tensors = [(("tensors", i, "name"), t.name) for i, t in enumerate(contract.tensors)]
    scalars = [(("scalars", i, "name"), s.name) for i, s in enumerate(contract.scalars)]
    axes = {axis for w in contract.workloads for axis in w.axes}
    counts = Counter(name for _, name in [*tensors, *scalars])
    for key, name in [*tensors, *scalars]:
        if not _NAME.match(name):
            yield key, f"'{name}' is no name; letters, digits and _, not starting with a digit"
        elif counts[name] > 1:
            yield key, f"'{name}' is used twice; give every tensor and scalar its own name"
        elif name in axes and key[0] == "tensors":
            yield key, f"'{name}' is also an axis; rename one of them"
    if not any(t.role in ("out", "inout", "state") for t in contract.tensors):
        yield ("tensors",), "no tensor has the role out, inout or state: there is nothing to judge"


def _workloads(contract: Contract) -> Found:
    if not contract.workloads:
        yield ("workloads",), "is empty; at least one [[workload]] with id and axes is needed"
        return
    axes = {axis for w in contract.workloads for axis in w.axes}
    counts = Counter(w.id for w in contract.workloads)
    for i, workload in enumerate(contract.workloads):
        at: Key = ("workloads", i)
        if not _ID.match(workload.id):
            yield (*at, "id"), f"'{workload.id}' is no id; letters, digits, _ . and -, at most 80"
        elif counts[workload.id] > 1:
            yield (*at, "id"), f"'{workload.id}' is used twice"
        for axis in sorted(axes - set(workload.axes)):
            yield (*at, "axes"), f"axis {axis} is missing; every workload gives every axis"
        for axis, value in workload.axes.items():
            if not _NAME.match(axis):
                yield (*at, "axes", axis), f"'{axis}' is no name"
            elif value < 0 or value > MAX_ELEMENTS:
                yield (*at, "axes", axis), f"{value} is out of range; 0 to {MAX_ELEMENTS}"
        if workload.weight <= 0 or workload.weight != workload.weight:
            yield (*at, "weight"), f"{workload.weight} must be above 0"
        if workload.floor is not None and not 0 < workload.floor <= 1:
            yield (*at, "floor"), f"{workload.floor} must lie in (0, 1]: the lowest admissible ratio"
        yield from _scalars_of(contract, workload, at)
    if not any(w.timed for w in contract.workloads):
        yield ("workloads",), "no workload is timed; leave timed = false out of at least one"


def _scalars_of(contract: Contract, workload: WorkloadSpec, at: Key) -> Found:
    known = {s.name for s in contract.scalars}
    for name in sorted(set(workload.scalars) - known):
        yield (*at, "scalars", name), "no [[scalar]] of this name"
    for scalar in contract.scalars:
        given = scalar.value is not None or scalar.name in workload.scalars
        if not given and (scalar.axis is None or scalar.axis not in workload.axes):
            yield (
                (*at, "scalars"),
                f"scalar {scalar.name} has no value here; give value, axis, or scalars.{scalar.name}",
            )


def _tensors(contract: Contract) -> Found:
    for i, tensor in enumerate(contract.tensors):
        at: Key = ("tensors", i)
        judged = tensor.role != "in"
        if judged and tensor.check is None:
            yield (
                (*at, "check"),
                f"is missing; role {tensor.role} needs check = {{exact = true}} or {{rel_l2 = ...}}",
            )
        if not judged and tensor.check is not None:
            yield (*at, "check"), "has no meaning for role in; remove it"
        if tensor.check is not None:
            yield from _tolerances(tensor, (*at, "check"))
        if tensor.strides is not None and len(tensor.strides) != len(tensor.shape):
            yield (*at, "strides"), f"has {len(tensor.strides)} entries, shape has {len(tensor.shape)}"
        if tensor.fill == "npy":
            yield from _inside((*at, "path"), tensor.path, 'with fill = "npy", path names a .npy file')
        if tensor.domain is not None and tensor.kind == "data":
            yield (*at, "domain"), "is for kind index, scale or mask; set kind"
        if tensor.align < 1 or tensor.align & (tensor.align - 1) or tensor.align > 1 << 20:
            yield (*at, "align"), f"{tensor.align} is no power of two up to {1 << 20}"
        if tensor.constant and tensor.role != "in":
            yield (*at, "constant"), "only inputs can be constant"


def _tolerances(tensor: TensorSpec, at: Key) -> Found:
    spec = tensor.check
    assert spec is not None
    given = [n for n in ("rel_l2", "max_abs_over_rms", "vs_baseline") if getattr(spec, n) is not None]
    if spec.exact and given:
        yield (*at, given[0]), "exact = true excludes tolerances; keep one of the two"
    if not spec.exact and spec.rel_l2 is None:
        yield at, "needs exact = true or rel_l2"
    if not spec.exact and tensor.dtype not in _FLOATS:
        yield at, f"{tensor.dtype} has no tolerance; use exact = true"
    for name in given:
        value = getattr(spec, name)
        if not 0 < value < float("inf"):
            yield (*at, name), f"{value} must be above 0 and finite"
    if spec.rel_l2 is not None and spec.rel_l2 >= 0.5:
        yield (*at, "rel_l2"), f"{spec.rel_l2} accepts an output of zeros; use less than 0.5"


def _expressions(contract: Contract) -> Found:
    names = known_names(contract)
    places: list[tuple[Key, Expr | None]] = []
    for i, tensor in enumerate(contract.tensors):
        places += [(("tensors", i, "shape", j), e) for j, e in enumerate(tensor.shape)]
        places += [(("tensors", i, "strides", j), e) for j, e in enumerate(tensor.strides or ())]
        places.append((("tensors", i, "offset"), tensor.offset))
        if tensor.domain is not None:
            domain = tensor.domain
            places += [(("tensors", i, "domain", n), getattr(domain, n)) for n in ("min", "max", "sums_to")]
    for key, expression in places:
        yield from _expression(key, expression, names)
    if not contract.cost.facts:  # facts() adds names that only the reference knows
        for key, cost in ((("cost", "bytes"), contract.cost.bytes), (("cost", "flops"), contract.cost.flops)):
            yield from _expression(key, cost, names)
    for i, scalar in enumerate(contract.scalars):
        axes = {axis for w in contract.workloads for axis in w.axes}
        if scalar.axis is not None and scalar.axis not in axes:
            yield ("scalars", i, "axis"), f"no workload has an axis {scalar.axis}"


def _expression(key: Key, expression: Expr | None, names: frozenset[str]) -> Found:
    if expression is None:
        return
    try:
        check(expression, names)
    except ExpressionError as error:
        yield key, str(error)


def _numbers(contract: Contract) -> Found:
    promotion, bench, right = contract.promotion, contract.benchmark, contract.correctness
    if not 1.01 <= promotion.min_speedup < 1000:
        yield ("promotion", "min_speedup"), f"{promotion.min_speedup} must be at least 1.01: less is noise"
    if not 0 < promotion.floor <= 1:
        yield (
            ("promotion", "floor"),
            f"{promotion.floor} must lie in (0, 1]: the lowest ratio of any workload",
        )
    rules = (
        (("benchmark", "steps"), bench.steps, 1, 10_000),
        (("benchmark", "launches"), bench.launches, 1, 10_000),
        (("benchmark", "blocks"), bench.blocks, 4, 1000),
        (("correctness", "seeds"), right.seeds, 1, 1000),
        (("correctness", "repeats"), right.repeats, 1, 1000),
        (("correctness", "prior_calls"), right.prior_calls, 0, 1000),
        (("gates", "max_open"), contract.gates.max_open, 1, 100),
    )
    for key, value, low, high in rules:
        if not low <= value <= high:
            yield key, f"{value} is out of range; {low} to {high}"
    for axis in ("candidates", "hours", "usd"):
        value = getattr(contract.budget, axis)
        if value is not None and not value > 0:
            yield ("budget", axis), f"{value} must be above 0; leave it out for no limit"
    if not right.deterministic and right.spread is None:
        yield (
            ("correctness", "spread"),
            "is missing; deterministic = false needs the allowed relative L2 between repeats",
        )
    if contract.hidden is not None:
        axes = {axis for w in contract.workloads for axis in w.axes}
        for axis, (low_, high_) in contract.hidden.ranges.items():
            if axis not in axes:
                yield ("hidden", "ranges", axis), "no workload has this axis"
            elif not 0 < low_ <= high_:
                yield ("hidden", "ranges", axis), f"[{low_}, {high_}] is no range; 0 < low <= high"


def _baseline(contract: Contract) -> Found:
    baseline = contract.baseline
    if (baseline.candidate is None) == (baseline.python is None):
        yield ("baseline",), 'needs exactly one of candidate = "folder" and python = "module:function"'
    elif baseline.candidate is not None:
        yield from _inside(("baseline", "candidate"), baseline.candidate, "names a folder of the workspace")
    elif baseline.python is not None and baseline.python.count(":") != 1:
        yield ("baseline", "python"), f"'{baseline.python}' must be module:function"
    for i, include in enumerate(contract.compile.include):
        if not re.fullmatch(r"[0-9a-f]{64}", include.sha256):
            yield ("compile", "include", i, "sha256"), "must be the 64 hex digits of the tree's sha256"


def _inside(key: Key, path: str | None, need: str) -> Found:
    if not path:
        yield key, f"is missing; {need}"
    elif PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        yield key, f"'{path}' leads out of the workspace; {need}"


def _layouts(contract: Contract) -> Found:
    """Shapes and strides with the numbers of each workload; only where the expressions are sound."""
    for workload in contract.workloads:
        names = {**workload_names(contract, workload), "sm_count": 1, "l2_bytes": 1, "warp_size": 32}
        for i, tensor in enumerate(contract.tensors):
            try:
                shape, strides = tensor_shape(tensor, names), tensor_strides(tensor, names)
                elements = storage_elements(tensor, names)
            except (ExpressionError, ValueError):
                continue  # already reported: an unknown name, or strides of another rank
            at: Key = ("tensors", i)
            if any(length < 1 for length in shape):
                yield (
                    (*at, "shape"),
                    f"is {list(shape)} for workload {workload.id}; every length must be at least 1",
                )
            elif elements > MAX_ELEMENTS or any(s < 0 for s in strides):
                yield (
                    (*at, "strides"),
                    f"reach {elements} elements for workload {workload.id}; too far, or negative",
                )
            elif tensor.role != "in" and _overlaps(shape, strides):
                yield (
                    (*at, "strides"),
                    f"{list(strides)} make elements overlap for workload {workload.id}; a result needs its own place",
                )


def _overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether a strided result may write one element twice (sorted strides must step over each other)."""
    reach = 0
    for stride, length in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (length - 1)
    return False
