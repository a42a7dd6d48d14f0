"""Compile a candidate's units for the host. The candidate's faults end in the report, never in an exception."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kda_tui.evaluation.devices.cpu.candidate import Problem, Sources, definitions
from kda_tui.evaluation.devices.cpu.compiler import Compiler, run_limited
from kda_tui.evaluation.devices.cpu.elf import read_program
from kda_tui.evaluation.devices.cpu.runtime_build import SHIM, shim_hash
from kda_tui.evaluation.devices.cpu.source import translation_unit
from kda_tui.evaluation.devices.cpu.store import Store, Stored, sha256
from kda_tui.evaluation.lint import kernel_names
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.contract import Contract
from kda_tui.record.launch_plan import Unit

MAX_STATIC_SHARED = 49152
MAX_DYNAMIC_SHARED = 232448  # as in shim/kda/abi.hpp

# What the compiler says where a candidate uses what the device does not have.
_MISSING = (
    (re.compile(r"KDA_NOT_POSSIBLE: ([^\n]+)"), r"\1"),
    (re.compile(r"KDA_NOT_POSSIBLE_thread_block_clusters"), "thread block clusters"),
    (re.compile(r"attempt to use (?:a )?poisoned"), "inline PTX (asm)"),  # all that is poisoned is asm
    (re.compile(r"(?:error|undeclared)[^\n]*\b(?:nvcuda|wmma)\b"), "wmma"),
    (re.compile(r"(?:error|undeclared)[^\n]*\b(__nv_fp[84]\w*)"), r"fp8 (\1)"),
    (re.compile(r"(?:error|undeclared)[^\n]*\b(__pipeline_\w+)"), r"cp.async (\1)"),
    (re.compile(r"(?:error|undeclared)[^\n]*\b(cooperative_groups|__cluster\w+|CUtensorMap)\b"), r"\1"),
)


@dataclass(frozen=True, slots=True)
class _Job:
    """One unit, ready to compile."""

    unit: Unit
    kernels: tuple[str, ...]
    text: str
    arguments: tuple[str, ...]
    dynamic_shared: bool


class UnitBuild:
    """The units of one candidate with one compiler and one cache."""

    def __init__(
        self, compiler: Compiler, store: Store, sources: Sources, contract: Contract, debug: bool
    ) -> None:
        self._compiler, self._store, self._sources, self._contract = compiler, store, sources, contract
        self._mode = ("-DKDA_DEBUG",) if debug else ()

    def build(self, unit: Unit, kernels: Sequence[str]) -> tuple[Stored, bool] | CompileReport:
        """The program and whether the cache had it, or the report of why there is none."""
        defines = definitions(unit, self._contract)
        if isinstance(defines, Problem):
            return failed(self._compiler, defines)
        if unit.file not in self._sources.rewritten:
            return failed(self._compiler, Problem(f"launch.toml: unit {unit.name}: no file {unit.file}"))
        dynamic = any(found for _, found in self._sources.rewritten.values())
        text = translation_unit(unit.file, self._sources.rewritten[unit.file][0], kernels, dynamic)
        arguments = (*self._compiler.options(), *self._mode, *defines)
        job = _Job(unit, tuple(kernels), text, arguments, dynamic)
        key = self._key(job)
        stored = self._store.get(key)
        return (stored, True) if stored is not None else self._compile(job, key)

    def _key(self, job: _Job) -> str:
        headers = [f"{name}\0{text}" for name, (text, _) in sorted(self._sources.rewritten.items())]
        parts = [shim_hash(), self._compiler.title, *job.arguments, *self._compiler.link()]
        parts += [job.unit.file, job.text, *headers, *(sha for _, sha in self._sources.headers)]
        return sha256("\0".join(parts).encode())

    def _compile(self, job: _Job, key: str) -> tuple[Stored, bool] | CompileReport:
        limit = self._contract.compile.timeout_s
        with self._store.workplace() as folder:
            for name, (text, _) in self._sources.rewritten.items():
                path = folder / "source" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            (folder / "unit.cpp").write_text(job.text)
            compiling = [*self._compiler.command, *job.arguments, *self._files(job.unit)]
            run = run_limited(compiling, folder, limit)
            if run.ended == "ok":
                run = run.then(run_limited(self._compiler.link(), folder, limit))
            if run.ended == "timeout":
                text = f"{job.unit.file}: the compiler took longer than {limit:g} s"
                return failed(self._compiler, Problem(text), run.seconds)
            log = _readable(run.log)
            if run.ended != "ok":
                text = "\n".join([*self._unknown_kernels(job), log])
                return failed(self._compiler, Problem(text, _missing(run.log)), run.seconds)
            return self._admit(job, (folder / "unit.so").read_bytes(), key, run.seconds, log)

    def _files(self, unit: Unit) -> list[str]:
        """Where headers are looked for, what is read and written; relative to the build folder."""
        beside = (Path("source") / unit.file).parent.as_posix()
        searched = ["-iquote", "source", "-iquote", beside, "-I", str(SHIM)]
        for path, _ in self._sources.headers:
            searched += ["-I", str(path)]
        return [*searched, "-frandom-seed=kda", "-c", "unit.cpp", "-o", "unit.o"]

    def _admit(
        self, job: _Job, program: bytes, key: str, seconds: float, log: str
    ) -> tuple[Stored, bool] | CompileReport:
        found = read_program(program)
        objections = found.objections()
        shared = max(0, found.thread_local_bytes - (MAX_DYNAMIC_SHARED if job.dynamic_shared else 0))
        if shared > MAX_STATIC_SHARED and len(job.kernels) == 1:
            objections.append(f"{shared} bytes of static shared memory; the most is {MAX_STATIC_SHARED}")
        if objections:
            text = "\n".join(f"{job.unit.file}: refused: {objection}" for objection in objections)
            return failed(self._compiler, Problem(text), seconds)
        facts = {"log": log, "seconds": seconds, "shared_bytes": shared}
        return self._store.put(key, program, facts), False

    def _unknown_kernels(self, job: _Job) -> list[str]:
        """A hint where the launch plan names a kernel that no file defines."""
        known = {name for text in self._sources.written.values() for name in kernel_names(text)}
        unknown = [k for k in job.kernels if re.split(r"[<(]", k)[0].rsplit("::", 1)[-1] not in known]
        there = ", ".join(sorted(known)) or "none"
        return [f"launch.toml: no kernel {name} in {job.unit.file}; its kernels: {there}" for name in unknown]


def failed(
    compiler: Compiler, problem: Problem, seconds: float = 0.0, warnings: Sequence[str] = ()
) -> CompileReport:
    """The report of a candidate that was not compiled."""
    text, missing = problem.text, problem.not_possible
    if missing:
        hint = (
            f"the cpu device does not have {missing}: guard it with #ifndef KDA_CPU, or use the cuda device"
        )
        text = f"{hint}\n{text}".strip()
    return CompileReport(False, text, compiler.title, seconds, not_possible=missing, warnings=tuple(warnings))


def _missing(log: str) -> str:
    for pattern, words in _MISSING:
        found = pattern.search(log)
        if found:
            return found.expand(words).strip()
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
