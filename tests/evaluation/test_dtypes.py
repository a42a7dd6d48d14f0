"""Formats: every bit pattern survives a round trip, and rounding is to nearest even, once."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.evaluation.dtypes import as_bits, decode, encode, item_bytes, largest
from kda_tui.record.contract import DType, element_size

SMALL = {
    "bfloat16": np.arange(65536, dtype=np.uint16),
    "fp8_e4m3": np.arange(256, dtype=np.uint8),
    "fp8_e5m2": np.arange(256, dtype=np.uint8),
    "e8m0": np.arange(256, dtype=np.uint8),
    "fp4x2": np.arange(256, dtype=np.uint8),
    "float16": np.arange(65536, dtype=np.uint16).view(np.float16),
}
ALL = get_args(DType)


@pytest.mark.parametrize("dtype", SMALL)
def test_every_number_survives_a_round_trip(dtype: str) -> None:
    bits = SMALL[dtype]
    values = decode(bits, dtype)
    again = encode(values, dtype)
    numbers = ~np.isnan(values if dtype != "fp4x2" else values.reshape(-1, 2)[:, 0])
    assert np.array_equal(as_bits(again)[numbers], as_bits(bits)[numbers])
    assert np.isnan(decode(again, dtype)[np.isnan(values)]).all()


@pytest.mark.parametrize("dtype", ALL)
def test_sizes_agree_with_the_contract(dtype: str) -> None:
    assert item_bytes(dtype) == element_size(dtype)  # type: ignore[arg-type]
    assert largest(dtype) > 0


def test_known_values() -> None:
    assert decode(np.array([0x7E, 0xFE, 0x01], np.uint8), "fp8_e4m3").tolist() == [448.0, -448.0, 2.0**-9]
    assert decode(np.array([0x7B, 0x7C, 0x01], np.uint8), "fp8_e5m2").tolist() == [57344.0, np.inf, 2.0**-16]
    assert decode(np.array([0x72], np.uint8), "fp4x2").tolist() == [1.0, 6.0]
    assert decode(np.array([127, 128, 0], np.uint8), "e8m0").tolist() == [1.0, 2.0, 2.0**-127]
    assert encode(np.array([1000.0, -1e9]), "fp8_e4m3").tolist() == [0x7E, 0xFE]


def test_ties_go_to_even_and_only_once() -> None:
    tie = 1.0 + 2.0**-8  # halfway between two bfloat16 values: the even one is 1
    assert encode(np.array([tie]), "bfloat16").tolist() == [0x3F80]
    above = tie + 2.0**-40  # rounding to float32 first would make this a tie
    assert encode(np.array([above]), "bfloat16").tolist() == [0x3F81]
    assert encode(np.array([-above]), "bfloat16").tolist() == [0xBF81]
    assert decode(encode(np.array([2.5, 5.0, 0.25, 0.75]), "fp4x2"), "fp4x2").tolist() == [2.0, 4.0, 0.0, 1.0]


@given(st.lists(st.floats(width=32, allow_nan=True), min_size=1, max_size=50))
def test_bfloat16_is_the_nearest(values: list[float]) -> None:
    exact = np.array(values, np.float64)
    near = decode(encode(exact, "bfloat16"), "bfloat16")
    bits = encode(exact, "bfloat16").astype(np.int32)
    finite = np.isfinite(exact) & np.isfinite(near)
    for step in (-1, 1):
        neighbour = decode(np.clip(bits + step, 0, 65535).astype(np.uint16), "bfloat16")
        sane = finite & np.isfinite(neighbour)
        assert (np.abs(near[sane] - exact[sane]) <= np.abs(neighbour[sane] - exact[sane])).all()
    assert np.array_equal(np.isnan(exact), np.isnan(near))


@given(st.integers(-(2**63), 2**63 - 1))
def test_wide_integers_are_exact(value: int) -> None:
    assert decode(encode(np.array([value]), "int64"), "int64").tolist() == [value]


def test_bits_tell_nan_and_zeros_apart() -> None:
    stored = np.array([np.nan, 0.0, -0.0], np.float32)
    assert (as_bits(stored) == as_bits(stored.copy())).all()
    assert as_bits(stored)[1] != as_bits(stored)[2]
