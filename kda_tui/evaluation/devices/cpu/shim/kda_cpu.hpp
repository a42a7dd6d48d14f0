// CUDA C++ for the host: read before every candidate. No header of NVIDIA's is needed.
#pragma once
#define KDA_CPU 1
#include "kda/language.hpp"
#include "kda/vector.hpp"
#include "kda/math.hpp"
#include "kda/memory.hpp"
#include "kda/atomic.hpp"
#include "kda/warp.hpp"
#include "kda/launch.hpp"
