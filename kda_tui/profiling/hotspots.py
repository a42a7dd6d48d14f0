"""Where the time goes, by source line: warp stall samples, the dominant stall, and what it waits for.

A stall is sampled at the instruction that *waits*: the consumer of a load, the barrier, the exit. So
each hot line also names the line of the producing load, or of the stores that an exit drains.
Samples in inlined headers are attributed to the nearest earlier instruction of the kernel's own file,
and marked as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from kda_tui.profiling.model import MIN_SAMPLES, Instruction, KernelProfile
from kda_tui.profiling.sass import parse

# ncu's stall reasons in an engineer's words (Kernel Profiling Guide, warp scheduler states)
STALL_WORDS: dict[str, str] = {
    "long_scoreboard": "waits for global or local memory",
    "short_scoreboard": "waits for shared memory or a special function",
    "mio_throttle": "shared-memory queue is full",
    "lg_throttle": "global-memory queue is full",
    "tex_throttle": "texture queue is full",
    "barrier": "waits at a block barrier",
    "membar": "waits for a memory fence",
    "drain": "exits, but its stores are still leaving",
    "math_pipe_throttle": "arithmetic pipe is busy",
    "wait": "fixed latency of the instruction before",
    "not_selected": "ready, another warp was issued",
    "selected": "issuing",
    "branch_resolving": "waits for a branch target",
    "no_instructions": "waits for instruction fetch",
    "no_instruction": "waits for instruction fetch",
    "imc_miss": "waits for a constant",
    "dispatch_stall": "dispatch is blocked",
    "sleeping": "sleeps",
    "misc": "other",
    "gmma": "waits for tensor-core work (wgmma)",
    "warpgroup_arrive": "waits for its warpgroup",
}

_IDLE = ("selected", "not_selected")


@dataclass(frozen=True, slots=True)
class Hotspot:
    """One source line. ``share`` is of the kernel's samples; ``waits_on`` are lines that cause the stall."""

    file: str
    line: int
    samples: int
    share: float
    stall: str
    stall_share: float  # of this line's samples
    text: str = ""
    waits_on: tuple[int, ...] = ()
    waits_how: str = ""
    inlined: int = 0  # samples taken in inlined headers, counted here
    stalls: tuple[tuple[str, int], ...] = ()
    instructions: tuple[Instruction, ...] = field(default=(), repr=False)

    @property
    def words(self) -> str:
        return STALL_WORDS.get(self.stall, self.stall.replace("_", " "))


@dataclass(frozen=True, slots=True)
class Hotspots:
    """Lines with most samples first; ``why_none`` is set when there is nothing to draw."""

    kernel: str
    total: int
    lines: tuple[Hotspot, ...] = ()
    why_none: str = ""
    notes: tuple[str, ...] = ()


def hotspots(kernel: KernelProfile, limit: int = 20) -> Hotspots:
    """The hot source lines of one launch (or why there are none)."""
    total = sum(i.samples for i in kernel.instructions)
    if not kernel.instructions:
        return Hotspots(
            kernel.name, 0, why_none=kernel.no_hotspots or "no samples per instruction in this file"
        )
    if total < MIN_SAMPLES:
        return Hotspots(
            kernel.name,
            total,
            why_none=f"only {total} warp samples, {MIN_SAMPLES} are needed: profile a larger workload, or several launches",
        )
    if not any(i.line for i in kernel.instructions):
        return Hotspots(
            kernel.name,
            total,
            why_none="samples have no source lines: compile with -lineinfo and profile with --import-source yes (SASS view below)",
        )
    own = own_file(kernel.instructions)
    owned, moved = _attribute(kernel.instructions, own)
    found = [_hotspot(kernel, own, line, group, total, moved[line]) for line, group in owned.items()]
    found.sort(key=lambda h: (-h.samples, h.line))
    inlined = sum(moved.values())
    notes = (
        (f"{inlined} samples of inlined headers are counted at the nearest earlier own line",)
        if inlined
        else ()
    )
    return Hotspots(kernel.name, total, tuple(found[:limit]), notes=notes)


def hot_instructions(kernel: KernelProfile, limit: int = 20) -> tuple[Instruction, ...]:
    """The SASS view: instructions with most samples first."""
    ranked = sorted(kernel.instructions, key=lambda i: (-i.samples, i.pc))
    return tuple(i for i in ranked[:limit] if i.samples)


def own_file(instructions: Sequence[Instruction]) -> str:
    """The kernel's own source: a ``.cu`` file before any header, the entry's file first."""
    for instruction in instructions:
        if instruction.file.endswith((".cu", ".cuh", ".py")):
            return instruction.file
    counts = Counter(i.file for i in instructions if i.file)
    return counts.most_common(1)[0][0] if counts else ""


def _attribute(
    instructions: Sequence[Instruction], own: str
) -> tuple[dict[int, list[Instruction]], Counter[int]]:
    owned: dict[int, list[Instruction]] = {}
    moved: Counter[int] = Counter()
    first = next((i.line for i in instructions if i.file == own and i.line), 0)
    line = first
    for instruction in instructions:
        if instruction.file == own and instruction.line:
            line = instruction.line
        elif instruction.samples:
            moved[line] += instruction.samples
        owned.setdefault(line, []).append(instruction)
    return {line: group for line, group in owned.items() if any(i.samples for i in group)}, moved


def _hotspot(
    kernel: KernelProfile, own: str, line: int, group: list[Instruction], total: int, inlined: int
) -> Hotspot:
    samples = sum(i.samples for i in group)
    stalls: Counter[str] = Counter()
    for instruction in group:
        stalls.update(instruction.stalls)
    waiting = [(reason, n) for reason, n in stalls.most_common() if reason not in _IDLE]
    stall, count = waiting[0] if waiting else ("", 0)
    how, lines = _cause(kernel.instructions, group, stall)
    others = tuple(n for n in lines if n != line)
    return Hotspot(
        file=own,
        line=line,
        samples=samples,
        share=samples / total,
        stall=stall,
        stall_share=count / samples if samples else 0.0,
        text=source_line(kernel, own, line),
        waits_on=others,
        waits_how=how if others else (how.replace("of", "on this line") if lines else ""),
        inlined=inlined,
        stalls=tuple(stalls.most_common()),
        instructions=tuple(group),
    )


def _cause(
    program: Sequence[Instruction], group: list[Instruction], stall: str
) -> tuple[str, tuple[int, ...]]:
    """Lines that make the dominant stall: producing loads, or the stores that an exit drains."""
    if not stall:
        return "", ()
    hottest = max(group, key=lambda i: i.stalls.get(stall, 0))
    at = next(n for n, i in enumerate(program) if i is hottest)
    if stall == "drain":
        stores = [i.line for i in program[:at] if i.line and parse(i.sass).stores]
        return "drains the stores of", tuple(dict.fromkeys(stores[-8:]))
    if stall in ("long_scoreboard", "short_scoreboard"):
        producer = _producer(program, at)
        return "waits for the load of", (producer.line,) if producer is not None and producer.line else ()
    return "", ()


def _producer(program: Sequence[Instruction], at: int) -> Instruction | None:
    """The last load before ``at`` that writes a register read there; loops are followed once around."""
    wanted = parse(program[at].sass).reads
    order = list(range(at - 1, -1, -1)) + list(range(len(program) - 1, at, -1))
    for n in order:
        parsed = parse(program[n].sass)
        if parsed.writes & wanted:
            return program[n] if parsed.loads else None
    return None


def source_line(kernel: KernelProfile, file: str, line: int) -> str:
    """The text of one line, from the source embedded in the report; "" when it was not imported."""
    text = kernel.sources.get(file)
    if text is None:
        base = PurePosixPath(file).name
        text = next((t for p, t in kernel.sources.items() if PurePosixPath(p).name == base), "")
    lines = text.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
