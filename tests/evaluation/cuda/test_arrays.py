"""On the GPU: device arrays judge as NumPy's do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.gpu
pytest.importorskip("pycuda", reason="needs kda-tui[cuda]")
pytest.importorskip("cupy", reason="needs CuPy")

from kda_tui.evaluation.arrays import HOST, to_host
from kda_tui.evaluation.compare import compare
from kda_tui.evaluation.devices.cuda.device import CudaDevice
from kda_tui.evaluation.dtypes import decode, encode
from kda_tui.evaluation.inputs import CaseKey, make_inputs
from kda_tui.evaluation.layout import TensorLayout
from kda_tui.evaluation.mismatch import describe
from kda_tui.evaluation.oracle import Expected, Oracle
from kda_tui.evaluation.probes import PROBES
from kda_tui.record.contract import Check, TensorSpec
from tests.evaluation.contracts import contract

FORMATS = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "fp8_e4m3",
    "fp8_e5m2",
    "e8m0",
    "int8",
    "int32",
    "complex64",
)


@pytest.fixture(scope="module")
def arrays() -> Any:
    found = CudaDevice().arrays
    assert found.name == "cupy"
    return found


@pytest.mark.parametrize("dtype", [*FORMATS, "fp4x2", "bool"])
def test_formats_encode_and_decode_as_on_the_host(arrays: Any, dtype: str) -> None:
    values = np.random.default_rng(1).standard_normal((33, 64)) * 3
    bits = encode(values, dtype)
    there = encode(arrays.own(values), dtype)
    assert np.array_equal(to_host(there), bits)
    assert np.array_equal(to_host(decode(there, dtype)), decode(bits, dtype), equal_nan=True)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("tile", [("row",), ()])
def test_comparisons_agree_with_the_host(arrays: Any, dtype: str, tile: tuple[str, ...]) -> None:
    rng = np.random.default_rng(2)
    want = rng.standard_normal((57, 1000)) * 4
    if dtype == "complex64":
        want = want + 1j * rng.standard_normal(want.shape)
    spec = TensorSpec(
        name="y", role="out", dtype=dtype, shape=want.shape,  # type: ignore[arg-type]
        check=Check(rel_l2=1e-2, tile=tile, max_abs_over_rms=1.0, nan="match"),
    )  # fmt: skip
    got = encode(want, dtype)
    if dtype in ("float32", "float16", "bfloat16", "float64"):
        want[3, 5], want[4, 6] = np.inf, np.nan
        got = encode(want, dtype)
        got[8, 9] = encode(np.array(np.nan), dtype)
    got[50, 100:140] = got[0, 0]
    valid = rng.random(want.shape) < 0.9
    layout = TensorLayout("y", dtype, want.shape, (), 0, 0)
    for keep in (None, valid):
        host = compare(got, Expected(layout, want, None, keep), spec)
        mine = None if keep is None else arrays.own(keep)
        there = compare(arrays.own(got), Expected(layout, arrays.own(want), None, mine), spec)
        assert (there.ok, there.tile, there.wrong_class) == (host.ok, host.tile, host.wrong_class)
        assert there.rel_l2 == pytest.approx(host.rel_l2, rel=1e-12)
        assert there.max_abs_over_rms == pytest.approx(host.max_abs_over_rms, rel=1e-12)
        assert there.worst_tile == pytest.approx(host.worst_tile, rel=1e-12)


def test_random_numbers_are_what_they_should_be(arrays: Any) -> None:
    stream, again = arrays.stream("a", "b"), arrays.stream("a", "b")
    normal = to_host(stream.standard_normal((1000, 1000), np.float32))
    assert np.array_equal(normal, to_host(again.standard_normal((1000, 1000), np.float32)))
    assert not np.array_equal(normal, to_host(stream.standard_normal((1000, 1000), np.float32)))
    assert abs(normal.mean()) < 4e-3 and abs(normal.std() - 1) < 4e-3
    assert abs((normal**4).mean() - 3) < 0.05 and 4.0 < np.abs(normal).max() < 6.7
    assert abs(np.corrcoef(normal[:, :-1].ravel(), normal[:, 1:].ravel())[0, 1]) < 4e-3
    double = to_host(stream.standard_normal((999,)))
    assert double.dtype == np.float64 and np.unique(double).size == 999
    uniform = to_host(stream.random((10_000,)))
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.02
    whole = to_host(stream.integers(-3, 3, (70_000,), endpoint=True))
    assert sorted(np.unique(whole)) == list(range(-3, 4)) and np.bincount(whole + 3).min() > 9000
    bits = to_host(arrays.random_bytes(1001, "p"))
    assert np.array_equal(bits, to_host(arrays.random_bytes(1001, "p"))) and np.unique(bits).size > 200


def test_equal_sees_one_byte_anywhere(arrays: Any) -> None:
    a = arrays.random_bytes(100_003, "x")
    for at in (0, 15, 16, 50_000, 100_002):
        b = a.copy()
        assert arrays.equal([(a, b), (a[1:], b[1:])])()
        b[at] ^= 1
        assert not arrays.equal([(a, a), (a, b)])()
        assert arrays.equal([(a[3:], b[3:])])() == (at < 3)


@pytest.mark.parametrize("fill", ["normal", "uniform", "integers", "ones", "one_hot", "constant_rows"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "fp8_e4m3", "fp4x2", "int8", "complex64"])
def test_every_fill_and_every_probe(arrays: Any, fill: str, dtype: str) -> None:
    body = f"""
[[tensor]]
name = "x"
role = "in"
dtype = "{dtype}"
shape = [4, 8]
fill = "{fill}"
[[tensor]]
name = "i"
role = "in"
dtype = "int32"
shape = [3, 5]
kind = "index"
domain = {{min = 0, max = 9, sorted = true, unique = true}}
[[tensor]]
name = "y"
role = "out"
dtype = "float32"
shape = [4]
check = {{rel_l2 = 1e-2}}
[[workload]]
id = "w"
axes = {{}}
"""
    c = contract(body)
    for probe in ("", *PROBES):
        found = make_inputs(c, c.workloads[0], CaseKey("w", "s", probe=probe), arrays=arrays).values()
        values = to_host(found["x"])
        assert values.shape == ((4, 16) if dtype == "fp4x2" else (4, 8)) and np.isfinite(values).all()
        assert (np.diff(to_host(found["i"]), axis=1) > 0).all()


REFERENCE = """
import numpy as np
def reference(inputs, scalars):
    y = np.zeros(inputs["x"].shape)
    y[:, 1:] = inputs["x"][:, :-1] * np.arange(1, y.shape[1])
    return {"y": y}
"""


def test_a_reference_in_numpy_runs_on_the_device(arrays: Any, tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    there, here = Oracle(contract(), tmp_path, arrays=arrays), Oracle(contract(), tmp_path, arrays=HOST)
    key = CaseKey("w", "s")
    case = there.case(there.contract.workloads[0], key)
    assert not there.note
    values = {name: to_host(v) for name, v in case.inputs.values().items()}
    want = here.reference(values, {})["y"]
    assert np.allclose(to_host(case.expected[0]["y"].values), want)


def test_a_reference_that_needs_the_host_falls_back_and_says_so(arrays: Any, tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(
        "import math\n"
        "def reference(inputs, scalars):\n"
        "    import numpy\n"
        "    return {'y': numpy.asarray(inputs['x']) + 1}\n"
    )
    found = Oracle(contract(), tmp_path, arrays=arrays)
    case = found.case(found.contract.workloads[0], CaseKey("w", "s"))
    assert "NumPy on the host" in found.note
    assert np.allclose(to_host(case.expected[0]["y"].values), to_host(case.inputs.values()["x"]) + 1)


def test_a_torch_reference_stays_on_the_device(arrays: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "reference.py").write_text(
        "import torch\n"
        "def reference(inputs, scalars):\n"
        "    x = torch.as_tensor(inputs['x'])\n"
        "    return {'y': torch.softmax(x.double(), dim=-1)}\n"
    )
    found = Oracle(contract(), tmp_path, arrays=arrays)
    case = found.case(found.contract.workloads[0], CaseKey("w", "s"))
    assert not found.note and abs(to_host(case.expected[0]["y"].values).sum() - 4) < 1e-9


def test_a_mismatch_is_described_from_device_arrays(arrays: Any) -> None:
    want = np.random.default_rng(3).standard_normal((37, 300))
    got = want.astype(np.float32)
    got[3:5, 10:20] += 1.0
    spec = TensorSpec(name="y", role="out", dtype="float32", shape=want.shape, check=Check(rel_l2=1e-5))
    layout = TensorLayout("y", "float32", want.shape, (), 0, 0)
    expected = Expected(layout, arrays.own(want), None, None)
    there = arrays.own(got)
    found = describe(there, expected, spec, "w", "seed", compare(there, expected, spec))
    assert (found.wrong, found.total, found.box) == (20, want.size, ((3, 4), (10, 19)))
    assert isinstance(found.got, float) and len(found.tile_map) == 16
