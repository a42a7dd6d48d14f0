"""A profile as a person or an agent reads it: header, shares, diagnosis, hotspots, metrics. Text or JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from kda_tui.profiling.diagnosis import Diagnosis, Known, diagnose
from kda_tui.profiling.hotspots import Hotspots, hot_instructions, hotspots
from kda_tui.profiling.metrics import METRICS, find
from kda_tui.profiling.model import KernelProfile, Profile
from kda_tui.text import clean_line


@dataclass(frozen=True, slots=True)
class Collection:
    """How a profile was taken, as far as it is known; goes into the header of each digest."""

    cache_control: str = ""
    clock_control: str = ""
    event_us: float | None = None  # the evaluator's own time of the same launch
    command: str = ""


def header(kernel: KernelProfile, profile: Profile, taken: Collection) -> str:
    """One line: device, launch, SM clock, passes, ncu over event ratio, cache and clock control."""
    parts = [f"{kernel.name}"]
    if kernel.grid and kernel.block:
        parts.append(f"grid {_dims(kernel.grid)} block {_dims(kernel.block)}")
    if kernel.device or kernel.cc:
        parts.append(f"{kernel.device} cc {kernel.cc}".strip())
    duration, clock, passes = (find(kernel, key) for key in ("duration", "sm_clock", "passes"))
    parts.append(f"{duration:.1f} us under ncu" if duration is not None else "duration n/a")
    if taken.event_us and duration is not None:
        parts.append(f"{duration / taken.event_us:.2f} x the evaluator's time")
    parts.append(f"SM {clock:.0f} MHz" if clock is not None else "SM clock n/a")
    parts.append(f"{passes:.0f} passes" if passes is not None else "passes n/a")
    parts.append(
        f"cache control {taken.cache_control or 'unknown'}, clock control {taken.clock_control or 'unknown'}"
    )
    parts.append(profile.form)
    return ", ".join(parts)


def text_digest(
    profile: Profile, known: Known | None = None, taken: Collection | None = None, lines: int = 8
) -> str:
    """The digest of every kernel in a profile as plain text."""
    taken = taken or Collection()
    out = [f"finding: {finding}" for finding in profile.findings]
    for kernel in profile.kernels:
        out += ["", header(kernel, profile, taken)]
        out += _diagnosis_lines(diagnose(kernel, known))
        out += hotspot_lines(hotspots(kernel, lines))
        spots = hotspots(kernel)
        if spots.why_none and kernel.instructions and spots.total:
            out += _sass_lines(kernel, lines)
    return "\n".join(clean_line(line) if line else "" for line in out).strip() + "\n"


def _dims(dims: tuple[int, int, int]) -> str:
    return "x".join(str(d) for d in dims)


def _diagnosis_lines(found: Diagnosis) -> list[str]:
    shares = "  ".join(f"{name} {value:.0f} %" for name, value in found.shares)
    out = [f"  shares of peak: {shares or 'n/a'}", f"  verdict: {found.verdict}"]
    for statement in found.statements:
        evidence = ", ".join(f"{e.metric} {_number(e.value)} {e.unit}".strip() for e in statement.evidence)
        out.append(f"  - up to {statement.saves_us:.1f} us: {statement.text} [{evidence}]")
    return out


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.2f}"


def hotspot_lines(found: Hotspots, width: int = 24) -> list[str]:
    """Bars by source line, the stall in words, and the line that it waits for."""
    if found.why_none:
        return [f"  hotspots: none, {found.why_none}"]
    out = [f"  hotspots: {found.total:,} warp samples"]
    out += [f"  ({note})" for note in found.notes]
    top = max(h.share for h in found.lines)
    for spot in found.lines:
        bar = "#" * max(1, round(width * spot.share / top))
        cause = f"; {spot.waits_how} {', '.join(map(str, spot.waits_on))}".rstrip() if spot.waits_how else ""
        out.append(
            f"  {spot.line:5d} {bar:<{width}} {spot.share:6.1%} {spot.samples:8,}  {spot.words}{cause}  | {spot.text[:80]}"
        )
    return out


def _sass_lines(kernel: KernelProfile, lines: int) -> list[str]:
    total = sum(i.samples for i in kernel.instructions)
    out = ["  hottest instructions:"]
    for instruction in hot_instructions(kernel, lines):
        out.append(f"    {instruction.samples / total:6.1%} {instruction.samples:8,}  {instruction.sass}")
    return out


def json_digest(
    profile: Profile, known: Known | None = None, taken: Collection | None = None, lines: int = 20
) -> dict[str, Any]:
    """The digest as plain data: what summary.json holds and ``--json`` prints. Absent metrics are null."""
    taken = taken or Collection()
    return {
        "v": 1,
        "form": profile.form,
        "version": profile.version,
        "findings": list(profile.findings),
        "collection": asdict(taken),
        "kernels": [_kernel_digest(kernel, known, lines) for kernel in profile.kernels],
    }


def _kernel_digest(kernel: KernelProfile, known: Known | None, lines: int) -> dict[str, Any]:
    found, spots = diagnose(kernel, known), hotspots(kernel, lines)
    return {
        "name": kernel.name,
        "index": kernel.index,
        "grid": kernel.grid,
        "block": kernel.block,
        "device": kernel.device,
        "cc": kernel.cc,
        "metrics": {
            metric.key: {"value": find(kernel, metric.key), "unit": metric.unit, "label": metric.label}
            for metric in METRICS
        },
        "shares": dict(found.shares),
        "verdict": found.verdict,
        "statements": [asdict(statement) for statement in found.statements],
        "samples": spots.total,
        "no_hotspots": spots.why_none,
        "notes": list(spots.notes),
        "hotspots": [
            {
                "file": spot.file.rpartition("/")[2],
                "line": spot.line,
                "samples": spot.samples,
                "share": round(spot.share, 5),
                "stall": spot.stall,
                "words": spot.words,
                "stall_share": round(spot.stall_share, 4),
                "waits_how": spot.waits_how,
                "waits_on": list(spot.waits_on),
                "inlined": spot.inlined,
                "text": spot.text,
            }
            for spot in spots.lines
        ],
    }
