#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>
#include <cfloat>
#include <limits>

__global__ void half_bits(const float* in, unsigned short* h, unsigned short* b, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    h[i] = __half_as_ushort(__float2half(in[i]));
    b[i] = __bfloat16_as_ushort(__float2bfloat16(in[i]));
}

__global__ void half_floats(float* h, float* b) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    h[i] = __half2float(__ushort_as_half(i));
    b[i] = __bfloat162float(__ushort_as_bfloat16(i));
}

template <class T>
__global__ void arithmetic(const T* a, const T* b, const T* c, T* out, int n) {
    const int i = threadIdx.x;
    if (i >= n) return;
    out[0 * n + i] = a[i] + b[i];
    out[1 * n + i] = a[i] * b[i];
    out[2 * n + i] = a[i] / b[i];
    out[3 * n + i] = __hfma(a[i], b[i], c[i]);
    out[4 * n + i] = __hmax(a[i], b[i]);
    out[5 * n + i] = __hneg(__habs(a[i]));
    T sum = a[i];
    sum += b[i];
    sum -= c[i];
    out[6 * n + i] = sum;
    out[7 * n + i] = __hgt(a[i], b[i]) ? hexp(c[i]) : hsqrt(__habs(c[i]));
}

__global__ void pairs(const __half2* a, __half2* out, const __nv_bfloat162* b, __nv_bfloat162* out_b) {
    const int i = threadIdx.x;
    out[i] = __hfma2(a[i], a[i], __float2half2_rn(1.0f));
    const float2 f = __bfloat1622float2(b[i]);
    out_b[i] = __float22bfloat162_rn(make_float2(f.y, f.x + 1.0f));
    out[i + 32] = __halves2half2(__high2half(a[i]), __low2half(a[i]));
}

__global__ void floats(float* out) {
    int i = 0;
    out[i++] = __expf(1.0f);
    out[i++] = __logf(2.0f);
    out[i++] = __fdividef(1.0f, 3.0f);
    out[i++] = rsqrtf(4.0f);
    out[i++] = __frcp_rn(8.0f);
    out[i++] = fmaf(2.0f, 3.0f, 4.0f);
    out[i++] = __fmaf_rn(1.5f, 2.0f, 0.25f);
    out[i++] = exp2f(5.0f);
    out[i++] = __sinf(0.5f);
    out[i++] = __cosf(0.5f);
    out[i++] = __powf(2.0f, 0.5f);
    out[i++] = __saturatef(1.5f) + __saturatef(-3.0f) + __saturatef(CUDART_NAN_F);
    out[i++] = fmaxf(1.0f, NAN);
    out[i++] = erff(0.3f);
    out[i++] = __int_as_float(0x3f800000);
    out[i++] = (float)__float2int_rn(2.5f) + (float)__float2int_rz(-2.9f);
    out[i++] = (float)__float2int_rn(1e20f);
    out[i++] = max(1.0f, min(2.0f, 3.0f)) + max(3, 4) + (float)min(5u, 6u);
    out[i++] = tanhf(0.25f) + log1pf(0.5f) + cbrtf(27.0f);
    out[i++] = FLT_MAX == std::numeric_limits<float>::max() ? 1.0f : 0.0f;
    out[i++] = (float)rsqrt(16.0) + sqrt(2.25f) + abs(-1.5f);
}

__global__ void integers(long long* out) {
    int i = 0;
    out[i++] = __popc(0xf0f0u);
    out[i++] = __clz(1) * 100 + __clz(0);
    out[i++] = __ffs(8) * 100 + __ffs(0);
    out[i++] = __brev(1u);
    out[i++] = __umulhi(0x80000000u, 6u);
    out[i++] = __mulhi(-2, 0x40000000);
    out[i++] = __mul24(-3, 5);
    out[i++] = __funnelshift_l(0x80000000u, 1u, 1);
    out[i++] = __funnelshift_r(2u, 1u, 1);
    out[i++] = __byte_perm(0x33221100u, 0x77665544u, 0x7531);
    out[i++] = __popcll(~0ull);
    out[i++] = __dp4a(0x01020304, 0x01010101, 5);
    out[i++] = __float_as_int(1.0f);
    out[i++] = (long long)__double_as_longlong(1.0) >> 52;
    out[i++] = __hadd(7, 8) + __sad(3, -4, 10u);
    out[i++] = __umul64hi(1ull << 63, 4);
    out[i++] = clock64() > 0;
}

__global__ void atomics(int* i, unsigned* u, float* f, double* d, unsigned long long* l, __half2* h) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&i[0], 1);
    atomicSub(&i[1], 2);
    atomicMax(&i[2], t);
    atomicMin(&i[3], -t);
    atomicOr(&i[4], 1 << (t % 8));
    atomicAnd(&i[5], ~(1 << (t % 4)));
    atomicXor(&i[6], t);
    if (t == 0) atomicExch(&i[7], 77);
    atomicInc(&u[0], 9);
    atomicDec(&u[1], 9);
    atomicMax(&u[2], (unsigned)t);
    atomicAdd(&u[3], 1);
    atomicAdd(&f[0], 0.5f);
    atomicAdd(&d[0], 0.25);
    atomicAdd(&l[0], 1ull << 33);
    unsigned long long seen = l[1], wanted;
    do {
        wanted = seen;
        seen = atomicCAS(&l[1], wanted, wanted + 3);
    } while (seen != wanted);
    if (t < 64) atomicAdd(&h[0], __float2half2_rn(1.0f));
}

__global__ void scalars(double* out, int n, float x, __half h, __nv_bfloat16 b, long long l, bool yes, unsigned char c) {
    out[0] = n;
    out[1] = x;
    out[2] = float(h);
    out[3] = float(b);
    out[4] = (double)l;
    out[5] = yes ? c : -1;
}
