// The supervisor's own kernels: they prepare and observe, and belong to no arm.
// All are grid-stride, so that one launch shape serves every size.
#include <cuda_fp16.h>
#include <cuda_bf16.h>

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u64 mix(u64 x) {  // splitmix64 finaliser (Steele, Lea, Flood 2014)
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

__device__ __forceinline__ u64 first() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ u64 stride() { return (u64)gridDim.x * blockDim.x; }

// Random bytes, a function of seed and position only; complement flips every bit (gate 8).
extern "C" __global__ void kda_poison(u8* p, u64 n, u64 seed, u32 complement) {
    const u64 flip = complement ? ~0ull : 0ull;
    const u64 words = n / 8;
    for (u64 i = first(); i < words; i += stride()) ((u64*)p)[i] = mix(seed ^ mix(i)) ^ flip;
    for (u64 i = words * 8 + first(); i < n; i += stride()) p[i] = (u8)((mix(seed ^ mix(words)) ^ flip) >> (8 * (i & 7)));
}

// Standard normal numbers, a function of seed and position only (Box and Muller 1958). single: float, else double.
extern "C" __global__ void kda_normal(void* out, u64 n, u64 seed, u32 single) {
    for (u64 i = first(); i < (n + 1) / 2; i += stride()) {
        const u64 a = mix(seed ^ mix(2 * i)), b = mix(seed ^ mix(2 * i + 1));
        if (single) {
            float s, c;
            const float r = sqrtf(-2.0f * logf((float)((a >> 32) + 1) * 0x1p-32f));
            sincospif((float)(b >> 40) * 0x1p-23f, &s, &c);
            ((float*)out)[2 * i] = r * c;
            if (2 * i + 1 < n) ((float*)out)[2 * i + 1] = r * s;
        } else {
            double s, c;
            const double r = sqrt(-2.0 * log((double)((a >> 11) + 1) * 0x1p-53));
            sincospi((double)(b >> 11) * 0x1p-52, &s, &c);
            ((double*)out)[2 * i] = r * c;
            if (2 * i + 1 < n) ((double*)out)[2 * i + 1] = r * s;
        }
    }
}

// Uniform in [0, 1).
extern "C" __global__ void kda_uniform(double* out, u64 n, u64 seed) {
    for (u64 i = first(); i < n; i += stride()) out[i] = (double)(mix(seed ^ mix(i)) >> 11) * 0x1p-53;
}

// Integers from low to low + span - 1; a span of 2^40 is off by 2^-24 of uniform.
extern "C" __global__ void kda_integers(long long* out, u64 n, u64 seed, long long low, u64 span) {
    for (u64 i = first(); i < n; i += stride()) out[i] = low + (long long)(mix(seed ^ mix(i)) % span);
}

// Whether pairs of byte ranges hold the same: counts differing words and tail bytes into *out. One y of the
// grid for every pair {a, b, bytes}.
extern "C" __global__ void kda_equal(const u64* table, u64* out) {
    const u8 *a = (const u8*)table[3 * blockIdx.y], *b = (const u8*)table[3 * blockIdx.y + 1];
    const u64 n = table[3 * blockIdx.y + 2];
    const bool wide = (((u64)a | (u64)b) & 15) == 0;
    const u64 words = wide ? n / 16 : 0;
    u64 differ = 0;
    for (u64 i = first(); i < words; i += stride()) {
        const uint4 x = ((const uint4*)a)[i], y = ((const uint4*)b)[i];
        differ += (x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w) ? 1 : 0;
    }
    for (u64 i = words * 16 + first(); i < n; i += stride()) differ += a[i] != b[i];
    for (int o = 16; o; o >>= 1) differ += __shfl_xor_sync(0xffffffffu, differ, o);
    if ((threadIdx.x & 31) == 0 && differ) atomicAdd(out, differ);
}

// Per tile of an output: squared difference, squared reference and count of the elements where both are
// finite; over all: the largest difference (as bits of a double) and how many are of the wrong class.
// kind: 0 double, 1 float, 2 half, 3 bfloat16. One block takes one part of a tile.
__device__ __forceinline__ double stored(const void* p, u64 i, u32 kind) {
    if (kind == 0) return ((const double*)p)[i];
    if (kind == 1) return (double)((const float*)p)[i];
    if (kind == 2) return (double)__half2float(((const __half*)p)[i]);
    return (double)__bfloat162float(((const __nv_bfloat16*)p)[i]);
}

extern "C" __global__ void kda_tile_sums(const void* got, u32 kind, const double* want, const u8* valid, u64 n,
                                         u64 per_tile, u64 parts, u32 nan_match, u32 inf_match, double* diff,
                                         double* ref, double* count, u64* all) {
    const u64 tiles = (n + per_tile - 1) / per_tile, part_size = (per_tile + parts - 1) / parts;
    __shared__ double shared[3][8];
    for (u64 job = blockIdx.x; job < tiles * parts; job += gridDim.x) {
        const u64 tile = job / parts, end_of_tile = min((tile + 1) * per_tile, n);
        const u64 begin = tile * per_tile + (job % parts) * part_size, end = min(begin + part_size, end_of_tile);
        double d2 = 0, r2 = 0, c = 0, largest = 0;
        u64 wrong = 0;
        for (u64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
            if (valid && !valid[i]) continue;
            const double h = stored(got, i, kind), w = want[i];
            if (isfinite(h) && isfinite(w)) {
                const double d = fabs(h - w);
                d2 += d * d, r2 += w * w, c += 1, largest = fmax(largest, d);
            } else {
                const bool same = (nan_match && isnan(h) && isnan(w)) || (inf_match && isinf(h) && isinf(w) && h == w);
                wrong += !same;
            }
        }
        for (int o = 16; o; o >>= 1) {
            d2 += __shfl_xor_sync(0xffffffffu, d2, o);
            r2 += __shfl_xor_sync(0xffffffffu, r2, o);
            c += __shfl_xor_sync(0xffffffffu, c, o);
            largest = fmax(largest, __shfl_xor_sync(0xffffffffu, largest, o));
            wrong += __shfl_xor_sync(0xffffffffu, wrong, o);
        }
        const u32 warp = threadIdx.x / 32, warps = blockDim.x / 32;
        if ((threadIdx.x & 31) == 0) {
            shared[0][warp] = d2, shared[1][warp] = r2, shared[2][warp] = c;
            if (largest > 0) atomicMax(all, (u64)__double_as_longlong(largest));
            if (wrong) atomicAdd(all + 1, wrong);
        }
        __syncthreads();
        if (threadIdx.x < 3) {
            double sum = 0;
            for (u32 i = 0; i < warps; i++) sum += shared[threadIdx.x][i];
            double* target = threadIdx.x == 0 ? diff : threadIdx.x == 1 ? ref : count;
            if (parts == 1) target[tile] = sum; else atomicAdd(target + tile, sum);
        }
        __syncthreads();
    }
}

// A copy, for the bandwidth that this GPU really has.
extern "C" __global__ void kda_copy(uint4* to, const uint4* from, u64 n) {
    for (u64 i = first(); i < n; i += stride()) to[i] = from[i];
}

// The second half of a flush: read clean data of twice the L2, so that no dirty line is left.
extern "C" __global__ void kda_read(const uint4* p, u64 n, u32* sink) {
    u32 x = 0;
    for (u64 i = first(); i < n; i += stride()) {
        const uint4 v = p[i];
        x ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (x == 0x9E3779B9u) *sink = x;
}

// The SM clock: out = {ns, cycles} that one SM saw pass while it spun.
extern "C" __global__ void kda_clock(u64* out, u64 ns) {
    u64 start, now;
    const u64 cycles = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
    out[0] = now - start;
    out[1] = clock64() - cycles;
}

// Keeps the stream busy for some ns, so that what is queued behind it cannot wait for the host.
extern "C" __global__ void kda_spin(u64 ns) {
    u64 start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}

// Fills the shared memory that a block can have, so that nothing is left from an earlier launch.
extern "C" __global__ void kda_scrub(u32 pattern, u32 words) {
    extern __shared__ u32 room[];
    volatile u32* all = room;
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) all[i] = pattern;
}

extern "C" __global__ void kda_empty() {}
