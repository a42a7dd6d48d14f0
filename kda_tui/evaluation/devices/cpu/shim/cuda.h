#error KDA_NOT_POSSIBLE: the driver interface and TMA (cuda.h)
