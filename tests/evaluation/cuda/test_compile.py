"""Compiling for a GPU needs none: NVRTC's text, resources and symbols."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings", reason="needs kda-tui[cuda]")

from kda_tui.evaluation.devices.cuda import compilers
from kda_tui.evaluation.devices.cuda.resources import Resources, parse_ptxas

needs_nvrtc = pytest.mark.skipif(not compilers.nvrtc_version(), reason="NVRTC is not installed")
needs_nvcc = pytest.mark.skipif(not compilers.nvcc_path(), reason="nvcc is not installed")

SOURCE = """template <int N> __global__ void reversed(const float* x, float* y) {
    __shared__ float s[N];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[N - 1 - threadIdx.x];
}
extern "C" __global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
#ifdef INSTANTIATE
template __global__ void reversed<128>(const float*, float*);
#endif
"""


@needs_nvrtc
def test_nvrtc_finds_templates_and_reports_resources(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(SOURCE)
    built = compilers.compile_nvrtc(source, "sm_90a", [], ["reversed<128>", "copy"])
    assert built.cubin[:4] == b"\x7fELF"
    assert built.names["copy"] == "copy"
    by_name = {r.kernel: r for r in parse_ptxas(built.log)}
    assert by_name[built.names["reversed<128>"]].shared == 512
    assert by_name["copy"].spills == 0


@needs_nvrtc
def test_errors_name_the_line(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text('extern "C" __global__ void f(float* x) {\n  x[0] = y;\n}\n')
    built = compilers.compile_nvrtc(source, "sm_90a", [], ["f"])
    assert built.cubin == b""
    assert "kernel.cu(2)" in built.log


@needs_nvrtc
@pytest.mark.parametrize(
    "order",
    [
        ("<cstdint>", "<cuda/barrier>", "<cuda.h>"),
        ("<cuda.h>", "<cuda/barrier>", "<stdint.h>"),
        ("<stdlib.h>",),
    ],
)
def test_headers_that_nvcc_gives_are_there_in_any_order(tmp_path: Path, order: tuple[str, ...]) -> None:
    source = tmp_path / "kernel.cu"
    includes = "".join(f"#include {name}\n" for name in order)
    body = (
        "uint32_t n = 3; uint64_t m = n; x[0] = m + INFINITY;"
        if any("stdint" in o or "cstdint" in o for o in order)
        else "x[0] = NAN;"
    )
    source.write_text(includes + 'extern "C" __global__ void f(float* x) { ' + body + " }\n")
    built = compilers.compile_nvrtc(source, "sm_90a", [], ["f"])
    assert built.cubin, built.log


@needs_nvrtc
def test_the_kernels_of_the_gpu_tests_compile(tmp_path: Path) -> None:
    from tests.evaluation.cuda.launches import KERNELS, SOURCE

    source = tmp_path / "kernel.cu"
    source.write_text(SOURCE)
    built = compilers.compile_nvrtc(source, "sm_90a", [], list(KERNELS))
    assert built.cubin, built.log


@needs_nvcc
def test_nvcc_agrees_and_names_what_is_missing(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(SOURCE)
    built = compilers.compile_nvcc(
        source, "sm_90a", ["-DINSTANTIATE"], ["reversed<128>", "copy"], 60, tmp_path
    )
    assert built.names == {"reversed<128>": "_Z8reversedILi128EEvPKfPf", "copy": "copy"}
    absent = compilers.compile_nvcc(source, "sm_90a", [], ["cpoy"], 60, tmp_path)
    assert "no kernel 'cpoy' (found: copy)" in absent.log


def test_ptxas_text_of_spilling_kernels() -> None:
    log = (
        "ptxas info    : Compiling entry function 'big' for 'sm_90a'\n"
        "ptxas info    : Function properties for big\n"
        "ptxas         .     96 bytes stack frame, 120 bytes spill stores, 140 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 1 barriers, 49152 bytes smem\n"
    )
    assert parse_ptxas(log) == [Resources("big", 255, 260, 96, 49152)]
    assert parse_ptxas("") == []


@pytest.mark.parametrize(
    ("cc", "arch"), [("9.0", "sm_90a"), ("8.0", "sm_80"), ("8.9", "sm_89"), ("10.0", "sm_100a")]
)
def test_arch_specific_features_where_they_exist(cc: str, arch: str) -> None:
    assert compilers.device_arch(cc) == arch


@needs_nvrtc
def test_module_variables_are_found_and_constants_are_not(tmp_path: Path) -> None:
    from kda_tui.evaluation.devices.cuda.module_globals import Variable, variables

    source = tmp_path / "kernel.cu"
    source.write_text(
        "__device__ int calls; __device__ float table[4] = {1, 2, 3, 4}; __constant__ int fixed[8];\n"
        'extern "C" __global__ void f(float* x) { __shared__ int s[4]; s[0] = calls++; x[0] = table[s[0] & 3] + fixed[0]; }\n'
    )
    built = compilers.compile_nvrtc(source, "sm_90a", [], ["f"])
    assert sorted(variables(built.cubin), key=lambda v: v.name) == [
        Variable("calls", 4),
        Variable("table", 16),
    ]
    assert variables(b"// PTX") == []


def test_an_empty_log_is_not_written_over_a_byte_that_python_shares() -> None:
    def fetch(program: object, room: bytes) -> None:
        assert len(room) > 1, "bytes of length 1 are one object in the whole process"

    assert compilers._nvrtc_text(lambda program: (0, 1), fetch, None) == ""
