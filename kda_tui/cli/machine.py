"""What this machine has: one :class:`Fact` for each thing that kda can use. Looks, and changes nothing."""

from __future__ import annotations

import importlib.util
import locale
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from kda_tui import __version__
from kda_tui.cli.folders import cache_folder, demo_folder, skill_folders, state_folder

PARAMETERS = Path("/proc/driver/nvidia/params")
DRIVER = Path("/proc/driver/nvidia/version")
GPU_EXTRA = "pip install 'kda-tui[cuda]'"
API_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


@dataclass(frozen=True, slots=True)
class Fact:
    """``state`` is ok, missing or unknown; ``needed`` says whether the cpu device and the screen need it."""

    name: str
    state: str
    detail: str
    mend: str = ""
    needed: bool = False


def facts() -> Iterator[Fact]:
    """Everything, in the order in which a person would read it."""
    yield Fact(
        "kda", "ok", f"{__version__}, Python {platform.python_version()} at {sys.executable}", needed=True
    )
    yield compiler()
    yield gpu()
    yield driver()
    yield package("pycuda", "pycuda", GPU_EXTRA)
    yield nvrtc()
    yield tool("nvcc", ("nvcc", "--version"), "optional: NVRTC compiles where it is installed")
    yield tool(
        "ncu", ("ncu", "--version"), "install Nsight Compute (it comes with the CUDA toolkit) to profile"
    )
    yield ncu_permission()
    yield package("ncu-report", "ncu_report", "pip install 'kda-tui[profile]' to read .ncu-rep files")
    yield tool("compute-sanitizer", ("compute-sanitizer", "--version"), "it comes with the CUDA toolkit")
    yield api_key()
    yield terminal()
    yield tool("tmux", ("tmux", "-V"), "optional: keeps a screen open over a lost connection")
    yield encoding()
    yield configuration()
    yield skills()
    yield writable("state", state_folder(), "set XDG_STATE_HOME")
    yield writable("demo", demo_folder(), "set demo.folder in kda.toml, or XDG_DATA_HOME")
    yield writable("cache", cache_folder(), "set evaluation.cache in kda.toml, or XDG_CACHE_HOME")


def _output(*command: str) -> str | None:
    """What a command prints, or None when it is absent or fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def compiler() -> Fact:
    from kda_tui.evaluation.devices.cpu.compiler import find_compiler
    from kda_tui.text import UserError

    try:
        found = find_compiler()
    except UserError as error:
        return Fact(
            "compiler", "missing", str(error), "pip install 'kda-tui[compiler]' brings one", needed=True
        )
    return Fact("compiler", "ok", f"{found.title} ({' '.join(found.command)})", needed=True)


def gpu() -> Fact:
    listed = _output("nvidia-smi", "-L")
    if listed:
        names = [
            line.split(": ", 1)[-1].split(" (UUID")[0] for line in listed.splitlines() if "UUID: GPU" in line
        ]
        return Fact("gpu", "ok", f"{len(names)}: {', '.join(names)}")
    if shutil.which("nvidia-smi"):
        return Fact("gpu", "missing", "nvidia-smi shows none", "check the driver: nvidia-smi")
    return Fact(
        "gpu", "missing", "no nvidia-smi; the cpu device needs no GPU", "install the NVIDIA driver to use one"
    )


def driver() -> Fact:
    version = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    if version:
        return Fact("driver", "ok", version.splitlines()[0])
    try:
        return Fact("driver", "ok", DRIVER.read_text().splitlines()[0].removeprefix("NVRM version: "))
    except (OSError, IndexError):
        return Fact(
            "driver", "missing", "no NVIDIA driver is loaded", "install the NVIDIA driver to use a GPU"
        )


def package(name: str, module: str, mend: str) -> Fact:
    if importlib.util.find_spec(module) is None:
        return Fact(name, "missing", "not installed", mend)
    return Fact(name, "ok", _version(name) or "installed")


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def nvrtc() -> Fact:
    for distribution in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12"):
        if version := _version(distribution):
            return Fact("nvrtc", "ok", f"{distribution} {version}")
    import ctypes.util

    found = ctypes.util.find_library("nvrtc")
    if found:
        return Fact("nvrtc", "ok", found)
    return Fact("nvrtc", "missing", "not installed", GPU_EXTRA)


def tool(name: str, command: tuple[str, ...], mend: str) -> Fact:
    path = shutil.which(command[0])
    if path is None:
        return Fact(name, "missing", "not on the PATH", mend)
    lines = [line for line in (_output(*command) or "").splitlines() if any(c.isdigit() for c in line)]
    version = next(
        (line for line in lines if "ersion" in line or "release" in line), lines[-1] if lines else ""
    )
    return Fact(name, "ok", f"{version.strip()} ({path})" if version else path)


def ncu_permission(parameters: Path = PARAMETERS) -> Fact:
    """Hardware counters are for everybody, or for administrators only; the driver says which."""
    try:
        lines = parameters.read_text().splitlines()
    except OSError:
        return Fact("ncu counters", "unknown", "no NVIDIA driver to ask")
    value = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("RmProfilingAdminOnly:")), ""
    )
    if value == "0":
        return Fact("ncu counters", "ok", "open to every user")
    if value == "1" and os.geteuid() == 0:
        return Fact("ncu counters", "ok", "for administrators, which you are (a container may still refuse)")
    if value == "1":
        mend = "as root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > /etc/modprobe.d/kda.conf; reboot"
        return Fact("ncu counters", "missing", "for administrators only (ERR_NVGPUCTRPERM)", mend)
    return Fact("ncu counters", "unknown", "the driver does not say")


def api_key() -> Fact:
    """Whether a key is set; never the key."""
    found = [name for name in API_KEYS if os.environ.get(name)]
    if found:
        return Fact("api key", "ok", f"{found[0]} is set")
    return Fact(
        "api key", "missing", "no ANTHROPIC_API_KEY", "export it for --agent anthropic; the tuner needs none"
    )


def terminal() -> Fact:
    term = os.environ.get("TERM", "")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return Fact("terminal", "unknown", f"not run in one (TERM={term or 'unset'})")
    if term in ("", "dumb"):
        return Fact(
            "terminal", "missing", f"TERM={term or 'unset'}", "set TERM, or use kda watch and kda status"
        )
    size = shutil.get_terminal_size()
    if "NO_COLOR" in os.environ:
        colours = "no colours (NO_COLOR)"
    elif os.environ.get("COLORTERM") in ("truecolor", "24bit"):
        colours = "true colour"
    else:
        colours = "256 colours" if "256" in term else "16 colours"
    multiplexer = " in tmux" if os.environ.get("TMUX") else ""
    detail = f"{term}{multiplexer}, {size.columns}x{size.lines}, {colours}"
    if size.columns < 80 or size.lines < 24:
        return Fact("terminal", "missing", f"{detail}: too small", "make it 80x24 or larger")
    return Fact("terminal", "ok", detail)


def encoding() -> Fact:
    name = locale.getpreferredencoding(False)
    if name.lower().replace("-", "") == "utf8":
        return Fact("encoding", "ok", name)
    return Fact("encoding", "missing", f"{name}: not UTF-8", "export LANG=C.UTF-8")


def skills() -> Fact:
    from kda_tui.skills.skill import find_skills

    found = find_skills(skill_folders())
    if not found:
        return Fact("skills", "missing", "none found", "they come with the package; reinstall it")
    return Fact("skills", "ok", ", ".join(skill.name for skill in found))


def writable(name: str, folder: Path, mend: str) -> Fact:
    """Whether files can be written under the nearest folder that exists."""
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            return Fact(name, "ok", str(folder), needed=True)
    except OSError as error:
        return Fact(name, "missing", f"{folder}: {error.strerror}", mend, needed=True)


def configuration() -> Fact:
    """Which files the settings come from, and what a workspace's file may not say."""
    from kda_tui.config import load_config

    config = load_config()
    files = ", ".join(str(path) for path in config.files[1:]) or "the defaults"
    if config.problems:
        return Fact("settings", "unknown", f"{files}; {config.problems[0]}")
    return Fact("settings", "ok", files, needed=True)
