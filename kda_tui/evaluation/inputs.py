"""Inputs from counter-based generators: the same (seed, part, tensor) gives the same bytes everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import HOST, Array, Arrays, host_draws, namespace, random_stream
from kda_tui.evaluation.dtypes import decode, encode, is_float, largest
from kda_tui.evaluation.layout import Names, TensorLayout, layouts
from kda_tui.evaluation.probes import apply_probe
from kda_tui.expressions import ExpressionError, evaluate
from kda_tui.record.contract import Contract, Domain, Expr, TensorSpec, WorkloadSpec
from kda_tui.record.sizes import workload_names
from kda_tui.text import UserError

INPUT_ROLES = ("in", "inout", "state")
HOLE = 0xFF  # what lies between the elements of a strided tensor: NaN in every float format

GeneratorFunction = Callable[[Mapping[str, int], Mapping[str, Any], Generator], Mapping[str, Any]]


class InputError(UserError):
    """An input of the contract cannot be made, or is too plain to judge anything with."""


@dataclass(frozen=True, slots=True)
class CaseKey:
    """Which inputs: ``part`` separates sets of one seed; constant tensors depend on ``seed`` alone."""

    workload: str
    seed: str
    part: str = ""
    probe: str = ""

    def __str__(self) -> str:
        return "/".join(p for p in (self.workload, self.seed[:12], self.part, self.probe) if p)


@dataclass(frozen=True, slots=True)
class InputSet:
    """The storage bytes of every tensor that a kernel finds filled: roles in, inout and state."""

    layouts: Mapping[str, TensorLayout]
    storage: Mapping[str, NDArray[np.uint8]]

    def values(self) -> dict[str, Array]:
        """The inputs as the reference sees them: float64, complex128 or int64, of the logical shape."""
        return {
            name: decode(self.layouts[name].elements(bits), self.layouts[name].dtype)
            for name, bits in self.storage.items()
        }

    @property
    def nbytes(self) -> int:
        return sum(bits.nbytes for bits in self.storage.values())


def make_inputs(
    contract: Contract,
    workload: WorkloadSpec,
    key: CaseKey,
    generator: GeneratorFunction | None = None,
    root: Path = Path(),
    arrays: Arrays = HOST,
) -> InputSet:
    """All inputs of one case. ``generator`` is reference.py's inputs(); ``root`` is where npy files lie.

    Numbers of equal keys are equal, per kind of ``arrays``. Raises InputError naming the tensor.
    """
    names = workload_names(contract, workload)
    where = layouts(contract, workload)
    generated = _Generated(generator, workload, key)
    storage: dict[str, NDArray[np.uint8]] = {}
    for spec in contract.tensors:
        if spec.role not in INPUT_ROLES:
            continue
        part = "" if spec.constant else key.part
        rng = arrays.stream(key.seed, part, spec.name)
        values = arrays.own(_fill(spec, where[spec.name], names, rng, generated, root))
        if key.probe and spec.kind == "data" and not spec.constant:
            values = apply_probe(key.probe, values, spec.dtype, rng)
        storage[spec.name] = place(values, where[spec.name])
        if not key.probe and not key.part:  # the parts of a seed are drawn in the same way
            _check_health(spec, values)
    return InputSet(where, storage)


def place(values: Array, layout: TensorLayout) -> NDArray[np.uint8]:
    """Values encoded and laid out in their storage; holes are filled with 0xFF."""
    xp = namespace(values)
    if layout.dense:
        flat: NDArray[np.uint8] = (
            xp.ascontiguousarray(encode(values, layout.dtype)).reshape(-1).view(np.uint8)
        )
        return flat
    storage: NDArray[np.uint8] = xp.full(layout.nbytes, HOLE, dtype=np.uint8)
    layout.elements(storage)[...] = encode(values, layout.dtype)
    return storage


class _Generated:
    """What reference.py's inputs() returns, called at most once for rotating and once for constant tensors."""

    def __init__(self, function: GeneratorFunction | None, workload: WorkloadSpec, key: CaseKey) -> None:
        self._function = function
        self._workload = workload
        self._key = key
        self._made: dict[str, Mapping[str, Any]] = {}

    def tensor(self, spec: TensorSpec) -> Array:
        part = "" if spec.constant else self._key.part
        if part not in self._made:
            self._made[part] = self._call(part, spec)
        if spec.name not in self._made[part]:
            raise InputError(
                f"reference.py: inputs() returned no {spec.name!r}, which has fill = 'generator'"
            )
        return np.asarray(self._made[part][spec.name])

    def _call(self, part: str, spec: TensorSpec) -> Mapping[str, Any]:
        if self._function is None:
            raise InputError(
                f"reference.py: tensor {spec.name!r} has fill = 'generator', "
                "so it needs a function inputs(axes, params, rng) -> dict"
            )
        rng = random_stream(self._key.seed, part, "inputs()")
        try:
            return self._function(dict(self._workload.axes), dict(self._workload.params), rng)
        except Exception as error:
            raise InputError(
                f"reference.py: inputs() failed for workload {self._workload.id!r}: "
                f"{type(error).__name__}: {error}"
            ) from error


def logical_shape(layout: TensorLayout) -> tuple[int, ...]:
    """The shape of the values: an fp4x2 element holds two."""
    if layout.dtype != "fp4x2":
        return layout.shape
    return (*layout.shape[:-1], 2 * layout.shape[-1])


def _fill(
    spec: TensorSpec, layout: TensorLayout, names: Names, rng: Generator, generated: _Generated, root: Path
) -> Array:
    shape = logical_shape(layout)
    if spec.fill == "generator":
        values = generated.tensor(spec)
    elif spec.fill == "npy":
        values = _load(spec, root)
    elif spec.domain is not None or spec.kind != "data":
        values = _in_domain(spec, shape, names, rng)
    else:
        values = _FILLS[spec.fill](rng, shape, spec.dtype)
    if values.shape != shape:
        raise InputError(
            f"contract.toml: tensor {spec.name!r} has shape {list(shape)}, its fill gave {list(values.shape)}"
        )
    return values


def _load(spec: TensorSpec, root: Path) -> Array:
    path = root / (spec.path or "")
    try:
        loaded: Array = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"contract.toml: tensor {spec.name!r}: cannot read {path}: {error}") from error
    return loaded


def _normal(rng: Generator, shape: tuple[int, ...], dtype: str) -> Array:
    if not is_float(dtype):
        return np.clip(np.rint(16.0 * rng.standard_normal(shape)), *_integer_range(dtype))
    if dtype.startswith("complex"):
        return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return rng.standard_normal(shape, dtype=np.float64 if dtype == "float64" else np.float32)


def _uniform(rng: Generator, shape: tuple[int, ...], dtype: str) -> Array:
    if not is_float(dtype):
        low, high = _integer_range(dtype)
        return rng.integers(low, high, shape, endpoint=True)
    return 2.0 * rng.random(shape) - 1.0


def _integers(rng: Generator, shape: tuple[int, ...], dtype: str) -> Array:
    low, high = _integer_range(dtype)
    return rng.integers(max(low, -8), min(high, 8), shape, endpoint=True)


def _ones(rng: Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return np.ones_like(rng.random(shape))


def _one_hot(rng: Generator, shape: tuple[int, ...], dtype: str) -> Array:
    if not shape:
        return np.zeros(())
    hot = rng.integers(0, shape[-1], (*shape[:-1], 1))
    one_hot: Array = (namespace(hot).arange(shape[-1]) == hot).astype(np.float64)
    return one_hot


def _constant_rows(rng: Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return np.broadcast_to(_normal(rng, (*shape[:-1], 1), dtype), shape).copy()


_FILLS: Mapping[str, Callable[[Generator, tuple[int, ...], str], Array]] = {
    "normal": _normal,
    "uniform": _uniform,
    "integers": _integers,
    "ones": _ones,
    "one_hot": _one_hot,
    "constant_rows": _constant_rows,
}


def _integer_range(dtype: str) -> tuple[int, int]:
    """Integers a fill may draw: the type's own range, at most +-2^31 (int64 sums must not wrap)."""
    if is_float(dtype):
        return -(2**31), 2**31
    if dtype == "bool":
        return 0, 1
    high = int(largest(dtype))
    return (0 if dtype.startswith("uint") else -min(high, 2**31)), min(high, 2**31)


def _in_domain(spec: TensorSpec, shape: tuple[int, ...], names: Names, rng: Generator) -> Array:
    domain = spec.domain or Domain()
    where = f"contract.toml: tensor {spec.name!r} domain"
    floating = is_float(spec.dtype) and spec.kind != "mask"
    low = _bound(domain.min, names, f"{where}.min", 0)
    high = _bound(domain.max, names, f"{where}.max", 1 if spec.kind in ("mask", "scale") else 127)
    if low > high:
        raise InputError(f"{where}: min {low} is above max {high}")
    if domain.unique:
        values = _distinct(shape, low, high, rng, where)
    elif domain.sums_to is not None:
        return _summing(
            shape, low, _bound(domain.sums_to, names, f"{where}.sums_to", 0), floating, rng, where
        )
    elif floating:
        values = low + (high - low) * rng.random(shape)
    else:
        values = rng.integers(low, high, shape, endpoint=True)
    return np.sort(values, axis=-1) if domain.sorted and shape else values


def _bound(expr: Expr | None, names: Names, where: str, default: int) -> int:
    if expr is None:
        return default
    try:
        return evaluate(expr, names)
    except ExpressionError as error:
        raise InputError(f"{where}: {error}") from error


def _distinct(shape: tuple[int, ...], low: int, high: int, rng: Generator, where: str) -> Array:
    count = shape[-1] if shape else 1
    if high - low + 1 < count:
        raise InputError(f"{where}: {count} unique values do not fit between {low} and {high}")
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    draws = host_draws(rng)
    drawn = [draws.choice(high - low + 1, count, replace=False) + low for _ in range(rows)]
    return np.asarray(drawn).reshape(shape)


def _summing(
    shape: tuple[int, ...], low: int, total: int, floating: bool, rng: Generator, where: str
) -> Array:
    """Rows along the last axis that add up to ``total``, every entry at least ``low``."""
    count = shape[-1] if shape else 1
    rest = total - low * count
    if rest < 0:
        raise InputError(f"{where}: {count} values of at least {low} cannot add up to {total}")
    draws = host_draws(rng)
    shares = draws.dirichlet(np.ones(count), shape[:-1])
    if floating:
        return low + rest * shares
    return low + draws.multinomial(rest, shares)


def _check_health(spec: TensorSpec, values: Array) -> None:
    """Random data must be random: zeros or one value everywhere would let a kernel skip work unseen."""
    if spec.kind != "data" or spec.domain is not None or spec.fill not in ("normal", "uniform"):
        return
    if is_float(spec.dtype) and values.size >= 100 and np.count_nonzero(values) < 0.99 * values.size:
        raise InputError(f"contract.toml: tensor {spec.name!r}: over 1 % of its random inputs are zero")
    if values.size >= 16 and np.ptp(values.real) == 0:
        raise InputError(f"contract.toml: tensor {spec.name!r}: all its random inputs are equal")
