"""Inputs are the same for the same seed, keep to their domains, and lie where the contract says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kda_tui.evaluation.dtypes import decode
from kda_tui.evaluation.inputs import HOLE, CaseKey, InputError, make_inputs
from kda_tui.evaluation.probes import PROBES
from tests.evaluation.contracts import contract

INDEXED = """
[[tensor]]
name = "x"
role = "in"
dtype = "bfloat16"
shape = ["n"]

[[tensor]]
name = "w"
role = "in"
dtype = "float32"
shape = ["n"]
constant = true

[[tensor]]
name = "i"
role = "in"
dtype = "int32"
shape = [3, "k"]
kind = "index"
domain = {DOMAIN}

[[tensor]]
name = "y"
role = "out"
dtype = "float32"
shape = ["n"]
check = {rel_l2 = 1e-3}

[[workload]]
id = "w"
axes = {n = 64, k = 5}
"""


def test_a_seed_is_a_set_of_bytes() -> None:
    c = contract()
    one, same, other = (make_inputs(c, c.workloads[0], CaseKey("w", seed)) for seed in ("a", "a", "b"))
    assert np.array_equal(one.storage["x"], same.storage["x"])
    assert not np.array_equal(one.storage["x"], other.storage["x"])


def test_parts_rotate_all_but_constants() -> None:
    c = contract(INDEXED.replace("DOMAIN", "min = 0, max = 9"))
    one, two = (make_inputs(c, c.workloads[0], CaseKey("w", "a", part)) for part in ("1", "2"))
    assert not np.array_equal(one.storage["x"], two.storage["x"])
    assert np.array_equal(one.storage["w"], two.storage["w"])


@given(st.integers(0, 1000), st.integers(0, 40))
@settings(max_examples=30)
def test_domains_hold(seed: int, top: int) -> None:
    c = contract(INDEXED.replace("DOMAIN", f"min = 2, max = {top + 6}, sorted = true, unique = true"))
    found = make_inputs(c, c.workloads[0], CaseKey("w", str(seed))).values()["i"]
    assert found.min() >= 2 and found.max() <= top + 6
    assert (np.diff(found, axis=1) > 0).all()


def test_rows_add_up() -> None:
    c = contract(INDEXED.replace("DOMAIN", 'min = 1, sums_to = "n"'))
    found = make_inputs(c, c.workloads[0], CaseKey("w", "s")).values()["i"]
    assert (found.sum(axis=1) == 64).all() and found.min() >= 1


def test_an_impossible_domain_is_named() -> None:
    c = contract(INDEXED.replace("DOMAIN", "min = 0, max = 3, unique = true"))
    with pytest.raises(InputError, match="'i' domain: 5 unique values do not fit between 0 and 3"):
        make_inputs(c, c.workloads[0], CaseKey("w", "s"))


@pytest.mark.parametrize("probe", PROBES)
def test_probes_touch_data_only(probe: str) -> None:
    c = contract(INDEXED.replace("DOMAIN", "min = 0, max = 9"))
    plain = make_inputs(c, c.workloads[0], CaseKey("w", "s")).storage
    probed = make_inputs(c, c.workloads[0], CaseKey("w", "s", probe=probe)).storage
    assert not np.array_equal(plain["x"], probed["x"])
    assert np.array_equal(plain["i"], probed["i"]) and np.array_equal(plain["w"], probed["w"])


def test_strided_tensors_leave_holes() -> None:
    body = """
[[tensor]]
name = "x"
role = "in"
dtype = "float16"
shape = [2, 3]
strides = [5, 1]
offset = 1

[[tensor]]
name = "y"
role = "out"
dtype = "float16"
shape = [2, 3]
check = {rel_l2 = 1e-2}

[[workload]]
id = "w"
axes = {}
"""
    c = contract(body)
    found = make_inputs(c, c.workloads[0], CaseKey("w", "s"))
    stored = found.storage["x"].view(np.uint16)
    assert stored.size == 1 + 5 + 3
    holes = [0, 4, 5]
    assert (stored[holes] == HOLE * 257).all()
    assert np.array_equal(
        found.values()["x"], decode(stored[[[1, 2, 3], [6, 7, 8]]].view(np.float16), "float16")
    )


def test_a_generator_gives_what_it_promises(tmp_path: Path) -> None:
    c = contract(
        INDEXED.replace("DOMAIN", "min = 0, max = 9").replace(
            'dtype = "bfloat16"', 'dtype = "bfloat16"\nfill = "generator"'
        )
    )
    wanted = make_inputs(
        c, c.workloads[0], CaseKey("w", "s"), lambda axes, params, rng: {"x": np.arange(axes["n"])}
    )
    assert wanted.values()["x"].tolist() == list(range(64))
    with pytest.raises(InputError, match=r"returned no 'x'"):
        make_inputs(c, c.workloads[0], CaseKey("w", "s"), lambda axes, params, rng: {})
    with pytest.raises(InputError, match=r"shape \[64\], its fill gave \[3\]"):
        make_inputs(c, c.workloads[0], CaseKey("w", "s"), lambda axes, params, rng: {"x": np.zeros(3)})
    with pytest.raises(InputError, match=r"needs a function inputs"):
        make_inputs(c, c.workloads[0], CaseKey("w", "s"))


@pytest.mark.parametrize("fill", ["normal", "uniform", "integers", "ones", "one_hot", "constant_rows"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "fp8_e4m3", "fp4x2", "int8", "uint32", "complex64"])
def test_every_fill_of_every_kind_of_format(fill: str, dtype: str) -> None:
    c = contract(f"""
[[tensor]]
name = "x"
role = "in"
dtype = "{dtype}"
shape = [4, 8]
fill = "{fill}"

[[tensor]]
name = "y"
role = "out"
dtype = "float32"
shape = [4]
check = {{rel_l2 = 1e-2}}

[[workload]]
id = "w"
axes = {{}}
""")
    found = make_inputs(c, c.workloads[0], CaseKey("w", "s")).values()["x"]
    assert found.shape == ((4, 16) if dtype == "fp4x2" else (4, 8)) and np.isfinite(found).all()
    if fill == "one_hot":
        assert (np.count_nonzero(found, axis=1) == 1).all()
    if fill == "constant_rows":
        assert (found == found[:, :1]).all()
