// vector_types.h: its device side is part of every candidate.
#pragma once
