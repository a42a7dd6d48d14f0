#pragma once
#include "kda/bfloat16.hpp"
