// One element in a thousand is off by one.
extern "C" __global__ void pick(const signed char* x, const int* index, signed char* y, int m)
{
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < m)
        y[i] = x[index[i]] + (i == 517 ? 2 : 1);
}
