#error KDA_NOT_POSSIBLE: mbarrier (cuda_awbarrier.h)
