// What __half and __nv_bfloat16 have in common, for one of them at a time: included by half.hpp and
// bfloat16.hpp with KDA_T (the type) and KDA_T2 (its pair). Arithmetic is done in float and rounded once.

#define KDA_OPERATOR(op)                                                                                   \
    inline KDA_T operator op(KDA_T a, KDA_T b) { return kda::narrow<KDA_T>(kda::widen(a) op kda::widen(b)); }         \
    inline KDA_T& operator op##=(KDA_T& a, KDA_T b) { return a = a op b; }                                 \
    inline KDA_T2 operator op(KDA_T2 a, KDA_T2 b) { return KDA_T2(a.x op b.x, a.y op b.y); }               \
    inline KDA_T2& operator op##=(KDA_T2& a, KDA_T2 b) { return a = a op b; }
KDA_OPERATOR(+)
KDA_OPERATOR(-)
KDA_OPERATOR(*)
KDA_OPERATOR(/)
#undef KDA_OPERATOR
inline KDA_T operator-(KDA_T a) { return kda::flip_sign(a); }
inline KDA_T operator+(KDA_T a) { return a; }
inline KDA_T2 operator-(KDA_T2 a) { return KDA_T2(-a.x, -a.y); }
inline KDA_T& operator++(KDA_T& a) { return a += kda::narrow<KDA_T>(1.0f); }
inline KDA_T& operator--(KDA_T& a) { return a -= kda::narrow<KDA_T>(1.0f); }

#define KDA_COMPARE(op, name)                                                                        \
    inline bool operator op(KDA_T a, KDA_T b) { return kda::widen(a) op kda::widen(b); }               \
    inline bool operator op(KDA_T2 a, KDA_T2 b) { return a.x op b.x && a.y op b.y; }                 \
    inline bool __h##name(KDA_T a, KDA_T b) { return a op b; }                                       \
    inline KDA_T2 __h##name##2(KDA_T2 a, KDA_T2 b) {                                                 \
        return KDA_T2(kda::narrow<KDA_T>(a.x op b.x ? 1.0f : 0.0f), kda::narrow<KDA_T>(a.y op b.y ? 1.0f : 0.0f));     \
    }                                                                                                \
    inline bool __hb##name##2(KDA_T2 a, KDA_T2 b) { return a op b; }
KDA_COMPARE(==, eq)
KDA_COMPARE(!=, ne)
KDA_COMPARE(<, lt)
KDA_COMPARE(<=, le)
KDA_COMPARE(>, gt)
KDA_COMPARE(>=, ge)
#undef KDA_COMPARE

#define KDA_BINARY(name, ...)                                                                  \
    inline KDA_T name(KDA_T a, KDA_T b) { return __VA_ARGS__; }                                \
    inline KDA_T2 name##2(KDA_T2 a, KDA_T2 b) { return KDA_T2(name(a.x, b.x), name(a.y, b.y)); }
KDA_BINARY(__hadd, a + b)
KDA_BINARY(__hsub, a - b)
KDA_BINARY(__hmul, a * b)
KDA_BINARY(__hadd_rn, a + b)
KDA_BINARY(__hsub_rn, a - b)
KDA_BINARY(__hmul_rn, a * b)
KDA_BINARY(__hadd_sat, kda::narrow<KDA_T>(__saturatef(kda::widen(a + b))))
KDA_BINARY(__hsub_sat, kda::narrow<KDA_T>(__saturatef(kda::widen(a - b))))
KDA_BINARY(__hmul_sat, kda::narrow<KDA_T>(__saturatef(kda::widen(a * b))))
KDA_BINARY(__hmin, kda::narrow<KDA_T>(fminf(kda::widen(a), kda::widen(b))))
KDA_BINARY(__hmax, kda::narrow<KDA_T>(fmaxf(kda::widen(a), kda::widen(b))))
#undef KDA_BINARY
inline KDA_T __hdiv(KDA_T a, KDA_T b) { return a / b; }
inline KDA_T2 __h2div(KDA_T2 a, KDA_T2 b) { return a / b; }
inline KDA_T __hfma(KDA_T a, KDA_T b, KDA_T c) {
    // Product and sum in double, one rounding at the end.
    return kda::narrow<KDA_T>(kda::to_odd_float(double(kda::widen(a)) * double(kda::widen(b)) + double(kda::widen(c))));
}
inline KDA_T2 __hfma2(KDA_T2 a, KDA_T2 b, KDA_T2 c) { return KDA_T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
inline KDA_T __hfma_relu(KDA_T a, KDA_T b, KDA_T c) { return __hmax(__hfma(a, b, c), kda::narrow<KDA_T>(0.0f)); }
inline KDA_T2 __hfma2_relu(KDA_T2 a, KDA_T2 b, KDA_T2 c) {
    return KDA_T2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));
}
inline KDA_T __hneg(KDA_T a) { return -a; }
inline KDA_T2 __hneg2(KDA_T2 a) { return -a; }
inline KDA_T __habs(KDA_T a) { return kda::clear_sign(a); }
inline KDA_T2 __habs2(KDA_T2 a) { return KDA_T2(__habs(a.x), __habs(a.y)); }
inline bool __hisnan(KDA_T a) { return a != a; }
inline int __hisinf(KDA_T a) {
    const float x = kda::widen(a);
    return x == INFINITY ? 1 : x == -INFINITY ? -1 : 0;
}

#define KDA_UNARY(name, function)                                               \
    inline KDA_T h##name(KDA_T a) { return kda::narrow<KDA_T>(function(kda::widen(a))); } \
    inline KDA_T2 h2##name(KDA_T2 a) { return KDA_T2(h##name(a.x), h##name(a.y)); }
KDA_UNARY(exp, expf)
KDA_UNARY(exp2, exp2f)
KDA_UNARY(exp10, exp10f)
KDA_UNARY(log, logf)
KDA_UNARY(log2, log2f)
KDA_UNARY(log10, log10f)
KDA_UNARY(sqrt, sqrtf)
KDA_UNARY(rsqrt, rsqrtf)
KDA_UNARY(rcp, 1.0f /)
KDA_UNARY(sin, sinf)
KDA_UNARY(cos, cosf)
KDA_UNARY(tanh, tanhf)
KDA_UNARY(floor, floorf)
KDA_UNARY(ceil, ceilf)
KDA_UNARY(trunc, truncf)
KDA_UNARY(rint, nearbyintf)
#undef KDA_UNARY

inline float __low2float(KDA_T2 a) { return kda::widen(a.x); }
inline float __high2float(KDA_T2 a) { return kda::widen(a.y); }

inline KDA_T atomicAdd(KDA_T* address, KDA_T value) {
    return kda::atomic_update(address, [=](KDA_T old) { return old + value; });
}
inline KDA_T2 atomicAdd(KDA_T2* address, KDA_T2 value) {
    return kda::atomic_update(address, [=](KDA_T2 old) { return old + value; });
}
