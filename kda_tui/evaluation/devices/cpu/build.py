"""Compile a candidate's units for the host. The candidate's faults end in the report, never in an exception."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kda_tui.evaluation.devices.cpu.compiler import Compiler, run_compiler
from kda_tui.evaluation.devices.cpu.elf import read_program
from kda_tui.evaluation.devices.cpu.runtime_build import SHIM, shim_hash
from kda_tui.evaluation.devices.cpu.source import rewrite, translation_unit
from kda_tui.evaluation.devices.cpu.store import Store, Stored, sha256
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.launch_plan import LaunchPlan, Unit

MAX_STATIC_SHARED = 49152
MAX_DYNAMIC_SHARED = 232448
_SOURCES = (".cu", ".cuh", ".h", ".hpp", ".inl", ".inc")
_MAX_FILES, _MAX_BYTES = 64, 2 << 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTIONS_WITHOUT_EFFECT = ("maxrregcount", "fast_math")

# What the compiler says where a candidate uses what the device does not have.
_MISSING = (
    (re.compile(r"KDA_NOT_POSSIBLE: ([^\n]+)"), r"\1"),
    (re.compile(r"KDA_NOT_POSSIBLE_(\w+)"), r"\1"),
    (re.compile(r"poisoned (?:identifier )?['\"‘]?(?:asm|__asm|__asm__)\b"), "inline PTX (asm)"),
    (re.compile(r"(?:error|undeclared)[^\n]*\b(?:nvcuda|wmma)\b"), "wmma"),
    (re.compile(r"(?:error|undeclared)[^\n]*\b(__nv_fp[84]\w*)"), r"fp8 (\1)"),
    (re.compile(r"(?:error|undeclared)[^\n]*\b(__pipeline_\w+)"), r"cp.async (\1)"),
    (re.compile(r"(?:error|undeclared)[^\n]*\b(cooperative_groups|__cluster\w+|CUtensorMap)\b"), r"\1"),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why nothing was compiled."""

    text: str
    not_possible: str = ""


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of a candidate: as written, and rewritten for the host."""

    written: Mapping[str, str]
    rewritten: Mapping[str, tuple[str, bool]]

    @classmethod
    def read(cls, folder: Path) -> Sources | Problem:
        written: dict[str, str] = {}
        size = 0
        for path in sorted(folder.rglob("*")):
            if path.suffix not in _SOURCES or not path.is_file():
                continue
            name = path.relative_to(folder).as_posix()
            if path.is_symlink() or not path.resolve().is_relative_to(folder.resolve()):
                return Problem(f"{name}: a link out of the candidate's folder")
            size += path.stat().st_size
            if size > _MAX_BYTES or len(written) == _MAX_FILES:
                return Problem(
                    f"{folder.name}: more than {_MAX_FILES} source files or {_MAX_BYTES >> 20} MiB"
                )
            written[name] = path.read_text("utf-8", "replace")
        return cls(written, {name: rewrite(text) for name, text in written.items()})


def kernels_of(plan: LaunchPlan) -> dict[str, list[str]]:
    """The kernels that the plan's steps name, by unit: "unit.kernel", or "kernel" of the first unit."""
    named: dict[str, list[str]] = {unit.name: [] for unit in plan.units}
    for step in plan.steps:
        if step.kernel is None:
            continue
        unit, kernel = split_kernel(plan, step.kernel)
        if kernel not in named[unit]:
            named[unit].append(kernel)
    return named


def split_kernel(plan: LaunchPlan, name: str) -> tuple[str, str]:
    head, dot, rest = name.partition(".")
    if dot and any(unit.name == head for unit in plan.units):
        return head, rest
    return plan.units[0].name, name


def not_possible(plan: LaunchPlan) -> str:
    """What the plan asks for and the cpu device does not have; empty if nothing."""
    for unit in plan.units:
        if not unit.file.endswith(".cu"):
            return f"{Path(unit.file).suffix or unit.file} units"
    if plan.tensor_maps:
        return "TMA (tensor maps)"
    if any(step.cluster is not None for step in plan.steps):
        return "thread block clusters"
    if any(step.cooperative for step in plan.steps):
        return "cooperative launches"
    return ""


def definitions(unit: Unit) -> list[str] | Problem:
    """``-D`` options of a unit's defines."""
    options = []
    for name, value in unit.defines.items():
        if not _NAME.fullmatch(name) or name.startswith(("kda_", "KDA_", "__")):
            return Problem(f"launch.toml: unit {unit.name}: {name!r} cannot be a define")
        words = str(int(value)) if isinstance(value, bool) else str(value)
        if not words.isprintable():
            return Problem(f"launch.toml: unit {unit.name}: define {name} holds a control character")
        options.append(f"-D{name}={words}")
    return options


def unit_options(unit: Unit, allowed: Sequence[str]) -> Problem | None:
    """The options are the contract's to allow; on the cpu they change nothing."""
    for name in unit.options:
        if name not in allowed or name not in _OPTIONS_WITHOUT_EFFECT:
            known = ", ".join(o for o in _OPTIONS_WITHOUT_EFFECT if o in allowed) or "none"
            return Problem(f"launch.toml: unit {unit.name}: option {name} is not allowed (allowed: {known})")
    return None


class UnitBuild:
    """One unit with one compiler and one cache."""

    def __init__(self, compiler: Compiler, store: Store, sources: Sources, debug: bool) -> None:
        self._compiler, self._store, self._sources = compiler, store, sources
        self._mode = ("-DKDA_DEBUG",) if debug else ()

    def build(
        self, unit: Unit, kernels: Sequence[str], timeout_s: float
    ) -> tuple[Stored, bool] | CompileReport:
        """The program and whether the cache had it, or the report of why there is none."""
        defines = definitions(unit)
        if isinstance(defines, Problem):
            return failed(self._compiler, defines)
        if unit.file not in self._sources.rewritten:
            return failed(self._compiler, Problem(f"launch.toml: unit {unit.name}: no file {unit.file}"))
        text, _ = self._sources.rewritten[unit.file]
        dynamic = any(found for _, found in self._sources.rewritten.values())
        whole = translation_unit(unit.file, text, kernels, dynamic)
        arguments = [*self._compiler.options(), *self._mode, *defines]
        key = self._key(unit, whole, arguments)
        stored = self._store.get(key)
        if stored is not None:
            return stored, True
        return self._compile(unit, whole, arguments, key, timeout_s, dynamic)

    def _key(self, unit: Unit, whole: str, arguments: Sequence[str]) -> str:
        headers = [f"{name}\0{text}" for name, (text, _) in sorted(self._sources.rewritten.items())]
        link = self._compiler.link_options()
        return sha256(
            "\0".join(
                [shim_hash(), self._compiler.title, *arguments, *link, unit.file, whole, *headers]
            ).encode()
        )

    def _compile(
        self, unit: Unit, whole: str, arguments: Sequence[str], key: str, timeout_s: float, dynamic: bool
    ) -> tuple[Stored, bool] | CompileReport:
        with self._store.workplace() as folder:
            for name, (text, _) in self._sources.rewritten.items():
                path = folder / "source" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            (folder / "unit.cpp").write_text(whole)
            run = run_compiler(self._compiler, [*arguments, *self._files(unit)], folder, timeout_s)
            log = _readable(run.log)
            if run.ended == "timeout":
                return failed(
                    self._compiler, Problem(f"{unit.file}: the compiler took longer than {timeout_s:g} s")
                )
            if run.ended != "ok":
                return failed(self._compiler, Problem(log, _missing(run.log)), run.seconds)
            return self._admit(unit, (folder / "unit.so").read_bytes(), key, run.seconds, log, dynamic)

    def _files(self, unit: Unit) -> list[str]:
        """Where headers are looked for, what is read and written; relative to the build folder."""
        beside = (Path("source") / unit.file).parent.as_posix()
        searched = ["-iquote", "source", "-iquote", beside, "-I", str(SHIM)]
        made = ["-frandom-seed=kda", "unit.cpp", "-o", "unit.so"]
        return [*searched, *made, *self._compiler.link_options()]

    def _admit(
        self, unit: Unit, program: bytes, key: str, seconds: float, log: str, dynamic: bool
    ) -> tuple[Stored, bool] | CompileReport:
        found = read_program(program)
        objections = found.objections()
        if objections:
            return failed(
                self._compiler, Problem("\n".join(f"{unit.file}: {text}" for text in objections)), seconds
            )
        shared = max(0, found.thread_local_bytes - (MAX_DYNAMIC_SHARED if dynamic else 0))
        facts = {"log": log, "seconds": seconds, "shared_bytes": shared}
        return self._store.put(key, program, facts), False


def failed(compiler: Compiler, problem: Problem, seconds: float = 0.0) -> CompileReport:
    text = problem.text
    if problem.not_possible:
        hint = f"the cpu device does not have {problem.not_possible}; guard it with #ifndef KDA_CPU, or use the cuda device"
        text = f"{hint}\n{text}".strip()
        return CompileReport(False, text, compiler.title, seconds, not_possible=problem.not_possible)
    return CompileReport(False, text, compiler.title, seconds)


def _missing(log: str) -> str:
    for pattern, words in _MISSING:
        found = pattern.search(log)
        if found:
            return (
                found.expand(words).strip().replace("_", " ")
                if "KDA" in pattern.pattern
                else found.expand(words)
            )
    return ""


def _readable(log: str) -> str:
    """Without the folders of ours, and without lines that only say where a file was included."""
    log = log.replace(str(SHIM) + "/", "<cpu shim>/").replace("source/", "")
    lines = [
        line
        for line in log.splitlines()
        if not line.startswith(("In file included from", "                 from"))
    ]
    return "\n".join(lines).strip()
