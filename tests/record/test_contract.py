"""Contracts: what is read, and that every mistake is named with key, line and what would be right."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kda_tui.config import share_path
from kda_tui.record.contract import (
    Contract,
    ContractError,
    element_size,
    load_contract,
    parse_contract,
    storage_elements,
    tensor_shape,
    tensor_strides,
    workload_names,
)
from kda_tui.text import UserError

FULL = """\
[task]
name = "gate"
objective = "y = x * silu(z)"
device = "cuda"
arch = "sm_90a"

[[tensor]]
name = "q_cos"
role = "in"
dtype = "bfloat16"
shape = ["b", "h", "t", "d//2"]
strides = ["h*t*(d//2)", "d//2", "h*(d//2)", 1]
offset = "2 * d"
align = 16
fill = "generator"

[[tensor]]
name = "index"
role = "in"
dtype = "int32"
shape = ["t"]
kind = "index"
domain = {min = 0, max = "t - 1", sorted = true, unique = true}
constant = true

[[tensor]]
name = "y"
role = "out"
dtype = "bfloat16"
shape = ["b", "h", "t", "d//2"]
valid = "mask"
rest = "any"
check = {rel_l2=5e-3, tile=["row"], max_abs_over_rms=0.1, vs_baseline=2.0, nan="forbid", inf="match"}

[[tensor]]
name = "count"
role = "inout"
dtype = "int64"
shape = [1]
fill = "integers"
check = {exact = true}

[[scalar]]
name = "eps"
dtype = "float32"
value = 1e-6

[[scalar]]
name = "length"
dtype = "int32"
axis = "t"

[[scalar]]
name = "top"
dtype = "int32"

[[workload]]
id = "small"
axes = {b = 1, h = 2, t = 7, d = 64}
params = {lengths = "zipf", cuts = [1, 2]}
scalars = {top = 3}
weight = 2.0
floor = 0.97

[[workload]]
hidden = {count = 2, ranges = {t = [1, 100]}}

[[workload]]
id = "large"
axes = {b = 4, h = 8, t = 1000, d = 128}
scalars = {top = 5}

[correctness]
seeds = 2
repeats = 2
deterministic = false
spread = 1e-5
probes = false
prior_calls = 1

[benchmark]
cache = "warm"
launch = "graph"
steps = 2
prepare = "timed"
launches = 5
blocks = 12
timeout_s = 30

[compile]
arch = "sm_90a"
include = [{path = "cutlass/include", sha256 = "%s"}]
allowed = ["maxrregcount", "fast_math"]
timeout_s = 60.0

[cost]
bytes = "4 * b * h * t * d"
flops = "nnz * 2"
flops_dtype = "bfloat16"
facts = true

[baseline]
python = "reference:baseline"

[promotion]
min_speedup = 1.02
floor = 0.98
profile = "required"
by = "rule"
lower_trust = true

[budget]
candidates = 100
hours = 12
usd = 20.5
count_held = true

[gates]
max_open = 2
plan = "auto"
question_timeout_s = 60
promotion_timeout_s = 3600
""" % ("0" * 64)

SMALL = """\
[task]
name = "copy"
device = "cpu"
[[tensor]]
name = "x"
role = "in"
dtype = "float32"
shape = ["n"]
[[tensor]]
name = "y"
role = "out"
dtype = "float32"
shape = ["n"]
check = {rel_l2 = 1e-6}
[[workload]]
id = "w"
axes = {n = 5}
[baseline]
candidate = "baseline"
"""


def refused(text: str) -> ContractError:
    with pytest.raises(ContractError) as caught:
        parse_contract(text.encode(), "contract.toml")
    return caught.value


def test_every_key_is_read() -> None:
    contract = parse_contract(FULL.encode())
    assert contract.sha256 == hashlib.sha256(FULL.encode()).hexdigest()
    assert [w.id for w in contract.workloads] == ["small", "large"]
    assert contract.hidden is not None and contract.hidden.ranges == {"t": (1, 100)}
    assert contract.tensors[2].check is not None and contract.tensors[2].check.tile == ("row",)
    unset = {
        f"{where}.{name}"
        for where, model in (
            ("task", contract.task),
            ("tensor", contract.tensors[0]),
            ("correctness", contract.correctness),
            ("benchmark", contract.benchmark),
            ("compile", contract.compile),
            ("cost", contract.cost),
            ("promotion", contract.promotion),
            ("budget", contract.budget),
            ("gates", contract.gates),
        )
        for name in set(type(model).model_fields) - model.model_fields_set
    }
    assert unset == {"tensor.path", "tensor.kind", "tensor.domain", "tensor.constant", "tensor.valid"} | {
        "tensor.rest",
        "tensor.check",
    }


def test_sizes_follow_from_shape_strides_and_offset() -> None:
    contract = parse_contract(FULL.encode())
    names = workload_names(contract, contract.workloads[0])
    assert names == {"b": 1, "h": 2, "t": 7, "d": 64, "eps": 1e-6, "length": 7, "top": 3}
    q = contract.tensors[0]
    assert tensor_shape(q, names) == (1, 2, 7, 32)
    assert tensor_strides(q, names) == (448, 32, 64, 1)
    assert storage_elements(q, names) == 128 + 1 * 32 + 6 * 64 + 31 + 1
    assert tensor_strides(contract.tensors[2], names) == (448, 224, 32, 1)
    assert element_size(q.dtype) == 2


@pytest.mark.parametrize("path", sorted(share_path("workspaces").glob("*/contract*.toml")), ids=str)
def test_the_templates_are_right(path: Path) -> None:
    assert load_contract(path).workloads


def change(old: str, new: str, text: str = FULL) -> str:
    assert text.count(old) >= 1, old
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "key", "said"),
    [
        ('name = "gate"', 'nmae = "gate"', "task.nmae", "did you mean name?"),
        ('name = "gate"', "", "task.name", "is missing"),
        ("[correctness]", "[corectness]", "corectness", "did you mean correctness?"),
        ("[[workload]]\nid", "[[workloads]]\nid", "workloads", "did you mean workload?"),
        ("[task]", 'sha256 = "0"\n[task]', "sha256", "unknown key"),
        ('device = "cuda"', 'device = "rocm"', "task.device", "'rocm' is not one of cuda, cpu"),
        ('device = "cuda"', 'device = "cpu"', "task.arch", "no meaning for device"),
        ('arch = "sm_90a"', 'arch = "hopper"', "task.arch", "no architecture"),
        ('name = "eps"', 'name = "lambda"', "scalar[1].name", "meaning of its own"),
        ("t = 7, ", "t = 7, is = 1, ", "workload[1].axes.is", "meaning of its own"),
        ('role = "in"', 'role = "input"', "tensor[1].role", "is not one of in, out, inout, state"),
        ('dtype = "bfloat16"', 'dtype = "bf16"', "tensor[1].dtype", "is not one of float64"),
        ('name = "q_cos"', 'name = "q-cos"', "tensor[1].name", "is no name"),
        ('name = "q_cos"', 'name = "y"', "tensor[1].name", "used twice"),
        ('name = "q_cos"', 'name = "t"', "tensor[1].name", "also an axis"),
        ('name = "q_cos"', 'name = "min"', "tensor[1].name", "meaning of its own"),
        (
            '"b", "h", "t", "d//2"]',
            '"b", "h", "tt", "d//2"]',
            "tensor[1].shape[3]",
            "uses tt; known here are b, d",
        ),
        ('"b", "h", "t", "d//2"]', '"b", "h", "t", "d/2"]', "tensor[1].shape[4]", "something else"),
        ('"b", "h", "t", "d//2"]', '"b", "h", "t", "d//(b-1)"]', "tensor[1].shape[4]", "divides by zero"),
        ('"b", "h", "t", "d//2"]', '"b", "h", "t - 7", 1]', "tensor[1].shape", "at least 1 (workload small)"),
        ('"b", "h", "t", "d//2"]', '"b", "h", 1.5, 1]', "tensor[1].shape[3]", "must be"),
        ('"b", "h", "t", "d//2"]', '"b", "h", true, 1]', "tensor[1].shape[3]", "must be"),
        ('"d//2", "h*(d//2)", 1]', '"d//2", 1]', "tensor[1].strides", "has 3 entries, shape has 4"),
        ('"d//2", "h*(d//2)", 1]', '"d//2", "-1", 1]', "tensor[1].strides", "0 or more"),
        ('offset = "2 * d"', "offset = -1", "tensor[1].offset", "0 or more"),
        ("align = 16", "align = 24", "tensor[1].align", "power of two"),
        ('fill = "generator"', 'fill = "zeros"', "tensor[1].fill", "is not one of normal, uniform"),
        ('fill = "generator"', 'fill = "npy"', "tensor[1].path", "is missing"),
        (
            'fill = "generator"',
            'fill = "npy"\npath = "../x.npy"',
            "tensor[1].path",
            "leads out of the workspace",
        ),
        (
            'fill = "generator"',
            'fill = "npy"\npath = "/x.npy"',
            "tensor[1].path",
            "leads out of the workspace",
        ),
        ('fill = "generator"', 'path = "x.npy"', "tensor[1].path", "is for fill"),
        ('kind = "index"', 'kind = "data"', "tensor[2].domain", 'add kind = "index"'),
        ("domain = {min = 0,", "domain = {min = 9,", "tensor[2].domain", "min is 9, max is 6"),
        ("rel_l2=5e-3, ", "", "tensor[3].check", "needs exact = true or rel_l2"),
        ("rel_l2=5e-3, ", "rel_l2=5e-3, exact=true, ", "tensor[3].check.rel_l2", "excludes tolerances"),
        ("rel_l2=5e-3", "rel_l2=0.9", "tensor[3].check.rel_l2", "accept an output of zeros"),
        ("rel_l2=5e-3", "rel_l2=nan", "tensor[3].check.rel_l2", "above 0"),
        ("rel_l2=5e-3", "rell2=5e-3", "tensor[3].check.rell2", "did you mean rel_l2?"),
        ('tile=["row"]', 'tile=["col"]', "tensor[3].check.tile[1]", "neither row nor an entry of shape"),
        ("check = {exact = true}", "check = {rel_l2 = 1e-3}", "tensor[4].check", "int64 has no tolerance"),
        ("check = {exact = true}", "", "tensor[4].check", "is missing; role inout needs check"),
        (
            "check = {exact = true}",
            "check = {exact = true}\nconstant = true",
            "tensor[4].constant",
            "is for inputs",
        ),
        ('fill = "generator"', "check = {exact = true}", "tensor[1].check", "is for outputs"),
        ("value = 1e-6", "", "workload[1].scalars", "has no value for scalar eps"),
        ('axis = "t"', 'axis = "tt"', "scalar[2].axis", "no workload has an axis tt"),
        ("top = 3", "top = 3.5", "workload[1].scalars.top", "is no int32"),
        ("top = 3", "top = 3, tip = 1", "workload[1].scalars.tip", "no [[scalar]] of this name"),
        ('id = "small"', 'id = "large"', "workload[1].id", "used twice"),
        ('id = "small"', 'id = "a b"', "workload[1].id", "is no id"),
        ("t = 7, ", "", "workload[1].axes", "axis t is missing"),
        ("t = 7, ", "t = 7.0, ", "workload[1].axes.t", "must be a whole number"),
        ("t = 7, ", "t = -7, ", "workload[1].axes.t", "out of range"),
        ("weight = 2.0", "weight = 0", "workload[1].weight", "above 0"),
        ("weight = 2.0", "weight = inf", "workload[1].weight", "above 0"),
        ("floor = 0.97", "floor = 1.5", "workload[1].floor", "(0, 1]"),
        ("cuts = [1, 2]", "cuts = 1979-05-27", "workload[1].params.cuts", "must be a number, a text"),
        ('id = "large"', 'id = "large"\nhiden = 1', "workload[2].hiden", "unknown key"),
        ("count = 2, ranges", "count = 0, ranges", "hidden.count", "out of range"),
        (
            "ranges = {t = [1, 100]}",
            "ranges = {tt = [1, 100]}",
            "hidden.ranges.tt",
            "no workload has this axis",
        ),
        ("ranges = {t = [1, 100]}", "ranges = {t = [9, 1]}", "hidden.ranges.t", "is no range"),
        ("seeds = 2", "seeds = 0", "correctness.seeds", "out of range; 1 to 1000"),
        ("seeds = 2", 'seeds = "2"', "correctness.seeds", "must be a whole number, it is '2'"),
        ("spread = 1e-5", "", "correctness.spread", "is missing"),
        ("deterministic = false", "", "correctness.spread", "is for deterministic = false"),
        ('cache = "warm"', 'cache = "hot"', "benchmark.cache", "'hot' is not one of cold, warm"),
        ("blocks = 12", "blocks = 1", "benchmark.blocks", "out of range"),
        ("timeout_s = 30", "timeout_s = 0", "benchmark.timeout_s", "out of range"),
        ('"fast_math"]', '"fast-math"]', "compile.allowed[2]", "known are fast_math, maxrregcount"),
        ("0" * 64, "00", "compile.include[1].sha256", "64 hex digits"),
        ('flops_dtype = "bfloat16"', 'flops_dtype = "bf16"', "cost.flops_dtype", "is no dtype"),
        ("facts = true", "", "cost.flops", "uses nnz"),
        ('python = "reference:baseline"', "", "baseline", "exactly one of"),
        ('python = "', 'candidate = "baseline"\npython = "', "baseline", "exactly one of"),
        ('python = "reference:baseline"', 'python = "reference"', "baseline.python", "module:function"),
        ('python = "reference:baseline"', 'candidate = "../x"', "baseline.candidate", "leads out"),
        ("min_speedup = 1.02", "min_speedup = 1.001", "promotion.min_speedup", "at least 1.01"),
        ("min_speedup = 1.02", "min_speedup = nan", "promotion.min_speedup", "at least 1.01"),
        ("floor = 0.98", "floor = 0", "promotion.floor", "(0, 1]"),
        ('by = "rule"', 'by = "agent"', "promotion.by", "is not one of person, rule"),
        ("candidates = 100", "candidates = 0", "budget.candidates", "above 0"),
        ("max_open = 2", "max_open = 0", "gates.max_open", "out of range"),
    ],
)
def test_a_mistake_is_named_with_key_line_and_what_is_right(old: str, new: str, key: str, said: str) -> None:
    text = change(old, new)
    error = refused(text)
    named = {p.key: p for p in error.problems}
    assert key in named, str(error)
    problem = named[key]
    assert said in problem.text
    assert f"contract.toml, line {problem.line}: {key}: " in str(error)
    assert 1 <= problem.line <= text.count("\n") + 1
    leaf = re.split(r"[.\[]", key.rstrip("]"))[-1]
    where = text.splitlines()[problem.line - 1]
    assert leaf.isdigit() or leaf in where or "[" in where


def test_lines_are_those_of_the_file_also_behind_the_hidden_shapes() -> None:
    text = change('id = "large"', 'id = "not an id"')
    (problem,) = refused(text).problems
    assert text.splitlines()[problem.line - 1] == 'id = "not an id"'
    text = change("count = 2, ranges", "count = 0, ranges")
    (problem,) = refused(text).problems
    assert text.splitlines()[problem.line - 1].startswith("hidden = ")


def test_all_problems_come_at_once_in_order_of_line() -> None:
    text = SMALL.replace("n = 5", "n = 0").replace("rel_l2 = 1e-6", "rel_l2 = -1").replace('"copy"', '""')
    problems = refused(text).problems
    assert [p.key for p in problems] == [
        "task.name",
        "tensor[1].shape",
        "tensor[2].shape",
        "tensor[2].check.rel_l2",
    ]
    assert [p.line for p in problems] == sorted(p.line for p in problems)


def test_an_overlapping_output_is_refused_and_an_overlapping_input_is_not() -> None:
    text = SMALL.replace('shape = ["n"]', 'shape = ["n", 3]\nstrides = [1, 1]')
    (problem,) = refused(text).problems
    assert problem.key == "tensor[2].strides"
    assert "elements overlap" in problem.text


def test_what_is_missing_altogether() -> None:
    assert {p.key for p in refused("").problems} == {"task", "tensor", "workload", "baseline"}
    keys = {
        p.key
        for p in refused(SMALL.replace("[[tensor]]", "[tensor]", 1).replace("[[tensor]]", "[x]")).problems
    }
    assert "tensor" in keys
    error = refused(SMALL.replace('role = "out"', 'role = "in"').replace("check = {rel_l2 = 1e-6}\n", ""))
    assert "nothing to judge" in str(error)
    assert "line 3: not TOML" in str(refused("\n\n= 3"))


def test_a_thousand_mistakes_are_not_a_thousand_lines() -> None:
    error = refused(SMALL + "".join(f"k{i} = {i}\n" for i in range(1000)))
    assert len(error.problems) == 1000
    assert len(str(error).splitlines()) == 21
    assert "and 980 more" in str(error)


def test_nothing_of_the_file_reaches_the_terminal_raw() -> None:
    for text in (
        SMALL.replace('name = "x"', 'name = "\\u001b]0;x\\u0007"'),
        SMALL + '"\\u001b[2J" = 1\n',
        SMALL.replace('shape = ["n"]', 'shape = ["\\u001b[2J"]', 1),
        SMALL.replace('id = "w"', 'id = "\\u202e"'),
    ):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", str(refused(text)))


def test_files_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"contract\.toml: is not there"):
        load_contract(tmp_path / "contract.toml")
    os.mkfifo(tmp_path / "contract.toml")
    with pytest.raises(UserError, match="is a FIFO"):
        load_contract(tmp_path / "contract.toml")


LINES = FULL.splitlines()


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_mangled_contract_is_read_or_refused_with_lines(data: st.DataObject) -> None:
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        what = data.draw(st.sampled_from(["drop", "double", "value", "key"]))
        if what == "drop":
            del lines[at]
        elif what == "double":
            lines.insert(at, data.draw(st.sampled_from(LINES)))
        elif what == "value":
            head = lines[at].partition("=")[0]
            value = data.draw(
                st.sampled_from(["1", "-1", "nan", '"x"', "[]", "{}", "true", '["n"]', "1e999", "'\\'"])
            )
            lines[at] = f"{head}= {value}"
        else:
            lines[at] = "z" + lines[at]
    try:
        assert isinstance(parse_contract("\n".join(lines).encode()), Contract)
    except ContractError as error:
        assert error.problems
        assert all(1 <= p.line <= len(lines) + 1 for p in error.problems)
