"""What compute-sanitizer writes, in one line; and no report is not a clean one."""

from __future__ import annotations

import pytest

from kda_tui.evaluation.devices.cuda.watched import parse_report

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at sum(const float *, float *)+0x90
=========     by thread (31,0,0) in block (0,0,0)
========= ERROR SUMMARY: 1 error
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at rows+0x100 and Read access at rows+0x180 [32 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MEMCHECK, "Invalid __global__ read of size 4 bytes (ERROR SUMMARY: 1 error)"),
        (RACECHECK, "Race reported between Write access at rows+0x100 and Read access at rows+0x180 [32 hazards] "
                    "(RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings))"),
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", ""),
        ("========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", ""),
        ("========= COMPUTE-SANITIZER\n========= Target application terminated\n", None),
        ("", None),
    ],
)  # fmt: skip
def test_reports(text: str, said: str | None) -> None:
    assert parse_report(text) == said
