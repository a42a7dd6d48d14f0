// Warp collectives. Every lane of the mask meets in the runtime; the last to come does the exchange.
#pragma once
#include "language.hpp"

namespace kda {

template <class T>
inline uint64_t to_word(const T& value) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t word = 0;
    __builtin_memcpy(&word, &value, sizeof value);
    return word;
}

template <class T>
inline T from_word(uint64_t word) {
    T value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}

inline uint64_t collective(unsigned mask, WarpOp op, uint64_t value = 0, unsigned source = 0) {
    KDA_MEMORY_BARRIER();
    const uint64_t result = kda_warp_collective(mask, op, value, source);
    KDA_MEMORY_BARRIER();
    return result;
}

template <class T>
inline T shuffle(unsigned mask, const T& value, unsigned source) {
    return from_word<T>(collective(mask, SHUFFLE, to_word(value), source));
}

}  // namespace kda

inline void __syncwarp(unsigned mask = 0xffffffffu) { kda::collective(mask, kda::SYNC); }

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    const unsigned base = kda_lane & ~unsigned(width - 1);
    return kda::shuffle(mask, value, base | (unsigned(source) & unsigned(width - 1)));
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
    // A source in a later segment keeps the own value; one in an earlier segment is read, as PTX says.
    const unsigned source = kda_lane ^ unsigned(lanes);
    const unsigned last = kda_lane | unsigned(width - 1);
    return kda::shuffle(mask, value, source <= last ? source : kda_lane);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const unsigned last = kda_lane | unsigned(width - 1);
    return kda::shuffle(mask, value, kda_lane + delta <= last ? kda_lane + delta : kda_lane);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const unsigned inside = kda_lane & unsigned(width - 1);
    return kda::shuffle(mask, value, inside >= delta ? kda_lane - delta : kda_lane);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return unsigned(kda::collective(mask, kda::BALLOT, predicate != 0));
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
inline unsigned __activemask() { return kda_active_mask(); }

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value) {
    return unsigned(kda::collective(mask, kda::MATCH_ANY, kda::to_word(value)));
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* predicate) {
    const unsigned found = unsigned(kda::collective(mask, kda::MATCH_ALL, kda::to_word(value)));
    *predicate = found != 0;
    return found;
}

inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
    return unsigned(kda::collective(mask, kda::ADD, value));
}
inline int __reduce_add_sync(unsigned mask, int value) {
    return int(kda::collective(mask, kda::ADD, unsigned(value)));
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value) {
    return unsigned(kda::collective(mask, kda::MIN_UNSIGNED, value));
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
    return unsigned(kda::collective(mask, kda::MAX_UNSIGNED, value));
}
inline int __reduce_min_sync(unsigned mask, int value) {
    return int(kda::collective(mask, kda::MIN_SIGNED, unsigned(value)));
}
inline int __reduce_max_sync(unsigned mask, int value) {
    return int(kda::collective(mask, kda::MAX_SIGNED, unsigned(value)));
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value) {
    return unsigned(kda::collective(mask, kda::AND, value));
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
    return unsigned(kda::collective(mask, kda::OR, value));
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
    return unsigned(kda::collective(mask, kda::XOR, value));
}
