// A loaded candidate: its kernels, and its writable memory as it was when loaded.
#pragma once
#include "../shim/kda/abi.hpp"

namespace kda {

struct Range {
    char* begin;
    size_t bytes;
    char* saved;
};

class Module {
  public:
    explicit Module(const void* symbol);  // any address inside it

    size_t changed_bytes() const;  // of its globals, since it was loaded
    void reset_globals();

    // Every byte of the calling OS thread's shared memory: all thread-local storage of a program is that.
    void fill_shared(int value) const;

  private:
    static constexpr unsigned MAX_RANGES = 8;
    Range range_[MAX_RANGES];
    unsigned ranges_ = 0;
    size_t tls_id_ = 0, shared_bytes_ = 0;
};

}  // namespace kda
