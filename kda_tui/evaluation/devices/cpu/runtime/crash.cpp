#include "crash.hpp"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "block.hpp"

namespace kda {

__thread const char* kernel_name = "";

namespace {

CrashPage* page = nullptr;

void copy(char* to, const char* from, size_t room) {
    size_t i = 0;
    for (; from[i] && i + 1 < room; i++) to[i] = from[i];
    to[i] = 0;
}

// Fills the page once: the first OS thread to fail tells its story, the others wait for the end.
bool describe() {
    static int told = 0;
    if (!page || __atomic_exchange_n(&told, 1, __ATOMIC_SEQ_CST)) return false;
    page->in_kernel = this_block && this_block->running();
    if (page->in_kernel) {
        page->thread = this_block->thread_index();
        page->block = kda_block_index;
        copy(page->kernel, kernel_name, sizeof page->kernel);
    }
    return true;
}

void on_signal(int signal, siginfo_t* info, void*) {
    if (describe()) {
        page->signal = signal;
        page->address = reinterpret_cast<uint64_t>(info->si_addr);
        page->stack_overflow = this_block && this_block->in_stack_guard(info->si_addr);
        __atomic_store_n(&page->kind, 2u, __ATOMIC_SEQ_CST);
    } else if (page) {
        pause();
    }
    _exit(EXIT_STOPPED);
}

}  // namespace

void use_crash_page(CrashPage* shared) { page = shared; }

void catch_signals() {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (const int signal : caught) sigaction(signal, &action, nullptr);
}

void use_signal_stack() {
    constexpr size_t size = 64 << 10;
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    stack_t stack;
    memset(&stack, 0, sizeof stack);
    stack.ss_sp = memory;
    stack.ss_size = size;
    sigaltstack(&stack, nullptr);
}

void stop(const char* what) {
    if (describe()) {
        copy(page->text, what, sizeof page->text);
        __atomic_store_n(&page->kind, 1u, __ATOMIC_SEQ_CST);
    } else if (page) {
        pause();
    }
    _exit(EXIT_STOPPED);
}

}  // namespace kda

extern "C" int kda_print(const char* format, ...) {
    va_list values;
    va_start(values, format);
    const int count = vprintf(format, values);
    va_end(values);
    fflush(stdout);  // what comes next may end the process
    return count;
}
