// Launches as child.py describes them: restores, then timed steps on all workers.
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "block.hpp"
#include "crash.hpp"
#include "made.hpp"
#include "module.hpp"
#include "workers.hpp"

namespace kda {

// The structures below are mirrored in child.py.
struct Step {
    const Kernel* kernel;        // null: set ``bytes`` of ``target`` to ``value``
    void** arguments;
    char* (*dynamic_shared)();   // null: the program has none
    void* target;
    uint64_t bytes;              // of the memset, or of dynamic shared memory
    uint32_t value;              // of the memset
    uint32_t module;             // of the kernel
    uint3 grid, block;
};

struct Restore {
    void* target;
    const void* source;
    uint64_t bytes;
};

struct Launch {
    const Step* steps;
    const Restore* restores;
    uint32_t step_count, restore_count;
};

struct Mode {
    uint32_t flush;    // scrub and empty the caches before each launch
    uint32_t reverse;  // threads of a block begin in falling order
    uint32_t check;    // fill shared memory with ``poison`` first, look past the dynamic part afterwards
    uint32_t poison;   // a byte
};

namespace {

constexpr size_t PAGE = 4096;
constexpr unsigned MAX_MODULES = 64;
Workers* workers = nullptr;
Module* modules[MAX_MODULES];
unsigned module_count = 0;
size_t flush_bytes = 0;

int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

struct Grid {
    const Step* step;
    const Mode* mode;
    uint64_t total, chunk, next;
};

void check_past_end(const Step& step, char poison) {
    if (!step.dynamic_shared) return;
    const char* memory = step.dynamic_shared();
    for (size_t i = step.bytes; i < MAX_DYNAMIC_SHARED; i++) {
        if (memory[i] != poison) stop("a thread wrote past the end of the dynamic shared memory (shared_bytes)");
    }
}

void run_blocks(void* context, unsigned) {
    Grid& grid = *static_cast<Grid*>(context);
    const Step& step = *grid.step;
    if (grid.mode->check) modules[step.module]->fill_shared(int(grid.mode->poison));
    kernel_name = step.kernel->name;
    kda_grid_size = step.grid;
    this_block->shape(step.block, grid.mode->reverse);
    for (;;) {
        const uint64_t first = __atomic_fetch_add(&grid.next, grid.chunk, __ATOMIC_RELAXED);
        if (first >= grid.total) break;
        const uint64_t end = first + grid.chunk < grid.total ? first + grid.chunk : grid.total;
        for (uint64_t i = first; i < end; i++) {
            const uint64_t row = i / step.grid.x;
            kda_block_index = {unsigned(i % step.grid.x), unsigned(row % step.grid.y), unsigned(row / step.grid.y)};
            this_block->run(*step.kernel, step.arguments);
        }
    }
    if (grid.mode->check) check_past_end(step, char(grid.mode->poison));
}

void run_step(const Step& step, const Mode& mode) {
    if (!step.kernel) {
        memset(step.target, int(step.value), step.bytes);
        return;
    }
    Grid grid{&step, &mode, uint64_t(step.grid.x) * step.grid.y * step.grid.z, 1, 0};
    grid.chunk = grid.total / (workers->count() * 64);
    if (grid.chunk < 1) grid.chunk = 1;
    if (grid.chunk > 32) grid.chunk = 32;
    if (grid.total == 1) {
        run_blocks(&grid, 0);
    } else {
        workers->all(run_blocks, &grid);
    }
}

// Writes one half of this worker's share, then reads the other, clean half: no dirty line is left over.
void empty_caches(char* share, size_t bytes) {
    auto* words = reinterpret_cast<volatile uint64_t*>(share);
    const size_t count = bytes / sizeof(uint64_t), line = 8;
    for (size_t i = 0; i < count / 2; i += line) words[i] = words[i] + 1;
    uint64_t sum = 0;
    for (size_t i = count / 2; i < count; i += line) sum += words[i];
    words[0] = sum;
}

void scrub_worker(void* context, unsigned worker) {
    for (unsigned i = 0; i < module_count; i++) modules[i]->fill_shared(0);
    this_block->scrub();
    const size_t share = flush_bytes / workers->count() & ~(PAGE - 1);
    empty_caches(static_cast<char*>(context) + worker * share, share);
}

void flush() {
    static char* memory = nullptr;
    if (!memory) {
        void* mapped = mmap(nullptr, flush_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) stop("out of memory: no room to empty the caches");
        memory = static_cast<char*>(mapped);
        memset(memory, 1, flush_bytes);
    }
    workers->all(scrub_worker, memory);
}

}  // namespace
}  // namespace kda

extern "C" {

KDA_RUNTIME void kda_start(unsigned threads, uint64_t flush_bytes, void* crash_page) {
    kda::use_crash_page(static_cast<kda::CrashPage*>(crash_page));
    kda::catch_signals();
    kda::flush_bytes = size_t(flush_bytes);
    kda::workers = kda::make<kda::Workers>(threads);
}

// Maps ``bytes`` of ``file`` between two pages that nobody may touch. Null: no memory.
KDA_RUNTIME void* kda_map(int file, uint64_t bytes) {
    char* room = static_cast<char*>(
        mmap(nullptr, bytes + 2 * kda::PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (room == MAP_FAILED) return nullptr;
    void* mapped = mmap(room + kda::PAGE, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0);
    if (mapped != MAP_FAILED) return mapped;
    munmap(room, bytes + 2 * kda::PAGE);
    return nullptr;
}

KDA_RUNTIME void kda_unmap(void* mapped, uint64_t bytes) {
    munmap(static_cast<char*>(mapped) - kda::PAGE, bytes + 2 * kda::PAGE);
}

// -1: too many programs.
KDA_RUNTIME int kda_add_module(const void* symbol) {
    if (kda::module_count == kda::MAX_MODULES) return -1;
    kda::modules[kda::module_count] = kda::make<kda::Module>(symbol);
    return int(kda::module_count++);
}

KDA_RUNTIME uint64_t kda_changed_globals(int module) { return kda::modules[module]->changed_bytes(); }
KDA_RUNTIME void kda_reset_globals(int module) { kda::modules[module]->reset_globals(); }

// Runs the launches in order; nanoseconds[i] is what the steps of launch i took.
KDA_RUNTIME void kda_execute(const kda::Launch* launches, uint32_t count, const kda::Mode* mode, int64_t* nanoseconds) {
    for (uint32_t i = 0; i < count; i++) {
        const kda::Launch& launch = launches[i];
        for (uint32_t k = 0; k < launch.restore_count; k++) {
            memcpy(launch.restores[k].target, launch.restores[k].source, launch.restores[k].bytes);
        }
        if (mode->flush) kda::flush();
        const int64_t begin = kda::now();
        for (uint32_t k = 0; k < launch.step_count; k++) kda::run_step(launch.steps[k], *mode);
        nanoseconds[i] = kda::now() - begin;
    }
}
}
