"""Hot lines name the stall, and the line that causes it."""

from __future__ import annotations

from dataclasses import replace

from kda_tui.profiling.hotspots import hotspots
from kda_tui.profiling.model import Instruction, KernelProfile
from kda_tui.profiling.sass import parse

SOURCE = "line one\nfloat v = x[i];\nint j = i * 3;\ny[i] = v * 2;\n}\n"


def _kernel(*instructions: Instruction) -> KernelProfile:
    return KernelProfile("k", instructions=instructions, sources={"/tmp/a/k.cu": SOURCE})


def _i(
    n: int, sass: str, line: int, samples: int = 0, file: str = "/tmp/a/k.cu", **stalls: int
) -> Instruction:
    return Instruction(16 * n, sass, file, line, samples, stalls)


PROGRAM = (
    _i(0, "IMAD.WIDE R4, R0, 0x4, R2", 2, 10, wait=10),
    _i(1, "LDG.E R6, [R4.64]", 2, 40, wait=40),
    _i(2, "IMAD R7, R0, 0x3, RZ", 3, 10, wait=10),
    _i(3, "FMUL R8, R6, 2", 4, 1500, long_scoreboard=1400, selected=100),
    _i(4, "STG.E [R4.64], R8", 4, 100, lg_throttle=100),
    _i(5, "EXIT", 5, 900, drain=900),
)


def test_a_stalled_consumer_names_its_load() -> None:
    spot = hotspots(_kernel(*PROGRAM)).lines[0]
    assert (spot.line, spot.stall, spot.waits_on) == (4, "long_scoreboard", (2,))
    assert spot.words == "waits for global or local memory"
    assert spot.text == "y[i] = v * 2;"


def test_the_closing_brace_names_the_stores_it_drains() -> None:
    spot = next(h for h in hotspots(_kernel(*PROGRAM)).lines if h.line == 5)
    assert spot.stall == "drain"
    assert spot.waits_on == (4,)
    assert spot.waits_how == "drains the stores of"


def test_inlined_headers_count_at_the_own_line() -> None:
    inlined = _i(6, "FADD R9, R8, R8", 585, 600, file="/usr/include/cuda_bf16.hpp", wait=600)
    found = hotspots(_kernel(*PROGRAM[:4], inlined, *PROGRAM[4:]))
    spot = next(h for h in found.lines if h.line == 4)
    assert spot.samples == 1500 + 600 + 100
    assert spot.inlined == 600
    assert "600 samples" in found.notes[0]
    assert sum(h.samples for h in found.lines) == found.total


def test_too_few_samples_draw_nothing() -> None:
    few = tuple(replace(i, samples=i.samples // 10) for i in PROGRAM)
    found = hotspots(_kernel(*few))
    assert found.lines == ()
    assert "1000 are needed" in found.why_none


def test_no_line_information_is_said() -> None:
    bare = tuple(replace(i, file="", line=0) for i in PROGRAM)
    assert "-lineinfo" in hotspots(_kernel(*bare)).why_none
    assert "full" in hotspots(KernelProfile("k", no_hotspots="profile with --set full")).why_none


def test_sass_reads_and_writes() -> None:
    wide = parse("@!P0 LDG.E.128 R8, [R2.64+0x10]")
    assert wide.writes == {"R8", "R9", "R10", "R11"}
    assert {"R2", "R3"} <= wide.reads
    assert wide.loads
    store = parse("STG.E [R2.64], R8")
    assert not store.writes
    assert store.stores
    assert {"R8", "R2"} <= store.reads
    assert not parse("BRA 0x7fd7").writes
