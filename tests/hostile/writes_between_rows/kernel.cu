// Writes into the hole behind each row.
#include <cuda_fp16.h>

extern "C" __global__ void twice(const __half* x, const int* len, __half* y, int cols)
{
    const int r = blockIdx.x;
    for (int c = threadIdx.x; c < len[r]; c += 32)
        y[r * (cols + 5) + c] = __float2half(2.0f * __half2float(x[r * (cols + 3) + c]));
    if (threadIdx.x == 0 && r + 1 < gridDim.x)
        y[r * (cols + 5) + cols + 1] = __float2half(0.0f);
}
