// device_launch_parameters.h: its device side is part of every candidate.
#pragma once
