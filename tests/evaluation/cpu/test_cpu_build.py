"""Compiling: errors at the candidate's lines, refusals in words, the cache, many at once."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from cpu_candidates import CONTRACT, Compile, Loaded, plan_for

from kda_tui.evaluation.devices.cpu import compiler
from kda_tui.evaluation.devices.cpu.device import CpuDevice
from kda_tui.evaluation.devices.cpu.elf import read_program
from kda_tui.evaluation.devices.cpu.source import rewrite
from kda_tui.evaluation.devices.interface import BufferSpec, KernelStep, Launch, MemsetStep
from kda_tui.record.contract import Contract
from kda_tui.record.launch_plan import LaunchPlan, Step, TensorMap, Unit
from kda_tui.text import UserError

GOOD = "__global__ void k(float* y) { y[threadIdx.x] = WIDTH; }\n"


def test_an_error_has_the_candidates_file_and_line(compile_text: Compile) -> None:
    text = "#define TWO \\\n  2\n/* a\n   comment */\nextern __shared__\n  float room[];\n__global__ void k(float* y) {\n  y[0] = nothing;\n}\n"
    report = compile_text(text, "k")
    assert not report.ok
    assert "kernel.cu:8:" in report.log and "nothing" in report.log
    assert report.compiler


def test_an_error_in_a_header_of_the_candidate(compile_text: Compile) -> None:
    files = {"part.cuh": "\n\n__device__ float half_of(float x) { return y; }\n"}
    report = compile_text(
        '#include "part.cuh"\n__global__ void k(float* y) { y[0] = half_of(1); }', "k", files=files
    )
    assert "part.cuh:3:" in report.log


def test_an_unknown_kernel_is_named_with_those_there_are(compile_text: Compile) -> None:
    report = compile_text(
        "__global__ void first() {}\ntemplate <int N> __global__ void second() {}", "third<4>"
    )
    assert report.log.startswith("launch.toml: no kernel third<4> in kernel.cu; its kernels: first, second")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('asm volatile("membar.gl;");', "inline PTX (asm)"),
        ('__asm__ volatile("bar.sync 0;");', "inline PTX (asm)"),
        ("nvcuda::wmma::fragment<int> f;", "wmma"),
        ("__nv_fp8_e4m3 x;", "fp8 (__nv_fp8_e4m3)"),
        ("__pipeline_commit();", "cp.async (__pipeline_commit)"),
        ("cooperative_groups::this_grid().sync();", "cooperative_groups"),
    ],
)
def test_what_the_device_does_not_have(compile_text: Compile, text: str, words: str) -> None:
    report = compile_text(f"__global__ void k(float* y) {{\n  {text}\n}}\n", "k")
    assert report.not_possible == words
    assert report.log.startswith(f"the cpu device does not have {words}: guard it with #ifndef KDA_CPU")
    assert "kernel.cu:2" in report.log


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("mma.h", "wmma (mma.h)"),
        ("cuda_fp8.h", "fp8 (cuda_fp8.h)"),
        ("cuda/barrier", "mbarrier (cuda/barrier)"),
    ],
)
def test_headers_the_device_does_not_have(compile_text: Compile, header: str, words: str) -> None:
    report = compile_text(f"#include <{header}>\n__global__ void k(float* y) {{}}\n", "k")
    assert report.not_possible == words


def test_guarded_code_for_the_gpu_is_left_alone(compile_text: Compile) -> None:
    text = """
    #ifndef KDA_CPU
    #include <cute/tensor.hpp>
    __device__ void copy() { asm volatile("cp.async.wait_all;"); }
    #else
    __device__ void copy() {}
    #endif
    __global__ void k(float* y) { copy(); y[0] = __CUDA_ARCH__; }
    """
    report = compile_text(text, "k")
    assert report.ok, report.log


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (LaunchPlan(units=(Unit(file="kernel.ptx"),)), ".ptx units"),
        (LaunchPlan(steps=(Step(kernel="k", cluster=(2, 1, 1)),)), "thread block clusters"),
        (LaunchPlan(steps=(Step(kernel="k", cooperative=True),)), "cooperative launches"),
        (
            LaunchPlan(tensor_maps=(TensorMap(name="m", tensor="x", dims=("n",), strides=(), box=(64,)),)),
            "TMA (tensor maps)",
        ),
    ],
)
def test_plans_the_device_cannot_run(
    plan: LaunchPlan, words: str, device: CpuDevice, contract: Contract, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "kernel.cu").write_text(GOOD)
    report = device.compile(tmp_path, plan, contract, cache)
    assert (report.ok, report.not_possible) == (False, words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__global__ void k(float* y) { y[0] = abs(getpid()); }", "getpid"),
        (
            'extern "C" long write(int, const void*, unsigned long);\n__global__ void k(float* y) { write(1, y, 4); }',
            "kernel.cu: refused: it calls write(), which a kernel cannot",
        ),
        (
            "struct T { int x; T(); };\n__device__ __noinline__ int f(volatile int* p) { return *p; }\n"
            "volatile int seed; T::T() : x(f(&seed)) {}\nT here;\n__global__ void k(float* y) { y[0] = here.x; }",
            "host code that would run when it is loaded",
        ),
        ('#define J(a, b) a##b\n__global__ void k(float* y) { J(a, sm)("nop"); }', "inline PTX"),
        ("__global__ void k(float* y) { __shared__ float r[20000]; r[threadIdx.x] = y[0]; __syncthreads(); y[0] = r[9]; }", "80000 bytes of static shared memory"),
        ("__global__ void k(int& y) { y = 1; }", "by reference"),
        ('#include "../secret"\n', "only headers of CUDA"),
        ("__global__ void k(float* y) { system(\"true\"); }", "kernel.cu:1: refused: system() is host code"),
    ],
)  # fmt: skip
def test_refusals_say_why(compile_text: Compile, text: str, words: str) -> None:
    report = compile_text(text, "k")
    assert not report.ok
    assert words in report.log


def test_defines_options_and_units(
    device: CpuDevice, contract: Contract, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "kernel.cu").write_text(GOOD)
    (tmp_path / "other.cu").write_text("__global__ void k(float* y) { y[threadIdx.x] += WIDTH; }")
    plan = LaunchPlan(
        units=(
            Unit(defines={"WIDTH": 3}, options={"maxrregcount": 64}),
            Unit(name="more", file="other.cu", defines={"WIDTH": "2.5f"}),
        ),
        steps=(Step(kernel="k"), Step(kernel="more.k")),
    )
    report = device.compile(tmp_path, plan, contract, cache)
    assert report.ok, report.log
    assert set(report.binaries) == {"kernel", "more"}
    child = device.start_child(tmp_path)
    try:
        assert child.load("candidate", report, plan).status == "ok"
        child.allocate([BufferSpec("y", 64)])
        shape = {
            "grid": (1, 1, 1),
            "block": (8, 1, 1),
            "args": Loaded(child).launch("k", 1, 1, "y").steps[0].args,
        }
        first, second = KernelStep("kernel", "k", **shape), KernelStep("", "more.k", **shape)
        steps = (MemsetStep("y", 1, 64), first, second, second)
        assert child.run("candidate", [Launch(steps)], 10).status == "ok"
        y = child.get("y").view(np.float32)
        assert y[:8].tolist() == [8.0] * 8
        assert (child.get("y")[32:] == 1).all()
    finally:
        child.close()


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ({"defines": {"A B": 1}}, "'A B' cannot be a define"),
        ({"defines": {"KDA_DEBUG": 1}}, "'KDA_DEBUG' cannot be a define"),
        ({"defines": {"WIDTH": 'fork()'}}, "define WIDTH: fork() is host code"),
        ({"options": {"fast_math": True}}, "option fast_math is not allowed (allowed: maxrregcount)"),
        ({"file": "gone.cu"}, "no file gone.cu"),
    ],
)  # fmt: skip
def test_unit_mistakes(compile_text: Compile, unit: dict[str, object], words: str) -> None:
    report = compile_text(GOOD, "k", **unit)
    assert not report.ok
    assert words in report.log


def test_the_cache_is_hit_and_a_damaged_entry_is_made_anew(compile_text: Compile) -> None:
    first = compile_text(GOOD, "k", defines={"WIDTH": 77})
    second = compile_text(GOOD, "k", defines={"WIDTH": 77})
    assert (first.cached, second.cached, second.seconds) == (False, True, 0.0)
    assert first.sha256 == second.sha256
    assert compile_text(GOOD, "k", defines={"WIDTH": 78}).sha256 != first.sha256
    Path(first.binaries["kernel"]).write_bytes(b"torn")
    third = compile_text(GOOD, "k", defines={"WIDTH": 77})
    assert (third.cached, third.sha256) == (False, first.sha256)


def test_many_compile_the_same_source_at_once(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(GOOD + f"// {tmp_path}\n")
    program = textwrap.dedent(f"""
        from pathlib import Path
        from kda_tui.evaluation.devices.cpu.device import CpuDevice
        from kda_tui.record.contract import parse_contract
        from kda_tui.record.launch_plan import LaunchPlan, Step, Unit
        plan = LaunchPlan(units=(Unit(defines={{"WIDTH": 5}}),), steps=(Step(kernel="k"),))
        contract = parse_contract({CONTRACT.encode()!r}, "contract.toml")
        cache = Path({str(cache)!r})
        report = CpuDevice(threads=1, cache=cache).compile(Path({str(tmp_path)!r}), plan, contract, cache)
        print(report.ok, report.sha256)
    """)
    calls = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    said = {call.communicate(timeout=120)[0] for call in calls}
    assert len(said) == 1 and said.pop().startswith("True ")
    assert not list(cache.glob(".part-*")) and not list(cache.glob("build-*"))


def test_a_compiler_that_takes_too_long(
    device: CpuDevice, contract: Contract, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "kernel.cu").write_text(
        "template <int A, int B> struct S { static const int v = S<A - 1, B>::v + S<A - 1, B + (1 << A)>::v; };\n"
        "template <int B> struct S<0, B> { static const int v = 1; };\n"
        "__global__ void k(int* y) { y[0] = S<24, 0>::v; }\n"
    )
    brief = contract.model_copy(update={"compile": contract.compile.model_copy(update={"timeout_s": 0.5})})
    report = device.compile(tmp_path, plan_for(["k"]), brief, cache)
    assert "the compiler took longer than 0.5 s" in report.log


def test_debug_mode_prints_and_asserts(contract: Contract, cache: Path, tmp_path: Path) -> None:
    text = '#include <cassert>\n__global__ void k(float* y) {\n  printf("y is %g\\n", y[0]);\n  assert(y[0] > 1);\n}\n'
    (tmp_path / "kernel.cu").write_text(text)
    judge = CpuDevice(threads=1, cache=cache)
    assert (
        "printf() works only under `kda debug`"
        in judge.compile(tmp_path, plan_for(["k"]), contract, cache).log
    )
    device = CpuDevice(threads=1, cache=cache, mode="debug")
    report = device.compile(tmp_path, plan_for(["k"]), contract, cache)
    assert report.ok, report.log
    child = device.start_child(tmp_path)
    assert child.load("candidate", report, plan_for(["k"])).status == "ok"
    loaded = Loaded(child)
    loaded.ok("k", 1, 1, np.full(1, 2, np.float32))
    assert child.output == "y is 2\n"
    stopped = loaded.run("k", 1, 1, np.full(1, 0.5, np.float32))
    child.close()
    assert (stopped.status, stopped.child_dead) == ("launch_error", True)
    assert stopped.text.endswith("kernel.cu:4: assert(y[0] > 1)")


def test_other_processors_and_missing_compilers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler.find_compiler.cache_clear()
    try:
        monkeypatch.setattr(compiler.platform, "machine", lambda: "aarch64")
        with pytest.raises(UserError, match="x86-64 only and this machine is aarch64"):
            compiler.find_compiler()
        monkeypatch.undo()
        monkeypatch.setenv("KDA_CXX", "no-such-compiler")
        with pytest.raises(UserError, match=r"no compiler no-such-compiler .KDA_CXX"):
            compiler.find_compiler()
    finally:
        compiler.find_compiler.cache_clear()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("static __shared__ int x;", " __shared__ int x;"),
        ("__shared__ alignas(8) int x;", "alignas(8) __shared__  int x;"),
        ("extern __shared__ int x[];", "extern __thread int x[] KDA_DYNAMIC_SHARED;"),
        (
            "void f() { extern __shared__ alignas(16) unsigned char x[]; }",
            "void f() { auto& x = reinterpret_cast<unsigned char (&)[]>(kda_dynamic_shared); }",
        ),
        (
            "namespace a { extern\n__shared__ int x[]; }",
            "namespace a { extern __thread int x[] KDA_DYNAMIC_SHARED\n; }",
        ),
        (
            '// extern __shared__ int x[];\n"static __shared__";',
            '// extern __shared__ int x[];\n"static __shared__";',
        ),
    ],
)
def test_shared_memory_declarations_are_rewritten(text: str, wanted: str) -> None:
    assert rewrite(text)[0] == wanted


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + b"\xff" * 100, b"MZ" * 50])
def test_damaged_programs_are_value_errors(data: bytes) -> None:
    with pytest.raises(ValueError):
        read_program(data)
