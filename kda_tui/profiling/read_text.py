"""What ``ncu`` prints to a terminal, of any version: kernel headings, section tables, rule paragraphs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kda_tui.profiling.model import KernelProfile, Profile, Rule, Value
from kda_tui.profiling.units import parse_number, to_base

# "  name (128, 128, 1)x(32, 32, 1), Context 1, Stream 7, Device 0, CC 9.0", and the older
# "  name(float*), 2023-Jan-01 10:00:00, Context 1, Stream 7"
_PLACE = re.compile(r", Context \d+, Stream \d+(?:, Device \d+)?(?:, CC (?P<cc>[\d.]+))?\s*$")
_DIMS = re.compile(r"\s*\((?P<grid>\d+, \d+, \d+)\)x\((?P<block>\d+, \d+, \d+)\)$")
_DATE = re.compile(r", \d{4}-\w{3}-\d{2} [\d:]+$")
_SECTION = re.compile(r"^\s{4,8}Section:\s+(?P<name>\S.*)$")
_DASHES = re.compile(r"^\s*-{5,}[\s-]*$")
_COLUMNS = re.compile(r"\s{2,}")
_RULE = re.compile(r"^\s{4,8}(?P<kind>OPT|INF|WRN|ERR)\s{2,}(?P<text>.*)$")
_SPEEDUP = re.compile(r"Est\. (?:Local )?Speedup: (?P<pct>[\d.]+)%")
_ERRORS = ("ERR_NVGPUCTRPERM", "No kernels were profiled", "==ERROR==")


@dataclass
class _Open:
    name: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    cc: str
    metrics: dict[str, Value] = field(default_factory=dict)
    displayed: dict[str, Value] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)

    def close(self, index: int) -> KernelProfile:
        return KernelProfile(
            self.name, index, "", self.grid, self.block, "", self.cc, self.metrics, self.displayed,
            tuple(self.rules),
            no_hotspots="ncu's text has no samples per line: open the .ncu-rep",
        )  # fmt: skip


def is_text(text: str) -> bool:
    """Whether a text looks like ncu's own output."""
    head = text[:200_000]
    return "==PROF==" in head or ("Section:" in head and "Metric" in head) or any(e in head for e in _ERRORS)


def read_text(text: str, path: str) -> Profile:
    """Parse terminal output; errors of the profiler itself become findings."""
    kernels: list[KernelProfile] = []
    findings = [line.strip()[:300] for line in text.splitlines() if any(e in line for e in _ERRORS)]
    current: _Open | None = None
    section, rule = "", ""
    for line in text.splitlines():
        heading = _heading(line)
        if heading is not None:
            if current is not None:
                kernels.append(current.close(len(kernels)))
            current = heading
            section = rule = ""
        elif current is not None:
            section, rule = _line(current, line, section, rule)
    if current is not None:
        kernels.append(current.close(len(kernels)))
    if not kernels and not findings:
        logged = sum(line.startswith("==PROF== Profiling") for line in text.splitlines())
        findings.append(
            f"a log of {logged} profiled launches without their tables: open the report file it wrote"
            if logged
            else "no kernel heading found in the text"
        )
    return Profile(path, "text", kernels=tuple(kernels), findings=tuple(findings))


def _heading(line: str) -> _Open | None:
    place = _PLACE.search(line) if line.startswith("  ") and len(line) < 8000 else None
    if place is None:
        return None
    name = line[: place.start()].strip()
    dims = _DIMS.search(name)
    if dims is None:
        return _Open(_DATE.sub("", name), None, None, place["cc"] or "")
    return _Open(name[: dims.start()], _dims(dims["grid"]), _dims(dims["block"]), place["cc"] or "")


def _dims(text: str | None) -> tuple[int, int, int] | None:
    if not text:
        return None
    x, y, z = (int(part) for part in text.split(","))
    return x, y, z


def _line(kernel: _Open, line: str, section: str, rule: str) -> tuple[str, str]:
    """Take one line of a kernel's text; returns the section and the rule paragraph it stands in."""
    found = _SECTION.match(line)
    if found is not None:
        return found["name"].strip(), ""
    if _DASHES.match(line):
        return section, ""
    opened = _RULE.match(line)
    if opened is not None:
        text = opened["text"].strip()
        speedup = _SPEEDUP.search(text)
        kernel.rules.append(
            Rule(section, section, "", text, opened["kind"], float(speedup["pct"]) if speedup else None)
        )
        return section, "open"
    if rule and line.startswith(" " * 8) and line.strip():
        last = kernel.rules[-1]
        kernel.rules[-1] = Rule(
            last.name,
            last.section,
            last.title,
            f"{last.message} {line.strip()}"[:4000],
            last.kind,
            last.speedup,
        )
        return section, rule
    _row(kernel, section, line)
    return section, "" if not line.strip() else rule


def _row(kernel: _Open, section: str, line: str) -> None:
    """``name   [unit]   value``; a name with two underscores is a metric, else a display name."""
    cells = _COLUMNS.split(line.strip())
    if len(cells) not in (2, 3) or not cells[0] or cells[0] == "Metric Name":
        return
    number = parse_number(cells[-1])
    if number is None:
        return
    value, unit = to_base(number, cells[1] if len(cells) == 3 else "")
    if "__" in cells[0]:
        kernel.metrics[cells[0]] = Value(value, unit)
    else:
        slot = f"{section}/{cells[0]}"
        kernel.displayed[slot if slot not in kernel.displayed else f"{section} ({unit})/{cells[0]}"] = Value(
            value, unit
        )
