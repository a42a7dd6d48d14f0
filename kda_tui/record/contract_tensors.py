"""What the tensors of a contract must satisfy: checks, fills, and layouts with each workload's numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from kda_tui.expressions import ExpressionError, Number, check, evaluate, names_in
from kda_tui.record.contract_model import Contract, Expr, TensorSpec
from kda_tui.record.sizes import (
    contract_names,
    storage_elements,
    tensor_shape,
    tensor_strides,
    workload_names,
)
from kda_tui.toml_lines import Key

Found = Iterator[tuple[Key, str]]

MAX_ELEMENTS = 1 << 40
MAX_RANK = 16
FLOATS = frozenset(
    {"float64", "float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2", "complex64", "complex128"}
)
_TOLERANCES = ("rel_l2", "max_abs_over_rms", "vs_baseline")


def check_tensors(contract: Contract) -> Found:
    """Every problem of the tensors."""
    if not any(t.role != "in" for t in contract.tensors):
        yield ("tensors",), "no tensor has the role out, inout or state: there is nothing to judge"
    names = contract_names(contract)
    for i, tensor in enumerate(contract.tensors):
        at: Key = ("tensors", i)
        yield from _role(tensor, at)
        yield from _fill(tensor, at)
        yield from _rank(tensor, at)
        sound = True
        for key, expression in _expressions(tensor, at):
            try:
                check(expression, names)
            except ExpressionError as error:
                sound = False
                yield key, str(error)
        if sound and (tensor.strides is None or len(tensor.strides) == len(tensor.shape)):
            yield from _layouts(contract, tensor, at)


def inside(key: Key, path: str | None, need: str) -> Found:
    """A path must stay inside the workspace."""
    if not path:
        yield key, f"is missing; {need}"
    elif PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\x00" in path:
        yield key, f"'{path}' leads out of the workspace; {need}"


def _role(tensor: TensorSpec, at: Key) -> Found:
    if tensor.role == "in":
        if tensor.check is not None:
            yield (*at, "check"), "is for outputs; remove it, or change role"
        if tensor.valid != "all" or tensor.rest != "untouched":
            yield (*at, "valid" if tensor.valid != "all" else "rest"), "is for outputs; remove it"
        return
    if tensor.constant:
        yield (*at, "constant"), f"is for inputs; a tensor with role {tensor.role} changes"
    if tensor.check is None:
        yield (
            (*at, "check"),
            f"is missing; role {tensor.role} needs check = {{exact = true}} or {{rel_l2 = ...}}",
        )
    else:
        yield from _tolerances(tensor, (*at, "check"))


def _tolerances(tensor: TensorSpec, at: Key) -> Found:
    spec = tensor.check
    assert spec is not None
    given = [name for name in _TOLERANCES if getattr(spec, name) is not None]
    if spec.exact:
        for name in given:
            yield (*at, name), "exact = true excludes tolerances; keep one of the two"
        return
    if tensor.dtype not in FLOATS:
        yield at, f"{tensor.dtype} has no tolerance; write check = {{exact = true}}"
    elif spec.rel_l2 is None:
        yield at, "needs exact = true or rel_l2"
    for name in given:
        value = getattr(spec, name)
        if not 0 < value < math.inf:
            yield (*at, name), f"{value} must be above 0 and finite"
    if spec.rel_l2 is not None and spec.rel_l2 >= 0.5:
        yield (*at, "rel_l2"), f"{spec.rel_l2} would accept an output of zeros; give less than 0.5"
    for i, name in enumerate(spec.tile):
        if name != "row" and name not in tensor.shape:
            axes = ", ".join(str(e) for e in tensor.shape)
            yield (*at, "tile", i), f"'{name}' is neither row nor an entry of shape: {axes}"


def _fill(tensor: TensorSpec, at: Key) -> Found:
    if tensor.fill == "npy":
        yield from inside((*at, "path"), tensor.path, 'fill = "npy" reads a .npy file of the workspace')
    elif tensor.path is not None:
        yield (*at, "path"), f'is for fill = "npy", not "{tensor.fill}"; remove it'
    if tensor.domain is not None and tensor.kind == "data":
        yield (*at, "domain"), 'is for indices, scales and masks; add kind = "index"'
    if tensor.fill == "one_hot" and not tensor.shape:
        yield (*at, "fill"), "one_hot needs at least one axis"


def _rank(tensor: TensorSpec, at: Key) -> Found:
    if len(tensor.shape) > MAX_RANK:
        yield (*at, "shape"), f"has {len(tensor.shape)} axes; at most {MAX_RANK}"
    if tensor.strides is not None and len(tensor.strides) != len(tensor.shape):
        yield (
            (*at, "strides"),
            f"has {len(tensor.strides)} entries, shape has {len(tensor.shape)}; give one for each axis",
        )
    if tensor.align < 1 or tensor.align & (tensor.align - 1) or tensor.align > 4096:
        yield (*at, "align"), f"{tensor.align} is no power of two from 1 to 4096"


def _expressions(tensor: TensorSpec, at: Key) -> Iterator[tuple[Key, Expr]]:
    for j, length in enumerate(tensor.shape):
        yield (*at, "shape", j), length
    for j, stride in enumerate(tensor.strides or ()):
        yield (*at, "strides", j), stride
    yield (*at, "offset"), tensor.offset
    if tensor.domain is not None:
        for name in ("min", "max", "sums_to"):
            bound = getattr(tensor.domain, name)
            if bound is not None:
                yield (*at, "domain", name), bound


def _layouts(contract: Contract, tensor: TensorSpec, at: Key) -> Found:
    """With the numbers of each workload; the first workload that does not fit is enough to say why."""
    for workload in contract.workloads:
        found = list(_layout(tensor, workload_names(contract, workload), at))
        for key, text in found:
            yield key, f"{text} (workload {workload.id})"
        if found:
            return


def _layout(tensor: TensorSpec, names: Mapping[str, Number], at: Key) -> Found:
    for key, expression in _expressions(tensor, at):
        try:
            evaluate(expression, names)
        except ExpressionError as error:
            if all(name in names for name in names_in(expression)):  # a missing axis is reported by itself
                yield key, str(error)
            return
    shape, strides = tensor_shape(tensor, names), tensor_strides(tensor, names)
    if any(length < 1 for length in shape):
        yield (*at, "shape"), f"is {list(shape)}; every length must be at least 1"
    elif math.prod(shape) > MAX_ELEMENTS:
        yield (*at, "shape"), f"is {list(shape)}; that is more than {MAX_ELEMENTS} elements"
    elif evaluate(tensor.offset, names) < 0:
        yield (*at, "offset"), f"is {evaluate(tensor.offset, names)}; it must be 0 or more"
    elif any(stride < 0 for stride in strides):
        yield (*at, "strides"), f"are {list(strides)}; they must be 0 or more"
    elif storage_elements(tensor, names) > MAX_ELEMENTS:
        yield (*at, "strides"), f"reach {storage_elements(tensor, names)} elements; at most {MAX_ELEMENTS}"
    elif tensor.role != "in" and _overlaps(shape, strides):
        yield (
            (*at, "strides"),
            f"are {list(strides)}: elements overlap, and a result needs its own place each",
        )
    else:
        yield from _domain(tensor, names, at)


def _domain(tensor: TensorSpec, names: Mapping[str, Number], at: Key) -> Found:
    domain = tensor.domain
    if domain is not None and domain.min is not None and domain.max is not None:
        low, high = evaluate(domain.min, names), evaluate(domain.max, names)
        if low > high:
            yield (*at, "domain"), f"min is {low}, max is {high}; min must not be above max"


def _overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether a strided result may write one element twice: sorted, each stride steps over all before it."""
    reach = 0
    for stride, length in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (length - 1)
    return False
