// RMS normalisation of each row, the plain way: one block a row, element by element, and a tree in shared
// memory for the sum of squares.

#include <cuda_bf16.h>

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_rows(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight,
              __nv_bfloat16* __restrict__ y, int hidden, float eps)
{
    __shared__ float tree[kThreads];
    const __nv_bfloat16* row = x + (size_t)blockIdx.x * hidden;
    __nv_bfloat16* out = y + (size_t)blockIdx.x * hidden;
    const int lane = threadIdx.x;

    float sum = 0.0f;
    for (int i = lane; i < hidden; i += kThreads) {
        const float v = __bfloat162float(row[i]);
        sum += v * v;
    }
    tree[lane] = sum;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (lane < half)
            tree[lane] += tree[lane + half];
        __syncthreads();
    }
    const float scale = rsqrtf(tree[0] / hidden + eps);

    for (int i = lane; i < hidden; i += kThreads)
        out[i] = __float2bfloat16(__bfloat162float(row[i]) * scale * __bfloat162float(weight[i]));
}
