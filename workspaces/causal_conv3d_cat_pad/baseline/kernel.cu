// y = zero-pad(concat over time (cache, x)), the plain way: each thread computes where one output element
// comes from, with four divisions, and copies it.

#include <cuda_bf16.h>

extern "C" __global__ void __launch_bounds__(256)
cat_pad(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ cache,
        __nv_bfloat16* __restrict__ y, int n, int c, int t, int h, int w, int tc,
        int wl, int wr, int ht, int hb, int dl)
{
    const int depth = t + dl, height = h + ht + hb, width = w + wl + wr;
    const long long total = (long long)n * c * depth * height * width;
    const long long step = (long long)gridDim.x * blockDim.x;

    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
        const int column = (int)(i % width) - wl;
        const int line = (int)(i / width % height) - ht;
        const int plane = (int)(i / ((long long)width * height) % depth) - (dl - tc);
        const long long image = i / ((long long)width * height * depth);

        __nv_bfloat16 value = __float2bfloat16(0.0f);
        if (column >= 0 && column < w && line >= 0 && line < h && plane >= 0) {
            if (plane < tc)
                value = cache[((image * tc + plane) * h + line) * w + column];
            else
                value = x[((image * t + plane - tc) * h + line) * w + column];
        }
        y[i] = value;
    }
}
