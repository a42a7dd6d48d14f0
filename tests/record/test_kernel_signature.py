"""Reading kernel signatures from source text: as people write them, and any rubbish."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.record.kernel_signature import Parameter, read_signatures


def only(parameters: str) -> tuple[Parameter, ...]:
    (kernel,) = read_signatures(f'extern "C" __global__ void k({parameters}) {{}}')
    return kernel.parameters


@pytest.mark.parametrize(
    ("text", "name", "kind", "dtype", "const"),
    [
        ("const float* __restrict__ x", "x", "tensor", "float32", True),
        ("float const *x", "x", "tensor", "float32", True),
        ("float *__restrict__ const y", "y", "tensor", "float32", False),
        ("__nv_bfloat16 y[]", "y", "tensor", "bfloat16", False),
        ("const __half2* h", "h", "tensor", "float16", True),
        ("cutlass::half_t* h", "h", "tensor", "float16", False),
        ("long unsigned int n", "n", "scalar", "int64", False),
        ("std::size_t n", "n", "scalar", "int64", False),
        ("unsigned n = 3", "n", "scalar", "uint32", False),
        ("const bool flag", "flag", "scalar", "bool", True),
        ("float", "arg1", "scalar", "float32", False),
        ("unsigned int", "arg1", "scalar", "uint32", False),
        ("void* p", "p", "tensor", None, False),
        ("T* p", "p", "tensor", None, False),
        ("float** p", "p", "unknown", "float32", False),
        ("float4 v", "v", "unknown", "float32", False),
        ("Params<int, 3> p", "p", "unknown", None, False),
        ("const __grid_constant__ CUtensorMap map", "map", "tensor_map", None, True),
        ("int& r", "r", "unknown", "int32", False),
    ],
)
def test_what_a_parameter_is_taken_for(
    text: str, name: str, kind: str, dtype: str | None, const: bool
) -> None:
    (p,) = only(text)
    assert (p.name, p.kind, p.dtype, p.is_const) == (name, kind, dtype, const)


def test_vector_pointers_keep_their_lanes() -> None:
    assert [p.lanes for p in only("float4* a, const int2* b, double* c")] == [4, 2, 1]


def test_no_parameters() -> None:
    assert only("") == only("void") == ()


SOURCE = """\
#include <x.h>
#define KERNEL __global__ void hidden(int a)
/* __global__ void commented(int a); */
const char* s = "__global__ void quoted(int a)";
template <int BM, typename T = float, int N = (1 < 2)>
static __global__ void __launch_bounds__(128, 2)
tiled(const T* x, /* the output */ T* y,
      int n) // __global__ void trailing()
{
    extern __shared__ char smem[];
}

__global__ __cluster_dims__(2, 1, 1) void __launch_bounds__(kThreads) plain(float* y);
__global__ void plain(float* y) {}
extern "C" __global__ void __maxnreg__(64) last(int (*f)(int, int), float* y, dim3 d) {}
"""


def test_kernels_of_a_real_source() -> None:
    tiled, plain, last = read_signatures(SOURCE)
    assert (tiled.name, tiled.line, tiled.max_threads, tiled.dynamic_shared) == ("tiled", 6, 128, True)
    assert tiled.template == ("int BM", "typename T = float", "int N = ( 1 < 2 )")
    assert [p.name for p in tiled.parameters] == ["x", "y", "n"]
    assert (plain.name, plain.template, plain.max_threads) == ("plain", (), None)
    assert [p.kind for p in last.parameters][1] == "tensor"


def test_other_line_ends_and_marks() -> None:
    (kernel,) = read_signatures("\ufeff// a\r\n__global__ void k(\r\n  int n\r\n) {}\r\n")
    assert (kernel.name, kernel.line) == ("k", 2)


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(" * 20_000,
        "__global__ " * 100_000,
        "template <" * 100_000 + "__global__ void k()",
        "__global__ void k(" + "(" * 200_000,
        "__global__ void k(" + "int a, " * 100_000,
        "/*" * 500_000,
        '"' * 500_000,
        "#\\\n" * 100_000,
        "__global__ void k(int '" + "x" * 100_000,
    ],
    ids=range(9),
)
def test_hostile_sources_end_soon(text: str) -> None:
    assert len(read_signatures(text)) <= 1


FRAGMENTS = st.sampled_from(
    [
        "__global__",
        "void",
        "k",
        "(",
        ")",
        "<",
        ">",
        ",",
        "*",
        "&",
        "[",
        "]",
        "{",
        "}",
        ";",
        "=",
        "::",
        "const",
        "int",
        "float4",
        "template",
        "typename",
        "T",
        "__launch_bounds__",
        "1",
        *list("\"'\n#\\é"),
        "/*",
        "*/",
        "//",
    ]
)


@given(st.lists(FRAGMENTS, max_size=40).map(" ".join) | st.text(max_size=80))
def test_rubbish_never_raises(text: str) -> None:
    for kernel in read_signatures("__global__ void k(" + text):
        assert kernel.name
        assert all(p.name.isidentifier() for p in kernel.parameters)
