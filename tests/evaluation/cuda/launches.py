"""Kernels that between them use every kind of launch and argument."""

from __future__ import annotations

SOURCE = r"""
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda.h>
namespace cg = cooperative_groups;
typedef unsigned long long u64;

extern "C" __global__ void scale(const float* x, float* y, int n, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
extern "C" __global__ void types(double* out, double d, float f, unsigned char b, short h, long long q, bool t) {
    out[0] = d; out[1] = f; out[2] = b; out[3] = h; out[4] = (double)q; out[5] = t;
}
extern "C" __global__ void dynamic(int* out, int bytes) {
    extern __shared__ char room[];
    room[bytes - 1] = 7;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = room[bytes - 1];
}
extern "C" __global__ void clustered(int* out) {
    auto cluster = cg::this_cluster();
    __shared__ int mine;
    if (threadIdx.x == 0) mine = blockIdx.x;
    cluster.sync();
    int other = *cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
    if (threadIdx.x == 0) out[blockIdx.x] = other;
    cluster.sync();
}
extern "C" __global__ void grid_sum(const int* x, int* part, int* out, int n) {
    auto grid = cg::this_grid();
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    atomicAdd(&part[blockIdx.x], sum);
    grid.sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) { int t = 0; for (int b = 0; b < gridDim.x; b++) t += part[b]; out[0] = t; }
}
extern "C" __global__ void tma_copy(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ alignas(128) float tile[16 * 16];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    cuda::barrier<cuda::thread_scope_block>::arrival_token token;
    if (threadIdx.x == 0) {
        unsigned at = (unsigned)__cvta_generic_to_shared(tile);
        unsigned mb = (unsigned)__cvta_generic_to_shared(cuda::device::barrier_native_handle(bar));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                     :: "r"(at), "l"((u64)&map), "r"(mb), "r"((int)(blockIdx.x * 16)), "r"(0) : "memory");
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
    } else token = bar.arrive();
    bar.wait(std::move(token));
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[(i / 16) * gridDim.x * 16 + blockIdx.x * 16 + i % 16] = tile[i];
}
extern "C" __global__ void wild(float* y) { y[1ll << 40] = 1.f; }
extern "C" __global__ void endless(volatile int* y) { while (y[0] == 0) { } }
extern "C" __global__ void wait_for(const float* x, float* y) { asm volatile("griddepcontrol.wait;" ::: "memory"); y[threadIdx.x] = x[threadIdx.x] + 1; }
__device__ int calls;
extern "C" __global__ void counts(int* y) { y[0] = ++calls; }
"""

KERNELS = (
    "scale",
    "types",
    "dynamic",
    "clustered",
    "grid_sum",
    "tma_copy",
    "wild",
    "endless",
    "wait_for",
    "counts",
)
