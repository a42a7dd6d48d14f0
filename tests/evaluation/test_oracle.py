"""The oracle: what reference.py may return, and how its mistakes are named."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from kda_tui.evaluation.compare import compare
from kda_tui.evaluation.dtypes import encode
from kda_tui.evaluation.inputs import CaseKey
from kda_tui.evaluation.mismatch import describe
from kda_tui.evaluation.oracle import NotANumber, Oracle, OracleError, Reference, judged_calls
from tests.evaluation.contracts import COPY, contract


def oracle(tmp_path: Path, reference: str, body: str = COPY) -> Oracle:
    (tmp_path / "reference.py").write_text("import numpy as np\n\n\n" + reference)
    return Oracle(contract(body), tmp_path)


def case_of(found: Oracle):  # type: ignore[no-untyped-def]
    return found.case(found.contract.workloads[0], CaseKey("w", "s"))


@pytest.mark.parametrize("returned", ['{"y": x}', "x", "(x,)", "[x.astype(np.float32)]"])
def test_outputs_by_name_in_order_or_alone(tmp_path: Path, returned: str) -> None:
    found = case_of(
        oracle(tmp_path, f'def reference(inputs, scalars):\n    x = 2 * inputs["x"]\n    return {returned}\n')
    )
    assert found.expected[0]["y"].values.dtype == np.float64
    assert np.allclose(found.expected[0]["y"].values, 2 * found.inputs.values()["x"])


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (
            "def reference(inputs, scalars):\n    return inputs['z']\n",
            r"reference.py:5: reference\(\) failed: KeyError",
        ),
        ("def reference(inputs, scalars)\n", r"reference.py:4: cannot be loaded: SyntaxError"),
        ("import nothing_of_the_kind\n", r"reference.py:4: cannot be loaded: ModuleNotFoundError"),
        ("raise SystemExit(3)\n", r"reference.py:4: cannot be loaded: SystemExit"),
        ("reference = 3\n", r"needs a function reference\(inputs, scalars\)"),
        ("def reference(inputs, scalars):\n    return {}\n", r"returned no 'y'"),
        (
            "def reference(inputs, scalars):\n    return inputs['x'][0]\n",
            r"output 'y' for workload 'w' has shape \[6\], the contract says \[4, 6\]",
        ),
        ("def reference(inputs, scalars):\n    return inputs['x'].astype(str)\n", "is not a number"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, reference: str, said: str) -> None:
    with pytest.raises(OracleError, match=said):
        case_of(oracle(tmp_path, reference))


def test_a_reference_that_is_nan_is_refused_unless_meant(tmp_path: Path) -> None:
    reference = "def reference(inputs, scalars):\n    return np.where(inputs['x'] > 0, inputs['x'], np.nan)\n"
    with pytest.raises(NotANumber, match=r"set check\.nan = 'match'"):
        case_of(oracle(tmp_path, reference))
    allowed = COPY.replace("rel_l2 = 1e-5", 'rel_l2 = 1e-5, nan = "match"')
    assert np.isnan(case_of(oracle(tmp_path, reference, allowed)).expected[0]["y"].values).any()


def test_scalars_axes_and_params_reach_the_reference(tmp_path: Path) -> None:
    body = COPY + '\n[[scalar]]\nname = "a"\ndtype = "float32"\nvalue = 3.0\n'
    found = oracle(
        tmp_path,
        "def reference(inputs, scalars):\n    return inputs['x'] * scalars['a'] * scalars['m']\n",
        body,
    )
    case = case_of(found)
    assert np.allclose(case.expected[0]["y"].values, 12 * case.inputs.values()["x"])


def test_the_cache_keeps_what_fits(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text("def reference(inputs, scalars):\n    return inputs['x']\n")
    found = Oracle(contract(), tmp_path, cache_bytes=700)
    workload = found.contract.workloads[0]
    first = found.case(workload, CaseKey("w", "a"))
    assert found.case(workload, CaseKey("w", "a")) is first
    for seed in "bcdef":
        found.case(workload, CaseKey("w", seed))
    again = found.case(workload, CaseKey("w", "a"))
    assert again is not first and np.array_equal(again.inputs.storage["x"], first.inputs.storage["x"])


def test_chains_are_judged_at_both_ends_and_in_the_middle(tmp_path: Path) -> None:
    assert [judged_calls(n) for n in (1, 2, 3, 8)] == [(0,), (0, 1), (0, 1, 2), (0, 4, 7)]
    body = COPY.replace('role = "out"', 'role = "inout"') + "\n[benchmark]\nsteps = 5\n"
    found = case_of(
        oracle(
            tmp_path, "def reference(inputs, scalars):\n    return {'y': inputs['y'] + inputs['x']}\n", body
        )
    )
    x, y = found.inputs.values()["x"], found.inputs.values()["y"]
    assert sorted(found.expected) == [0, 2, 4]
    assert np.allclose(found.expected[4]["y"].values, y + 5 * x)


def test_pairs_of_fp4_are_told_apart(tmp_path: Path) -> None:
    body = """
[[tensor]]
name = "x"
role = "in"
dtype = "fp4x2"
shape = [40, 300]

[[tensor]]
name = "y"
role = "out"
dtype = "fp4x2"
shape = [40, 300]
check = {exact = true}

[[workload]]
id = "w"
axes = {}
"""
    found = oracle(tmp_path, "def reference(inputs, scalars):\n    return inputs['x']\n", body)
    case, spec = case_of(found), found.outputs[0]
    want = case.expected[0]["y"]
    bits = encode(case.inputs.values()["x"], "fp4x2")
    assert case.inputs.values()["x"].shape == (40, 600) and compare(bits, want, spec).ok
    bits[33, 7] ^= 0x70
    found_wrong = compare(bits, want, spec)
    assert not found_wrong.ok
    assert describe(bits, want, spec, "w", "s", found_wrong).index == (33, 15)


def test_a_compiled_file_beside_the_reference_is_not_run(tmp_path: Path) -> None:
    import py_compile

    evil = tmp_path / "evil.py"
    evil.write_text("raise SystemExit('ran')\n")
    path = tmp_path / "reference.py"
    path.write_text("def reference(inputs, scalars):\n    return {}\n")
    cached = tmp_path / "__pycache__" / f"reference.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(
        str(evil), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    assert callable(Reference(path)._module.reference)
