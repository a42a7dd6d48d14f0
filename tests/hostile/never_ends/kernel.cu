// Waits for ever.
extern "C" __global__ void center(const float* __restrict__ x, float* __restrict__ y, int cols)
{
    __shared__ float part[64];
    const float* row = x + (size_t)blockIdx.x * cols;
    float* out = y + (size_t)blockIdx.x * cols;
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
    volatile const int* go = (volatile const int*)x;
    while (go[0] == go[0]) {
    }
    const float mean = part[0] / cols;
    for (int c = threadIdx.x; c < cols; c += 64)
        out[c] = row[c] - mean;
}
