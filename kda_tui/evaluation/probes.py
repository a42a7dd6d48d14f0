"""Off-distribution probes: inputs that a kernel with constants of the usual distribution gets wrong.

Probes change tensors of kind ``data`` only; they are judged, never timed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.random import Generator

from kda_tui.evaluation.arrays import Array, namespace
from kda_tui.evaluation.dtypes import is_float, largest

SATURATED = 64.0


def apply_probe(probe: str, values: Array, dtype: str, rng: Generator) -> Array:
    """The probe's version of ``values``; a probe that means nothing for integers leaves them alone."""
    return _PROBES[probe](values, dtype, rng)


def _one_hot(values: Array, dtype: str, rng: Generator) -> Array:
    if values.ndim == 0:
        return np.ones_like(values)
    index = rng.integers(0, values.shape[-1], (*values.shape[:-1], 1))
    hot: Array = (namespace(index).arange(values.shape[-1]) == index).astype(values.dtype)
    return hot


def _scaled_up(values: Array, dtype: str, rng: Generator) -> Array:
    return values * 8 if is_float(dtype) else values


def _scaled_down(values: Array, dtype: str, rng: Generator) -> Array:
    return values / 8 if is_float(dtype) else values


def _saturated(values: Array, dtype: str, rng: Generator) -> Array:
    signs = np.where(rng.random(values.shape) < 0.5, -1.0, 1.0)
    size = min(SATURATED, largest(dtype))
    if dtype.startswith("uint") or dtype == "bool":
        return np.where(signs < 0, 0.0, size)
    return signs * size


def _constant_rows(values: Array, dtype: str, rng: Generator) -> Array:
    if values.ndim == 0:
        return values
    return np.broadcast_to(values[..., :1], values.shape).copy()


def _cancellation(values: Array, dtype: str, rng: Generator) -> Array:
    """Neighbours along the last axis nearly cancel: x, -x (1 + 2^-6)."""
    if values.ndim == 0 or not is_float(dtype):
        return values
    pairs = values.astype(np.result_type(values.dtype, np.float64))
    odd = pairs[..., 1::2]
    odd[...] = -pairs[..., 0::2][..., : odd.shape[-1]] * (1.0 + 2.0**-6)
    return pairs


_PROBES: Mapping[str, Callable[[Array, str, Generator], Array]] = {
    "one_hot": _one_hot,
    "scaled_up": _scaled_up,
    "scaled_down": _scaled_down,
    "saturated": _saturated,
    "constant_rows": _constant_rows,
    "cancellation": _cancellation,
}
PROBES: tuple[str, ...] = tuple(_PROBES)
