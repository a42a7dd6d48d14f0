"""From one ``.cu`` to one cubin: NVRTC where it is installed, nvcc otherwise.

Both compile from a path that stays, so that profilers find the source again, with ``-lineinfo`` and
ptxas' report. Neither raises for the candidate's mistakes: the text comes back.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

# arch-specific features (wgmma, setmaxnreg, tcgen05) need the "a" target where the device has one
_ARCH_SPECIFIC = frozenset({"90", "100", "101", "103", "110", "120", "121"})


# Standard headers that NVRTC lacks and CUDA sources include: what nvcc gives without being asked.
_PRELUDE = "kda_prelude.h"
_HEADERS: dict[str, str] = {
    _PRELUDE: (
        "#ifndef INFINITY\n#define INFINITY (__int_as_float(0x7f800000))\n#endif\n"
        "#ifndef NAN\n#define NAN (__int_as_float(0x7fffffff))\n#endif\n"
    ),
    **dict.fromkeys(("stdint.h", "cstdint"), "#include <cuda/std/cstdint>\n"),
    **dict.fromkeys(("stdlib.h", "stddef.h", "cstddef", "math.h", "cmath", "cuda_runtime.h"), ""),
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """``cubin`` empty: ``log`` says why. ``names`` maps each asked kernel to its symbol."""

    cubin: bytes
    log: str
    names: dict[str, str] = field(default_factory=dict)


def device_arch(cc: str) -> str:
    """``"9.0"`` is ``"sm_90a"``, ``"8.0"`` is ``"sm_80"``."""
    digits = cc.replace(".", "")
    return f"sm_{digits}{'a' if digits in _ARCH_SPECIFIC else ''}"


@cache
def nvrtc_version() -> str:
    """``"13.0"`` of the installed NVRTC, or "" where there is none."""
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        return ""
    try:
        error, major, minor = nvrtc.nvrtcVersion()
    except RuntimeError:  # the library behind the bindings is missing
        return ""
    return f"{major}.{minor}" if int(error) == 0 else ""


@cache
def nvcc_path() -> str:
    """An absolute nvcc, or ""."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    for place in (
        (Path(home) / "bin" / "nvcc") if home else None,
        shutil.which("nvcc"),
        "/usr/local/cuda/bin/nvcc",
    ):
        if place and Path(place).is_file():
            return str(place)
    return ""


@cache
def nvcc_version() -> str:
    if not nvcc_path():
        return ""
    try:
        done = subprocess.run(
            [nvcc_path(), "--version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"V(\d+\.\d+\.\d+)", done.stdout)
    return found[1] if found else ""


@cache
def toolkit_includes() -> tuple[str, ...]:
    """Folders with cuda_fp16.h and libcu++: the toolkit's, or those of the NVIDIA wheels."""
    candidates: list[Path] = []
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            candidates.append(Path(os.environ[variable]) / "include")
    if nvcc_path():
        root = _nvcc_root(nvcc_path())
        candidates += [root / "include", *root.glob("targets/*/include")]
    candidates.append(Path("/usr/local/cuda/include"))
    candidates += _wheel_includes()
    for folder in candidates:
        if (folder / "cuda_fp16.h").is_file():
            cccl = folder / "cccl"
            return (str(folder), str(cccl)) if cccl.is_dir() else (str(folder),)
    return ()


def _nvcc_root(nvcc: str) -> Path:
    """The toolkit behind an nvcc, which may be a link or a small wrapper script."""
    path = Path(nvcc).resolve()
    if path.stat().st_size < 4096:
        found = re.search(rb"(/\S+)/bin/nvcc", path.read_bytes())
        if found:
            return Path(os.fsdecode(found[1]))
    return path.parent.parent


def _wheel_includes() -> list[Path]:
    import importlib.util

    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or []) if spec is not None else []
    return [p for root in roots for p in sorted(Path(root).glob("cu*/include"))]


def compile_nvrtc(
    source: Path, arch: str, options: Sequence[str], kernels: Sequence[str], text: str | None = None
) -> Compiled:
    """Compile with NVRTC. ``kernels`` may be templates (``softmax<128>``) or C++ names."""
    from cuda.bindings import nvrtc

    code = (source.read_text(encoding="utf-8", errors="replace") if text is None else text).encode()
    texts = [body.encode() for body in _HEADERS.values()]
    names_of = [name.encode() for name in _HEADERS]
    _, program = nvrtc.nvrtcCreateProgram(code, str(source).encode(), len(texts), texts, names_of)
    try:
        for name in kernels:
            nvrtc.nvrtcAddNameExpression(program, name.encode())
        flags = [
            f"--gpu-architecture={arch}", "--std=c++17", "-lineinfo", "-default-device", f"--pre-include={_PRELUDE}", "--ptxas-options=-v",
            *[f"--include-path={folder}" for folder in toolkit_includes()], *options,
        ]  # fmt: skip
        (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
        log = _nvrtc_text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        if int(status) != 0:
            return Compiled(b"", log)
        names = {}
        for name in kernels:
            _, lowered = nvrtc.nvrtcGetLoweredName(program, name.encode())
            names[name] = lowered.decode()
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        cubin = _room(size)
        nvrtc.nvrtcGetCUBIN(program, cubin)
        return Compiled(cubin[:size], log, names)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _nvrtc_text(size_of: Any, fetch: Any, program: Any) -> str:
    _, size = size_of(program)
    buffer = _room(size)
    fetch(program, buffer)
    return buffer.rstrip(b"\x00 ").decode(errors="replace")


def _room(size: int) -> bytes:
    """Bytes for the bindings to write into: never one byte, which Python shares with the whole program."""
    return bytes(size + 2)


def compile_nvcc(
    source: Path, arch: str, options: Sequence[str], kernels: Sequence[str], timeout_s: float, scratch: Path
) -> Compiled:
    """Compile with nvcc into a cubin; kernels must be ``extern "C"`` or be found by demangled name."""
    target = scratch / "unit.cubin"
    number = arch.removeprefix("sm_")
    command = [
        nvcc_path(), "-cubin", f"-gencode=arch=compute_{number},code=sm_{number}", "-std=c++17", "-lineinfo",
        "-Xptxas", "-v", *options, "-o", str(target), str(source),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            cwd=scratch,
        )
    except subprocess.TimeoutExpired:
        return Compiled(b"", f"nvcc took more than {timeout_s:.0f} s")
    log = done.stderr + done.stdout
    if done.returncode or not target.is_file():
        return Compiled(b"", log or f"nvcc ended with {done.returncode}")
    symbols = re.findall(r"Compiling entry function '([^']+)'", log)
    names: dict[str, str] = {}
    for kernel in kernels:
        found = _match(kernel, symbols)
        if found is None:
            return Compiled(
                b"", f"{source.name}: no kernel '{kernel}' (found: {', '.join(symbols) or 'none'})"
            )
        names[kernel] = found
    return Compiled(target.read_bytes(), log, names)


def assemble_ptx(source: Path, arch: str, timeout_s: float, scratch: Path) -> Compiled:
    """PTX to cubin with the toolkit's ptxas, or the driver at load time where there is no ptxas."""
    ptxas = _nvcc_root(nvcc_path()) / "bin" / "ptxas" if nvcc_path() else None
    text = source.read_text(encoding="utf-8", errors="replace")
    names = {name: name for name in re.findall(r"\.entry\s+([\w$]+)", text)}
    if ptxas is None or not ptxas.is_file():
        return Compiled(text.encode() + b"\x00", "loaded as PTX: the driver assembles it", names)
    target = scratch / "unit.cubin"
    try:
        done = subprocess.run(
            [str(ptxas), "-v", f"-arch={arch}", "-o", str(target), str(source)],
            capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Compiled(b"", f"ptxas took more than {timeout_s:.0f} s")
    if done.returncode:
        return Compiled(b"", done.stderr + done.stdout)
    return Compiled(target.read_bytes(), done.stderr, names)


def _match(kernel: str, symbols: Sequence[str]) -> str | None:
    if kernel in symbols:
        return kernel
    demangler = shutil.which("cu++filt") or shutil.which("c++filt")
    if demangler is None or not symbols:
        return None
    done = subprocess.run([demangler], input="\n".join(symbols), capture_output=True, text=True, check=False)
    wanted = re.sub(r"\s+", "", kernel)
    for symbol, name in zip(symbols, done.stdout.splitlines(), strict=False):
        plain = re.sub(r"\s+", "", name)
        head = re.sub(r"\((int|bool|unsignedint|long)\)", "", plain)
        if wanted in (plain, head.split("(")[0], head.split("(")[0].removeprefix("void")):
            return symbol
    return None
