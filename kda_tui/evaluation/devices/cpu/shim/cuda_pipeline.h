#error KDA_NOT_POSSIBLE: cp.async (cuda_pipeline.h)
