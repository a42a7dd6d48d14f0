"""New workspaces: templates are copied without records, drafts say what is still to be filled in."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kda_tui.record import scaffold
from kda_tui.record.contract import ContractError, load_contract, parse_contract
from kda_tui.record.draft import draft_workspace
from kda_tui.record.kernel_signature import read_signatures
from kda_tui.record.launch_plan import LaunchPlanError, load_launch_plan, parse_launch_plan
from kda_tui.record.paths import Workspace
from kda_tui.record.scaffold import new_from_kernel, new_from_template, templates
from kda_tui.record.trust import is_trusted
from kda_tui.text import UserError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize("name", sorted(templates()))
@pytest.mark.parametrize("device", ["cpu", "cuda", None])
def test_a_template_becomes_a_workspace_that_may_run(
    tmp_path: Path, name: str, device: scaffold.Device | None
) -> None:
    root = new_from_template(name, tmp_path / "deep" / "ws", device)
    contract = load_contract(root / "contract.toml")
    assert contract.task.device == (device or "cpu")
    load_launch_plan(root / "baseline" / "launch.toml", contract)
    assert not list(root.glob("contract.*.toml"))
    assert is_trusted(Workspace(root))
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["ws"]


def test_records_and_caches_stay_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    source = new_from_template("softmax_rows", shared / "mine")
    for name in (
        "runs/r001/events.jsonl",
        "candidates/c0001/kernel.cu",
        "candidates.jsonl",
        ".git/x",
        "workspace.lock",
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("x")
    (source / "baseline" / "kernel.cu").chmod(0o444)
    (source / "link.py").symlink_to("/etc/passwd")
    monkeypatch.setattr(scaffold, "share_path", lambda kind: shared)
    root = new_from_template("mine", tmp_path / "ws")
    assert {p.name for p in root.iterdir()} == {
        "contract.toml",
        "reference.py",
        "README.md",
        "baseline",
        "seeds",
    }
    (root / "baseline" / "kernel.cu").write_text("writable")


def test_what_is_there_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    new_from_template("softmax_rows", tmp_path / "ws")
    with pytest.raises(UserError, match="already there; name a new or an empty folder"):
        new_from_template("softmax_rows", tmp_path / "ws")
    (tmp_path / "file").write_text("x")
    for dest in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UserError):
            new_from_template("softmax_rows", dest)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "state", "ws"]


def test_an_unknown_template_or_device(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no template softmax; did you mean softmax_rows"):
        new_from_template("softmax", tmp_path / "ws")
    with pytest.raises(UserError, match="no contract for tpu"):
        new_from_template("softmax_rows", tmp_path / "ws", "tpu")  # type: ignore[arg-type]


SIMPLE = """\
extern "C" __global__ void __launch_bounds__(128)
scale(const float* __restrict__ x, float* __restrict__ y, float factor, long long n)
{
    long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
}
"""


def test_a_simple_kernel_gives_a_complete_draft(tmp_path: Path) -> None:
    (tmp_path / "scale.cu").write_text(SIMPLE)
    root = new_from_kernel(tmp_path / "scale.cu", tmp_path / "ws")
    contract = load_contract(root / "contract.toml")
    assert [(t.name, t.role, t.dtype, t.shape) for t in contract.tensors] == [
        ("x", "in", "float32", ("n",)),
        ("y", "out", "float32", ("n",)),
    ]
    assert [(s.name, s.dtype) for s in contract.scalars] == [("factor", "float32")]
    for place in ("baseline", "seeds/start"):
        plan = load_launch_plan(root / place / "launch.toml", contract)
        assert plan.steps[0].grid == ("ceil_div(n, 128)", 1, 1)
        assert (root / place / "kernel.cu").read_text() == SIMPLE
    compile((root / "reference.py").read_text(), "reference.py", "exec")


HARD = """\
template <int BM> __global__ void gemm(const void* a, float4* c, int m, int k) { extern __shared__ float s[]; }
__global__ void reduce(const float4* c, float* sums, int m, bool last, Params p) {}
"""


def test_what_a_signature_cannot_tell_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(HARD)
    root = new_from_kernel(tmp_path / "k.cu", tmp_path / "ws", "cuda")
    with pytest.raises(ContractError) as caught:
        load_contract(root / "contract.toml")
    text = (root / "contract.toml").read_text().splitlines()
    assert [p.key for p in caught.value.problems] == [
        "tensor[1].dtype",
        "tensor[1].shape[1]",
        "tensor[2].shape[1]",
        "tensor[3].shape[1]",
    ]
    assert all("FILL_IN" in text[p.line - 1] for p in caught.value.problems)
    filled = "\n".join(text).replace('dtype = "FILL_IN"', 'dtype = "float32"').replace("FILL_IN", "m * k")
    contract = parse_contract(filled.encode())
    with pytest.raises(LaunchPlanError) as plan:
        load_launch_plan(root / "baseline" / "launch.toml", contract)
    assert {p.key for p in plan.value.problems} == {
        "step[1].kernel",
        "step[1].grid[1]",
        "step[1].shared_bytes",
        "step[2].grid[1]",
        "step[2].shared_bytes",
        "step[2].args[5]",
    }


def test_a_source_without_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("int main() { return 0; }\n")
    with pytest.raises(UserError, match="no __global__ function"):
        new_from_kernel(tmp_path / "k.cu", tmp_path / "ws")
    with pytest.raises(UserError, match=r"absent\.cu: is not there"):
        new_from_kernel(tmp_path / "absent.cu", tmp_path / "ws")
    assert not (tmp_path / "ws").exists()


PARAMETERS = st.lists(
    st.tuples(
        st.sampled_from(
            ["float", "const float", "int", "size_t", "void", "T", "__half2", "\x01", "bool", "a::b<c>"]
        ),
        st.sampled_from(["", "*", "**", "&"]),
        st.sampled_from(["n", "x", "y", "min", "sm_count", "", "length", "é", "None"]),
    ).map(" ".join),
    max_size=6,
).map(", ".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
@given(parameters=PARAMETERS, template=st.sampled_from(["", "template <int N, typename T>\n"]))
def test_any_draft_is_toml_and_python_whose_problems_have_lines(parameters: str, template: str) -> None:
    draft = draft_workspace(read_signatures(f"{template}__global__ void k({parameters}) {{}}"), "cpu")
    compile(draft.reference, "reference.py", "exec")
    contract = None
    try:
        contract = parse_contract(draft.contract.encode())
    except ContractError:
        tomllib.loads(draft.contract)
    for text in (draft.launch, draft.seed):
        try:
            parse_launch_plan(text.encode(), "launch.toml", contract)
        except LaunchPlanError as error:
            assert all("FILL_IN" in p.text for p in error.problems), str(error)
            tomllib.loads(text)
