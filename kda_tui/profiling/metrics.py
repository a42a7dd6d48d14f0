"""The metrics that a person needs, with unit, the names they go by, and how to read them.

Names differ by ncu version and chip: the first of ``names`` that a report has is used, then the
``display`` names of details pages and text. Reading notes follow NVIDIA's Kernel Profiling Guide
and measurements on real reports. ``better`` is given only where more, or less, is always better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kda_tui.profiling.model import KernelProfile, Value
from kda_tui.profiling.units import unit_class


@dataclass(frozen=True, slots=True)
class Metric:
    key: str
    label: str
    unit: str  # as shown
    scale: float  # base unit times this is what is shown
    names: tuple[str, ...]
    reading: str
    better: Literal["more", "less", ""] = ""
    display: tuple[str, ...] = ()
    base: str = "%"  # class of the base unit, to tell equal display names apart


def _m(
    key: str,
    label: str,
    unit: str,
    names: str,
    reading: str,
    better: Literal["more", "less", ""] = "",
    display: str = "",
    base: str = "",
    scale: float = 1.0,
) -> Metric:
    return Metric(
        key,
        label,
        unit,
        scale,
        tuple(names.split()),
        reading,
        better,
        tuple(d for d in display.split("|") if d),
        base or ("%" if unit == "%" else ""),
    )


_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio smsp__average_warps_issue_stalled_{}_per_issue_active"
_PCT_E = ".avg.pct_of_peak_sustained_elapsed"
_PCT_A = ".avg.pct_of_peak_sustained_active"


def _stall(reason: str) -> str:
    return _STALL.replace("{}", reason)


METRICS: tuple[Metric, ...] = (
    _m("duration", "duration", "us", "gpu__time_duration.sum gpu__time_duration.avg gpu__time_duration.max",
       "time under the profiler, caches flushed: not the benchmark's number", "less", "Duration", "ns", 1e-3),
    _m("cycles", "elapsed cycles", "cycle", "gpc__cycles_elapsed.max sm__cycles_elapsed.max",
       "independent of the clock: compare this between profiles", "less", "Elapsed Cycles", "cycle"),
    _m("sm_clock", "SM clock", "MHz", "gpc__cycles_elapsed.avg.per_second smsp__cycles_elapsed.avg.per_second",
       "while profiled; the base clock under --clock-control base", "", "SM Frequency", "hz", 1e-6),
    _m("dram_clock", "memory clock", "MHz", "dram__cycles_elapsed.avg.per_second", "while profiled", "",
       "DRAM Frequency", "hz", 1e-6),
    _m("sm_throughput", "compute throughput", "%", f"sm__throughput{_PCT_E}",
       "the busiest SM sub-unit against its peak", "", "Compute (SM) Throughput|SM Throughput|SOL SM"),
    _m("memory_throughput", "memory pipelines", "%", f"gpu__compute_memory_throughput{_PCT_E}",
       "the busiest memory sub-unit, L1 to DRAM; high can mean waste (check bytes per sector)", "",
       "Memory Throughput|Mem Busy|SOL Memory"),
    _m("dram_throughput", "DRAM throughput", "%", f"gpu__dram_throughput{_PCT_E} dram__throughput{_PCT_E}",
       "DRAM against its peak", "", "DRAM Throughput"),
    _m("l1_throughput", "L1/shared throughput", "%", f"l1tex__throughput{_PCT_A} l1tex__throughput{_PCT_E}",
       "L1 and shared memory against their peak", "", "L1/TEX Cache Throughput"),
    _m("l2_throughput", "L2 throughput", "%", f"lts__throughput{_PCT_E}", "L2 slices against their peak", "",
       "L2 Cache Throughput"),
    _m("dram_rate", "DRAM rate", "GB/s", "dram__bytes.sum.per_second", "bytes read and written per second", "",
       "Memory Throughput", "byte/s", 1e-9),
    _m("dram_read", "DRAM read", "MB", "dram__bytes_read.sum dram__bytes_op_read.sum",
       "against the contract's bytes: more is redundant traffic", "less", "", "byte", 1e-6),
    _m("dram_write", "DRAM written", "MB", "dram__bytes_write.sum dram__bytes_op_write.sum",
       "too low when dirty lines stay in L2: no proof of what was written", "", "", "byte", 1e-6),
    _m("l1_hit", "L1 hit rate", "%", "l1tex__t_sector_hit_rate.pct", "streaming kernels need none", "",
       "L1/TEX Hit Rate"),
    _m("l2_hit", "L2 hit rate", "%", "lts__t_sector_hit_rate.pct", "", "", "L2 Hit Rate"),
    _m("load_bytes_per_sector", "bytes used per loaded sector", "byte",
       "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio "
       "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
       "of 32; below means uncoalesced loads", "more", "", "byte"),
    _m("store_bytes_per_sector", "bytes used per stored sector", "byte",
       "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio "
       "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
       "of 32; 4 is the worst case for fp32 stores", "more", "", "byte"),
    _m("sectors", "global sectors asked of L2", "sector", "memory_l2_theoretical_sectors_global",
       "32 bytes each", "less"),
    _m("sectors_wasted", "excess global sectors", "sector",
       "derived__memory_l2_theoretical_sectors_global_excessive", "sectors that perfect coalescing would save",
       "less"),
    _m("shared_wavefronts", "shared memory wavefronts", "", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
       "passes through the shared memory pipe", "less"),
    _m("shared_pipe", "shared memory pipe", "%",
       "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed",
       "wavefronts against the pipe's peak", ""),
    _m("bank_conflicts", "shared bank conflicts", "", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
       "extra wavefronts; set against all wavefronts", "less"),
    _m("occupancy", "achieved occupancy", "%", f"sm__warps_active{_PCT_A}",
       "a means, not an end: low is fine when a pipe is busy", "", "Achieved Occupancy"),
    _m("occupancy_limit", "theoretical occupancy", "%", "sm__maximum_warps_per_active_cycle_pct",
       "what registers, shared memory and block size allow", "", "Theoretical Occupancy"),
    _m("blocks_by_registers", "blocks/SM by registers", "block", "launch__occupancy_limit_registers",
       "the smallest limit decides", "", "Block Limit Registers", "block"),
    _m("blocks_by_shared", "blocks/SM by shared memory", "block", "launch__occupancy_limit_shared_mem",
       "the smallest limit decides", "", "Block Limit Shared Mem", "block"),
    _m("blocks_by_warps", "blocks/SM by warps", "block", "launch__occupancy_limit_warps",
       "the smallest limit decides", "", "Block Limit Warps", "block"),
    _m("registers", "registers per thread", "", "launch__registers_per_thread", "255 is the limit; check spills",
       "", "Registers Per Thread", "register"),
    _m("shared_static", "static shared memory", "byte", "launch__shared_mem_per_block_static", "per block", "",
       "Static Shared Memory Per Block", "byte"),
    _m("shared_dynamic", "dynamic shared memory", "byte", "launch__shared_mem_per_block_dynamic", "per block", "",
       "Dynamic Shared Memory Per Block", "byte"),
    _m("grid_size", "blocks", "", "launch__grid_size", "", "", "Grid Size"),
    _m("block_size", "threads per block", "", "launch__block_size", "", "", "Block Size"),
    _m("waves", "waves", "", "launch__waves_per_multiprocessor",
       "blocks over what fits at once; a small fraction is a tail; persistent kernels stay at 1", "",
       "Waves Per SM"),
    _m("ipc", "instructions per cycle", "inst/cycle", "sm__inst_executed.avg.per_cycle_active", "of 4", "",
       "Executed Ipc Active", "inst"),
    _m("issue_active", "issue slots busy", "%", f"sm__issue_active{_PCT_E} smsp__issue_active{_PCT_E} "
       f"smsp__issue_active{_PCT_A} sm__inst_issued{_PCT_A}",
       "share of cycles in which a scheduler issued", "", "Issue Slots Busy"),
    _m("eligible", "eligible warps", "warp", "smsp__warps_eligible.avg.per_cycle_active",
       "below 1 the schedulers starve", "", "Eligible Warps Per Scheduler", "warp"),
    _m("warp_latency", "warp cycles per instruction", "cycle",
       "smsp__average_warp_latency_per_inst_issued.ratio smsp__average_warps_issue_stalled_per_issue.ratio",
       "how long a warp waits between two issues", "less", "Warp Cycles Per Issued Instruction", "cycle"),
    _m("stall_long", "stall: long scoreboard", "warp", _stall("long_scoreboard"),
       "waits for global, local or texture memory", ""),
    _m("stall_short", "stall: short scoreboard", "warp", _stall("short_scoreboard"),
       "waits for shared memory or special functions", ""),
    _m("stall_mio", "stall: MIO throttle", "warp", _stall("mio_throttle"),
       "the queue to shared memory and special functions is full", ""),
    _m("stall_barrier", "stall: barrier", "warp", _stall("barrier"), "waits at __syncthreads", ""),
    _m("stall_drain", "stall: drain", "warp", _stall("drain"), "waits at exit for stores to leave", ""),
    _m("local_loads", "local memory loads", "inst", "smsp__sass_inst_executed_op_local_ld.sum "
       "smsp__inst_executed_op_local_ld.sum sass__inst_executed_local_loads",
       "spills or indexed private arrays", "less", "", "inst"),
    _m("local_stores", "local memory stores", "inst", "smsp__sass_inst_executed_op_local_st.sum "
       "smsp__inst_executed_op_local_st.sum sass__inst_executed_local_stores",
       "spills or indexed private arrays", "less", "", "inst"),
    _m("threads_per_instruction", "threads per instruction", "", "smsp__thread_inst_executed_per_inst_executed.ratio",
       "of 32; below means divergence", "more", "Avg. Active Threads Per Warp", "thread"),
    _m("tensor", "tensor pipe", "%", f"sm__pipe_tensor_cycles_active{_PCT_E} sm__pipe_tensor_cycles_active{_PCT_A} "
       f"sm__inst_executed_pipe_tensor{_PCT_A}", "non-zero in a contract for fp32 arithmetic needs a look", ""),
    _m("fma", "FMA pipe", "%", f"sm__pipe_fma_cycles_active{_PCT_E} sm__inst_executed_pipe_fma{_PCT_E} "
       f"sm__inst_executed_pipe_fma{_PCT_A}", "", ""),
    _m("alu", "ALU pipe", "%", f"sm__pipe_alu_cycles_active{_PCT_E} sm__inst_executed_pipe_alu{_PCT_E} "
       f"sm__inst_executed_pipe_alu{_PCT_A}", "integer and logic", ""),
    _m("xu", "XU pipe", "%", f"sm__inst_executed_pipe_xu{_PCT_E} sm__inst_executed_pipe_xu{_PCT_A}",
       "exp, sin, rsqrt, conversions", ""),
    _m("instructions", "warp instructions", "inst", "smsp__inst_executed.sum sm__inst_executed.sum",
       "did the change remove work?", "less", "Executed Instructions", "inst"),
    _m("passes", "replay passes", "", "profiler__replayer_passes", "how the counters were collected", ""),
)  # fmt: skip

BY_KEY: dict[str, Metric] = {metric.key: metric for metric in METRICS}


def find(kernel: KernelProfile, key: str) -> float | None:
    """The metric in its shown unit, or None where this report does not have it."""
    metric = BY_KEY[key]
    for name in metric.names:
        value = kernel.metrics.get(name)
        if value is not None and value.number is not None:
            return value.number * metric.scale
    for display in metric.display:
        value = _displayed(kernel, display, metric.base)
        if value is not None and value.number is not None:
            return value.number * metric.scale
    return None


def _displayed(kernel: KernelProfile, display: str, base: str) -> Value | None:
    for key, value in kernel.displayed.items():
        if key.partition("/")[2] == display and (not base or unit_class(value.unit) in (base, "")):
            return value
    return None
