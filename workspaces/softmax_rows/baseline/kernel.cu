// Softmax over each row, the plain way: one block a row, three passes over global memory, and a tree
// in shared memory for the maximum and for the sum.

constexpr int kThreads = 256;
constexpr float kLowest = -3.402823466e38f;

extern "C" __global__ void __launch_bounds__(kThreads)
softmax_rows(const float* __restrict__ x, float* __restrict__ y, int cols)
{
    __shared__ float tree[kThreads];
    const float* row = x + (size_t)blockIdx.x * cols;
    float* out = y + (size_t)blockIdx.x * cols;
    const int lane = threadIdx.x;

    float best = kLowest;
    for (int i = lane; i < cols; i += kThreads)
        best = fmaxf(best, row[i]);
    tree[lane] = best;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (lane < half)
            tree[lane] = fmaxf(tree[lane], tree[lane + half]);
        __syncthreads();
    }
    best = tree[0];
    __syncthreads();

    float sum = 0.0f;
    for (int i = lane; i < cols; i += kThreads)
        sum += expf(row[i] - best);
    tree[lane] = sum;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (lane < half)
            tree[lane] += tree[lane + half];
        __syncthreads();
    }
    sum = tree[0];

    for (int i = lane; i < cols; i += kThreads)
        out[i] = expf(row[i] - best) / sum;
}
