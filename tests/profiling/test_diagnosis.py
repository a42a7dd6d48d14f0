"""A diagnosis cites its metrics, calls waste waste, and does not miscall good kernels."""

from __future__ import annotations

from kda_tui.profiling.compare import compare
from kda_tui.profiling.diagnosis import Known, diagnose
from kda_tui.profiling.metrics import BY_KEY
from kda_tui.profiling.model import KernelProfile, Value

WELL_BEHAVED = {
    "load_bytes_per_sector": 32.0, "store_bytes_per_sector": 32.0, "bank_conflicts": 0.0,
    "shared_wavefronts": 1e6, "local_loads": 0.0, "local_stores": 0.0, "instructions": 1e7,
    "threads_per_instruction": 32.0,
}  # fmt: skip


def kernel(**shown: float) -> KernelProfile:
    """A launch with metrics given in the units in which they are shown."""
    metrics = {BY_KEY[k].names[0]: Value(v / BY_KEY[k].scale) for k, v in {**WELL_BEHAVED, **shown}.items()}
    return KernelProfile("k", metrics=metrics)


def keys(found: KernelProfile, known: Known | None = None) -> list[str]:
    return [s.key for s in diagnose(found, known).statements]


def test_the_naive_transpose_is_uncoalesced_not_good() -> None:
    found = diagnose(
        kernel(duration=250, l2_throughput=84, dram_throughput=10, l1_throughput=52, store_bytes_per_sector=4,
               sectors=18_874_368, sectors_wasted=14_680_064, memory_throughput=84)
    )  # fmt: skip
    assert found.verdict.startswith("uncoalesced")
    assert found.statements[0].key == "uncoalesced_stores"
    assert 150 < found.statements[0].saves_us < 250
    assert {e.metric for e in found.statements[0].evidence} >= {"bytes used per store sector"}


def test_a_persistent_hopper_kernel_is_not_miscalled() -> None:
    found = kernel(duration=400, tensor=78, l1_throughput=60, dram_throughput=20, occupancy=12, eligible=0.3,
                   waves=1.0, stall_barrier=3, stall_long=5, issue_active=15)  # fmt: skip
    assert keys(found) == []
    assert "limit of this design" in diagnose(found).verdict


def test_low_occupancy_counts_where_no_pipe_is_busy() -> None:
    found = kernel(duration=100, dram_throughput=30, l2_throughput=20, waves=0.4, stall_long=20, occupancy=12)
    assert keys(found) == ["latency", "small_grid"]
    assert "more loads in flight" in diagnose(found).statements[0].text


def test_spills_conflicts_and_redundant_traffic() -> None:
    assert "spills" in keys(kernel(duration=100, l1_throughput=70, local_loads=1e6, local_stores=1e6))
    assert "bank_conflicts" in keys(
        kernel(duration=100, l1_throughput=90, shared_pipe=90, bank_conflicts=8e5, shared_wavefronts=1e6)
    )
    twice = kernel(duration=100, dram_throughput=90, dram_read=200, dram_write=100)
    assert keys(twice, Known(bytes_min=150e6)) == ["redundant_traffic"]
    assert keys(twice, Known(bytes_min=290e6)) == []


def test_launch_gaps_and_no_duration() -> None:
    assert keys(kernel(duration=20, dram_throughput=80), Known(launch_gaps_us=6)) == ["launch_gaps"]
    assert "no duration" in diagnose(kernel(dram_throughput=80)).verdict


def test_a_poor_report_does_not_clear_a_kernel() -> None:
    poor = KernelProfile(
        "k",
        metrics={
            "gpu__time_duration.sum": Value(1e5),
            "lts__throughput.avg.pct_of_peak_sustained_elapsed": Value(85.0),
        },
    )
    assert "cannot tell about coalescing" in diagnose(poor).verdict


def test_bounds_never_exceed_the_duration() -> None:
    found = diagnose(
        kernel(duration=10, l2_throughput=100, sectors=1, sectors_wasted=50, load_bytes_per_sector=1)
    )
    assert all(0 <= s.saves_us <= 10 for s in found.statements)


def test_compare_directs_only_monotone_metrics() -> None:
    before, after = (
        kernel(duration=100, occupancy=90, registers=32),
        kernel(duration=80, occupancy=40, dram_read=5),
    )
    found = {c.metric.key: c.direction for c in compare(before, after)}
    assert found == {
        "duration": "better",
        "occupancy": "changed",
        "registers": "gone",
        "dram_read": "appeared",
    }
