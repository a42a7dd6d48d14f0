// CUDA's vector types with CUDA's alignment, and their make_ functions.
#pragma once
#include "abi.hpp"

#define KDA_VECTOR(name, type, align2, align4)                                                              \
    struct name##1 {                                                                                        \
        type x;                                                                                             \
    };                                                                                                      \
    struct alignas(align2) name##2 {                                                                        \
        type x, y;                                                                                          \
    };                                                                                                      \
    KDA_VECTOR3(name, type)                                                                                 \
    struct alignas(align4) name##4 {                                                                        \
        type x, y, z, w;                                                                                    \
    };                                                                                                      \
    constexpr name##1 make_##name##1(type x) { return name##1{x}; }                                         \
    constexpr name##2 make_##name##2(type x, type y) { return name##2{x, y}; }                              \
    constexpr name##3 make_##name##3(type x, type y, type z) { return name##3{x, y, z}; }                   \
    constexpr name##4 make_##name##4(type x, type y, type z, type w) { return name##4{x, y, z, w}; }

#define KDA_VECTOR3(name, type) \
    struct name##3 {            \
        type x, y, z;           \
    };

KDA_VECTOR(char, signed char, 2, 4)
KDA_VECTOR(uchar, unsigned char, 2, 4)
KDA_VECTOR(short, short, 4, 8)
KDA_VECTOR(ushort, unsigned short, 4, 8)
KDA_VECTOR(int, int, 8, 16)
#undef KDA_VECTOR3
#define KDA_VECTOR3(name, type)  // uint3 is in abi.hpp
KDA_VECTOR(uint, unsigned, 8, 16)
#undef KDA_VECTOR3
#define KDA_VECTOR3(name, type) \
    struct name##3 {            \
        type x, y, z;           \
    };
KDA_VECTOR(long, long, 16, 16)
KDA_VECTOR(ulong, unsigned long, 16, 16)
KDA_VECTOR(longlong, long long, 16, 16)
KDA_VECTOR(ulonglong, unsigned long long, 16, 16)
KDA_VECTOR(float, float, 8, 16)
KDA_VECTOR(double, double, 16, 16)
#undef KDA_VECTOR
#undef KDA_VECTOR3
