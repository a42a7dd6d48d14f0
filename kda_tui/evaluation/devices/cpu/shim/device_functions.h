// device_functions.h: its device side is part of every candidate.
#pragma once
