"""Which C++ compiler there is, the options that make its code reproducible, and running it within limits."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kda_tui.text import UserError

_MEMORY_KIB = 8 << 20
_FILE_BLOCKS = 1 << 20  # of 512 bytes
_LOG_BYTES = 64 << 10

# A fixed instruction set and no contraction to fused multiply-add: a result depends on the source alone.
_CODE = ("-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
_SHAPE = (
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-g0",
    "-fno-strict-aliasing",
)
_PLAIN = ("-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-fno-threadsafe-statics", "-w")


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler: how to call it and what it says it is."""

    command: tuple[str, ...]
    kind: str  # g++ | clang++ | zig
    version: str

    @property
    def title(self) -> str:
        return f"{self.kind} {self.version}"

    def options(self) -> tuple[str, ...]:
        """For code of candidates and of the runtime alike."""
        quiet: tuple[str, ...] = (
            "-fdiagnostics-color=never",
            "-fmacro-backtrace-limit=1",
            "-ferror-limit=20",
        )
        if self.kind == "g++":
            quiet = ("-fdiagnostics-color=never", "-ftrack-macro-expansion=0", "-fmax-errors=20")
        target: tuple[str, ...] = (f"-march={instruction_set()}",)
        if self.kind == "zig":
            target = ("-mcpu=" + instruction_set().replace("-", "_"), "-fno-sanitize=all")
        return (*_CODE, *target, *_SHAPE, *_PLAIN, *quiet)

    def library_options(self) -> tuple[str, ...]:
        """For the runtime, a shared object of its own: the C library, its mathematics and threads."""
        # Of the C++ library only headers are used; zig would first build it from source for a minute.
        library = () if self.kind == "g++" else ("-nostdlib++",)
        return (
            "-shared",
            *library,
            "-Wl,-z,now",
            "-Wl,--build-id=none",
            "-Wl,--no-as-needed",
            "-lm",
            "-pthread",
        )

    def link(self) -> tuple[str, ...]:
        """The call that links unit.o to unit.so.

        No start files: nothing of theirs runs at load, so whatever does is the candidate's.
        """
        if self.kind == "zig":
            linker = (*self.command[:-1], "ld.lld", "-z", "now", "-z", "relro", "--build-id=none")
        else:
            linker = (*self.command, "-nostartfiles", "-Wl,-z,now", "-Wl,-z,relro", "-Wl,--build-id=none")
            linker += ("-Wl,--as-needed",)
        return (*linker, "-shared", "unit.o", "-o", "unit.so")


@dataclass(frozen=True, slots=True)
class CompilerRun:
    """How a call of the compiler ended. ``ended``: ok | failed | timeout."""

    ended: str
    log: str
    seconds: float

    def then(self, following: CompilerRun) -> CompilerRun:
        """Both calls as one."""
        return CompilerRun(following.ended, self.log + following.log, self.seconds + following.seconds)


@functools.cache
def find_compiler(named: str = "") -> Compiler:
    """g++, else clang++, else the ziglang wheel; ``named`` or ``KDA_CXX`` is another. Raises UserError where none is."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise UserError(
            f"the cpu device runs on x86-64 only and this machine is {platform.machine()}: use the cuda device"
        )
    wanted = os.environ.get("KDA_CXX", "") or named
    for kind in (wanted,) if wanted else ("g++", "clang++", "zig"):
        command = _command(kind)
        version = _version(command) if command else None
        if command and version:
            return Compiler(command, _kind_of(kind), version)
    if wanted:
        raise UserError(
            f"no compiler {wanted} (KDA_CXX, or evaluation.compiler in kda.toml): name g++, clang++ or zig"
        )
    raise UserError("no C++ compiler: install g++ or clang++, or run `pip install ziglang`")


def _command(kind: str) -> tuple[str, ...] | None:
    if kind == "zig":
        found = importlib.util.find_spec("ziglang") is not None
        return (sys.executable, "-m", "ziglang", "c++") if found else None
    path = shutil.which(kind)
    return (path,) if path else None


def _kind_of(name: str) -> str:
    base = Path(name).name
    return "zig" if base == "zig" else "clang++" if "clang" in base else "g++"


def _version(command: tuple[str, ...]) -> str | None:
    zig = command[-1] == "c++"
    call = [*command[:-1], "version"] if zig else [*command, "-dumpfullversion", "-dumpversion"]
    try:
        said = subprocess.run(call, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    words = said.stdout.split()
    return words[0] if words else None


@functools.cache
def instruction_set() -> str:
    """x86-64-v3 where the processor has it: machines of one kind compile alike."""
    needed = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("flags"):
                return "x86-64-v3" if needed <= set(line.partition(":")[2].split()) else "x86-64"
    except OSError:
        pass
    return "x86-64"


def run_limited(call: Sequence[str], folder: Path, timeout_s: float) -> CompilerRun:
    """Call a compiler in ``folder`` in a process group of its own, with limits on time, memory and files."""
    limits = f"ulimit -v {_MEMORY_KIB} && ulimit -f {_FILE_BLOCKS} && ulimit -c 0 && ulimit -t {int(timeout_s) + 1}"
    command = ["/bin/sh", "-c", f'{limits} && exec "$@"', "sh", *call]
    begin = time.monotonic()
    log_path = folder / "log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout_s)
            ended = "ok" if code == 0 else "failed"
        except subprocess.TimeoutExpired:
            ended = "timeout"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    with log_path.open("rb") as said:
        text = said.read(_LOG_BYTES).decode("utf-8", "replace")
    return CompilerRun(ended, text, time.monotonic() - begin)


def _environment(folder: Path) -> dict[str, str]:
    keep = {
        name: os.environ[name]
        for name in ("PATH", "PYTHONPATH", "ZIG_GLOBAL_CACHE_DIR")
        if name in os.environ
    }
    zig = folder.parent / "zig"
    return {
        "ZIG_GLOBAL_CACHE_DIR": str(zig),
        **keep,
        "LC_ALL": "C",
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }
