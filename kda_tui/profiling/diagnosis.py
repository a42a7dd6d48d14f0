"""What limits a kernel, in words, from a profile: deterministic, each statement with metric and value.

First the shares of peak of each pipe, then statements with an upper bound in microseconds that each
could save. Bounds are not additive. Occupancy, waves and eligible warps are means: they are findings
only where no pipe exceeds :data:`BUSY`, so persistent grids, 12 % occupancy by design, idle producer
warps and barrier spins of good kernels are not miscalled. Nothing above 5 % of the time means that the
kernel is at the limit of its design.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from kda_tui.profiling.metrics import find
from kda_tui.profiling.model import KernelProfile

BUSY = 60.0  # % of peak from which a pipe is called busy
WORTH = 0.05  # share of the duration below which a saving is not worth a statement
REDUNDANT = 1.2  # measured over necessary traffic from which it is called redundant

_RULE_SECTORS = re.compile(r"total of (?P<wasted>\d+) excessive sectors \((?P<percent>\d+)% of the total")
_STALLS = ("stall_long", "stall_short", "stall_mio", "stall_barrier", "stall_drain")


@dataclass(frozen=True, slots=True)
class Evidence:
    metric: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One finding. ``saves_us`` is an upper bound; ``evidence`` is what it was read from."""

    key: str
    text: str
    saves_us: float
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """``shares`` are percent of peak by pipe; an absent pipe is not in the report."""

    kernel: str
    duration_us: float | None
    shares: tuple[tuple[str, float], ...]
    statements: tuple[Statement, ...]
    verdict: str

    @property
    def busiest(self) -> tuple[str, float] | None:
        return max(self.shares, key=lambda s: s[1]) if self.shares else None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known beside the profile: the contract's necessary bytes, the launch floor and gaps."""

    bytes_min: float | None = None
    launch_floor_us: float | None = None
    launch_gaps_us: float | None = None


@dataclass(frozen=True, slots=True)
class _Context:
    kernel: KernelProfile
    known: Known
    duration: float
    shares: dict[str, float]

    def get(self, key: str) -> float | None:
        return find(self.kernel, key)

    @property
    def busy(self) -> bool:
        return any(v >= BUSY for name, v in self.shares.items() if name != "launch")


_PIPES = (
    ("DRAM", "dram_throughput"),
    ("L2", "l2_throughput"),
    ("L1/shared", "l1_throughput"),
    ("tensor", "tensor"),
    ("FMA", "fma"),
    ("issue", "issue_active"),
)


def diagnose(kernel: KernelProfile, known: Known | None = None) -> Diagnosis:
    """Diagnose one launch; a report without a duration gets shares and no bounds."""
    known = known or Known()
    duration = find(kernel, "duration")
    shares = {
        name: value
        for name, key in _PIPES
        for value in (find(kernel, key),)
        if value is not None and math.isfinite(value)
    }
    if duration and known.launch_floor_us:
        shares["launch"] = min(100.0, 100.0 * known.launch_floor_us / duration)
    if not duration:
        return Diagnosis(
            kernel.name, None, tuple(shares.items()), (), "no duration in this report: no bounds"
        )
    context = _Context(kernel, known, duration, shares)
    statements = [s for rule in _RULES for s in (rule(context),) if s is not None]
    statements = [s for s in statements if s.saves_us >= WORTH * duration]
    statements.sort(key=lambda s: -s.saves_us)
    return Diagnosis(
        kernel.name, duration, tuple(shares.items()), tuple(statements), _verdict(context, statements)
    )


def _verdict(context: _Context, statements: list[Statement]) -> str:
    if not context.shares:
        return "too few metrics in this report to say what limits it"
    name, value = max(context.shares.items(), key=lambda s: s[1])
    missing = unchecked(context.kernel)
    if not statements and missing:
        return f"{name} at {value:.0f} % of peak; this report cannot tell about {', '.join(missing)}"
    if not statements:
        return f"at the limit of this design: {name} at {value:.0f} % of peak, nothing above 5 % found"
    waste = statements[0].key
    if waste.startswith("uncoalesced"):
        return f"uncoalesced: {name} is at {value:.0f} % of peak, but most of that traffic is waste"
    if value >= BUSY:
        return f"bound by {name} at {value:.0f} % of peak"
    return f"no pipe above {BUSY:.0f} %: bound by latency ({name} is highest, {value:.0f} %)"


def unchecked(kernel: KernelProfile) -> tuple[str, ...]:
    """Causes that this report has no metrics for: their absence from a diagnosis means nothing."""
    needed = (
        ("coalescing", ("load_bytes_per_sector", "store_bytes_per_sector")),
        ("bank conflicts", ("bank_conflicts", "shared_wavefronts")),
        ("spills", ("local_loads", "instructions")),
    )
    found = [word for word, keys in needed if any(find(kernel, key) is None for key in keys)]
    told = " ".join(rule.message for rule in kernel.rules)
    return tuple(w for w in found if not (w == "coalescing" and _RULE_SECTORS.search(told)))


def _statement(
    context: _Context, key: str, text: str, share: float, *evidence: tuple[str, float | None, str]
) -> Statement:
    found = tuple(Evidence(name, value, unit) for name, value, unit in evidence if value is not None)
    saves = max(0.0, min(1.0, share)) * context.duration
    return Statement(key, text, saves, found)


def _uncoalesced(context: _Context, kind: str) -> Statement | None:
    used = context.get(f"{kind}_bytes_per_sector")
    wasted, asked = context.get("sectors_wasted"), context.get("sectors")
    if used is None or used >= 24 or used <= 0:
        return None
    pipe = max(context.shares.get("L2", 0), context.shares.get("L1/shared", 0), context.shares.get("DRAM", 0))
    waste = wasted / asked if wasted is not None and asked else 1 - used / 32
    return _statement(
        context,
        f"uncoalesced_{kind}s",
        f"uncoalesced global {kind}s: {used:.0f} of 32 bytes used per sector; let neighbouring threads touch neighbouring addresses",
        waste * pipe / 100,
        (f"bytes used per {kind} sector", used, "byte"),
        ("excess global sectors", wasted, "sector"),
        ("global sectors", asked, "sector"),
    )


def _uncoalesced_by_rule(context: _Context) -> Statement | None:
    """For reports without sector metrics: ncu's own finding, when its text is there."""
    if context.get("load_bytes_per_sector") is not None:
        return None
    for rule in context.kernel.rules:
        told = _RULE_SECTORS.search(rule.message)
        if told is not None:
            wasted, percent = float(told["wasted"]), float(told["percent"])
            pipe = max(
                (v for name, v in context.shares.items() if name in ("L2", "L1/shared", "DRAM")), default=0
            )
            return _statement(
                context,
                "uncoalesced_accesses",
                f"uncoalesced global accesses: {percent:.0f} % of all sectors are excess (ncu's rule)",
                percent / 100 * pipe / 100,
                ("excess global sectors", wasted, "sector"),
            )
    return None


def _uncoalesced_loads(context: _Context) -> Statement | None:
    return _uncoalesced(context, "load")


def _uncoalesced_stores(context: _Context) -> Statement | None:
    return _uncoalesced(context, "store")


def _bank_conflicts(context: _Context) -> Statement | None:
    conflicts, all_passes = context.get("bank_conflicts"), context.get("shared_wavefronts")
    pipe = context.get("shared_pipe") or context.shares.get("L1/shared", 0)
    if not conflicts or not all_passes:
        return None
    share = conflicts / all_passes
    return _statement(
        context,
        "bank_conflicts",
        f"shared memory bank conflicts: {share:.0%} of all passes are replays; pad or swizzle the layout",
        share * pipe / 100,
        ("bank conflicts", conflicts, ""),
        ("shared memory wavefronts", all_passes, ""),
        ("shared memory pipe", pipe, "%"),
    )


def _shared_pipe(context: _Context) -> Statement | None:
    pipe, conflicts = context.get("shared_pipe"), context.get("bank_conflicts") or 0.0
    passes, mio = context.get("shared_wavefronts"), context.get("stall_mio")
    if pipe is None or pipe < BUSY or not passes or conflicts / passes > 0.2:
        return None
    fma = context.shares.get("FMA", 0.0)
    return _statement(
        context,
        "shared_traffic",
        f"the shared memory pipe is at {pipe:.0f} % while FMA is at {fma:.0f} %: keep more operands in registers (register tiles)",
        (pipe - max(fma, context.shares.get("DRAM", 0.0))) / 100,
        ("shared memory pipe", pipe, "%"),
        ("FMA pipe", fma, "%"),
        ("stall: MIO throttle", mio, "warp"),
    )


def _spills(context: _Context) -> Statement | None:
    loads, stores = context.get("local_loads") or 0.0, context.get("local_stores") or 0.0
    instructions = context.get("instructions")
    if loads + stores <= 0 or not instructions:
        return None
    share = min(1.0, (loads + stores) / instructions)
    pipe = max(context.shares.get("L1/shared", 0.0), context.shares.get("issue", 0.0), 20.0)
    return _statement(
        context,
        "spills",
        f"local memory traffic (spills or indexed private arrays): {share:.1%} of all instructions",
        share * 4 * pipe / 100,  # a local access waits for L1 where an arithmetic instruction would issue
        ("local loads", loads, "inst"),
        ("local stores", stores, "inst"),
        ("registers per thread", context.get("registers"), ""),
    )


def _redundant_traffic(context: _Context) -> Statement | None:
    need, read, dram = context.known.bytes_min, context.get("dram_read"), context.shares.get("DRAM")
    if not need or read is None or dram is None:
        return None
    moved = (read + (context.get("dram_write") or 0.0)) * 1e6
    if moved <= REDUNDANT * need:
        return None
    return _statement(
        context,
        "redundant_traffic",
        f"DRAM moves {moved / need:.1f} times the bytes that the contract needs; reuse through shared memory, L2 or registers",
        (1 - need / moved) * dram / 100,
        ("DRAM bytes", moved / 1e6, "MB"),
        ("contract bytes", need / 1e6, "MB"),
        ("DRAM throughput", dram, "%"),
    )


def _latency(context: _Context) -> Statement | None:
    if context.busy or not context.shares:
        return None
    stalls = {key: context.get(key) for key in _STALLS}
    known = {key: value for key, value in stalls.items() if value is not None}
    top = max(known, key=lambda k: known[k]) if known else ""
    words = {
        "stall_long": "warps wait for global memory: more loads in flight (unroll, wider loads, cp.async or TMA stages)",
        "stall_short": "warps wait for shared memory or special functions: more independent work per warp",
        "stall_mio": "the shared-memory queue is full: fewer, wider shared accesses",
        "stall_barrier": "warps wait at barriers: fewer barriers, or smaller blocks with more of them per SM",
        "stall_drain": "warps exit while stores are still leaving: fewer, wider, coalesced stores",
    }.get(top, "too little work in flight")
    highest = max(v for name, v in context.shares.items() if name != "launch")
    return _statement(
        context,
        "latency",
        f"no pipe above {BUSY:.0f} %: {words}",
        1 - highest / 100,
        (top.replace("stall_", "stall: "), known.get(top), "warp"),
        ("eligible warps", context.get("eligible"), "warp"),
        ("achieved occupancy", context.get("occupancy"), "%"),
        ("highest pipe", highest, "%"),
    )


def _small_grid(context: _Context) -> Statement | None:
    waves = context.get("waves")
    if waves is None or waves >= 1 or waves <= 0 or context.busy:
        return None
    return _statement(
        context,
        "small_grid",
        f"the grid fills {waves:.0%} of the device: split the work finer (split-K, smaller tiles) or batch it",
        1 - waves,
        ("waves", waves, ""),
        ("blocks", context.get("grid_size"), ""),
    )


def _tail(context: _Context) -> Statement | None:
    waves = context.get("waves")
    if waves is None or waves <= 1 or context.busy:
        return None
    full = math.ceil(waves)
    return _statement(
        context,
        "tail",
        f"the last wave is {waves - math.floor(waves):.0%} full ({waves:.2f} waves): choose a grid that divides, or go persistent",
        (full - waves) / full,
        ("waves", waves, ""),
    )


def _divergence(context: _Context) -> Statement | None:
    threads, issue = context.get("threads_per_instruction"), context.shares.get("issue")
    if threads is None or issue is None or threads >= 28:
        return None
    return _statement(
        context,
        "divergence",
        f"{threads:.0f} of 32 threads active per instruction: divergent branches or idle lanes",
        (1 - threads / 32) * issue / 100,
        ("threads per instruction", threads, ""),
        ("issue slots busy", issue, "%"),
    )


def _launch_gaps(context: _Context) -> Statement | None:
    gaps = context.known.launch_gaps_us
    if not gaps:
        return None
    return _statement(
        context,
        "launch_gaps",
        f"{gaps:.1f} us between the steps of one call: fuse the steps, use programmatic dependent launch or a graph",
        gaps / context.duration,
        ("gaps between steps", gaps, "us"),
    )


_RULES: tuple[Callable[[_Context], Statement | None], ...] = (
    _uncoalesced_loads,
    _uncoalesced_stores,
    _uncoalesced_by_rule,
    _bank_conflicts,
    _shared_pipe,
    _spills,
    _redundant_traffic,
    _latency,
    _small_grid,
    _tail,
    _divergence,
    _launch_gaps,
)
