// Softmax over each row with warp shuffles, vector access and, if wanted, the maximum and the sum in one
// pass. One block a row.
//
//   THREADS  threads a row, a multiple of 32
//   VEC      floats a load or store; a row whose length is not a multiple of it goes one by one
//   PASSES   3: maximum, sum, output; 2: maximum and sum together (online), output

#ifndef THREADS
#define THREADS 128
#endif
#ifndef VEC
#define VEC 1
#endif
#ifndef PASSES
#define PASSES 3
#endif

constexpr int kWarps = THREADS / 32;
constexpr float kLowest = -3.402823466e38f;
static_assert(THREADS % 32 == 0 && THREADS <= 1024, "THREADS is a multiple of 32, at most 1024");
static_assert(PASSES == 2 || PASSES == 3, "PASSES is 2 or 3");

template <int N>
struct alignas(4 * N) Pack {
    float v[N];
};

// The largest element so far, and the sum of exp(element - max).
struct Stat {
    float max;
    float sum;
};

__device__ __forceinline__ Stat join(Stat a, Stat b)
{
    const float m = fmaxf(a.max, b.max);
    return {m, a.sum * __expf(a.max - m) + b.sum * __expf(b.max - m)};
}

__device__ __forceinline__ float join_max(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ float join_sum(float a, float b) { return a + b; }

__device__ __forceinline__ float shuffle(float v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
__device__ __forceinline__ Stat shuffle(Stat s, int mask) { return {shuffle(s.max, mask), shuffle(s.sum, mask)}; }

// Joins one value of every thread; each thread gets the result. `slots` holds one value a warp.
template <typename T, typename Join>
__device__ __forceinline__ T across_block(T value, T* slots, Join join_two)
{
    for (int mask = 16; mask > 0; mask /= 2)
        value = join_two(value, shuffle(value, mask));
    if (kWarps == 1)
        return value;
    if (threadIdx.x % 32 == 0)
        slots[threadIdx.x / 32] = value;
    __syncthreads();
    value = slots[0];
    for (int w = 1; w < kWarps; ++w)
        value = join_two(value, slots[w]);
    return value;
}

template <int N>
__device__ __forceinline__ void softmax_row(const float* __restrict__ row, float* __restrict__ out, int cols)
{
    const Pack<N>* in = reinterpret_cast<const Pack<N>*>(row);
    Pack<N>* to = reinterpret_cast<Pack<N>*>(out);
    const int packs = cols / N;
    Stat stat{kLowest, 0.0f};

    if (PASSES == 2) {
        __shared__ Stat slots[kWarps];
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const Pack<N> p = in[i];
            float top = p.v[0];
#pragma unroll
            for (int k = 1; k < N; ++k)
                top = fmaxf(top, p.v[k]);
            if (top > stat.max) {
                stat.sum *= __expf(stat.max - top);
                stat.max = top;
            }
#pragma unroll
            for (int k = 0; k < N; ++k)
                stat.sum += __expf(p.v[k] - stat.max);
        }
        stat = across_block(stat, slots, join);
    } else {
        __shared__ float maxima[kWarps];
        __shared__ float sums[kWarps];
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const Pack<N> p = in[i];
#pragma unroll
            for (int k = 0; k < N; ++k)
                stat.max = fmaxf(stat.max, p.v[k]);
        }
        stat.max = across_block(stat.max, maxima, join_max);
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const Pack<N> p = in[i];
#pragma unroll
            for (int k = 0; k < N; ++k)
                stat.sum += __expf(p.v[k] - stat.max);
        }
        stat.sum = across_block(stat.sum, sums, join_sum);
    }

    const float scale = 1.0f / stat.sum;
    for (int i = threadIdx.x; i < packs; i += THREADS) {
        const Pack<N> p = in[i];
        Pack<N> q;
#pragma unroll
        for (int k = 0; k < N; ++k)
            q.v[k] = __expf(p.v[k] - stat.max) * scale;
        to[i] = q;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
softmax_rows(const float* __restrict__ x, float* __restrict__ y, int cols)
{
    const float* row = x + (size_t)blockIdx.x * cols;
    float* out = y + (size_t)blockIdx.x * cols;
    if (cols % VEC == 0)
        softmax_row<VEC>(row, out, cols);
    else
        softmax_row<1>(row, out, cols);
}
