"""The lint finds what no kernel needs, at its line, and is not fooled or stalled by the text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.evaluation.cuda_tokens import tokenize
from kda_tui.evaluation.lint import LintFinding, kernel_names, lint
from kda_tui.record.contract import Contract, parse_contract

CONTRACT = """
[task]
name = "t"
device = "cuda"
[[tensor]]
name = "x"
role = "in"
dtype = "float32"
shape = ["rows", "columns"]
[[tensor]]
name = "y"
role = "out"
dtype = "float32"
shape = ["rows", "columns"]
check = {rel_l2 = 1e-5}
[[workload]]
id = "w"
axes = {rows = 32, columns = 4099}
[baseline]
candidate = "baseline"
"""


@pytest.fixture(scope="module")
def contract() -> Contract:
    return parse_contract(CONTRACT.encode(), "contract.toml")


def refused(found: tuple[LintFinding, ...]) -> list[tuple[int, str]]:
    return [(f.line, f.word) for f in found if f.refused]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('#include "/etc/passwd"', '"/etc/passwd"'),
        ('#include "a/../../b.h"', '"a/../../b.h"'),
        ("#include NAME", "include"),
        ('#  include_next "x.h"', "include_next"),
        ("#embed <x>", "embed"),
        ('#line 7 "other.cu"', "line"),
        ("#pragma GCC system_header", "GCC"),
        ("#if __has_include(<x>)\n#endif", "__has_include"),
        ("#define __syncthreads()", "__syncthreads"),
        ("#undef KDA_CPU", "KDA_CPU"),
        ("#define KDA_CPU", "KDA_CPU"),
        ("int main() {}", "main"),
        ("k<<<1, 2>>>(x);", "<<<"),
        ("cudaMalloc(&p, 4);", "cudaMalloc"),
        ("cuLaunchKernel(f);", "cuLaunchKernel"),
        ("popen(a, b);", "popen"),
        ("sys\\\ntem(a);", "system"),
        ("#define RUN system(a)", "system"),
        ("__attribute__((constructor)) void f() {}", "constructor"),
        ("__attribute__((aligned(4), __ifunc__(\"g\"))) void f();", "__ifunc__"),
        ("[[gnu::constructor]] void f() {}", "constructor"),
        ("__managed__ int x;", "__managed__"),
        ("int* p = new int[4];", "new"),
        ("free(p);", "free"),
        ('printf("x");', "printf"),
        ("thread_local int x;", "thread_local"),
        ('_Pragma("GCC poison x")', "_Pragma"),
    ],
)  # fmt: skip
def test_refusals(contract: Contract, text: str, word: str) -> None:
    assert (2, word) in [(line, w) for line, w in refused(lint("\n" + text, contract))] or (
        3,
        word,
    ) in refused(lint("\n" + text, contract))


@pytest.mark.parametrize(
    "text",
    [
        "// system(x); new int\n/* main() <<< */",
        'const char* s = "system(x) <<< new";',
        'const char* s = R"x(main() " )y" )x";',
        "x.open(1); p->system(2);",
        "int renew = 1, systems = 2; a << b << c;",
        "__attribute__((aligned(16), always_inline)) int x;",
        "#pragma unroll 4\n#pragma once",
        "cudaGridDependencySynchronize();",
        "void* operator new(unsigned long, void*);",
        "#include <cuda_fp16.h>\n#include \"mine.cuh\"",
        "#ifdef KDA_DEBUG\n#endif",
        "char c = '\"'; int big = 1'000'000;",
    ],
)  # fmt: skip
def test_what_is_not_refused(contract: Contract, text: str) -> None:
    assert refused(lint(text, contract)) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('asm("createpolicy.fractional.L2::evict_last.b64 p;");', "evict_last"),
        ("__nanosleep(5);", "__nanosleep"),
        ("t = clock64();", "clock64"),
        ("if (n == 4099) return;", "4099"),
        ("__half h = x;", "__half"),
        ("y = __expf(x);", "__expf"),
        ("if (isnan(y[i])) return;", "isnan"),
        ("#define CALL(x) x##_kernel", "x"),
        ("__device__ int counter;", "__device__"),
        ("__global__ void spare(int* p) {}", "spare"),
    ],
)
def test_warnings(contract: Contract, text: str, word: str) -> None:
    found = lint(text, contract, kernels=["named<3>"])
    assert word in [f.word for f in found if not f.refused]
    assert not refused(found)


def test_constants_and_functions_are_no_mutable_globals(contract: Contract) -> None:
    text = "__device__ const int a = 1;\n__device__ __forceinline__ int f(int x) { return x; }\nconstexpr __device__ int b = 2;\n__constant__ int c;"
    assert [f for f in lint(text, contract) if f.rule == "global" and f.line != 3] == []


def test_branches_of_the_other_device_are_left_alone(contract: Contract) -> None:
    text = "#ifdef KDA_CPU\nmain();\n#else\npopen();\n#endif\n#if !defined(KDA_CPU)\nfork();\n#endif\n#if X\nvfork();\n#else\nsyscall();\n#endif"
    assert refused(lint(text, contract, device="cpu")) == [(2, "main"), (10, "vfork"), (12, "syscall")]
    assert refused(lint(text, contract, device="cuda")) == [
        (4, "popen"),
        (7, "fork"),
        (10, "vfork"),
        (12, "syscall"),
    ]


def test_the_cpu_device_knows_its_headers_and_keeps_its_names(contract: Contract) -> None:
    text = "#include <unistd.h>\n#include <cuda_bf16.h>\nkda_stop(0);\nkda::Kernel k;\nKDA_RUNTIME int x;"
    assert refused(lint(text, contract, device="cpu")) == [
        (1, "<"),
        (3, "kda_stop"),
        (4, "kda"),
        (5, "KDA_RUNTIME"),
    ]
    assert refused(lint(text, contract, device="cuda")) == []


def test_names_of_kernels() -> None:
    text = """
    // __global__ void hidden();
    extern "C" __global__ void __launch_bounds__(256, 2) one(int* p);
    template <typename T, int N> __global__ __attribute__((noinline)) void two(T* p) {}
    namespace n { static __global__ void three() {} }
    """
    assert kernel_names(text) == ("one", "two", "three")


def test_findings_are_at_their_line_after_splices_and_raw_strings(contract: Contract) -> None:
    text = 'a \\\n b\n/* x\n y */\nconst char* s = R"(\n\n)";\nfork();\n'
    assert refused(lint(text, contract)) == [(8, "fork")]


@pytest.mark.parametrize(
    "piece",
    ["(", "[[", "/*", '"', "'", "\\\n", 'R"(', "#", "#if X\n", "<<<", "__attribute__((", "a##", "__global__ ", "[[gnu::", "__device__ ", "isnan(", "1'1", "\n#define A "],
)  # fmt: skip
def test_hostile_text_takes_linear_time(contract: Contract, piece: str) -> None:
    def seconds(count: int) -> float:
        begin = time.process_time()
        lint(piece * count, contract, kernels=[])
        return time.process_time() - begin

    small = max(seconds(4_000 // len(piece)), 0.005)
    assert seconds(64_000 // len(piece)) < small * 16 * 6


def test_a_huge_source_is_refused_unread(contract: Contract) -> None:
    assert [f.rule for f in lint("x" * (2 << 20), contract)] == ["size"]


@given(st.text(alphabet="ab_19 \n\t\\/*\"'R()#<>.x$é{};", max_size=200))
def test_any_text_becomes_tokens_of_itself(text: str) -> None:
    source = tokenize(text)
    for token in source.tokens:
        assert source.text.startswith(token.text, token.start)
        assert 1 <= token.line <= text.replace("\r\n", "\n").count("\n") + 1
    starts = [token.start for token in source.tokens]
    assert starts == sorted(set(starts))


@given(st.lists(st.sampled_from(["a", "\n", "\\\n", "/* \n */", '"s"', " ", "// c\n"]), max_size=40))
def test_lines_are_those_of_the_file(pieces: list[str]) -> None:
    text = "".join(pieces) + "\nlast"
    assert tokenize(text).tokens[-1].line == text.count("\n") + 1


def test_printf_may_stand_where_only_debugging_sees_it(contract: Contract) -> None:
    guarded = '#ifdef KDA_DEBUG\n    printf("%d", i);\n#endif\n'
    source = 'extern "C" __global__ void f(float* x)\n{\n    int i = 0;\n' + guarded + "    x[0] = i;\n}\n"
    assert not [f for f in lint(source, contract) if f.refused]
    assert [f.rule for f in lint(source.replace("ifdef", "ifndef"), contract) if f.refused] == ["printf"]
    assert [f for f in lint("#define KDA_DEBUG 1\n" + source, contract) if f.refused]
