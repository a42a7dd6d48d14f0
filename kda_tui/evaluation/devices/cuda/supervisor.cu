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

// An order-independent 64-bit hash of bytes and their positions, added into *out.
extern "C" __global__ void kda_hash(const u8* p, u64 n, u64* out) {
    u64 sum = 0;
    const u64 words = n / 8;
    for (u64 i = first(); i < words; i += stride()) sum += mix(((const u64*)p)[i] ^ mix(i));
    for (u64 i = words * 8 + first(); i < n; i += stride()) sum += mix((u64)p[i] ^ mix(~i));
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if ((threadIdx.x & 31) == 0) atomicAdd(out, sum);
}

// Bytes that still equal their poison, counted into *out (unwritten = equal under both poisons).
extern "C" __global__ void kda_unwritten(const u8* p, u64 n, u64 seed, u32 complement, u64* out) {
    const u64 flip = complement ? ~0ull : 0ull;
    u64 count = 0;
    for (u64 i = first(); i < n; i += stride()) {
        const u8 poison = (u8)((mix(seed ^ mix(i / 8)) ^ flip) >> (8 * (i & 7)));
        count += p[i] == poison;
    }
    for (int o = 16; o; o >>= 1) count += __shfl_xor_sync(0xffffffffu, count, o);
    if ((threadIdx.x & 31) == 0) atomicAdd(out, count);
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
