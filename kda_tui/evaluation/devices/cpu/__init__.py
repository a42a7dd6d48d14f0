"""The cpu device: the same .cu compiled for the host, a fiber per CUDA thread, in a child process."""
