"""What is known of this machine as a device: name, caches, and a measured bound on its bandwidth."""

from __future__ import annotations

import contextlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from kda_tui.evaluation.devices.cpu.build import MAX_DYNAMIC_SHARED
from kda_tui.evaluation.devices.interface import DeviceFacts

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_FLUSH_MOST = 32 << 20


def default_threads() -> int:
    """Cores this process may use, at most four."""
    return max(1, min(len(os.sched_getaffinity(0)), 4))


def processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return "unknown x86-64 processor"


def cache_bytes(level: int) -> int:
    """One core's share of the data cache of ``level``; 0 where the system does not say."""
    for index in sorted(_CACHES.glob("index*")):
        with contextlib.suppress(OSError, ValueError):
            kind = (index / "type").read_text().strip()
            if kind == "Instruction" or int((index / "level").read_text()) != level:
                continue
            size = (index / "size").read_text().strip()
            scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(size[-1:], 1)
            return int(size.rstrip("KMG")) * scale // _sharers((index / "shared_cpu_list").read_text())
    return 0


def _sharers(cpus: str) -> int:
    """How many processors a list such as "0-3,8" names."""
    count = 0
    for part in cpus.strip().split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return max(1, count)


def flush_bytes(threads: int) -> int:
    """What to touch to empty the caches: twice their share, at most 32 MiB."""
    share = cache_bytes(2) + cache_bytes(3) or 4 << 20
    return min(_FLUSH_MOST, 2 * share * threads)


def device_facts(threads: int, cache: Path) -> DeviceFacts:
    """Facts of this machine with ``threads`` workers in the place of multiprocessors."""
    name = processor()
    return DeviceFacts(
        name=name,
        kind="cpu",
        sm_count=threads,
        l2_bytes=cache_bytes(2),
        max_shared_bytes=MAX_DYNAMIC_SHARED,
        peak_bandwidth=_bandwidth(name, threads, cache / "bandwidth.json"),
    )


def _bandwidth(name: str, threads: int, path: Path) -> float:
    key = f"{name} x {threads}"
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        return float(json.loads(path.read_bytes())[key])
    value = measure_bandwidth(threads)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps({key: value}))
        part.replace(path)
    return value


def measure_bandwidth(threads: int) -> float:
    """Bytes read and written per second by copies that fit in the caches: what no kernel can exceed by much.

    Memory itself is slower, but a small workload may stay in a cache that cannot be emptied, and a bound
    that an honest kernel breaks would call it impossible.
    """
    size, copies = 64 << 10, 200

    def copy(_: int) -> float:
        source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
        best = float("inf")
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(copies):
                np.copyto(target, source)
            best = min(best, time.perf_counter() - begin)
        return 2 * size * copies / best

    with ThreadPoolExecutor(threads) as pool:
        return max(pool.map(copy, range(threads))) * threads
