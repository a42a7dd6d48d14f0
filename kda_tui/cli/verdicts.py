"""A verdict in plain lines: what was found, per workload, and for an incorrect candidate where and how."""

from __future__ import annotations

from collections.abc import Iterator

from kda_tui.cli.output import number, table
from kda_tui.evaluation.verdict import Mismatch, Verdict


def lines(verdict: Verdict) -> Iterator[str]:
    """The verdict for a person, most important first."""
    speed = "" if verdict.speed in ("", "not_measured") else f", {verdict.speed}"
    yield f"{verdict.validity}{speed} (reached {verdict.stage_reached}, {number(verdict.dur_s, '{:.1f}')} s)"
    if verdict.reason:
        yield verdict.reason
    if verdict.ratio is not None:
        interval = f" [{number(verdict.lo, '{:.3f}')} {number(verdict.hi, '{:.3f}')}]"
        yield f"ratio {number(verdict.ratio, '{:.3f}')}{interval} over the incumbent, times of {verdict.device or 'the device'}"
    if verdict.compile is not None and not verdict.compile.ok:
        yield verdict.compile.log.rstrip()
    yield from _workloads(verdict)
    # A rejected candidate leaves the later gates unevaluated; only what stopped it is news.
    told = ("failed", "not_evaluated") if verdict.validity == "passed" else ("failed",)
    gates = [f"{name} {word.replace('_', ' ')}" for name, word in verdict.gates.items() if word in told]
    if gates:
        yield "gates: " + ", ".join(gates)
    if verdict.mismatch is not None:
        yield from _mismatch(verdict.mismatch)


def look(verdict: Verdict) -> Iterator[str]:
    """What ``kda debug`` saw: the candidate's own output, where it differs, and where the arrays are."""
    if verdict.compile is not None and not verdict.compile.ok:
        yield f"does not compile: {verdict.reason}"
        yield verdict.compile.log.rstrip()
    output = str(verdict.extra.get("output") or "")
    if output:
        yield output
    if verdict.mismatch is not None:
        yield from _mismatch(verdict.mismatch)


def _workloads(verdict: Verdict) -> Iterator[str]:
    if not verdict.workloads:
        return
    head = ("workload", "us", "incumbent", "ratio", "floor", "error/limit")
    rows = [
        (
            w.workload,
            number(w.time_us),
            number(w.incumbent_us),
            number(w.ratio, "{:.3f}"),
            number(w.floor_share, "{:.0%}"),
            number(w.error),
        )
        for w in verdict.workloads
    ]
    yield table([head, *rows], right=range(1, len(head)))


def _mismatch(found: Mismatch) -> Iterator[str]:
    box = " x ".join(f"{first}..{last}" for first, last in found.box)
    yield f"{found.tensor} of {found.workload}, seed {found.seed}: {found.wrong} of {found.total} elements are wrong"
    yield f"first at {list(found.index)}: got {found.got}, expected {found.expected}; all within {box}"
    if found.error is not None:
        yield f"error {number(found.error)}, allowed {number(found.allowed)}"
    yield from found.tile_map
    if found.guess:
        yield f"guess: {found.guess}"
