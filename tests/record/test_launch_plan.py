"""Launch plans: what is read, what is refused and how, and that a dumped plan is the same plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kda_tui.config import share_path
from kda_tui.record.contract import Contract, load_contract, parse_contract
from kda_tui.record.launch_plan import (
    AxisArg,
    LaunchPlan,
    LaunchPlanError,
    ScalarArg,
    Scratch,
    Step,
    TensorArg,
    TensorMap,
    Unit,
    ValueArg,
    dump_launch_plan,
    load_launch_plan,
    parse_launch_plan,
    unit_of,
)

CONTRACT = b"""\
[task]
name = "gemm"
device = "cuda"
[[tensor]]
name = "a"
role = "in"
dtype = "bfloat16"
shape = ["m", "k"]
[[tensor]]
name = "sums"
role = "state"
dtype = "float32"
shape = ["m"]
check = {rel_l2 = 1e-3}
[[tensor]]
name = "c"
role = "out"
dtype = "bfloat16"
shape = ["m", "k"]
check = {rel_l2 = 1e-3}
[[scalar]]
name = "eps"
dtype = "float32"
value = 1e-6
[[workload]]
id = "w"
axes = {m = 64, k = 64}
[baseline]
candidate = "baseline"
"""

FULL = """\
hypothesis = "one pass with the row kept in registers"
parents = ["c0003"]
family = "tma"

[[unit]]
name = "big"
file = "kernel.cu"
defines = {BM = 128, BK = 64, SMEM = 98304, KIND = "fast", LOG = false, SCALE = 0.5}
options = {maxrregcount = 168}

[[unit]]
name = "small"
file = "small.ptx"
defines = {BM = 32}

[[scratch]]
name = "sem"
dtype = "int32"
shape = ["ceil_div(m, BM)", 4]

[[tensor_map]]
name = "tma_a"
tensor = "a"
dims = ["k", "m"]
strides = ["2*k"]
box = ["BK", "BM"]
element_strides = [1, 1]
swizzle = "128B"
interleave = "none"
l2_promotion = "128B"
oob = "zero"

[[step]]
memset = "sem"
value = 0

[[step]]
kernel = "big.gemm"
when = "m >= 1024"
grid = ["sm_count", 1, 1]
block = [384, 1, 1]
cluster = [2, 1, 1]
cooperative = true
pdl = true
shared_bytes = "SMEM"
args = ["tma_a", {tensor = "c", offset = "k"}, {axis = "m", as = "int64"}, {scalar = "eps"}, {value = "BM * 2"}, "k"]

[[step]]
kernel = "small.gemm"
when = "m < 1024"
grid = ["ceil_div(m, BM)", 1, 1]
block = [1, 1, 1]
args = [{tensor = "c"}, {scalar = "eps", as = "float64"}, {value = -1, as = "int16"}]

[tune]
BM = [32, 64, 128]
KIND = ["fast", "safe"]
LOG = [true, false]
"""


@pytest.fixture(scope="module")
def contract() -> Contract:
    return parse_contract(CONTRACT)


def test_every_key_is_read(contract: Contract) -> None:
    plan = parse_launch_plan(FULL.encode(), "launch.toml", contract)
    big, small = plan.units
    assert big.defines == {"BM": 128, "BK": 64, "SMEM": 98304, "KIND": "fast", "LOG": False, "SCALE": 0.5}
    assert isinstance(big.defines["LOG"], bool) and isinstance(big.defines["BM"], int)
    step = plan.steps[1]
    assert step.args == (
        "tma_a",
        TensorArg(tensor="c", offset="k"),
        AxisArg.model_validate({"axis": "m", "as": "int64"}),
        ScalarArg(scalar="eps"),
        ValueArg(value="BM * 2"),
        "k",
    )
    assert unit_of(plan, "big.gemm") == (big, "gemm")
    assert unit_of(plan, "gemm") == (big, "gemm")
    assert unit_of(plan, "small.gemm") == (small, "gemm")
    assert unit_of(plan, "other.gemm")[0] is None
    assert plan.tune == {"BM": (32, 64, 128), "KIND": ("fast", "safe"), "LOG": (True, False)}


def test_one_kernel_needs_one_step(contract: Contract) -> None:
    text = b'[[step]]\nkernel = "k"\ngrid = ["m", 1, 1]\nblock = [32, 1, 1]\nargs = ["a", "c", "m"]\n'
    plan = parse_launch_plan(text, "launch.toml", contract)
    assert plan.units == (Unit(),)
    assert plan.units[0].file == "kernel.cu"


@pytest.mark.parametrize("path", sorted(share_path("workspaces").glob("*/**/launch.toml")), ids=str)
def test_the_templates_are_right(path: Path) -> None:
    root = next(p for p in path.parents if (p / "contract.toml").exists())
    for name in ("contract.toml", "contract.cuda.toml"):
        contract = load_contract(root / name)
        plan = load_launch_plan(path, contract)
        assert parse_launch_plan(dump_launch_plan(plan).encode(), "launch.toml", contract) == plan


@pytest.mark.parametrize(
    ("old", "new", "key", "said"),
    [
        ("hypothesis =", "hypotesis =", "hypotesis", "did you mean hypothesis?"),
        ("[[step]]", "[[steps]]", "steps", "did you mean step?"),
        ('"small.ptx"', '"small.py"', "unit[2].file", "Python (Triton) sources are not accepted"),
        ('"small.ptx"', '"../small.ptx"', "unit[2].file", "must be a plain .cu or .ptx name"),
        ('"small.ptx"', '"small.so"', "unit[2].file", "must be a plain .cu or .ptx name"),
        ('name = "small"', 'name = "big"', "unit[1].name", "used twice"),
        ("BK = 64", "k = 64", "unit[1].defines.k", "also an axis"),
        ("BK = 64", '"B-K" = 64', "unit[1].defines.B-K", "no macro name"),
        ("BK = 64", 'BK = "1\\n#error"', "unit[1].defines.BK", "one line"),
        ("BK = 64", "BK = [64]", "unit[1].defines.BK", "must be"),
        ('name = "sem"', 'name = "a"', "scratch[1].name", "is taken"),
        ('name = "tma_a"', 'name = "sem"', "tensor_map[1].name", "is taken"),
        (
            'shape = ["ceil_div(m, BM)", 4]',
            'shape = ["ceil_div(m, BN)", 4]',
            "scratch[1].shape[1]",
            "uses BN",
        ),
        ('tensor = "a"', 'tensor = "aa"', "tensor_map[1].tensor", "did you mean a?"),
        ('strides = ["2*k"]', "strides = []", "tensor_map[1].strides", "2 dims need 1"),
        (
            "element_strides = [1, 1]",
            "element_strides = [1]",
            "tensor_map[1].element_strides",
            "2 dims need 2",
        ),
        (
            'swizzle = "128B"',
            'swizzle = "256B"',
            "tensor_map[1].swizzle",
            "is not one of none, 32B, 64B, 128B",
        ),
        ('memset = "sem"', 'memset = "a"', "step[1].memset", "has role in"),
        ('memset = "sem"', 'memset = "semm"', "step[1].memset", "did you mean sem?"),
        ("value = 0", "value = 256", "step[1].value", "no byte"),
        ("value = 0", "value = 0\ngrid = [1, 1, 1]", "step[1].grid", "is for kernels"),
        ('memset = "sem"', "", "step[1]", "exactly one of kernel and memset"),
        (
            'kernel = "big.gemm"',
            'kernel = "big.gemm"\nmemset = "c"',
            "step[2]",
            "exactly one of kernel and memset",
        ),
        (
            'kernel = "big.gemm"',
            'kernel = "bigg.gemm"',
            "step[2].kernel",
            "there is no unit bigg; did you mean big?",
        ),
        ('kernel = "big.gemm"', 'kernel = "a b"', "step[2].kernel", "must be a function's name"),
        ('grid = ["sm_count", 1, 1]\n', "", "step[2].grid", "is missing"),
        ("block = [384, 1, 1]", "block = [384, 1]", "step[2].block[3]", "is missing"),
        ("block = [384, 1, 1]", "block = [384, 1, 1, 1]", "step[2].block", "at most 3 entries"),
        ("block = [384, 1, 1]", 'block = ["384 *", 1, 1]', "step[2].block[1]", "is not an expression"),
        ('"SMEM"\n', '"SMEMM"\n', "step[2].shared_bytes", "uses SMEMM"),
        ('when = "m < 1024"', 'when = "BK < 1024"', "step[3].when", "uses BK; known here are BM"),
        ('when = "m < 1024"', "when = 3", "step[3].when", "must be a text"),
        (
            '"tma_a", {tensor',
            '"tma_b", {tensor',
            "step[2].args[1]",
            "no tensor, scratch, tensor map, scalar or axis",
        ),
        ('{tensor = "c", offset', '{tensor = "d", offset', "step[2].args[2].tensor", "no tensor or scratch"),
        ('offset = "k"', 'offset = "kk"', "step[2].args[2].offset", "uses kk"),
        ('{axis = "m"', '{axis = "n"', "step[2].args[3].axis", "no axis"),
        ('as = "int64"', 'as = "long"', "step[2].args[3]", "must be a name, or {tensor, offset}"),
        ('{scalar = "eps"}', '{scalar = "epsilon"}', "step[2].args[4].scalar", "did you mean eps?"),
        ('{scalar = "eps"}', '{skalar = "eps"}', "step[2].args[4]", "must be a name, or"),
        ("KIND = [", "KINDS = [", "tune.KINDS", "no define of any unit; did you mean KIND?"),
        ("BM = [32, 64, 128]", "BM = [32, 64]", "tune.BM", "does not list 128"),
        ("BM = [32, 64, 128]", "BM = []", "tune.BM", "is empty"),
        ("BM = [32, 64, 128]", "BM = [128, [1]]", "tune.BM", "must list numbers"),
        ("BM = [32, 64, 128]", "BM = [128, 32, 32]", "tune.BM", "twice"),
        ("BM = [32, 64, 128]", "BM = 128", "tune.BM", "must be a list"),
    ],
)
def test_a_mistake_is_named_with_key_line_and_what_is_right(
    contract: Contract, old: str, new: str, key: str, said: str
) -> None:
    assert old in FULL
    text = FULL.replace(old, new, 1)
    with pytest.raises(LaunchPlanError) as caught:
        parse_launch_plan(text.encode(), "launch.toml", contract)
    named = {p.key: p for p in caught.value.problems}
    assert key in named, str(caught.value)
    assert said in named[key].text
    assert f"launch.toml, line {named[key].line}: {key}: " in str(caught.value)


def test_without_a_contract_any_name_may_be_right_but_syntax_is_checked() -> None:
    assert parse_launch_plan(FULL.encode())
    with pytest.raises(LaunchPlanError, match="not an expression"):
        parse_launch_plan(FULL.replace('"ceil_div(m, BM)", 1', '"ceil_div(m,", 1').encode())
    with pytest.raises(LaunchPlanError, match="has no kernel"):
        parse_launch_plan(b'hypothesis = "nothing"\n')


def test_the_tuner_writes_a_variation(contract: Contract) -> None:
    plan = parse_launch_plan(FULL.encode(), "launch.toml", contract)
    text = dump_launch_plan(
        plan, {"BM": 64, "LOG": True, "ABSENT": 1}, hypothesis="BM 64", parents=("c0007",)
    )
    varied = parse_launch_plan(text.encode(), "launch.toml", contract)
    assert [u.defines["BM"] for u in varied.units] == [64, 64]
    assert varied.units[0].defines["LOG"] is True
    assert "ABSENT" not in varied.units[0].defines
    assert (varied.hypothesis, varied.parents, varied.family) == ("BM 64", ("c0007",), "tma")
    assert varied.steps == plan.steps
    assert varied.tune == plan.tune


NAME = st.sampled_from(["a1", "b_2", "Cc", "d"])
EXPR = st.integers(0, 5000) | st.sampled_from(["m", "ceil_div(m, 2)", "m*4"])
THREE = st.tuples(EXPR, EXPR, EXPR)
ARGS = (
    st.sampled_from(["a", "c", "m", "eps"])
    | st.builds(TensorArg, tensor=st.sampled_from(["a", "c"]), offset=EXPR)
    | st.builds(
        lambda axis, dtype: AxisArg.model_validate({"axis": axis, "as": dtype}),
        st.just("m"),
        st.sampled_from(["int32", "int64"]),
    )
    | st.builds(
        lambda dtype: ScalarArg.model_validate({"scalar": "eps", "as": dtype}),
        st.sampled_from(["float32", "float64"]),
    )
    | st.builds(ScalarArg, scalar=st.just("eps"))
    | st.builds(ValueArg, value=EXPR)
)
DEFINE = (
    st.integers(-9, 9)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab \"'\\#é", max_size=5)
)
KERNEL = st.builds(
    lambda **fields: Step.model_validate(fields),
    kernel=st.sampled_from(["k", "gemm_2"]),
    when=st.none() | st.sampled_from(["m > 1", "m == 2"]),
    grid=THREE,
    block=THREE | st.just((1, 1, 1)),
    cluster=st.none() | THREE,
    cooperative=st.booleans(),
    pdl=st.booleans(),
    shared_bytes=EXPR,
    args=st.lists(ARGS, max_size=4).map(tuple),
)
PLANS = st.builds(
    LaunchPlan,
    hypothesis=st.text("ab\n\"'\\é", max_size=9),
    parents=st.lists(st.text("c0", max_size=4), max_size=2).map(tuple),
    family=st.text("ab", max_size=3),
    units=st.lists(
        st.builds(
            Unit,
            name=st.sampled_from(["u1", "u2", "kernel"]),
            file=st.sampled_from(["kernel.cu", "x.ptx"]),
            defines=st.dictionaries(st.sampled_from(["P", "Q"]), DEFINE),
            options=st.dictionaries(st.just("maxrregcount"), st.integers(1, 255)),
        ),
        min_size=1,
        max_size=2,
        unique_by=lambda u: u.name,
    ).map(tuple),
    scratch=st.lists(
        st.builds(Scratch, name=NAME, dtype=st.just("int32"), shape=st.lists(EXPR, max_size=2).map(tuple)),
        max_size=2,
        unique_by=lambda s: s.name,
    ).map(tuple),
    tensor_maps=st.lists(
        st.builds(
            TensorMap,
            name=st.just("t_map"),
            tensor=st.just("a"),
            dims=st.just(("k", "m")),
            strides=st.just(("2*k",)),
            box=st.just((8, 8)),
        ),
        max_size=1,
    ).map(tuple),
    steps=st.lists(
        KERNEL | st.builds(Step, memset=st.just("c"), value=st.integers(0, 255)), min_size=1, max_size=3
    )
    .filter(lambda steps: any(s.kernel for s in steps))
    .map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(plan=PLANS, data=st.data())
def test_a_dumped_plan_is_the_same_plan(contract: Contract, plan: LaunchPlan, data: st.DataObject) -> None:
    defines: dict[str, Any] = {k: v for unit in reversed(plan.units) for k, v in unit.defines.items()}
    tune = {k: (v,) for k, v in defines.items() if data.draw(st.booleans())}
    plan = plan.model_copy(update={"tune": tune})
    again = parse_launch_plan(dump_launch_plan(plan).encode(), "launch.toml", contract)
    assert again == plan
    assert dump_launch_plan(again) == dump_launch_plan(plan)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_mangled_plan_is_read_or_refused_with_lines(contract: Contract, data: st.DataObject) -> None:
    lines = FULL.splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        value = data.draw(
            st.sampled_from(["1", "-1", "nan", '"x"', "[]", "{}", "true", '["m"]', "[{}]", "1979-05-27"])
        )
        lines[at] = data.draw(
            st.sampled_from(["", lines[at - 1], f"{lines[at].partition('=')[0]}= {value}", "z" + lines[at]])
        )
    try:
        assert isinstance(parse_launch_plan("\n".join(lines).encode(), "launch.toml", contract), LaunchPlan)
    except LaunchPlanError as error:
        assert error.problems
        assert all(1 <= p.line <= len(lines) + 1 for p in error.problems)
