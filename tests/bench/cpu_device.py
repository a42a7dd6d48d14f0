"""How fast the cpu device is: ``python tests/bench/cpu_device.py [--threads N]`` prints a table.

Compiling and starting a child, then kernels that stress one thing each. No pass or fail: numbers to look at.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from kda_tui.evaluation.devices.cpu.cpu_child import CpuChild
from kda_tui.evaluation.devices.cpu.device import CpuDevice
from kda_tui.evaluation.devices.interface import BufferRef, BufferSpec, KernelStep, Launch, ScalarValue
from kda_tui.record.contract import parse_contract
from kda_tui.record.launch_plan import LaunchPlan, Step

SOURCE = r"""
__global__ void empty(float* y) {}
__global__ void copy(const unsigned short* x, unsigned short* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
__global__ void row_sum(const float* x, float* y, int n) {  // shuffles, one barrier
    __shared__ float part[32];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[(size_t)blockIdx.x * n + i];
    for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        v = 0;
        for (int i = 0; i < blockDim.x / 32; i++) v += part[i];
        y[blockIdx.x] = v;
    }
}
template <int TILE>
__global__ void gemm(const float* a, const float* b, float* c, int n) {
    __shared__ float as[TILE][TILE + 1], bs[TILE][TILE + 1];
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        as[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int j = 0; j < TILE; j++) sum += as[threadIdx.y][j] * bs[j][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
__global__ void barriers(float* y, int rounds) {
    for (int i = 0; i < rounds; i++) __syncthreads();
    y[threadIdx.x] = rounds;
}
"""

CONTRACT = b"""
[task]
name = "bench"
device = "cpu"
[[tensor]]
name = "y"
role = "out"
dtype = "float32"
shape = ["n"]
check = {rel_l2 = 1e-5}
[[workload]]
id = "w"
axes = {n = 1}
[baseline]
candidate = "baseline"
"""

ROWS = 4096
CASES = (
    ("empty, 1 block x 1", "empty", (1, 1, 1), (1, 1, 1), 4, None),
    ("empty, 2 blocks x 1", "empty", (2, 1, 1), (1, 1, 1), 4, None),
    ("copy, 20 M threads", "copy", (78125, 1, 1), (256, 1, 1), 40_000_000, 20_000_000),
    ("row sum 4096 x 4096, 128 threads", "row_sum", (ROWS, 1, 1), (128, 1, 1), ROWS * ROWS * 4, ROWS),
    ("row sum 4096 x 4096, 256 threads", "row_sum", (ROWS, 1, 1), (256, 1, 1), ROWS * ROWS * 4, ROWS),
    ("gemm<16> 512", "gemm<16>", (32, 32, 1), (16, 16, 1), 512 * 512 * 4, 512),
    ("1000 barriers, 1024 threads", "barriers", (1, 1, 1), (1024, 1, 1), 4096, 1000),
    ("1000 barriers, 128 threads", "barriers", (1, 1, 1), (128, 1, 1), 4096, 1000),
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        device = CpuDevice(threads=options.parse_args().threads, cache=folder / "cache")
        print(f"{device.facts.name}, {device.threads} threads, {device.compiler.title}")
        (folder / "kernel.cu").write_text(SOURCE)
        kernels = dict.fromkeys(case[1] for case in CASES)
        plan = LaunchPlan(steps=tuple(Step(kernel=kernel) for kernel in kernels))
        contract = parse_contract(CONTRACT, "contract.toml")
        began = time.perf_counter()
        report = device.compile(folder, plan, contract, folder / "cache")
        print(f"{'compile':36} {time.perf_counter() - began:9.3f} s")
        assert report.ok, report.log
        for what in ("runtime and first child", "another child"):
            began = time.perf_counter()
            child = device.start_child(folder)
            print(f"{what:36} {time.perf_counter() - began:9.3f} s")
            if what == "another child":
                child.load("candidate", report, plan)
                measure(child)
            child.close()


def measure(child: CpuChild) -> None:
    for title, kernel, grid, block, nbytes, size in CASES:
        inputs = {"copy": 1, "row_sum": 1, "gemm<16>": 2}.get(kernel, 0)
        names = [f"x{i}" for i in range(inputs)] + ["y"]
        child.allocate([BufferSpec(n, nbytes) for n in names])
        for n in names:
            child.put(n, np.ones(nbytes // 4, np.float32).view(np.uint8))
        scalars = () if size is None else (ScalarValue("int32", size),)
        step = KernelStep("kernel", kernel, grid, block, (*(BufferRef(n) for n in names), *scalars))
        report = child.time("candidate", [Launch((step,))] * 5, False, 120.0)
        assert report.status == "ok", report.text
        seconds = statistics.median(report.samples_us) / 1e6
        rate = math.prod(grid) * math.prod(block) / seconds / 1e6
        print(f"{title:36} {seconds * 1000:9.3f} ms {rate:10.2f} M threads/s")
        child.release()


if __name__ == "__main__":
    main()
