// Loads and stores with cache hints (the hints say nothing here), address spaces.
#pragma once
#include "language.hpp"

#define KDA_LOAD(name)                 \
    template <class T>                 \
    inline T name(const T* address) {  \
        return *address;               \
    }
#define KDA_STORE(name)                                  \
    template <class T>                                   \
    inline void name(T* address, kda::same<T> value) {   \
        *address = value;                                \
    }
KDA_LOAD(__ldg)
KDA_LOAD(__ldcg)
KDA_LOAD(__ldca)
KDA_LOAD(__ldcs)
KDA_LOAD(__ldlu)
KDA_LOAD(__ldcv)
KDA_STORE(__stwb)
KDA_STORE(__stcg)
KDA_STORE(__stcs)
KDA_STORE(__stwt)
#undef KDA_LOAD
#undef KDA_STORE

#define __builtin_assume(condition) static_cast<void>(0)
#define __assume(condition) static_cast<void>(0)
