"""The cpu device as the judge sees it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from kda_tui.evaluation.arrays import HOST, Arrays
from kda_tui.evaluation.devices.cpu.build import UnitBuild, failed
from kda_tui.evaluation.devices.cpu.candidate import (
    Problem,
    Sources,
    kernels_of,
    not_possible,
    unit_options,
)
from kda_tui.evaluation.devices.cpu.compiler import Compiler, find_compiler, instruction_set
from kda_tui.evaluation.devices.cpu.cpu_child import CpuChild
from kda_tui.evaluation.devices.cpu.facts import default_threads, device_facts, flush_bytes
from kda_tui.evaluation.devices.cpu.runtime_build import runtime_library
from kda_tui.evaluation.devices.cpu.store import Store, Stored, default_cache, sha256
from kda_tui.evaluation.devices.interface import DeviceFacts
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.contract import Contract
from kda_tui.record.launch_plan import LaunchPlan


class CpuDevice:
    """Compiles for the host and starts children. ``threads`` run blocks; results do not depend on it.

    Raises UserError where no compiler is found or the processor is not x86-64.
    ``mode`` "debug" compiles with printf and assert; its times and verdicts count for nothing.
    """

    def __init__(
        self,
        threads: int | None = None,
        cache: Path | None = None,
        mode: Literal["judge", "debug"] = "judge",
        compiler: Compiler | None = None,
    ) -> None:
        self.compiler = compiler or find_compiler()
        self.threads = threads or default_threads()
        self._cache = cache or default_cache()
        self._mode = mode

    @functools.cached_property
    def facts(self) -> DeviceFacts:
        return device_facts(self.threads, self._cache)

    def compile(self, folder: Path, plan: LaunchPlan, contract: Contract, cache: Path) -> CompileReport:
        """Compile every unit of the plan in ``folder``; never raises for the candidate's faults."""
        missing = not_possible(plan)
        if missing:
            return failed(self.compiler, Problem("", missing))
        sources = Sources.read(folder, contract)
        if isinstance(sources, Problem):
            return failed(self.compiler, sources)
        kernels = kernels_of(plan)
        debug = self._mode == "debug"
        refused, warned = sources.findings(
            contract, debug, [name for names in kernels.values() for name in names]
        )
        if refused:
            return failed(self.compiler, Problem("\n".join(refused)), warnings=warned)
        builder = UnitBuild(self.compiler, Store(cache), sources, contract, debug)
        built: dict[str, tuple[Stored, bool]] = {}
        for unit in plan.units:
            objection = unit_options(unit, contract.compile.allowed)
            if objection is not None:
                return failed(self.compiler, objection, warnings=warned)
            result = builder.build(unit, kernels[unit.name])
            if isinstance(result, CompileReport):
                return replace(result, warnings=tuple(warned))
            built[unit.name] = result
        return replace(self._report(built), warnings=tuple(warned))

    def _report(self, built: Mapping[str, tuple[Stored, bool]]) -> CompileReport:
        stored = [program for program, _ in built.values()]
        return CompileReport(
            ok=True,
            log="\n".join(str(s.facts["log"]) for s in stored if s.facts["log"]),
            compiler=self.compiler.title,
            seconds=sum(float(s.facts["seconds"]) for s, cached in built.values() if not cached),
            cached=all(cached for _, cached in built.values()),
            shared_bytes=max(int(s.facts["shared_bytes"]) for s in stored),
            binaries={unit: str(program.path) for unit, (program, _) in built.items()},
            sha256=sha256("".join(str(s.facts["sha256"]) for s in stored).encode()),
        )

    @property
    def arrays(self) -> Arrays:
        return HOST

    def exclusive(self, waiting: Callable[[str], None]) -> AbstractContextManager[None]:
        """The host is shared: its noise is measured, not locked out."""
        return nullcontext()

    def disturbances(self) -> tuple[str, ...]:
        return ()

    def prepare(self, scratch: Path) -> None:
        """A child starts fast enough."""

    def settle(self) -> None:
        """Nothing runs in the background."""

    def borrow_child(self, scratch: Path) -> CpuChild:
        return self.start_child(scratch)

    def start_child(self, scratch: Path) -> CpuChild:
        """A fresh child that works in ``scratch``. Raises UserError if the runtime cannot be built."""
        runtime = runtime_library(self.compiler, self._cache)
        return CpuChild(runtime, scratch, self.threads, flush_bytes(self.threads))

    def watched_child(self, scratch: Path, tool: str) -> str:
        return "the cpu device has no compute-sanitizer; its own bounds and races are judged in every launch"

    def describe(self) -> Mapping[str, Any]:
        """What run_started and doctor show."""
        return {
            "device": "cpu",
            "name": self.facts.name,
            "threads": self.threads,
            "compiler": self.compiler.title,
            "instruction_set": instruction_set(),
            "l2_bytes": self.facts.l2_bytes,
            "bandwidth": self.facts.peak_bandwidth,
            "bandwidth_source": "copies within the caches, measured here",
            "label": "times of a host compile, not of a GPU",
        }
