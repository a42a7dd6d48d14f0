// How a launch that cannot go on tells the judge why: a page shared with it, then the end of the process.
#pragma once
#include "../shim/kda/abi.hpp"

namespace kda {

constexpr int EXIT_STOPPED = 70;

// Laid out for child.py and process.py.
struct CrashPage {
    uint32_t kind;  // 0 nothing, 1 stopped with a text, 2 signal
    int32_t signal;
    uint64_t address;
    uint3 thread, block;
    uint32_t in_kernel;  // thread and block are known
    uint32_t stack_overflow;
    char kernel[128];
    char text[512];
};

extern __thread const char* kernel_name;

void use_crash_page(CrashPage* page);
void catch_signals();              // once per process
void use_signal_stack();           // once per OS thread
[[noreturn]] void stop(const char* what);

}  // namespace kda
