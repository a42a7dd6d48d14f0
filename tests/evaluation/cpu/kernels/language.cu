#include <cuda_runtime.h>
#include <stdint.h>
#include <type_traits>

extern __shared__ __align__(16) float everyone[];

__constant__ float table[4] = {1.0f, 10.0f, 100.0f, 1000.0f};
__device__ int hits;

template <int TILE>
__global__ void __launch_bounds__(TILE* TILE) transpose(const float* __restrict__ in, float* __restrict__ out, int n) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void places(int* out) {
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const dim3 size = blockDim;
    const uint3 where = threadIdx;
    out[block * threads + thread] = block * 1000 + where.z * 100 + where.y * 10 + where.x + (size.x == blockDim.x ? 0 : 1);
}

template <typename T>
__device__ __forceinline__ T block_sum(T value) {
    extern __shared__ __align__(16) float room[];
    T* mine = reinterpret_cast<T*>(room);
    mine[threadIdx.x] = value;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) mine[threadIdx.x] += mine[threadIdx.x + step];
        __syncthreads();
    }
    return mine[0];
}

__global__ void dynamic_sum(const float* in, float* out) {
    const float sum = block_sum(in[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = sum + everyone[0];  // both names are the same bytes
}

__global__ void alignments(int* out) {
    static __shared__ alignas(64) char aligned[64];
    __shared__ __align__(32) float more[8];
    __shared__ alignas(alignof(float4)) float four[4], five[5];
    out[0] = reinterpret_cast<uintptr_t>(aligned) % 64 + reinterpret_cast<uintptr_t>(more) % 32;
    out[1] = sizeof(float4) * 100 + alignof(float4);
    out[2] = sizeof(float3) * 100 + alignof(float3);
    out[3] = sizeof(uchar4) * 100 + alignof(uchar4);
    out[4] = sizeof(double2) * 100 + alignof(double2);
    out[5] = reinterpret_cast<uintptr_t>(four) % 16;
    five[0] = 0;
}

__global__ void vectors(const float4* in, float4* out) {
    const float4 v = __ldg(&in[threadIdx.x]);
    float2 low = make_float2(v.x, v.y);
    int2 whole = make_int2(3, 4);
    __stcs(&out[threadIdx.x], make_float4(low.y, low.x, v.w * whole.x, v.z * whole.y));
}

__global__ void barriers(int* out) {
    const int n = __syncthreads_count(threadIdx.x % 3 == 0);
    const int all = __syncthreads_and(threadIdx.x < 1000), some = __syncthreads_or(threadIdx.x == 5);
    const int none = __syncthreads_or(threadIdx.x > 5000), not_all = __syncthreads_and(threadIdx.x > 0);
    if (threadIdx.x >= 40) return;  // those who leave are not waited for
    __syncthreads();
    if (threadIdx.x == 0) {
        out[0] = n;
        out[1] = all * 1000 + some * 100 + none * 10 + not_all;
    }
}

__global__ void constants(float* out) {
    if (threadIdx.x == 0 && blockIdx.x == 0) atomicAdd(&hits, 1);
    out[threadIdx.x] = table[threadIdx.x % 4];
    static_assert(std::is_same<decltype(out[0]), float&>::value, "");
}

__global__ void spin(volatile int* flags, int* out) {
    __shared__ volatile int turn;
    if (threadIdx.x == 0) turn = 0;
    __syncthreads();
    while (turn != (int)(blockDim.x - 1 - threadIdx.x)) __nanosleep(10);
    out[threadIdx.x] = turn;
    turn = turn + 1;
}

__global__ void chain(int* flags) {  // each block waits for the one before it
    if (blockIdx.x > 0) while (atomicAdd(&flags[blockIdx.x - 1], 0) == 0) __nanosleep(1);
    __threadfence();
    atomicExch(&flags[blockIdx.x], (int)blockIdx.x + 1);
}

__global__ void missing_sync(const int* in, int* out) {
    __shared__ int room[64];
    room[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = room[63 - threadIdx.x];
}

__global__ void forward_only(const int* in, int* out) {  // right by luck when threads run in rising order
    __shared__ int room[64];
    room[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = threadIdx.x ? room[threadIdx.x - 1] : 0;
}
