"""How collecting a profile can end, and what helps."""

from __future__ import annotations

import re

REMEDIES: dict[str, str] = {
    "ok": "",
    "no_gpu": "profile on a machine with an NVIDIA GPU; kda profile --read FILE works anywhere",
    "no_ncu": "install Nsight Compute, or set [profile] ncu in kda.toml",
    "no_permission": (
        "counters are reserved for administrators: 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in "
        "/etc/modprobe.d and a reboot, or --cap-add=SYS_ADMIN for a container"
    ),
    "counters_held": "another profiler or monitor holds the counters (nsys, DCGM): stop it and try again",
    "no_kernel": "no launch of the candidate's kernels was seen: look at the log beside the report",
    "wrong_kernel": "another launch was profiled than was judged: profile it again",
    "replay_failed": "the kernel cannot be replayed (it waits for another launch): profile a variant that can",
    "timeout": "some 40 replay passes took too long: choose a smaller workload (kda profile CAND --workload W)",
    "launch_failed": "the candidate does not run: see its verdict",
}

_SIGNS: tuple[tuple[str, str], ...] = (
    (r"ERR_NVGPUCTRPERM|does not have permission to access NVIDIA GPU Performance Counters", "no_permission"),
    (r"already (?:in use|being used)|another (?:profiler|tool|process)|LibraryNotLoaded|ResourceUnavailable", "counters_held"),
    (r"No kernels were profiled", "no_kernel"),
    (r"[Rr]eplay (?:failed|was aborted)|Failed to (?:save|restore) memory", "replay_failed"),
)  # fmt: skip


def state_of(log: str) -> str:
    """The state that ncu's own words mean, or "" when they say nothing known."""
    return next((state for pattern, state in _SIGNS if re.search(pattern, log)), "")
