#error KDA_NOT_POSSIBLE: fp4 (cuda_fp4.h)
