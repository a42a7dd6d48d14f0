// Atomics for the types CUDA has them for. Blocks run on several OS threads, so all of them are real.
#pragma once
#include "language.hpp"

namespace kda {

template <int size>
struct WordOf;
template <>
struct WordOf<2> {
    typedef uint16_t __attribute__((may_alias)) type;
};
template <>
struct WordOf<4> {
    typedef uint32_t __attribute__((may_alias)) type;
};
template <>
struct WordOf<8> {
    typedef uint64_t __attribute__((may_alias)) type;
};

template <class T, class Change>
inline T atomic_update(T* address, Change change) {
    using Word = typename WordOf<sizeof(T)>::type;
    Word* word = reinterpret_cast<Word*>(address);
    Word seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        const T old = bits_as<T>(seen);
        const Word wanted = bits_as<Word>(change(old));
        if (__atomic_compare_exchange_n(word, &seen, wanted, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return old;
    }
}

}  // namespace kda

#define KDA_ATOMIC(name, type, ...)                                            \
    inline type name(type* address, type value) {                              \
        return kda::atomic_update(address, [=](type old) { return __VA_ARGS__; }); \
    }
#define KDA_ATOMIC_FETCH(name, type, builtin) \
    inline type name(type* address, type value) { return builtin(address, value, __ATOMIC_ACQ_REL); }

#define KDA_ATOMIC_INTEGER(type)                            \
    KDA_ATOMIC_FETCH(atomicAdd, type, __atomic_fetch_add)   \
    KDA_ATOMIC_FETCH(atomicAnd, type, __atomic_fetch_and)   \
    KDA_ATOMIC_FETCH(atomicOr, type, __atomic_fetch_or)     \
    KDA_ATOMIC_FETCH(atomicXor, type, __atomic_fetch_xor)   \
    KDA_ATOMIC_FETCH(atomicExch, type, __atomic_exchange_n) \
    KDA_ATOMIC(atomicMin, type, value < old ? value : old)  \
    KDA_ATOMIC(atomicMax, type, value > old ? value : old)

KDA_ATOMIC_INTEGER(int)
KDA_ATOMIC_INTEGER(unsigned)
KDA_ATOMIC_INTEGER(long long)
KDA_ATOMIC_INTEGER(unsigned long long)
KDA_ATOMIC_FETCH(atomicSub, int, __atomic_fetch_sub)
KDA_ATOMIC_FETCH(atomicSub, unsigned, __atomic_fetch_sub)
KDA_ATOMIC(atomicInc, unsigned, old >= value ? 0u : old + 1u)
KDA_ATOMIC(atomicDec, unsigned, old == 0u || old > value ? value : old - 1u)
KDA_ATOMIC(atomicAdd, float, old + value)
KDA_ATOMIC(atomicAdd, double, old + value)
KDA_ATOMIC(atomicExch, float, (static_cast<void>(old), value))

#define KDA_ATOMIC_CAS(type)                                            \
    inline type atomicCAS(type* address, type compare, type value) {    \
        __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); \
        return compare;                                                 \
    }
KDA_ATOMIC_CAS(int)
KDA_ATOMIC_CAS(unsigned)
KDA_ATOMIC_CAS(unsigned short)
KDA_ATOMIC_CAS(unsigned long long)

// Scoped forms: a narrower scope may be wider.
#define KDA_ATOMIC_SCOPED(name)                                                                               \
    template <class T, class... V>                                                                            \
    inline auto name##_block(T* address, V... values) -> decltype(name(address, values...)) {                 \
        return name(address, values...);                                                                      \
    }                                                                                                         \
    template <class T, class... V>                                                                            \
    inline auto name##_system(T* address, V... values) -> decltype(name(address, values...)) {                \
        return name(address, values...);                                                                      \
    }
KDA_ATOMIC_SCOPED(atomicAdd)
KDA_ATOMIC_SCOPED(atomicSub)
KDA_ATOMIC_SCOPED(atomicMin)
KDA_ATOMIC_SCOPED(atomicMax)
KDA_ATOMIC_SCOPED(atomicAnd)
KDA_ATOMIC_SCOPED(atomicOr)
KDA_ATOMIC_SCOPED(atomicXor)
KDA_ATOMIC_SCOPED(atomicExch)
KDA_ATOMIC_SCOPED(atomicCAS)
KDA_ATOMIC_SCOPED(atomicInc)
KDA_ATOMIC_SCOPED(atomicDec)
#undef KDA_ATOMIC_INTEGER
#undef KDA_ATOMIC_FETCH
#undef KDA_ATOMIC_CAS
#undef KDA_ATOMIC_SCOPED
