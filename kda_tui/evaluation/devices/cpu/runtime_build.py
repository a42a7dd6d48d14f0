"""The runtime library: compiled once per compiler, kept in the cache."""

from __future__ import annotations

import functools
from pathlib import Path

from kda_tui.evaluation.devices.cpu.compiler import Compiler, run_limited
from kda_tui.evaluation.devices.cpu.store import Store, sha256
from kda_tui.text import UserError

HERE = Path(__file__).parent
SHIM = HERE / "shim"
RUNTIME = HERE / "runtime"


@functools.cache
def shim_hash() -> str:
    """Over every file of the shim and the runtime."""
    files = sorted(p for root in (SHIM, RUNTIME) for p in root.rglob("*") if p.is_file())
    return sha256(b"".join(f"{p.relative_to(HERE)}\0".encode() + p.read_bytes() + b"\0" for p in files))


def runtime_library(compiler: Compiler, cache: Path) -> Path:
    """The path of the runtime for ``compiler``; compiles it if the cache has none. Raises UserError."""
    store = Store(cache)
    options = (*compiler.options(), *compiler.library_options())
    key = sha256("\0".join(["runtime", shim_hash(), compiler.title, *options]).encode())
    found = store.get(key)
    if found is not None:
        return found.path
    with store.workplace() as folder:
        sources = [str(path) for path in sorted(RUNTIME.glob("*.cpp"))]
        run = run_limited([*compiler.command, *options, *sources, "-o", "runtime.so"], folder, 180.0)
        if run.ended != "ok":
            first = next((line for line in run.log.splitlines() if "error" in line), run.log.strip()[:300])
            raise UserError(f"{compiler.title} could not compile the cpu runtime ({run.ended}): {first}")
        return store.put(key, (folder / "runtime.so").read_bytes(), {}).path
