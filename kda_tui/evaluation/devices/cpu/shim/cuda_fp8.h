#error KDA_NOT_POSSIBLE: fp8 (cuda_fp8.h)
