"""What a candidate hands in, before any compiler sees it: files, defines, options, kernels it launches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kda_tui.evaluation.devices.cpu.source import rewrite
from kda_tui.evaluation.lint import lint
from kda_tui.record.contract import Contract
from kda_tui.record.launch_plan import LaunchPlan, Unit

_SOURCES = (".cu", ".cuh", ".h", ".hpp", ".inl", ".inc")
_MAX_FILES, _MAX_BYTES = 64, 2 << 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTIONS_WITHOUT_EFFECT = ("maxrregcount", "fast_math")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why nothing was compiled."""

    text: str
    not_possible: str = ""


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of a candidate: as written, and rewritten for the host."""

    written: Mapping[str, str]
    rewritten: Mapping[str, tuple[str, bool]]  # and whether dynamic shared memory is declared
    headers: tuple[tuple[Path, str], ...] = ()  # the contract's include folders and their sha256

    @classmethod
    def read(cls, folder: Path, contract: Contract) -> Sources | Problem:
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
        root = next((p for p in folder.resolve().parents if (p / "contract.toml").is_file()), folder)
        headers = tuple((root / include.path, include.sha256) for include in contract.compile.include)
        return cls(written, {name: rewrite(text) for name, text in written.items()}, headers)

    def findings(
        self, contract: Contract, debug: bool, kernels: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """What the lint refuses and what it warns of, as lines for a person."""
        refused, warned = [], []
        for name, text in self.written.items():
            for f in lint(text, contract, device="cpu", debug=debug, kernels=kernels):
                if f.refused:
                    refused.append(f"{name}:{f.line}: refused: {f.text}")
                else:
                    warned.append(f"{name}:{f.line}: {f.text}")
        return refused, warned


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


def definitions(unit: Unit, contract: Contract) -> list[str] | Problem:
    """``-D`` options of a unit's defines."""
    options = []
    for name, value in unit.defines.items():
        if not _NAME.fullmatch(name) or name.startswith(("kda_", "KDA_", "__")):
            return Problem(f"launch.toml: unit {unit.name}: {name!r} cannot be a define")
        words = str(int(value)) if isinstance(value, bool) else str(value)
        refused = [f for f in lint(words, contract, device="cpu") if f.refused]
        if refused or not words.isprintable():
            why = refused[0].text if refused else "it holds a control character"
            return Problem(f"launch.toml: unit {unit.name}: define {name}: {why}")
        options.append(f"-D{name}={words}")
    return options


def unit_options(unit: Unit, allowed: Sequence[str]) -> Problem | None:
    """The options are the contract's to allow; on the cpu they change nothing."""
    for name in unit.options:
        if name not in allowed or name not in _OPTIONS_WITHOUT_EFFECT:
            known = ", ".join(o for o in _OPTIONS_WITHOUT_EFFECT if o in allowed) or "none"
            return Problem(f"launch.toml: unit {unit.name}: option {name} is not allowed (allowed: {known})")
    return None
