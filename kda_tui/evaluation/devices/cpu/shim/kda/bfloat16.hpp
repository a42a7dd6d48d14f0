// cuda_bf16.h: __nv_bfloat16 and __nv_bfloat162.
#pragma once
#include "atomic.hpp"
#include "math.hpp"
#include "narrow.hpp"
#include "vector.hpp"

struct alignas(2) __nv_bfloat16_raw {
    unsigned short x;
};

struct alignas(2) __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    constexpr __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
#define KDA_FROM(type) \
    __nv_bfloat16(type value) : bits(kda::float_to_bfloat(static_cast<float>(value))) {}
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
    operator float() const { return kda::bfloat_to_float(bits); }
    constexpr operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{bits}; }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    constexpr __nv_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) : x(low), y(high) {}
};

namespace kda {

template <>
inline __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
    return __nv_bfloat16_raw{float_to_bfloat(x)};
}
inline float widen(__nv_bfloat16 x) { return bfloat_to_float(x.bits); }
inline __nv_bfloat16 flip_sign(__nv_bfloat16 x) { return __nv_bfloat16_raw{static_cast<unsigned short>(x.bits ^ 0x8000)}; }
inline __nv_bfloat16 clear_sign(__nv_bfloat16 x) { return __nv_bfloat16_raw{static_cast<unsigned short>(x.bits & 0x7fff)}; }

}  // namespace kda

#define KDA_T __nv_bfloat16
#define KDA_T2 __nv_bfloat162
#include "sixteen.hpp"
#undef KDA_T
#undef KDA_T2

inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __double2bfloat16(double x) { return kda::narrow<__nv_bfloat16>(kda::to_odd_float(x)); }
inline float __bfloat162float(__nv_bfloat16 x) { return kda::widen(x); }
inline __nv_bfloat162 __float2bfloat162_rn(float x) { return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(x)); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(y)); }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __nv_bfloat162(__nv_bfloat16(v.x), __nv_bfloat16(v.y)); }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return make_float2(kda::widen(v.x), kda::widen(v.y)); }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) { return __nv_bfloat162(low, high); }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return __nv_bfloat162(x, x); }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) { return __nv_bfloat162(low, high); }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162(v.x, v.x); }
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162(v.y, v.y); }
inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.x, b.x); }
inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.y, b.y); }
inline __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 v) { return __nv_bfloat162(v.y, v.x); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline short __bfloat16_as_short(__nv_bfloat16 x) { return short(x.bits); }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16_raw{bits}; }
inline __nv_bfloat16 __short_as_bfloat16(short bits) { return __nv_bfloat16_raw{static_cast<unsigned short>(bits)}; }
inline __nv_bfloat16 __int2bfloat16_rn(int x) { return __double2bfloat16(double(x)); }
inline __nv_bfloat16 __uint2bfloat16_rn(unsigned x) { return __double2bfloat16(double(x)); }
inline int __bfloat162int_rn(__nv_bfloat16 x) { return __float2int_rn(kda::widen(x)); }
inline int __bfloat162int_rz(__nv_bfloat16 x) { return __float2int_rz(kda::widen(x)); }
inline unsigned __bfloat162uint_rn(__nv_bfloat16 x) { return __float2uint_rn(kda::widen(x)); }

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#define CUDART_INF_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7f80))
#define CUDART_NAN_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7fff))
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0000))
#define CUDART_ONE_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x3f80))
