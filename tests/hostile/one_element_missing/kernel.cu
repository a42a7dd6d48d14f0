// One element is left as it was.
extern "C" __global__ void pick(const signed char* x, const int* index, signed char* y, int m)
{
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < m && i != 999)
        y[i] = x[index[i]] + 1;
}
