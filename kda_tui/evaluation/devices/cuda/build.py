"""Compile every unit of a launch plan to cubins, from a path that stays, with an own cache.

The key is sha256 over source, options, compiler, its version, and arch; an entry is a folder that
appears by one rename, so that a concurrent reader sees all of it or nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kda_tui.evaluation.devices.cuda import compilers
from kda_tui.evaluation.devices.cuda.resources import Resources, parse_ptxas
from kda_tui.evaluation.lint import lint
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.contract import Contract
from kda_tui.record.launch_plan import LaunchPlan, Unit
from kda_tui.text import UserError


@dataclass(frozen=True, slots=True)
class _Built:
    folder: Path
    log: str
    ok: bool
    resources: tuple[Resources, ...] = ()
    cached: bool = False


def build(folder: Path, plan: LaunchPlan, contract: Contract, cache: Path, arch: str) -> CompileReport:
    """Compile the candidate in ``folder``. A candidate's mistake is a report with ``ok`` false."""
    started = time.perf_counter()
    arch = contract.compile.arch or contract.task.arch or arch
    compiler, version = _compiler(plan)
    warnings: list[str] = []
    binaries: dict[str, str] = {}
    resources: list[Resources] = []
    logs: list[str] = []
    cached = True
    for unit in plan.units:
        refused, warned = _linted(folder / unit.file, contract)
        warnings += warned
        if refused:
            return CompileReport(False, "\n".join(refused), f"{compiler} {version}", warnings=tuple(warnings))
        built = _unit(folder, unit, plan, contract, cache, arch, f"{compiler} {version}")
        cached &= built.cached
        logs.append(built.log)
        if not built.ok:
            return _report(False, logs, compiler, version, started, cached, binaries, resources, warnings)
        binaries[unit.name] = str(built.folder / "unit.cubin")
        resources += built.resources
    return _report(True, logs, compiler, version, started, cached, binaries, resources, warnings)


def _compiler(plan: LaunchPlan) -> tuple[str, str]:
    if compilers.nvrtc_version():
        return "nvrtc", compilers.nvrtc_version()
    if compilers.nvcc_path():
        return "nvcc", compilers.nvcc_version()
    raise UserError(
        "no CUDA compiler: install kda-tui[cuda] (NVRTC) or a CUDA toolkit with nvcc; 'kda doctor' shows what is there"
    )


def _linted(source: Path, contract: Contract) -> tuple[list[str], list[str]]:
    if source.suffix == ".ptx":
        return [], []
    text = source.read_text(encoding="utf-8", errors="replace")
    found = lint(text, contract)
    place = source.name
    refused = [f"{place}({f.line}): refused: {f.text}" for f in found if f.refused]
    warned = [f"{place}({f.line}): {f.text}" for f in found if not f.refused]
    return refused, warned


def _report(
    ok: bool,
    logs: Sequence[str],
    compiler: str,
    version: str,
    started: float,
    cached: bool,
    binaries: Mapping[str, str],
    resources: Sequence[Resources],
    warnings: list[str],
) -> CompileReport:
    digest = hashlib.sha256()
    for name, path in sorted(binaries.items()):
        digest.update(name.encode() + b"\0" + Path(path).read_bytes())
    stack = max((r.stack for r in resources), default=None)
    spills = max((r.spills for r in resources), default=None)
    if stack and not spills:
        warnings = [
            *warnings,
            f"a stack frame of {stack} bytes without spills: indexed private arrays live in local memory",
        ]
    return CompileReport(
        ok=ok,
        log="\n".join(logs).strip()[:16000],
        compiler=f"{compiler} {version}",
        seconds=time.perf_counter() - started,
        cached=cached,
        registers=max((r.registers for r in resources), default=None),
        spills=spills,
        stack_bytes=stack,
        shared_bytes=max((r.shared for r in resources), default=None),
        binaries=dict(binaries),
        sha256=digest.hexdigest() if ok else "",
        warnings=tuple(warnings),
    )


def options_of(unit: Unit, contract: Contract, root: Path) -> list[str]:
    """Compiler options: the unit's defines, the options that the contract allows, its include folders."""
    out = [f"-D{name}={_define(value)}" for name, value in sorted(unit.defines.items())]
    for name, value in sorted(unit.options.items()):
        if name not in contract.compile.allowed:
            raise UserError(
                f"unit {unit.name}: option {name} is not in the contract's compile.allowed ({', '.join(contract.compile.allowed) or 'none'})"
            )
        if name == "maxrregcount":
            out.append(f"--maxrregcount={int(value)}")
        elif name == "fast_math":
            out += ["--use_fast_math"] if value else []
        else:
            raise UserError(
                f"unit {unit.name}: option {name} is not known; known are maxrregcount and fast_math"
            )
    for include in contract.compile.include:
        out.append(f"--include-path={root / include.path}")
    return out


def _define(value: int | float | str | bool) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def kernels_of(plan: LaunchPlan, unit: Unit) -> list[str]:
    """Names of the kernels that the steps take from a unit, in order, each once."""
    names: list[str] = []
    for step in plan.steps:
        if step.kernel is None:
            continue
        owner, name = unit_and_kernel(plan, step.kernel)
        if owner == unit.name and name not in names:
            names.append(name)
    return names


def unit_and_kernel(plan: LaunchPlan, kernel: str) -> tuple[str, str]:
    """``"big.gemm"`` is unit big, kernel gemm; a bare name is of the first unit."""
    head, dot, tail = kernel.partition(".")
    if dot and any(unit.name == head for unit in plan.units):
        return head, tail
    return plan.units[0].name, kernel


def _unit(
    folder: Path, unit: Unit, plan: LaunchPlan, contract: Contract, cache: Path, arch: str, compiler: str
) -> _Built:
    source = folder / unit.file
    try:
        options = options_of(unit, contract, folder.parent.parent)
    except UserError as error:
        return _Built(folder, str(error), False)
    kernels = kernels_of(plan, unit)
    data = source.read_bytes()
    key = hashlib.sha256(
        json.dumps(
            [hashlib.sha256(data).hexdigest(), options, kernels, compiler, arch], sort_keys=True
        ).encode()
    ).hexdigest()
    entry = cache / "cuda" / key[:32]
    if (entry / "report.json").is_file():
        return _load(entry)
    (cache / "cuda").mkdir(parents=True, exist_ok=True)
    kept = entry / unit.file  # the path that stays: line information points here
    scratch = Path(tempfile.mkdtemp(prefix="building-", dir=cache / "cuda"))
    try:
        (scratch / unit.file).write_bytes(data)
        compiled = _compile(scratch / unit.file, kept, arch, options, kernels, contract, scratch)
        resources = parse_ptxas(compiled.log)
        missing = [k for k in kernels if k not in compiled.names]
        if compiled.cubin and missing:
            return _Built(entry, f"{unit.file}: no kernel named {', '.join(missing)}", False)
        if not compiled.cubin:
            return _Built(entry, _shown(compiled.log, kept, scratch, unit.file), False)
        (scratch / "unit.cubin").write_bytes(compiled.cubin)
        facts = {
            "log": _shown(compiled.log, kept, scratch, unit.file),
            "names": compiled.names,
            "resources": [[r.kernel, r.registers, r.spills, r.stack, r.shared] for r in resources],
        }
        (scratch / "report.json").write_text(json.dumps(facts))
        try:
            os.rename(scratch, entry)  # noqa: PTH104 - one atomic step, loses to an equal entry
        except OSError:
            if not (entry / "report.json").is_file():
                raise
        return _load(entry, cached=False)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _compile(
    source: Path,
    kept: Path,
    arch: str,
    options: list[str],
    kernels: list[str],
    contract: Contract,
    scratch: Path,
) -> compilers.Compiled:
    timeout = contract.compile.timeout_s
    if source.suffix == ".ptx":
        return compilers.assemble_ptx(source, arch, timeout, scratch)
    if compilers.nvrtc_version():
        text = source.read_text(encoding="utf-8", errors="replace")
        return compilers.compile_nvrtc(kept, arch, options, kernels, text)
    return compilers.compile_nvcc(source, arch, options, kernels, timeout, scratch)


def _shown(log: str, kept: Path, scratch: Path, name: str) -> str:
    return log.replace(str(kept), name).replace(str(scratch / name), name)


def _load(entry: Path, cached: bool = True) -> _Built:
    facts = json.loads((entry / "report.json").read_text())
    resources = tuple(Resources(*row) for row in facts["resources"])
    return _Built(entry, facts["log"], True, resources, cached)
