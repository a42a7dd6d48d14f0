// Every byte of the output is random: no poison may be mistaken for it.
extern "C" __global__ void pick(const signed char* x, const int* index, signed char* y, int m)
{
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < m)
        y[i] = x[index[i]] + 1;
}
