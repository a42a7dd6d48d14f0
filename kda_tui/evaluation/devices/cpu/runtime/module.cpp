#include "module.hpp"

#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "crash.hpp"

extern "C" void* __tls_get_addr(void* index);

namespace kda {
namespace {

bool contains(const dl_phdr_info& info, const void* address) {
    const auto a = reinterpret_cast<uintptr_t>(address);
    for (int i = 0; i < info.dlpi_phnum; i++) {
        const ElfW(Phdr)& h = info.dlpi_phdr[i];
        const uintptr_t begin = info.dlpi_addr + h.p_vaddr;
        if (h.p_type == PT_LOAD && a >= begin && a < begin + h.p_memsz) return true;
    }
    return false;
}

struct Search {
    const void* address;
    dl_phdr_info found;
    bool ok;
};

int look(dl_phdr_info* info, size_t, void* context) {
    auto* search = static_cast<Search*>(context);
    if (!contains(*info, search->address)) return 0;
    search->found = *info;
    search->ok = true;
    return 1;
}

dl_phdr_info find(const void* address) {
    Search search{address, {}, false};
    dl_iterate_phdr(look, &search);
    if (!search.ok) stop("infrastructure: a loaded program cannot be found in memory");
    return search.found;
}

}  // namespace

Module::Module(const void* symbol) {
    const dl_phdr_info info = find(symbol);
    tls_id_ = info.dlpi_tls_modid;
    uintptr_t sealed_end = 0;  // what the loader made read-only after relocation
    for (int i = 0; i < info.dlpi_phnum; i++) {
        const ElfW(Phdr)& h = info.dlpi_phdr[i];
        if (h.p_type == PT_TLS) shared_bytes_ = h.p_memsz;
        if (h.p_type == PT_GNU_RELRO) sealed_end = (info.dlpi_addr + h.p_vaddr + h.p_memsz) & ~uintptr_t(4095);
    }
    for (int i = 0; i < info.dlpi_phnum && ranges_ < MAX_RANGES; i++) {
        const ElfW(Phdr)& h = info.dlpi_phdr[i];
        if (h.p_type != PT_LOAD || !(h.p_flags & PF_W)) continue;
        uintptr_t begin = info.dlpi_addr + h.p_vaddr;
        const uintptr_t end = begin + h.p_memsz;
        if (begin < sealed_end && sealed_end <= end) begin = sealed_end;
        if (begin == end) continue;
        Range& range = range_[ranges_++];
        range.begin = reinterpret_cast<char*>(begin);
        range.bytes = end - begin;
        range.saved = static_cast<char*>(malloc(range.bytes));
        if (!range.saved) stop("out of memory: no room for a copy of the program's globals");
        memcpy(range.saved, range.begin, range.bytes);
    }
}

size_t Module::changed_bytes() const {
    size_t changed = 0;
    for (unsigned i = 0; i < ranges_; i++) {
        const Range& r = range_[i];
        if (memcmp(r.begin, r.saved, r.bytes) == 0) continue;
        for (size_t k = 0; k < r.bytes; k++) changed += r.begin[k] != r.saved[k];
    }
    return changed;
}

void Module::reset_globals() {
    for (unsigned i = 0; i < ranges_; i++) memcpy(range_[i].begin, range_[i].saved, range_[i].bytes);
}

void Module::fill_shared(int value) const {
    if (!shared_bytes_) return;
    struct {
        unsigned long module, offset;
    } index = {tls_id_, 0};
    memset(__tls_get_addr(&index), value, shared_bytes_);
}

}  // namespace kda
