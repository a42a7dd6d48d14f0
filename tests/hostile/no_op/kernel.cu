// Writes nothing at all.
extern "C" __global__ void center(const float* x, float* y, int cols)
{
}
