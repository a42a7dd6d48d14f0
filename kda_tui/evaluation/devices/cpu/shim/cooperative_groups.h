#error KDA_NOT_POSSIBLE: cooperative groups (cooperative_groups.h)
