"""Which reasons of NVML void a block."""

from __future__ import annotations

from kda_tui.evaluation.devices.cuda.throttle import dashed, disturbances, voiding


def test_heat_and_hardware_void_and_a_power_cap_does_not() -> None:
    assert voiding(0x4) == voiding(0x1) == voiding(0) == ()
    assert voiding(0x48) == ("hardware slowdown", "hardware thermal slowdown")
    assert voiding(0x24) == ("software thermal slowdown",)


def test_uuids_are_written_as_nvml_does() -> None:
    bare = "GPU-0123456789abcdef0123456789abcdef"
    assert dashed(bare) == dashed(dashed(bare)) == "GPU-01234567-89ab-cdef-0123-456789abcdef"


def test_an_unknown_gpu_disturbs_nothing() -> None:
    assert disturbances("GPU-" + 32 * "0") == ()
