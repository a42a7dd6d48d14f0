// Objects that live as long as the process, made without the C++ library (zig would first have to build it).
#pragma once
#include <stdlib.h>

#include "crash.hpp"

inline void* operator new(size_t, void* place, kda::CrashPage*) noexcept { return place; }

namespace kda {

template <class T, class... A>
T* make(A&&... arguments) {
    void* place = aligned_alloc(64, (sizeof(T) + 63) / 64 * 64);
    if (!place) stop("out of memory: no room for the runtime's own data");
    return new (place, static_cast<CrashPage*>(nullptr)) T(static_cast<A&&>(arguments)...);
}

}  // namespace kda
