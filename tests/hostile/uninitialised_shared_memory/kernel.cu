// The partial sums of threads without a column are never written.
extern "C" __global__ void center(const float* __restrict__ x, float* __restrict__ y, int cols)
{
    extern __shared__ float part[];
    const float* row = x + (size_t)blockIdx.x * cols;
    float* out = y + (size_t)blockIdx.x * cols;
    if (threadIdx.x < 63) {
        float sum = 0.0f;
        for (int c = threadIdx.x; c < cols; c += 63)
            sum += row[c];
        part[threadIdx.x] = sum;
    }
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    for (int c = threadIdx.x; c < cols; c += 64)
        out[c] = row[c] - part[0] / cols;
}
