// CUDA's mathematics: what <cmath> lacks, the fast forms (here as exact as the slow ones), integer tricks.
#pragma once
#include <math.h>

#include <cmath>

#include "language.hpp"

// CUDA compares mixed types too; std::min does not.
#define KDA_MIN_MAX(type, left, right)                                                   \
    constexpr type min(left a, right b) {                                                \
        return static_cast<type>(b) < static_cast<type>(a) ? static_cast<type>(b) : static_cast<type>(a); \
    }                                                                                    \
    constexpr type max(left a, right b) {                                                \
        return static_cast<type>(a) < static_cast<type>(b) ? static_cast<type>(b) : static_cast<type>(a); \
    }
#define KDA_MIN_MAX_MIXED(type, other) \
    KDA_MIN_MAX(type, type, type)      \
    KDA_MIN_MAX(type, other, type)     \
    KDA_MIN_MAX(type, type, other)
KDA_MIN_MAX(int, int, int)
KDA_MIN_MAX(long, long, long)
KDA_MIN_MAX(long long, long long, long long)
KDA_MIN_MAX_MIXED(unsigned, int)
KDA_MIN_MAX_MIXED(unsigned long, long)
KDA_MIN_MAX_MIXED(unsigned long long, long long)
#undef KDA_MIN_MAX_MIXED
#undef KDA_MIN_MAX
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(double(a), b); }
inline double max(float a, double b) { return fmax(double(a), b); }
inline double min(double a, float b) { return fmin(a, double(b)); }
inline double max(double a, float b) { return fmax(a, double(b)); }
inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline float sinpif(float x) { return static_cast<float>(sin(3.14159265358979323846 * fmod(double(x), 2.0))); }
inline float cospif(float x) { return static_cast<float>(cos(3.14159265358979323846 * fmod(double(x), 2.0))); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
inline float exp10f(float x) { return static_cast<float>(pow(10.0, double(x))); }
inline double exp10(double x) { return pow(10.0, x); }
inline float fdividef(float a, float b) { return a / b; }
inline float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
inline float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
inline void sincosf(float x, float* s, float* c) {
    *s = sinf(x);
    *c = cosf(x);
}
inline void sincos(double x, double* s, double* c) {
    *s = sin(x);
    *c = cos(x);
}

inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }  // NaN gives 0

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return sqrt(x); }

inline int __float_as_int(float x) { return kda::bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return kda::bits_as<unsigned>(x); }
inline float __int_as_float(int x) { return kda::bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return kda::bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return kda::bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return kda::bits_as<double>(x); }
inline int __double2hiint(double x) { return int(kda::bits_as<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return int(kda::bits_as<uint64_t>(x)); }
inline double __hiloint2double(int high, int low) {
    return kda::bits_as<double>(uint64_t(unsigned(high)) << 32 | unsigned(low));
}

namespace kda {

// A GPU's conversion saturates and takes NaN to 0; the C++ cast is undefined there.
template <class To>
inline To saturate(double x) {
    constexpr bool is_signed = To(-1) < To(0);
    constexpr int bits = int(sizeof(To)) * 8 - (is_signed ? 1 : 0);
    constexpr To highest = is_signed ? To(~(uint64_t(1) << (bits & 63))) : To(~uint64_t(0));
    constexpr To lowest = is_signed ? To(-highest - 1) : To(0);
    if (x != x) return 0;
    if (x >= ldexp(1.0, bits)) return highest;
    if (x < double(lowest)) return lowest;
    return To(x);
}

}  // namespace kda

#define KDA_TO_INTEGER(letter, type, name)                                               \
    inline type __##letter##2##name##_rn(type_in x) { return kda::saturate<type>(nearbyint(double(x))); } \
    inline type __##letter##2##name##_rz(type_in x) { return kda::saturate<type>(trunc(double(x))); }     \
    inline type __##letter##2##name##_rd(type_in x) { return kda::saturate<type>(floor(double(x))); }     \
    inline type __##letter##2##name##_ru(type_in x) { return kda::saturate<type>(ceil(double(x))); }
#define type_in float
KDA_TO_INTEGER(float, int, int)
KDA_TO_INTEGER(float, unsigned, uint)
KDA_TO_INTEGER(float, long long, ll)
KDA_TO_INTEGER(float, unsigned long long, ull)
#undef type_in
#define type_in double
KDA_TO_INTEGER(double, int, int)
KDA_TO_INTEGER(double, unsigned, uint)
KDA_TO_INTEGER(double, long long, ll)
KDA_TO_INTEGER(double, unsigned long long, ull)
#undef type_in
#undef KDA_TO_INTEGER
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }
inline float __ll2float_rn(long long x) { return float(x); }
inline float __ull2float_rn(unsigned long long x) { return float(x); }
inline double __int2double_rn(int x) { return double(x); }
inline double __uint2double_rn(unsigned x) { return double(x); }
inline double __ll2double_rn(long long x) { return double(x); }
inline float __double2float_rn(double x) { return float(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
    return uint64_t(__brev(unsigned(x))) << 32 | __brev(unsigned(x >> 32));
}
inline int __mulhi(int a, int b) { return int(int64_t(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline long long __mul64hi(long long a, long long b) {
    return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __mul24(int a, int b) { return int(unsigned(a << 8 >> 8) * unsigned(b << 8 >> 8)); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline unsigned __sad(int a, int b, unsigned c) { return (a > b ? unsigned(a) - unsigned(b) : unsigned(b) - unsigned(a)) + c; }
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
inline int __hadd(int a, int b) { return int((int64_t(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return int((int64_t(a) + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return unsigned((uint64_t(a) + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) { return unsigned((uint64_t(a) + b + 1) >> 1); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return unsigned((uint64_t(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return unsigned((uint64_t(high) << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const uint64_t bytes = uint64_t(b) << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned pick = selector >> (4 * i) & 15;
        unsigned byte = unsigned(bytes >> (8 * (pick & 7))) & 0xff;
        if (pick & 8) byte = byte & 0x80 ? 0xff : 0;  // replicate the sign
        result |= byte << (8 * i);
    }
    return result;
}
inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 32; i += 8) c += int(int8_t(a >> i)) * int(int8_t(b >> i));
    return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
    return c;
}
