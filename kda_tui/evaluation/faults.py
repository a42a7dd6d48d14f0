"""How an evaluation ends early: the candidate is rejected, or the bench itself is at fault."""

from __future__ import annotations

from kda_tui.evaluation.devices.interface import LaunchReport
from kda_tui.evaluation.verdict import Mismatch

CANDIDATE = "candidate"

_VALIDITY = {
    "launch_error": "launch_error",
    "crashed": "launch_error",
    "timeout": "timeout",
    "out_of_memory": "out_of_memory",
    "infrastructure_error": "infrastructure_error",
}


class Rejected(Exception):
    """The candidate failed a gate: ``validity`` is the verdict's word, ``gate`` the gate's name."""

    def __init__(self, validity: str, gate: str, reason: str, mismatch: Mismatch | None = None) -> None:
        super().__init__(reason)
        self.validity = validity
        self.gate = gate
        self.reason = reason
        self.mismatch = mismatch


class InfrastructureFault(Exception):
    """Something other than the candidate failed; it never counts against the candidate."""


class Inconclusive(Exception):
    """The measurement says nothing: too noisy, voided, or disturbed."""


def require_ok(report: LaunchReport, arm: str, gate: str, what: str) -> None:
    """Raise what a launch report means: Rejected for the candidate's arm, else InfrastructureFault."""
    if report.status == "ok":
        return
    text = report.text or report.status
    validity = _VALIDITY.get(report.status, "infrastructure_error")
    if arm != CANDIDATE or validity == "infrastructure_error":
        raise InfrastructureFault(f"{what}, arm {arm}: {report.status}: {text}")
    raise Rejected(validity, gate, f"{what}: {text}")
