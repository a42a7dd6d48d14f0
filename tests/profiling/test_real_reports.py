"""Real reports of ncu 2025 and 2026, where the folder with them is present."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kda_tui.profiling.diagnosis import diagnose
from kda_tui.profiling.hotspots import hotspots
from kda_tui.profiling.metrics import METRICS, find
from kda_tui.profiling.read import read_profile

DATA = Path(os.environ.get("KDA_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
THREE = DATA / "ncu" / "h200_three_kernels"

pytestmark = pytest.mark.skipif(not THREE.is_dir(), reason=f"no real reports under {DATA}")
pytest.importorskip("ncu_report", reason="needs kda-tui[profile]")


@pytest.mark.parametrize(
    ("kernel", "line", "samples", "total", "stall", "waits_on"),
    [
        (0, 9, 23_517, 31_346, "drain", (7,)),
        (1, 33, 3_700, 7_525, "long_scoreboard", ()),
        (2, 49, 21_639, 28_976, "mio_throttle", ()),
    ],
)
def test_the_known_hot_lines(
    kernel: int, line: int, samples: int, total: int, stall: str, waits_on: tuple[int, ...]
) -> None:
    found = hotspots(read_profile(THREE / "three_kernels.ncu-rep").kernels[kernel])
    spot = found.lines[0]
    assert (spot.line, spot.samples, found.total) == (line, samples, total)
    assert spot.stall == stall
    assert spot.waits_on == waits_on


def test_every_form_of_one_report_agrees() -> None:
    rep, raw, details, text = (
        read_profile(THREE / name).kernels
        for name in ("three_kernels.ncu-rep", "raw.csv", "details.csv", "details.txt")
    )
    for a, b, c, d in zip(rep, raw, details, text, strict=True):
        for key in ("duration", "dram_throughput", "l2_throughput", "occupancy", "registers"):
            value = find(a, key)
            assert value is not None
            for other in (b, c, d):
                assert find(other, key) == pytest.approx(value, rel=0.01), key
    assert sum(find(rep[0], m.key) is not None for m in METRICS) >= 45


def test_the_transpose_is_called_uncoalesced() -> None:
    for name in ("three_kernels.ncu-rep", "raw.csv", "details.csv", "details.txt"):
        assert diagnose(read_profile(THREE / name).kernels[0]).verdict.startswith("uncoalesced"), name


def test_every_report_of_the_collection_is_read() -> None:
    reports = sorted(DATA.rglob("*.ncu-rep"))
    assert reports
    for path in reports:
        profile = read_profile(path)
        assert profile.kernels, path
        for kernel in profile.kernels:
            assert find(kernel, "duration") is not None
            found = hotspots(kernel)
            assert found.lines or found.why_none
