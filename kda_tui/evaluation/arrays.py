"""Where the judge's own arrays live: NumPy in host memory, or CuPy on the GPU that is judged on.

Everything that judges (inputs, oracle, comparison) is written once, in functions that NumPy and CuPy
share; what makes new arrays goes through an ``Arrays``. The two never mix: a host array beside a device
array is an error, and no bulk data travels to the host.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

Array = NDArray[Any]

HOST_CACHE_BYTES = 512 << 20


def random_stream(*words: str) -> Generator:
    """A Philox generator keyed by a hash of ``words``."""
    return Generator(Philox(key=key_of(*words)))


def key_of(*words: str) -> int:
    """128 bits that depend on all of ``words``."""
    digest = hashlib.sha256("\0".join(words).encode()).digest()
    return int.from_bytes(digest[:16], "little")


class Arrays(Protocol):
    """A kind of arrays. The two random sources are keyed by words: equal words, equal numbers, always."""

    name: str  # numpy | cupy
    xp: Any  # the module
    cache_bytes: int  # how many bytes of cases may be kept

    def stream(self, *words: str) -> Any:
        """Random numbers: standard_normal, random and integers of numpy's Generator give own arrays."""
        ...

    def random_bytes(self, nbytes: int, *words: str) -> Array: ...

    def own(self, values: Any) -> Array:
        """``values`` (of NumPy, CuPy or torch) as an array of this kind; no copy where none is needed."""
        ...

    def equal(self, pairs: Sequence[tuple[Array, Array]]) -> Callable[[], bool]:
        """Whether the two of every pair of byte arrays hold the same bytes now; calling the result waits for it."""
        ...


class HostArrays:
    """NumPy."""

    name = "numpy"
    cache_bytes = HOST_CACHE_BYTES

    def __init__(self) -> None:
        self.xp: Any = np

    def stream(self, *words: str) -> Generator:
        return random_stream(*words)

    def random_bytes(self, nbytes: int, *words: str) -> NDArray[np.uint8]:
        drawn = random_stream(*words).integers(0, 2**64, -(-nbytes // 8), dtype=np.uint64)
        return drawn.view(np.uint8)[:nbytes]

    def own(self, values: Any) -> Array:
        return np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else to_host(values))

    def equal(self, pairs: Sequence[tuple[Array, Array]]) -> Callable[[], bool]:
        same = all(np.array_equal(a, b) for a, b in pairs)
        return lambda: same


HOST = HostArrays()


def on_host(array: Any) -> bool:
    return isinstance(array, np.ndarray | np.generic)


def namespace(array: Any) -> Any:
    """The module with numpy's functions for arrays of this kind: numpy itself, or cupy."""
    return np if on_host(array) else sys.modules[type(array).__module__.partition(".")[0]]


def to_host(array: Any) -> Any:
    """A NumPy array of what an array of any kind holds; anything else as it is."""
    return array.get() if hasattr(array, "__cuda_array_interface__") and hasattr(array, "get") else array


def host_draws(rng: Any) -> Generator:
    """NumPy's generator behind a stream of any kind, for distributions that only NumPy has."""
    found: Generator = getattr(rng, "host", rng)
    return found
