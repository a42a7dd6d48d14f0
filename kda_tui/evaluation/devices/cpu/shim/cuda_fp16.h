#pragma once
#include "kda/half.hpp"
