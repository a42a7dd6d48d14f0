#error KDA_NOT_POSSIBLE: wmma (mma.h)
