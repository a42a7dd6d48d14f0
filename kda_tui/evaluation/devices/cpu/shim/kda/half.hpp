// cuda_fp16.h: __half and __half2.
#pragma once
#include "atomic.hpp"
#include "math.hpp"
#include "narrow.hpp"
#include "vector.hpp"

struct alignas(2) __half_raw {
    unsigned short x;
};

struct alignas(2) __half {
    unsigned short bits;
    __half() = default;
    constexpr __half(__half_raw raw) : bits(raw.x) {}
#define KDA_FROM(type) \
    __half(type value) : bits(kda::float_to_half(static_cast<float>(value))) {}
    KDA_FROM(float)
    KDA_FROM(double)
    KDA_FROM(short)
    KDA_FROM(unsigned short)
    KDA_FROM(int)
    KDA_FROM(unsigned)
    KDA_FROM(long)
    KDA_FROM(unsigned long)
    KDA_FROM(long long)
    KDA_FROM(unsigned long long)
#undef KDA_FROM
    operator float() const { return kda::half_to_float(bits); }
    constexpr operator __half_raw() const { return __half_raw{bits}; }
};

struct alignas(4) __half2 {
    __half x, y;
    __half2() = default;
    constexpr __half2(__half low, __half high) : x(low), y(high) {}
};

namespace kda {

template <>
inline __half narrow<__half>(float x) {
    return __half_raw{float_to_half(x)};
}
inline float widen(__half x) { return half_to_float(x.bits); }
inline __half flip_sign(__half x) { return __half_raw{static_cast<unsigned short>(x.bits ^ 0x8000)}; }
inline __half clear_sign(__half x) { return __half_raw{static_cast<unsigned short>(x.bits & 0x7fff)}; }

}  // namespace kda

#define KDA_T __half
#define KDA_T2 __half2
#include "sixteen.hpp"
#undef KDA_T
#undef KDA_T2

inline __half __float2half(float x) { return __half(x); }
inline __half __float2half_rn(float x) { return __half(x); }
inline __half __double2half(double x) { return kda::narrow<__half>(kda::to_odd_float(x)); }
inline float __half2float(__half x) { return kda::widen(x); }
inline __half2 __float2half2_rn(float x) { return __half2(__half(x), __half(x)); }
inline __half2 __floats2half2_rn(float x, float y) { return __half2(__half(x), __half(y)); }
inline __half2 __float22half2_rn(float2 v) { return __half2(__half(v.x), __half(v.y)); }
inline float2 __half22float2(__half2 v) { return make_float2(kda::widen(v.x), kda::widen(v.y)); }
inline __half2 __halves2half2(__half low, __half high) { return __half2(low, high); }
inline __half2 __half2half2(__half x) { return __half2(x, x); }
inline __half2 make_half2(__half low, __half high) { return __half2(low, high); }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline __half2 __low2half2(__half2 v) { return __half2(v.x, v.x); }
inline __half2 __high2half2(__half2 v) { return __half2(v.y, v.y); }
inline __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
inline __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
inline __half2 __lowhigh2highlow(__half2 v) { return __half2(v.y, v.x); }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline short __half_as_short(__half x) { return short(x.bits); }
inline __half __ushort_as_half(unsigned short bits) { return __half_raw{bits}; }
inline __half __short_as_half(short bits) { return __half_raw{static_cast<unsigned short>(bits)}; }
inline __half __int2half_rn(int x) { return __double2half(double(x)); }
inline __half __uint2half_rn(unsigned x) { return __double2half(double(x)); }
inline int __half2int_rn(__half x) { return __float2int_rn(kda::widen(x)); }
inline int __half2int_rz(__half x) { return __float2int_rz(kda::widen(x)); }
inline unsigned __half2uint_rn(__half x) { return __float2uint_rn(kda::widen(x)); }

typedef __half half;
typedef __half2 half2;
#define CUDART_INF_FP16 __ushort_as_half(static_cast<unsigned short>(0x7c00))
#define CUDART_NAN_FP16 __ushort_as_half(static_cast<unsigned short>(0x7fff))
#define CUDART_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x0000))
#define CUDART_ONE_FP16 __ushort_as_half(static_cast<unsigned short>(0x3c00))
