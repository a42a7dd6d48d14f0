// What a compiled candidate and the runtime say to each other: plain data and C linkage.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct uint3 {
    unsigned x, y, z;
};

namespace kda {

enum WarpOp : uint32_t {
    SYNC,
    SHUFFLE,
    BALLOT,
    MATCH_ANY,
    MATCH_ALL,
    ADD,
    MIN_UNSIGNED,
    MAX_UNSIGNED,
    MIN_SIGNED,
    MAX_SIGNED,
    AND,
    OR,
    XOR,
};

enum BlockOp : uint32_t { BLOCK_SYNC, BLOCK_COUNT, BLOCK_AND, BLOCK_OR };

constexpr unsigned WARP = 32;
constexpr unsigned MAX_THREADS = 1024;
constexpr size_t MAX_DYNAMIC_SHARED = 232448;  // what an H100 offers one block: 227 KiB

// One kernel parameter: its size, and p(ointer), i(nteger), u(nsigned), f(loat), h(alf), b(float16) or s(truct).
struct Parameter {
    uint32_t size;
    char kind;
};

struct Kernel {
    const char* name;
    void (*call)(void** arguments);
    uint32_t parameter_count;
    const Parameter* parameters;
};

}  // namespace kda

// The calling CUDA thread. Initial-exec: one load through %fs, no call.
#define KDA_THREAD_LOCAL extern __thread __attribute__((tls_model("initial-exec"), visibility("default")))
#define KDA_RUNTIME __attribute__((visibility("default")))

extern "C" {
KDA_THREAD_LOCAL uint3 kda_thread_index;
KDA_THREAD_LOCAL uint3 kda_block_index;
KDA_THREAD_LOCAL uint3 kda_block_size;
KDA_THREAD_LOCAL uint3 kda_grid_size;
KDA_THREAD_LOCAL unsigned kda_lane;

KDA_RUNTIME int kda_block_collective(uint32_t op, int predicate);
KDA_RUNTIME uint64_t kda_warp_collective(uint32_t mask, uint32_t op, uint64_t value, uint32_t source);
KDA_RUNTIME uint32_t kda_active_mask();
KDA_RUNTIME void kda_give_way();
[[noreturn]] KDA_RUNTIME void kda_stop(const char* what);
KDA_RUNTIME int kda_print(const char* format, ...) __attribute__((format(printf, 1, 2)));
}
