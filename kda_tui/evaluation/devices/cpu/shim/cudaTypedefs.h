#error KDA_NOT_POSSIBLE: TMA (cudaTypedefs.h)
