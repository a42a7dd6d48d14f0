// RMS normalisation of each row with warp shuffles and vector access. One block a row.
//
//   THREADS  threads a row, a multiple of 32
//   VEC      bfloat16 elements a load or store (8 is 16 bytes); a row whose length is not a multiple of
//            it goes one by one

#include <cuda_bf16.h>

#ifndef THREADS
#define THREADS 128
#endif
#ifndef VEC
#define VEC 1
#endif

constexpr int kWarps = THREADS / 32;
static_assert(THREADS % 32 == 0 && THREADS <= 1024, "THREADS is a multiple of 32, at most 1024");

template <int N>
struct alignas(2 * N) Pack {
    __nv_bfloat16 v[N];
};

// The sum over the block; every thread gets it.
__device__ __forceinline__ float sum_across_block(float value)
{
    for (int mask = 16; mask > 0; mask /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, mask);
    if (kWarps == 1)
        return value;
    __shared__ float slots[kWarps];
    if (threadIdx.x % 32 == 0)
        slots[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0f;
    for (int w = 0; w < kWarps; ++w)
        value += slots[w];
    return value;
}

template <int N>
__device__ __forceinline__ void rms_norm_row(const __nv_bfloat16* __restrict__ row,
                                             const __nv_bfloat16* __restrict__ weight,
                                             __nv_bfloat16* __restrict__ out, int hidden, float eps)
{
    const Pack<N>* in = reinterpret_cast<const Pack<N>*>(row);
    const Pack<N>* by = reinterpret_cast<const Pack<N>*>(weight);
    Pack<N>* to = reinterpret_cast<Pack<N>*>(out);
    const int packs = hidden / N;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < packs; i += THREADS) {
        const Pack<N> p = in[i];
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const float v = __bfloat162float(p.v[k]);
            sum += v * v;
        }
    }
    const float scale = rsqrtf(sum_across_block(sum) / hidden + eps);

    for (int i = threadIdx.x; i < packs; i += THREADS) {
        const Pack<N> p = in[i];
        const Pack<N> w = by[i];
        Pack<N> q;
#pragma unroll
        for (int k = 0; k < N; ++k)
            q.v[k] = __float2bfloat16(__bfloat162float(p.v[k]) * scale * __bfloat162float(w.v[k]));
        to[i] = q;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
rms_norm_rows(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight,
              __nv_bfloat16* __restrict__ y, int hidden, float eps)
{
    const __nv_bfloat16* row = x + (size_t)blockIdx.x * hidden;
    __nv_bfloat16* out = y + (size_t)blockIdx.x * hidden;
    if (hidden % VEC == 0)
        rms_norm_row<VEC>(row, weight, out, hidden, eps);
    else
        rms_norm_row<1>(row, weight, out, hidden, eps);
}
