// Rounding between float and the two 16-bit formats, bit exact with the hardware's.
#pragma once
#include "language.hpp"

namespace kda {

#if defined(__F16C__) && !defined(__clang__)
typedef float Float4 __attribute__((vector_size(16)));
typedef short Short8 __attribute__((vector_size(16)));
inline float half_to_float(uint16_t bits) {
    return __builtin_ia32_vcvtph2ps(Short8{short(bits)})[0];
}
inline uint16_t float_to_half(float x) {
    return uint16_t(__builtin_ia32_vcvtps2ph(Float4{x}, 0)[0]);
}
#elif defined(__F16C__)
inline float half_to_float(uint16_t bits) { return float(bits_as<_Float16>(bits)); }
inline uint16_t float_to_half(float x) { return bits_as<uint16_t>(_Float16(x)); }
#else
inline float half_to_float(uint16_t bits) {
    const uint32_t sign = uint32_t(bits & 0x8000) << 16;
    const uint32_t rest = bits & 0x7fff;
    if (rest >= 0x7c00) {  // infinity, or NaN made quiet
        return bits_as<float>(sign | 0x7f800000u | rest << 13 | (rest > 0x7c00 ? 0x400000u : 0u));
    }
    if (rest >= 0x0400) return bits_as<float>(sign | ((rest << 13) + 0x38000000u));
    const float tiny = float(int(rest)) * 5.9604644775390625e-8f;  // subnormal: rest * 2^-24
    return bits_as<float>(sign | bits_as<uint32_t>(tiny));
}
inline uint16_t float_to_half(float x) {
    const uint32_t bits = bits_as<uint32_t>(x);
    const uint32_t rest = bits & 0x7fffffffu;
    const uint16_t sign = uint16_t(bits >> 16 & 0x8000);
    if (rest > 0x7f800000u) return uint16_t(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x477ff000u) return uint16_t(sign | 0x7c00);  // 65520 and above
    if (rest < 0x38800000u) {  // below 2^-14: adding 0.5 leaves the rounded subnormal in the low bits
        const float shifted = bits_as<float>(rest) + 0.5f;
        return uint16_t(sign | uint16_t(bits_as<uint32_t>(shifted) - 0x3f000000u));
    }
    return uint16_t(sign | uint16_t((rest + 0xfffu + (rest >> 13 & 1) - 0x38000000u) >> 13));
}
#endif

inline float bfloat_to_float(uint16_t bits) { return bits_as<float>(uint32_t(bits) << 16); }
inline uint16_t float_to_bfloat(float x) {
    const uint32_t bits = bits_as<uint32_t>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;  // CUDA's one NaN
    return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// To float by rounding to odd: a second rounding to a narrower format is then as if there were one.
inline float to_odd_float(double x) {
    float nearest = float(x);
    const uint32_t bits = bits_as<uint32_t>(nearest);
    if (double(nearest) == x || (bits & 0x7f800000u) == 0x7f800000u || bits & 1) return nearest;
    const bool away = (double(nearest) > x) == (x > 0);
    return bits_as<float>(away ? bits - 1 : bits + 1);
}

template <class T>
T narrow(float x);

}  // namespace kda
