"""The judge: compile, launch, check, time, compare. It knows no agent and promotes nothing."""
