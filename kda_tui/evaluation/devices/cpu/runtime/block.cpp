#include "block.hpp"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "crash.hpp"

extern "C" {
__thread uint3 kda_thread_index, kda_block_index, kda_block_size, kda_grid_size;
__thread unsigned kda_lane;
void kda_switch(void** save, void* to);
}

// Saves what the ABI says a callee keeps, and goes on with another stack.
asm(R"(
.text
.globl kda_switch
.hidden kda_switch
.type kda_switch,@function
kda_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kda_switch,.-kda_switch
.section .note.GNU-stack,"",@progbits
.text
)");

namespace kda {
namespace {

constexpr size_t PAGE = 4096;
constexpr size_t STACK = 64 * PAGE;
// One guard page below each stack. The odd number of pages spreads stacks over the sets of a cache.
constexpr size_t SPACING = STACK + PAGE;

uint32_t bit(unsigned lane) { return 1u << lane; }

unsigned lowest(uint32_t lanes) { return unsigned(__builtin_ctz(lanes)); }
unsigned highest(uint32_t lanes) { return 31u - unsigned(__builtin_clz(lanes)); }

uint64_t reduce(uint32_t op, uint64_t total, uint64_t value) {
    const uint32_t a = uint32_t(total), b = uint32_t(value);
    switch (op) {
        case ADD: return a + b;
        case MIN_UNSIGNED: return a < b ? a : b;
        case MAX_UNSIGNED: return a > b ? a : b;
        case MIN_SIGNED: return int32_t(a) < int32_t(b) ? a : b;
        case MAX_SIGNED: return int32_t(a) > int32_t(b) ? a : b;
        case AND: return a & b;
        case OR: return a | b;
        default: return a ^ b;
    }
}

}  // namespace

__thread Block* this_block;

Block::Block() {
    void* memory = mmap(nullptr, MAX_THREADS * SPACING, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) stop("out of memory: no room for the stacks of a block");
    stacks_ = static_cast<char*>(memory);
}

Fiber* Block::new_fiber() {
    char* low = stacks_ + fibers_ * SPACING + PAGE;
    if (mprotect(low, STACK, PROT_READ | PROT_WRITE) != 0) stop("out of memory: no room for a thread's stack");
    // The tops differ in their place within a page, else all would fall into the same cache set.
    void** top = reinterpret_cast<void**>(low + STACK - (fibers_ * 320 & 4095 & ~size_t(63))) - 2;
    *top = reinterpret_cast<void*>(&Block::fiber_main);
    for (int saved = 0; saved < 6; saved++) *--top = nullptr;
    Fiber* fiber = &fiber_[fibers_++];
    fiber->stack_pointer = top;
    return fiber;
}

void Block::shape(uint3 size, bool reverse) {
    reverse_ = reverse;
    kda_block_size = size;
    if (size.x == size_.x && size.y == size_.y && size.z == size_.z) return;
    size_ = size;
    threads_ = size.x * size.y * size.z;
    warps_ = (threads_ + WARP - 1) / WARP;
    for (unsigned i = 0; i < threads_; i++) index_[i] = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
}

void Block::run(const Kernel& kernel, void** arguments) {
    kernel_ = &kernel;
    arguments_ = arguments;
    alive_ = threads_;
    at_barrier_ = predicates_ = 0;
    for (unsigned w = 0; w < warps_; w++) {
        const unsigned lanes = threads_ - w * WARP;
        const uint32_t all = lanes >= WARP ? ~0u : bit(lanes) - 1;
        warp_[w].fresh = warp_[w].alive = all;
        warp_[w].ready = warp_[w].converging = warp_[w].meetings = 0;
    }
    switch_to(pick(reverse_ ? warps_ - 1 : 0, ~0u), &scheduler_);
    kernel_ = nullptr;
}

// The next thread that can run: lanes of ``warp`` first, then the other warps in order. -1: none.
int Block::pick(unsigned warp, uint32_t lanes_of_first) {
    uint32_t mask = lanes_of_first;
    for (unsigned seen = 0; seen <= warps_; seen++) {
        Warp& w = warp_[warp];
        if (w.converging && !(w.ready | w.fresh)) {
            for (uint32_t rest = w.converging; rest; rest &= rest - 1) w.result[lowest(rest)] = w.converging;
            w.ready = w.converging;
            w.converging = 0;
        }
        const uint32_t lanes = (w.ready | w.fresh) & mask;
        if (lanes) return int(warp * WARP + (reverse_ ? highest(lanes) : lowest(lanes)));
        mask = ~0u;
        if (reverse_) {
            warp = warp == 0 ? warps_ - 1 : warp - 1;
        } else {
            warp = warp + 1 == warps_ ? 0 : warp + 1;
        }
    }
    return -1;
}

void Block::begin(unsigned thread) {
    warp_[thread / WARP].fresh &= ~bit(thread % WARP);
    current_ = thread;
    kda_thread_index = index_[thread];
    kda_lane = thread % WARP;
}

// A fiber runs one thread after the other as a plain loop for as long as none of them has to wait.
void Block::fiber_main() {
    Block& block = *this_block;
    for (;;) {
        Fiber* self = block.fiber_of_[block.next_];
        int next = int(block.next_);
        do {
            block.fiber_of_[next] = self;
            block.begin(unsigned(next));
            block.kernel_->call(block.arguments_);
            block.end_thread();
            next = block.pick(block.current_ / WARP, ~0u);
        } while (next >= 0 && block.warp_[next / WARP].fresh & bit(unsigned(next) % WARP));
        self->next_idle = block.idle_;
        block.idle_ = self;
        block.switch_to(next, &self->stack_pointer);
    }
}

void Block::switch_to(int thread, void** save) {
    if (thread < 0) {
        if (alive_) deadlock();
        kda_switch(save, scheduler_);
        return;
    }
    Warp& warp = warp_[thread / WARP];
    if (warp.fresh & bit(unsigned(thread) % WARP)) {
        Fiber* fiber = idle_;
        if (fiber) {
            idle_ = fiber->next_idle;
        } else {
            fiber = new_fiber();
        }
        next_ = unsigned(thread);
        fiber_of_[thread] = fiber;
    }
    void** to = &fiber_of_[thread]->stack_pointer;
    if (save != to) kda_switch(save, *to);
}

// The current thread waits; returns when something made it ready and it is its turn.
void Block::wait() {
    const unsigned thread = current_;
    switch_to(pick(thread / WARP, ~0u), &fiber_of_[thread]->stack_pointer);
    current_ = thread;
    warp_[thread / WARP].ready &= ~bit(thread % WARP);
    kda_thread_index = index_[thread];
    kda_lane = thread % WARP;
}

void Block::give_way() {
    const unsigned lane = current_ % WARP;
    Warp& warp = warp_[current_ / WARP];
    warp.ready |= bit(lane);
    const uint32_t later = reverse_ ? bit(lane) - 1 : ~(bit(lane) | (bit(lane) - 1));
    const unsigned thread = current_;
    switch_to(pick(thread / WARP, later), &fiber_of_[thread]->stack_pointer);
    current_ = thread;
    warp.ready &= ~bit(lane);
    kda_thread_index = index_[thread];
    kda_lane = lane;
}

void Block::end_thread() {
    Warp& warp = warp_[current_ / WARP];
    warp.alive &= ~bit(current_ % WARP);
    alive_--;
    for (unsigned i = warp.meetings; i-- > 0;) {  // those who waited for this thread alone
        const Meeting& m = warp.meeting[i];
        if ((m.mask & warp.alive & ~m.arrived) == 0) finish_meeting(warp, i);
    }
    if (at_barrier_ && at_barrier_ == alive_) release_barrier();
}

int Block::block_collective(uint32_t op, int predicate) {
    at_barrier_++;
    predicates_ += predicate != 0;
    if (at_barrier_ == alive_) {
        release_barrier();
        warp_[current_ / WARP].ready &= ~bit(current_ % WARP);
    } else {
        wait();
    }
    switch (op) {
        case BLOCK_COUNT: return barrier_count_;
        case BLOCK_AND: return barrier_and_;
        case BLOCK_OR: return barrier_or_;
        default: return 0;
    }
}

// Every living thread is at the barrier: nobody can be in a meeting or fresh.
void Block::release_barrier() {
    barrier_count_ = int(predicates_);
    barrier_and_ = predicates_ == at_barrier_;
    barrier_or_ = predicates_ != 0;
    at_barrier_ = predicates_ = 0;
    for (unsigned w = 0; w < warps_; w++) warp_[w].ready = warp_[w].alive;
}

uint64_t Block::warp_collective(uint32_t mask, uint32_t op, uint64_t value, uint32_t source) {
    Warp& warp = warp_[current_ / WARP];
    const unsigned lane = current_ % WARP;
    if (!(mask & bit(lane))) stop("a warp collective whose mask leaves out the calling lane");
    warp.given[lane] = value;
    warp.source[lane] = uint8_t(source & 31);
    unsigned i = 0;
    while (i < warp.meetings && (warp.meeting[i].mask != mask || warp.meeting[i].op != op)) i++;
    if (i == warp.meetings) warp.meeting[warp.meetings++] = {mask, op, 0};
    Meeting& meeting = warp.meeting[i];
    meeting.arrived |= bit(lane);
    if (mask & warp.alive & ~meeting.arrived) {
        wait();
    } else {
        finish_meeting(warp, i);
        warp.ready &= ~bit(lane);
    }
    return warp.result[lane];
}

void Block::finish_meeting(Warp& warp, unsigned which) {
    const Meeting m = warp.meeting[which];
    warp.meeting[which] = warp.meeting[--warp.meetings];
    warp.ready |= m.arrived;
    uint64_t total = 0;
    bool first = true;
    for (uint32_t rest = m.arrived; rest; rest &= rest - 1) {
        const unsigned lane = lowest(rest);
        switch (m.op) {
            case SYNC: return;
            case SHUFFLE:
                // The value of a lane that is not there is undefined: all ones, a NaN, so that it shows.
                warp.result[lane] = m.arrived & bit(warp.source[lane]) ? warp.given[warp.source[lane]] : ~uint64_t(0);
                continue;
            case BALLOT: total |= warp.given[lane] << lane; continue;
            case MATCH_ANY: {
                uint32_t same = 0;
                for (uint32_t other = m.arrived; other; other &= other - 1) {
                    if (warp.given[lowest(other)] == warp.given[lane]) same |= bit(lowest(other));
                }
                warp.result[lane] = same;
                continue;
            }
            case MATCH_ALL:
                if (first) total = m.arrived;
                if (warp.given[lane] != warp.given[lowest(m.arrived)]) total = 0;
                break;
            default: total = first ? warp.given[lane] : reduce(m.op, total, warp.given[lane]);
        }
        first = false;
    }
    if (m.op == SHUFFLE || m.op == MATCH_ANY) return;
    for (uint32_t rest = m.arrived; rest; rest &= rest - 1) warp.result[lowest(rest)] = total;
}

// The lanes that come to the same point before the warp has nothing else to do: as converged as can be.
uint32_t Block::active_mask() {
    const unsigned lane = current_ % WARP;
    Warp& warp = warp_[current_ / WARP];
    warp.converging |= bit(lane);
    wait();
    return uint32_t(warp.result[lane]);
}

void Block::deadlock() const {
    char text[400];
    for (unsigned w = 0; w < warps_; w++) {
        if (!warp_[w].meetings) continue;
        const Meeting& m = warp_[w].meeting[0];
        const uint3 waits = index_[w * WARP + lowest(m.arrived)];
        const uint3 missing = index_[w * WARP + lowest(m.mask & warp_[w].alive & ~m.arrived)];
        snprintf(text, sizeof text,
                 "deadlock: thread (%u, %u, %u) waits in a warp collective with mask 0x%08x for thread (%u, %u, %u), "
                 "which waits elsewhere",
                 waits.x, waits.y, waits.z, m.mask, missing.x, missing.y, missing.z);
        stop(text);
    }
    stop("deadlock: no thread of the block can go on");
}

void Block::scrub() {
    // A parked fiber lives in the topmost bytes of its stack; what lies below is free. The upper pages stay
    // mapped, so that the next launch does not pay for page faults.
    for (Fiber* fiber = idle_; fiber; fiber = fiber->next_idle) {
        char* low = stacks_ + size_t(fiber - fiber_) * SPACING + PAGE;
        char* kept = low + STACK - 3 * PAGE;
        memset(kept, 0, size_t(static_cast<char*>(fiber->stack_pointer) - kept));
        madvise(low, size_t(kept - low), MADV_DONTNEED);
    }
}

bool Block::in_stack_guard(const void* address) const {
    const char* p = static_cast<const char*>(address);
    return p >= stacks_ && p < stacks_ + MAX_THREADS * SPACING && size_t(p - stacks_) % SPACING < PAGE;
}

}  // namespace kda

extern "C" {
int kda_block_collective(uint32_t op, int predicate) { return kda::this_block->block_collective(op, predicate); }
uint64_t kda_warp_collective(uint32_t mask, uint32_t op, uint64_t value, uint32_t source) {
    return kda::this_block->warp_collective(mask, op, value, source);
}
uint32_t kda_active_mask() { return kda::this_block->active_mask(); }
void kda_give_way() { kda::this_block->give_way(); }
void kda_stop(const char* what) { kda::stop(what); }
}
