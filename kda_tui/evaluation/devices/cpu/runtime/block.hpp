// One block on one OS thread: a fiber per CUDA thread, started only when another fiber has to wait.
#pragma once
#include "../shim/kda/abi.hpp"

namespace kda {

struct Fiber {
    void* stack_pointer;
    Fiber* next_idle;
};

// Lanes that wait together: the same mask and the same operation.
struct Meeting {
    uint32_t mask, op, arrived;
};

struct Warp {
    uint32_t fresh;  // not begun
    uint32_t ready;  // may go on
    uint32_t alive;  // not ended
    uint32_t converging;  // lanes in __activemask, until no other lane of the warp can run
    uint32_t meetings;
    Meeting meeting[WARP];
    uint64_t given[WARP], result[WARP];
    uint8_t source[WARP];
};

class Block {
  public:
    Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    // Threads per block and the order in which they begin; kept for the blocks of one launch.
    void shape(uint3 size, bool reverse);
    void run(const Kernel& kernel, void** arguments);

    int block_collective(uint32_t op, int predicate);
    uint64_t warp_collective(uint32_t mask, uint32_t op, uint64_t value, uint32_t source);
    uint32_t active_mask();
    void give_way();

    // Stacks hold what earlier kernels left; this makes them zero again.
    void scrub();
    bool in_stack_guard(const void* address) const;
    uint3 thread_index() const { return index_[current_]; }
    bool running() const { return kernel_ != nullptr; }

  private:
    static void fiber_main();
    Fiber* new_fiber();
    int pick(unsigned warp, uint32_t lanes_of_first);
    void begin(unsigned thread);
    void end_thread();
    void wait();
    void switch_to(int thread, void** save);
    void finish_meeting(Warp& warp, unsigned which);
    void release_barrier();
    void deadlock() const;

    const Kernel* kernel_ = nullptr;
    void** arguments_ = nullptr;
    void* scheduler_ = nullptr;  // stack pointer of run()
    Fiber* idle_ = nullptr;
    unsigned current_ = 0, next_ = 0, threads_ = 0, warps_ = 0, alive_ = 0;
    bool reverse_ = false;
    unsigned at_barrier_ = 0, predicates_ = 0;  // threads at the barrier, those of them with a true predicate
    int barrier_count_ = 0, barrier_and_ = 0, barrier_or_ = 0;
    uint3 size_{0, 0, 0};
    char* stacks_ = nullptr;
    unsigned fibers_ = 0;
    Warp warp_[MAX_THREADS / WARP];
    Fiber* fiber_of_[MAX_THREADS];
    Fiber fiber_[MAX_THREADS];
    uint3 index_[MAX_THREADS];
};

// The calling OS thread's block; its worker sets it before the first kernel.
extern __thread Block* this_block __attribute__((tls_model("initial-exec")));

}  // namespace kda
