"""The judge's arrays on the GPU: CuPy in PyCUDA's primary context, with the hot loops in own kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import Array, key_of, random_stream
from kda_tui.evaluation.compare import TileSums, tile_sums
from kda_tui.evaluation.devices.cuda.clock import Supervisor
from kda_tui.evaluation.dtypes import decode
from kda_tui.record.contract import Check

CACHE_SHARE = 0.2  # of the device's memory: cases that may be kept
PART = 1 << 14  # elements of a tile that one block sums
_KINDS = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 3}
_MASK = (1 << 64) - 1


def cupy_or_reason() -> tuple[Any, str]:
    """The cupy module, or None and why not."""
    try:
        import cupy
    except ImportError as error:
        return None, f"CuPy cannot be imported ({error})"
    return cupy, ""


def _address(array: Any) -> int:
    return int(array.data.ptr)


class DeviceStream:
    """Counter-based random numbers made on the device; ``host`` is numpy's generator of the same words."""

    def __init__(self, arrays: DeviceArrays, words: tuple[str, ...]) -> None:
        self._arrays = arrays
        self._key = key_of(*words) & _MASK
        self._words = words

    @property
    def host(self) -> np.random.Generator:
        return random_stream(*self._words)

    def _next(self) -> ctypes.c_uint64:
        self._key = (self._key + 0x9E3779B97F4A7C15) & _MASK
        return ctypes.c_uint64(self._key)

    def standard_normal(self, shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
        out: Array = self._arrays.xp.empty(shape, dtype)
        single = ctypes.c_uint32(np.dtype(dtype) == np.float32)
        self._arrays.launch("normal", out, ctypes.c_uint64(out.size), self._next(), single)
        return out

    def random(self, shape: tuple[int, ...]) -> Array:
        out: Array = self._arrays.xp.empty(shape, np.float64)
        self._arrays.launch("uniform", out, ctypes.c_uint64(out.size), self._next())
        return out

    def integers(self, low: int, high: int, shape: tuple[int, ...], endpoint: bool = False) -> Array:
        out: Array = self._arrays.xp.empty(shape, np.int64)
        span = ctypes.c_uint64(high - low + (1 if endpoint else 0))
        size = ctypes.c_uint64(out.size)
        self._arrays.launch("integers", out, size, self._next(), ctypes.c_int64(low), span)
        return out


class DeviceArrays:
    """CuPy arrays; every kernel goes to the default stream, in order with CuPy's own."""

    name = "cupy"

    def __init__(self, cupy: Any, supervisor: Supervisor, ordinal: int) -> None:
        self.xp: Any = cupy
        self._supervisor = supervisor
        self._ordinal = ordinal
        cupy.cuda.Device(ordinal).use()
        cupy.get_default_memory_pool().set_limit(fraction=0.6)
        self.cache_bytes = int(CACHE_SHARE * cupy.cuda.Device(ordinal).mem_info[1])
        tile_sums.register(cupy.ndarray, self.tile_sums)

    def launch(self, name: str, *args: Any, **shape: int) -> None:
        """One of the supervisor's kernels; an array argument passes its address."""
        packed = [ctypes.c_uint64(_address(a)) if isinstance(a, self.xp.ndarray) else a for a in args]
        self._supervisor.launch(name, *packed, **shape)

    def view(self, at: int, nbytes: int, owner: Any) -> Array:
        """Device memory of another process, mapped at ``at``, as bytes."""
        cupy = self.xp
        memory = cupy.cuda.UnownedMemory(at, max(nbytes, 1), owner, self._ordinal)
        found: Array = cupy.ndarray((nbytes,), np.uint8, cupy.cuda.MemoryPointer(memory, 0))
        return found

    def stream(self, *words: str) -> DeviceStream:
        return DeviceStream(self, words)

    def random_bytes(self, nbytes: int, *words: str) -> NDArray[np.uint8]:
        out: NDArray[np.uint8] = self.xp.empty(nbytes, np.uint8)
        seed = ctypes.c_uint64(key_of(*words) & _MASK)
        self.launch("poison", out, ctypes.c_uint64(nbytes), seed, ctypes.c_uint32(0))
        return out

    def own(self, values: Any) -> Array:
        if isinstance(values, self.xp.ndarray):
            return values  # type: ignore[no-any-return]
        if hasattr(values, "detach"):  # torch
            tensor = values.detach().contiguous()
            found: Array = self.xp.from_dlpack(tensor) if tensor.is_cuda else self.xp.asarray(tensor.numpy())
            return found
        moved: Array = self.xp.asarray(values)
        return moved

    def equal(self, pairs: Sequence[tuple[Array, Array]]) -> Callable[[], bool]:
        """One launch over all pairs; a 2-d array (guard bands) is compared row by row."""
        rows: list[tuple[int, int, int]] = []
        for a, b in pairs:
            if a.ndim == 1:
                rows.append((_address(a), _address(b), a.nbytes))
            else:
                rows += [(_address(x), _address(y), x.nbytes) for x, y in zip(a, b, strict=True)]
        if not rows:
            return lambda: True
        table = self.xp.asarray(np.array(rows, np.uint64))
        found = self.xp.zeros(1, np.uint64)
        self._supervisor.launch(
            "equal",
            ctypes.c_uint64(_address(table)),
            ctypes.c_uint64(_address(found)),
            blocks=min(264, max(1, -(-max(n for _, _, n in rows) // 4096))),
            rows=len(rows),
        )
        return lambda: int(found[0].item()) == 0

    def tile_sums(
        self, got: Array, ref: Array, valid: Array | None, per_tile: int, dtype: str, check: Check
    ) -> Callable[[], TileSums]:
        """As ``compare.tile_sums``, in one pass over the output; nothing waits for it here."""
        if np.iscomplexobj(ref) or dtype.startswith("complex"):
            masks = None if valid is None else valid.get()  # type: ignore[attr-defined]
            return tile_sums.dispatch(object)(got.get(), ref.get(), masks, per_tile, dtype, check)  # type: ignore[attr-defined]
        xp = self.xp
        kind = _KINDS.get(dtype, 0)
        have = xp.ascontiguousarray(got if dtype in _KINDS else decode(got, dtype).astype(np.float64))
        want = xp.ascontiguousarray(ref)
        keep = None if valid is None else xp.ascontiguousarray(valid)
        tiles, parts = -(-want.size // per_tile), -(-per_tile // PART)
        sums = xp.zeros(3 * tiles + 2, np.float64)
        at = int(sums.data.ptr)
        self.launch(
            "tile_sums", have, ctypes.c_uint32(kind), want,
            ctypes.c_uint64(0) if keep is None else keep,
            ctypes.c_uint64(want.size), ctypes.c_uint64(per_tile), ctypes.c_uint64(parts),
            ctypes.c_uint32(check.nan == "match"), ctypes.c_uint32(check.inf == "match"),
            *(ctypes.c_uint64(at + 8 * tiles * i) for i in range(4)),
            blocks=min(tiles * parts, 1 << 20),
        )  # fmt: skip

        def arrived() -> TileSums:
            found = sums.get()
            wrong = int(found[3 * tiles + 1 :].view(np.uint64)[0])
            columns = found[: 3 * tiles].reshape(3, tiles)
            return TileSums(columns[0], columns[1], columns[2], float(found[3 * tiles]), wrong)

        return arrived
