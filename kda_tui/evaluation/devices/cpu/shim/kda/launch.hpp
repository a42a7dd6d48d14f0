// The table of kernels that a compiled candidate offers the runtime.
#pragma once
#include "language.hpp"

struct __half;
struct __nv_bfloat16;

namespace kda {

template <class T>
struct KindOf {
    static constexpr char value = __is_enum(T) ? 'i' : 's';
};
template <class T>
struct KindOf<T*> {
    static constexpr char value = 'p';
};
#define KDA_KIND(letter, ...)                 \
    template <>                               \
    struct KindOf<__VA_ARGS__> {              \
        static constexpr char value = letter; \
    };
KDA_KIND('u', bool)
KDA_KIND('i', char)
KDA_KIND('i', signed char)
KDA_KIND('u', unsigned char)
KDA_KIND('i', short)
KDA_KIND('u', unsigned short)
KDA_KIND('i', int)
KDA_KIND('u', unsigned)
KDA_KIND('i', long)
KDA_KIND('u', unsigned long)
KDA_KIND('i', long long)
KDA_KIND('u', unsigned long long)
KDA_KIND('f', float)
KDA_KIND('f', double)
KDA_KIND('h', __half)
KDA_KIND('b', __nv_bfloat16)
#undef KDA_KIND

template <class T>
struct Plain {
    using type = T;
};
template <class T>
struct Plain<const T> {
    using type = T;
};
template <class T>
struct Plain<T&> {
    static_assert(sizeof(T) == 0, "a kernel cannot take a parameter by reference");
};
template <class T>
using plain = typename Plain<T>::type;

template <size_t... I>
struct Indices {};
template <size_t N, size_t... I>
struct CountTo : CountTo<N - 1, N - 1, I...> {};
template <size_t... I>
struct CountTo<0, I...> {
    using type = Indices<I...>;
};

template <auto kernel>
struct Entry;
template <class... A, void (*kernel)(A...)>
struct Entry<kernel> {
    static constexpr uint32_t count = sizeof...(A);
    static constexpr Parameter parameters[sizeof...(A) + 1] = {
        {uint32_t(sizeof(plain<A>)), KindOf<plain<A>>::value}..., {0, 0}};
    template <size_t... I>
    static void spread(void** arguments, Indices<I...>) {
        kernel(*static_cast<plain<A>*>(arguments[I])...);
    }
    static void call(void** arguments) { spread(arguments, typename CountTo<sizeof...(A)>::type()); }
};

}  // namespace kda

#define KDA_KERNEL(text, ...)                                                                              \
    {text, &kda::Entry<(&__VA_ARGS__)>::call, kda::Entry<(&__VA_ARGS__)>::count, kda::Entry<(&__VA_ARGS__)>::parameters}
