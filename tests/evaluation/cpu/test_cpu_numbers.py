"""Narrow types, intrinsics and atomics give the numbers that a GPU gives."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from cpu_candidates import Loaded, i32
from numpy.typing import NDArray

from kda_tui.evaluation.devices.interface import ScalarValue

KERNELS = (
    "half_bits", "half_floats", "arithmetic<__half>", "arithmetic<__nv_bfloat16>", "pairs", "floats", "integers",
    "atomics", "scalars",
)  # fmt: skip


@pytest.fixture(scope="module")
def program(load_file: Callable[..., Loaded]) -> Loaded:
    return load_file("numbers.cu", *KERNELS)


def to_bfloat16(x: NDArray[np.float32]) -> NDArray[np.uint16]:
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), rounded)


def from_bfloat16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def test_rounding_to_half_and_bfloat16(program: Loaded) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2**32, 200_000, np.uint64).astype(np.uint32).view(np.float32)
    near = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = np.nextafter(near, np.float32(np.inf))
    x = np.concatenate([x, near, ties, (near[:-1] + near[1:]) / 2]).astype(np.float32)
    h, b = np.zeros(x.size, np.uint16), np.zeros(x.size, np.uint16)
    program.ok("half_bits", -(-x.size // 256), 256, x, h, b, i32(x.size))
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = x.astype(np.float16).view(np.uint16)
    plain = ~np.isnan(x)
    assert (h[plain] == wanted[plain]).all()
    assert np.isnan(h[~plain].view(np.float16)).all()
    assert (b == to_bfloat16(x)).all()


def test_all_halves_and_bfloats_as_floats(program: Loaded) -> None:
    h, b = np.zeros(65536, np.float32), np.zeros(65536, np.float32)
    program.ok("half_floats", 256, 256, h, b)
    bits = np.arange(65536, dtype=np.uint16)
    assert np.array_equal(h, bits.view(np.float16).astype(np.float32), equal_nan=True)
    assert np.array_equal(b.view(np.uint32), from_bfloat16(bits).view(np.uint32))


@pytest.mark.parametrize("kernel", ["arithmetic<__half>", "arithmetic<__nv_bfloat16>"])
def test_narrow_arithmetic_rounds_once(program: Loaded, kernel: str) -> None:
    half = "half" in kernel
    rng = np.random.default_rng(5)

    def narrow(x: NDArray[np.float64]) -> NDArray[np.float64]:
        if half:
            return x.astype(np.float16).astype(np.float64)
        odd = x.astype(np.float32)  # to odd, as bfloat16 cannot be rounded to from double by numpy
        bits = odd.view(np.uint32)
        inexact = odd.astype(np.float64) != x
        toward = np.abs(odd.astype(np.float64)) > np.abs(x)
        bits[...] = np.where(inexact & (bits & 1 == 0), np.where(toward, bits - 1, bits + 1), bits)
        return from_bfloat16(to_bfloat16(odd)).astype(np.float64)

    n = 1024
    a, b, c = (narrow(rng.standard_normal(n) * 10 ** rng.uniform(-2, 1, n)) for _ in range(3))
    pack = (
        (lambda v: v.astype(np.float16).view(np.uint16))
        if half
        else (lambda v: to_bfloat16(v.astype(np.float32)))
    )
    out = np.zeros((8, n), np.uint16)
    program.ok(kernel, 1, n, pack(a), pack(b), pack(c), out, i32(n))
    got = out.view(np.float16).astype(np.float64) if half else from_bfloat16(out).astype(np.float64)
    wanted = [a + b, a * b, a / b, a * b + c, np.maximum(a, b), -np.abs(a)]
    for row, value in zip(got, wanted, strict=False):
        assert (row == narrow(value)).all()
    assert (got[6] == narrow(narrow(a + b) - c)).all()
    exact = narrow(np.where(a > b, np.exp(np.minimum(c, 5)), np.sqrt(np.abs(c))))
    assert np.allclose(got[7][c < 5], exact[c < 5], rtol=1e-3 if half else 1e-2)


def test_pairs(program: Loaded) -> None:
    a = np.linspace(-4, 4, 64, dtype=np.float16)
    out = np.zeros(128, np.float16)
    b = to_bfloat16(np.arange(64, dtype=np.float32))
    out_b = np.zeros(64, np.uint16)
    program.ok("pairs", 1, 32, a, out, b, out_b)
    wide = a.astype(np.float64)
    assert (out[:64] == (wide * wide + 1).astype(np.float16)).all()
    assert (out[64:].reshape(-1, 2) == a.reshape(-1, 2)[:, ::-1]).all()
    x = np.arange(64, dtype=np.float32).reshape(-1, 2)
    assert (from_bfloat16(out_b).reshape(-1, 2) == np.stack([x[:, 1], x[:, 0] + 1], 1)).all()


def test_float_functions(program: Loaded) -> None:
    wanted = [
        math.e, math.log(2), 1 / 3, 0.5, 0.125, 10, 3.25, 32, math.sin(0.5), math.cos(0.5), math.sqrt(2), 1, 1,
        math.erf(0.3), 1, 0, 2147483647, 2 + 4 + 5, math.tanh(0.25) + math.log1p(0.5) + 3, 1, 0.25 + 1.5 + 1.5,
    ]  # fmt: skip
    out = np.zeros(len(wanted), np.float32)
    program.ok("floats", 1, 1, out)
    assert np.allclose(out, wanted, rtol=1e-6)


def test_integer_functions(program: Loaded) -> None:
    wanted = [
        8, 3132, 400, 0x80000000, 3, -1, -15, 3, 0x80000001, 0x77553311, 64, 4 + 3 + 2 + 1 + 5, 0x3F800000, 1023,
        7 + 17, 2, 1,
    ]  # fmt: skip
    out = np.zeros(len(wanted), np.int64)
    program.ok("integers", 1, 1, out)
    assert out.tolist() == wanted


def test_atomics_from_many_blocks(program: Loaded) -> None:
    i = np.array([0, 0, -5, 5, 0, 255, 0, 0], np.int32)
    u = np.array([0, 5, 0, 0], np.uint32)
    f, d, wide, h = np.zeros(1, np.float32), np.zeros(1), np.zeros(2, np.uint64), np.zeros(2, np.float16)
    program.ok("atomics", 50, 100, i, u, f, d, wide, h)
    n = 5000
    xor = int(np.bitwise_xor.reduce(np.arange(n)))
    assert i.tolist() == [n, -2 * n, n - 1, 1 - n, 255, 240, xor, 77]
    assert u.tolist() == [n % 10, (5 - n) % 10, n - 1, n]
    assert (f[0], d[0], wide[0], wide[1]) == (n / 2, n / 4, n << 33, 3 * n)
    assert h.tolist() == [64, 64]


def test_scalars_by_declared_type(program: Loaded) -> None:
    out = np.zeros(6)
    values = [
        ScalarValue("int32", -7), ScalarValue("float32", 0.1), ScalarValue("float16", 0.1),
        ScalarValue("bfloat16", 0.1), ScalarValue("int64", 2**40), ScalarValue("bool", 1), ScalarValue("uint8", 200),
    ]  # fmt: skip
    program.ok("scalars", 1, 1, out, *values)
    bfloat = float(from_bfloat16(to_bfloat16(np.array([0.1], np.float32)))[0])
    assert out.tolist() == [-7, float(np.float32(0.1)), float(np.float16(0.1)), bfloat, 2**40, 200]


@pytest.mark.parametrize(
    ("number", "value", "words"),
    [
        (0, ScalarValue("int64", 3), "argument 2 is an integer of 4 bytes and launch.toml passes int64"),
        (1, ScalarValue("int32", 3), "argument 3 is a float of 4 bytes and launch.toml passes int32"),
        (0, ScalarValue("int32", 2**31), "does not fit int32"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(
    program: Loaded, number: int, value: ScalarValue, words: str
) -> None:
    kinds = ("int32", "float32", "float16", "bfloat16", "int64", "bool", "uint8")
    values = [ScalarValue(kind, 1) for kind in kinds]
    values[number] = value
    report = program.run("scalars", 1, 1, np.zeros(6), *values)
    assert (report.status, report.child_dead) == ("launch_error", False)
    assert words in report.text


def test_the_number_of_arguments_and_the_shape_of_a_launch(program: Loaded) -> None:
    report = program.run("integers", 1, 1)
    assert report.text == "integers takes 1 arguments and launch.toml passes 0"
    assert "block of 2048 threads" in program.run("integers", 1, (64, 32), np.zeros(1, np.int64)).text
    assert "outside 1 to" in program.run("integers", 0, 1, np.zeros(1, np.int64)).text
