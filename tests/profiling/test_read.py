"""Profiles of every form are read; absent is absent; rubbish is one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.profiling.metrics import METRICS, find
from kda_tui.profiling.read import read_profile
from kda_tui.profiling.read_csv import read_csv
from kda_tui.profiling.read_text import read_text
from kda_tui.profiling.units import parse_number, to_base
from kda_tui.text import UserError

DETAILS = """==PROF== Connected to process 12 (app)
==WARNING== Found outstanding GPU clock reset, trying to revert...Success.
"ID","Process ID","Kernel Name","Block Size","Grid Size","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description","Estimated Speedup"
"0","12","copy","(256, 1, 1)","(1,024, 1, 1)","9.0","GPU Speed Of Light Throughput","Duration","us","12.50"
"0","12","copy","(256, 1, 1)","(1,024, 1, 1)","9.0","GPU Speed Of Light Throughput","Memory Throughput","%","71.5"
"0","12","copy","(256, 1, 1)","(1,024, 1, 1)","9.0","Memory Workload Analysis","Memory Throughput","Gbyte/s","1,500.00"
"0","12","copy","(256, 1, 1)","(1,024, 1, 1)","9.0","SpeedOfLight","","","","SOLBottleneck","OPT","Look at L2","12.5"
"1","12","scale","(32, 2, 1)","(8, 1, 1)","9.0","GPU Speed Of Light Throughput","Duration","ms","0.25"
"""

RAW = """"ID","Kernel Name","Block Size","Grid Size","CC","gpu__time_duration.sum","dram__bytes_read.sum","lts__t_sector_hit_rate.pct"
"","","","","","us","Mbyte","%"
"0","copy","(256, 1, 1)","(16, 1, 1)","9.0","12.5","1,048.5","nan"
"1","copy","(256, 1, 1)","(16, 1, 1)"
"""

TEXT = """==PROF== Profiling "copy" - 0: 0%....50%....100% - 8 passes
[7] app@127.0.0.1
  copy(float *, const float *) (128, 128, 1)x(32, 32, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    Duration                         us       250.72
    Memory Throughput                 %        84.62
    ----------------------- ----------- ------------

    OPT   Est. Local Speedup: 61.5%
          The memory access pattern is poor,
          see the guide.

    Section: Command line profiler metrics
    dram__bytes_read.sum  Mbyte  69.10
"""


def test_details_keep_two_metrics_of_one_name_apart() -> None:
    profile = read_csv(DETAILS, "d.csv")
    copy, scale = profile.kernels
    assert find(copy, "duration") == pytest.approx(12.5)
    assert find(copy, "memory_throughput") == pytest.approx(71.5)
    assert find(copy, "dram_rate") == pytest.approx(1500.0)
    assert find(scale, "duration") == pytest.approx(250.0)
    assert copy.block == (256, 1, 1)
    assert copy.rules[0].speedup == 12.5
    assert profile.findings == ("==WARNING== Found outstanding GPU clock reset, trying to revert...Success.",)


def test_raw_reads_units_row_and_leaves_the_absent_absent() -> None:
    profile = read_csv(RAW, "r.csv")
    first, second = profile.kernels
    assert find(first, "duration") == pytest.approx(12.5)
    assert find(first, "dram_read") == pytest.approx(1048.5)
    assert find(first, "l2_hit") is None, "nan is not a number to show"
    assert find(second, "duration") is None
    assert "shorter than the header" in profile.findings[0]


def test_text_of_the_terminal() -> None:
    profile = read_text(TEXT, "t.txt")
    (kernel,) = profile.kernels
    assert kernel.name == "copy(float *, const float *)"
    assert kernel.grid == (128, 128, 1)
    assert find(kernel, "duration") == pytest.approx(250.72)
    assert find(kernel, "dram_read") == pytest.approx(69.1)
    assert kernel.rules[0].speedup == 61.5
    assert kernel.rules[0].message.endswith("see the guide.")


def test_text_without_a_kernel_says_why() -> None:
    refused = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
    assert "ERR_NVGPUCTRPERM" in read_text(refused, "t").findings[0]
    assert "No kernels were profiled" in read_text("==WARNING== No kernels were profiled.", "t").findings[0]


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (2.5, "us", (2500.0, "ns")),
        (1.0, "Tbyte/s", (1e12, "byte/s")),
        (1.98, "Ghz", (1.98e9, "hz")),
        (8.19, "Kbyte/block", (8190.0, "byte/block")),
        (84.0, "%", (84.0, "%")),
        (3.0, "inst/cycle", (3.0, "inst/cycle")),
    ],
)
def test_units_come_to_base(value: float, unit: str, expected: tuple[float, str]) -> None:
    scaled, base = to_base(value, unit)
    assert scaled == pytest.approx(expected[0])
    assert base == expected[1]


@pytest.mark.parametrize("cell", ["", "nan", "(32, 32, 1)", "1,23", "9" * 60, "0x10", "1e", "--5"])
def test_cells_that_are_no_numbers(cell: str) -> None:
    assert parse_number(cell) is None


@given(st.text(max_size=400))
def test_readers_survive_anything(text: str) -> None:
    read_csv('"ID","Kernel Name","Metric Name","Metric Value"\n' + text, "x")
    read_text("    Section: X\n" + text, "x")
    read_csv(text, "x")


def test_wrong_files_get_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.ncu-rep").write_bytes(b"not a report")
    (tmp_path / "b.csv").write_text("a,b\n1,2\n")
    for name in ("a.ncu-rep", "b.csv", "absent.txt", "."):
        with pytest.raises(UserError) as error:
            read_profile(tmp_path / name)
        assert "\n" not in str(error.value)


def test_every_metric_says_how_it_is_called() -> None:
    assert len({m.key for m in METRICS}) == len(METRICS) >= 35
    assert all(m.names for m in METRICS)
