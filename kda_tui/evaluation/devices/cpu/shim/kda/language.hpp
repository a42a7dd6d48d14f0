// CUDA's words as host C++: qualifiers, built-in variables, barriers.
#pragma once
#include "abi.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...) KDA_NOT_POSSIBLE_thread_block_clusters
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __inline_hint__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0

// Every name of dynamic shared memory is the same bytes, as on a GPU (see source.py).
extern "C" {
extern __thread __attribute__((aligned(1024))) unsigned char kda_dynamic_shared[];
}
#define KDA_DYNAMIC_SHARED __asm__("kda_dynamic_shared")

namespace kda {

template <class T>
struct Same {
    using type = T;
};
template <class T>
using same = typename Same<T>::type;  // a parameter that takes no part in deduction

template <class To, class From>
inline To bits_as(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "reinterpreting needs equal sizes");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

}  // namespace kda

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

#define threadIdx (static_cast<const uint3&>(kda_thread_index))
#define blockIdx (static_cast<const uint3&>(kda_block_index))
#define blockDim (dim3(kda_block_size))
#define gridDim (dim3(kda_grid_size))
constexpr int warpSize = 32;

#define KDA_MEMORY_BARRIER() __asm__ volatile("" ::: "memory")

inline void __syncthreads() {
    KDA_MEMORY_BARRIER();
    kda_block_collective(kda::BLOCK_SYNC, 0);
    KDA_MEMORY_BARRIER();
}
inline int __syncthreads_count(int predicate) {
    KDA_MEMORY_BARRIER();
    return kda_block_collective(kda::BLOCK_COUNT, predicate);
}
inline int __syncthreads_and(int predicate) {
    KDA_MEMORY_BARRIER();
    return kda_block_collective(kda::BLOCK_AND, predicate);
}
inline int __syncthreads_or(int predicate) {
    KDA_MEMORY_BARRIER();
    return kda_block_collective(kda::BLOCK_OR, predicate);
}

inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) {
    KDA_MEMORY_BARRIER();
    kda_give_way();
}
[[noreturn]] inline void __trap() { kda_stop("__trap()"); }
inline void __brkpt() {}
inline long long clock64() { return static_cast<long long>(__builtin_ia32_rdtsc()); }

// A programmatic dependent launch is a launch in order here.
inline void cudaGridDependencySynchronize() {}
inline void cudaTriggerProgrammaticLaunchCompletion() {}

#ifdef KDA_DEBUG
#define printf(...) kda_print(__VA_ARGS__)
#define KDA_TEXT_OF(x) #x
#define KDA_TEXT(x) KDA_TEXT_OF(x)
#define assert(condition) \
    ((condition) ? static_cast<void>(0) : kda_stop(__FILE__ ":" KDA_TEXT(__LINE__) ": assert(" #condition ")"))
#else
#define assert(condition) static_cast<void>(0)
#endif
