"""Launch plans with numbers filled in: offsets, types, conditions, and errors that name the place."""

from __future__ import annotations

import pytest

from kda_tui.evaluation.devices.interface import (
    BufferRef,
    KernelStep,
    MemsetStep,
    ScalarValue,
    TensorMapValue,
)
from kda_tui.evaluation.resolve import ResolvedPlan, ResolveError, resolve
from kda_tui.record.launch_plan import parse_launch_plan
from tests.evaluation.contracts import COPY, contract

FACTS = {"sm_count": 132, "l2_bytes": 1 << 20, "warp_size": 32}
BODY = (
    COPY.replace('shape = ["m", "n"]\n\n', 'shape = ["m", "n"]\nstrides = ["n + 2", 1]\noffset = 4\n\n', 1)
    + """
[[workload]]
id = "big"
axes = {m = 64, n = 6}

[[scalar]]
name = "eps"
dtype = "float32"
value = 1e-5
"""
)


def resolved(text: str, workload: int = 0) -> ResolvedPlan:
    """``text`` with a grid and a block of one where a kernel step has none."""
    parts = text.split("[[step]]")
    for i, part in enumerate(parts):
        for key in ("grid", "block"):
            if "kernel =" in part and f"{key} =" not in part:
                parts[i] = parts[i].replace("kernel =", f"{key} = [1, 1, 1]\nkernel =", 1)
    text = "[[step]]".join(parts)
    c = contract(BODY)
    return resolve(parse_launch_plan(text.encode()), c, c.workloads[workload], FACTS)


def test_everything_is_filled_in() -> None:
    plan = resolved("""
[[unit]]
name = "u"
defines = {BM = 16}

[[scratch]]
name = "s"
dtype = "int64"
shape = ["m", 3]

[[step]]
memset = "s"
value = 255

[[step]]
kernel = "u.k"
grid = ["ceil_div(m, BM)", "sm_count", 1]
block = ["2 * BM", 1, 1]
shared_bytes = "4 * BM"
args = ["x", {tensor = "y", offset = "n"}, "s", {axis = "m", as = "int64"}, "n", {scalar = "eps"}, {value = "m * n"}]
""")
    memset, kernel = plan.steps
    assert memset == MemsetStep("s", 255, 4 * 3 * 8)
    assert isinstance(kernel, KernelStep)
    assert (kernel.unit, kernel.kernel, kernel.grid, kernel.block) == ("u", "k", (1, 132, 1), (32, 1, 1))
    assert kernel.shared_bytes == 64
    assert kernel.args == (
        BufferRef("x", 16),  # the tensor's own offset of 4 elements
        BufferRef("y", 24),
        BufferRef("s", 0),
        ScalarValue("int64", 4),
        ScalarValue("int32", 6),
        ScalarValue("float32", 1e-5),
        ScalarValue("int32", 24),
    )
    assert plan.scratch == {"s": 96}


def test_binding_names_the_buffers_of_a_set_and_chains_calls() -> None:
    plan = resolved('[[step]]\nkernel = "k"\nargs = ["x", "y"]\n')
    launch = plan.bind({"x": "w/x@1", "y": "w/y@1"}, calls=3)
    assert len(launch.steps) == 3
    step = launch.steps[0]
    assert isinstance(step, KernelStep) and step.unit == "kernel"
    assert step.args == (BufferRef("w/x@1", 16), BufferRef("w/y@1", 0))


def test_conditions_choose_the_path() -> None:
    text = """
[[step]]
kernel = "small"
when = "m < 10"
args = ["x", "y"]

[[step]]
kernel = "large"
when = "m >= 10"
args = ["x", "y"]
"""
    assert resolved(text, 0).signature == ("0:kernel.small",)
    assert resolved(text, 1).signature == ("1:kernel.large",)


def test_tensor_maps_are_resolved() -> None:
    plan = resolved("""
[[tensor_map]]
name = "t"
tensor = "x"
dims = ["n", "m"]
strides = ["4 * (n + 2)"]
box = ["n", 2]

[[step]]
kernel = "k"
args = ["t", "y"]
""")
    step = plan.steps[0]
    assert isinstance(step, KernelStep)
    tensor_map = step.args[0]
    assert isinstance(tensor_map, TensorMapValue)
    assert (tensor_map.dims, tensor_map.strides, tensor_map.box) == ((6, 4), (32,), (6, 2))
    assert tensor_map.element_strides == (1, 1)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ('kernel = "k"\nwhen = "m > 1000"', "no kernel step is left for workload 'w'"),
        ('kernel = "k"\ngrid = ["m - 4", 1, 1]', r"step 1 grid: \[0, 1, 1\] must be at least 1"),
        ('kernel = "k"\nblock = [64, 32, 1]', "step 1 block: 2048 threads, at most 1024"),
        ('kernel = "k"\nshared_bytes = "0 - n"', "step 1 shared_bytes: -6 is negative"),
        ('kernel = "k"\nargs = [{tensor = "y", offset = "m * n"}]', r"args\[0\]: offset 24 lies outside 'y'"),
        (
            'kernel = "k"\nargs = [{axis = "m", as = "int8"}, {value = 300, as = "uint8"}]',
            r"args\[1\]: 300 does not fit uint8",
        ),
        (
            'kernel = "k"\nargs = ["z"]',
            r"args\[0\]: no tensor, scratch, tensor map, scalar or axis is called 'z'",
        ),
        ('kernel = "k"\ngrid = ["m // 0", 1, 1]', "step 1 grid"),
        ('memset = "x"', "step 1 memset: 'x' is an input"),
    ],
)
def test_errors_name_step_and_key(step: str, said: str) -> None:
    with pytest.raises(ResolveError, match=said):
        resolved(f'[[step]]\n{step}\n[[step]]\nkernel = "other"\nwhen = "m > 1000"\n')
