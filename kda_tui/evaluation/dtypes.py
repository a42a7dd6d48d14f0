"""Numbers as a kernel stores them: float64 (or integers) to storage bits and back, exactly rounded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import Array, namespace, on_host

_CHUNK = 1 << 16  # on the host: temporaries that stay in the cache
_NATIVE = {
    "float64": np.float64, "float32": np.float32, "float16": np.float16,
    "int64": np.int64, "int32": np.int32, "int16": np.int16, "int8": np.int8,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32,
    "complex64": np.complex64, "complex128": np.complex128,
}  # fmt: skip
_PACKED = {
    "bfloat16": np.uint16, "fp8_e4m3": np.uint8, "fp8_e5m2": np.uint8,
    "fp4x2": np.uint8, "e8m0": np.uint8, "bool": np.uint8,
}  # fmt: skip
_ROUNDOFF = {
    "float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8,
    "fp8_e4m3": 2.0**-4, "fp8_e5m2": 2.0**-3, "fp4x2": 2.0**-2, "e8m0": 2.0**-1,
    "complex64": 2.0**-24, "complex128": 2.0**-53,
}  # fmt: skip
_LARGEST = {
    "float64": 1.7e308, "float32": 3.4e38, "float16": 65504.0, "bfloat16": 3.38e38,
    "fp8_e4m3": 448.0, "fp8_e5m2": 57344.0, "fp4x2": 6.0, "e8m0": 2.0**127,
    "complex64": 3.4e38, "complex128": 1.7e308,
}  # fmt: skip


def storage_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy type that holds one element's bits (bfloat16 -> uint16, fp4x2 -> one byte of a pair)."""
    return np.dtype(_NATIVE.get(dtype) or _PACKED[dtype])


def item_bytes(dtype: str) -> int:
    return storage_dtype(dtype).itemsize


def is_float(dtype: str) -> bool:
    """Real or complex floating point, packed formats included."""
    return dtype in _ROUNDOFF


def unit_roundoff(dtype: str) -> float:
    """Half the relative spacing of the format; 0 for integers."""
    return _ROUNDOFF.get(dtype, 0.0)


def largest(dtype: str) -> float:
    """The largest finite magnitude of the format."""
    if dtype in _LARGEST:
        return _LARGEST[dtype]
    return 1.0 if dtype == "bool" else float(np.iinfo(storage_dtype(dtype)).max)


def as_bits(stored: Array) -> Array:
    """Stored elements as unsigned integers, so that NaN equals itself and -0 differs from 0."""
    return stored if stored.itemsize > 8 else stored.view(f"u{stored.itemsize}")


def encode(values: Array, dtype: str) -> Array:
    """Values to storage, rounded to nearest even; packed 8-bit and 4-bit formats saturate.

    ``fp4x2`` takes a last axis twice as long: even positions become the low nibble.
    """
    if dtype == "bfloat16":
        return _to_bfloat16(values)
    if dtype == "bool":
        truth: NDArray[np.uint8] = (_array(values) != 0).astype(np.uint8)
        return truth
    if dtype == "fp4x2":
        nibbles = _nearest(_doubles(values), _table("fp4"))
        packed: Array = (nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)).astype(np.uint8)
        return packed
    if dtype in ("fp8_e4m3", "fp8_e5m2"):
        return _nearest(_doubles(values), _table(dtype))
    if dtype == "e8m0":
        return _to_e8m0(_doubles(values))
    target = np.dtype(_NATIVE[dtype])
    array = _array(values)
    if target.kind in "iu" and array.dtype.kind == "f":
        array = np.rint(array)
    with np.errstate(over="ignore", invalid="ignore"):
        stored: Array = array.astype(target)
    return stored


def _array(values: Any) -> Array:
    return values if hasattr(values, "dtype") else np.asarray(values)


def _doubles(values: Any) -> NDArray[np.float64]:
    found: NDArray[np.float64] = _array(values).astype(np.float64, copy=False)
    return found


def decode(stored: Array, dtype: str) -> Array:
    """Storage to float64, complex128 or, for integers and bool, int64; exact.

    ``fp4x2`` doubles the last axis.
    """
    with np.errstate(invalid="ignore"):  # any bits may come: signalling NaNs too
        return _decode(stored, dtype)


def _decode(stored: Array, dtype: str) -> Array:
    if dtype == "bfloat16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == "fp4x2":
        pair = np.stack((stored & 15, stored >> 4), axis=-1)
        both = pair.reshape(*stored.shape[:-1], 2 * stored.shape[-1]) if stored.ndim else pair
        return _look_up(_table("fp4"), both)
    if dtype in ("fp8_e4m3", "fp8_e5m2"):
        return _look_up(_table(dtype), stored)
    if dtype == "e8m0":
        exponent = stored.astype(np.int32) - 127
        return np.where(stored == 255, np.nan, np.ldexp(1.0, exponent))
    kind = storage_dtype(dtype).kind
    if dtype == "bool" or kind in "iu":
        return stored.astype(np.int64)
    return stored.astype(np.complex128 if kind == "c" else np.float64)


def _to_bfloat16(values: Array) -> NDArray[np.uint16]:
    xp = namespace(_array(values))
    flat = xp.ascontiguousarray(values).reshape(-1)
    bits: NDArray[np.uint16] = xp.empty(flat.size, np.uint16)
    at_once = _CHUNK if on_host(flat) else max(1, flat.size)
    for start in range(0, flat.size, at_once):
        part = flat[start : start + at_once]
        single = part.view(np.uint32) if part.dtype == np.float32 else _float32_to_odd(part)
        bits[start : start + at_once] = _round_to_bfloat16(single)
    return bits.reshape(np.shape(values))


def _float32_to_odd(values: Array) -> NDArray[np.uint32]:
    """float32 bits rounded to odd: rounding twice to nearest would err on ties, this keeps them apart."""
    exact = values.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        single = exact.astype(np.float32)
        back = single.astype(np.float64)
        bits = single.view(np.uint32)
        if np.array_equal(back, exact):
            return bits
        inexact = (back != exact) & ~np.isnan(exact)
        bits[inexact & (np.abs(back) > np.abs(exact))] -= 1
        bits[inexact] |= 1
    return bits


def _round_to_bfloat16(bits: NDArray[np.uint32]) -> Array:
    high = bits >> 16
    if not np.any(bits & 0xFFFF):
        return high
    rounded = (bits + np.uint32(0x7FFF) + (high & 1)) >> 16
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, high | 0x40, rounded)


def _to_e8m0(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.rint(np.log2(np.abs(values)))
    bits = np.clip(np.nan_to_num(exponent, nan=0.0, neginf=-127.0, posinf=127.0), -127, 127) + 127
    return np.where(np.isnan(values), 255, bits).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class _Table:
    """A small format: every bit pattern's value, and its non-negative finite values in order."""

    by_bits: NDArray[np.float64]
    magnitudes: NDArray[np.float64]
    midpoints: NDArray[np.float64]
    sign_bit: int
    nan_bits: int
    inf_bits: int


@cache
def _table(dtype: str) -> _Table:
    exponent_bits, mantissa_bits, bias = {"fp8_e4m3": (4, 3, 7), "fp8_e5m2": (5, 2, 15), "fp4": (2, 1, 1)}[
        dtype
    ]
    sign = 1 << (exponent_bits + mantissa_bits)
    positive = np.empty(sign)
    for bits in range(sign):
        exponent, mantissa = bits >> mantissa_bits, bits & ((1 << mantissa_bits) - 1)
        fraction = mantissa / (1 << mantissa_bits)
        positive[bits] = (
            np.ldexp(1.0 + fraction, exponent - bias) if exponent else np.ldexp(fraction, 1 - bias)
        )
    nan_bits, inf_bits, finite = -1, -1, sign
    if dtype == "fp8_e4m3":
        nan_bits, finite = 0x7F, 0x7F
        positive[0x7F] = np.nan
    elif dtype == "fp8_e5m2":
        nan_bits, inf_bits, finite = 0x7E, 0x7C, 0x7C
        positive[0x7C], positive[0x7D:] = np.inf, np.nan
    magnitudes = positive[:finite]
    return _Table(
        by_bits=np.concatenate((positive, -positive)),
        magnitudes=magnitudes,
        midpoints=(magnitudes[:-1] + magnitudes[1:]) / 2,
        sign_bit=sign,
        nan_bits=nan_bits,
        inf_bits=inf_bits,
    )


def _look_up(table: _Table, bits: Array) -> NDArray[np.float64]:
    found: NDArray[np.float64] = namespace(bits).asarray(table.by_bits)[bits]
    return found


def _nearest(values: NDArray[np.float64], table: _Table) -> NDArray[np.uint8]:
    size = np.abs(values)
    midpoints = namespace(size).asarray(table.midpoints)
    below = np.searchsorted(midpoints, size, side="left")
    above = np.searchsorted(midpoints, size, side="right")
    bits = np.where(below % 2 == 0, below, above)  # they differ only on a tie: take the even one
    if table.inf_bits >= 0:
        bits = np.where(np.isinf(values), table.inf_bits, bits)
    if table.nan_bits >= 0:
        bits = np.where(np.isnan(values), table.nan_bits, bits)
    return (bits | np.where(np.signbit(values), table.sign_bit, 0)).astype(np.uint8)
