"""The vocabulary of lint.py."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


# Headers that the cpu device has, or has an answer for.
INCLUDES = words(
    """
    cuda_runtime.h device_launch_parameters.h vector_types.h vector_functions.h device_functions.h
    math_constants.h cuda_fp16.h cuda_bf16.h cuda_fp16.hpp cuda_bf16.hpp mma.h cuda_fp8.h cuda_fp4.h
    cooperative_groups.h cooperative_groups/reduce.h cuda_pipeline.h cuda_pipeline_primitives.h
    cuda_awbarrier.h cuda/pipeline cuda/barrier cuda/ptx cuda.h cudaTypedefs.h stdint.h cstdint stddef.h
    cstddef math.h cmath float.h cfloat limits.h climits limits type_traits assert.h cassert stdio.h
    cstdio
    """
)

DIRECTIVES = words(
    """
    if ifdef ifndef elif elifdef elifndef else endif error warning
    """
)

PLAIN_ATTRIBUTES = words(
    """
    aligned packed noinline always_inline unused used noreturn may_alias vector_size pure const hot cold
    flatten maybe_unused fallthrough alignof sizeof int float double char short long unsigned
    """
)

# Names too plain to be refused as text (read, write, send, time) are left to the compiled program's symbols.
HOST_CALLS = words(
    """
    main system popen fopen freopen fdopen openat ioctl fcntl dlopen dlsym dlmopen fork vfork clone3 execv
    execve execvp execl execlp posix_spawn syscall mmap munmap mprotect mremap shm_open memfd_create ptrace
    process_vm_writev socket pthread_create sigaction abort exit _exit quick_exit atexit setjmp longjmp
    usleep nanosleep clock_gettime gettimeofday getenv setenv putenv unlink calloc realloc posix_memalign
    aligned_alloc
    """
)

WARNED_WORDS = {
    "createpolicy": "a cache policy can slow whoever runs next",
    "evict_last": "keeps lines in L2 that the rival then cannot use",
    "evict_first": "a cache policy; harmless, but it is seldom the reason for a gain",
    "applypriority": "changes priorities in L2",
    "__nanosleep": "a kernel that sleeps",
    "globaltimer": "a kernel that reads the clock",
    "clock64": "a kernel that reads the clock",
}

FAST_MATH = words(
    """
    __expf __exp10f __logf __log2f __log10f __powf __sinf __cosf __tanf __sincosf __fdividef __tanhf
    __frsqrt_rn
    """
)

NARROW_WORDS = words(
    """
    half2 __half __half2 nv_bfloat16 nv_bfloat162 __nv_bfloat16 __nv_bfloat162 __float2half
    __float2half_rn __float2bfloat16 __float2bfloat16_rn __float_to_tf32 precision_tf32
    """
)
