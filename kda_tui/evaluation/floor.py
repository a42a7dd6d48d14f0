"""The speed of light: bytes and flops of the contract against the device's peaks."""

from __future__ import annotations

from dataclasses import dataclass

from kda_tui.evaluation.devices.interface import DeviceFacts
from kda_tui.evaluation.inputs import InputSet
from kda_tui.evaluation.oracle import Oracle, OracleError
from kda_tui.expressions import ExpressionError, Number, evaluate
from kda_tui.record.contract import Contract, WorkloadSpec, workload_names

IMPOSSIBLE_SHARE = {"cuda": 1.0, "cpu": 2.0}  # peaks of a cpu are measured, not theoretical: allow for that


@dataclass(frozen=True, slots=True)
class Floor:
    """The least time of one call in microseconds, and whether being faster is impossible or only odd."""

    us: float
    binding: bool

    def is_beaten_by(self, time_us: float, device: str) -> bool:
        """Faster than physics allows; also a time that is no positive number."""
        if not time_us > 0.0:
            return True
        return self.binding and self.us / time_us > IMPOSSIBLE_SHARE[device]


def floor_of(
    contract: Contract, workload: WorkloadSpec, facts: DeviceFacts, numbers: dict[str, int] | None = None
) -> Floor | None:
    """None where the contract gives no cost or the device no peak.

    A warm working set smaller than the L2 cache may beat the memory: its floor is shown, not binding.
    """
    names: dict[str, Number] = {**workload_names(contract, workload), **(numbers or {})}
    moved = _cost(contract.cost.bytes, names, "bytes")
    work = _cost(contract.cost.flops, names, "flops")
    times = [facts.launch_floor_us] if facts.launch_floor_us > 0 else []
    cached = contract.benchmark.cache == "warm" and (moved or 0) <= facts.l2_bytes
    if moved is not None and facts.peak_bandwidth:
        times.append(1e6 * moved / facts.peak_bandwidth)
    peak = facts.peak_flops.get(contract.cost.flops_dtype or "", 0.0)
    if work is not None and peak > 0:
        times.append(1e6 * work / peak)
    return Floor(max(times), binding=not cached) if times and max(times) > 0 else None


def _cost(expression: int | str | None, names: dict[str, Number], key: str) -> int | None:
    if expression is None:
        return None
    try:
        return evaluate(expression, names)
    except ExpressionError as error:
        raise OracleError(f"contract.toml: cost.{key}: {error}") from error


def cost_facts(oracle: Oracle, inputs: InputSet) -> dict[str, int] | None:
    """What reference.py's facts() says of one case's inputs, if the contract asks for it."""
    return oracle.reference.facts(inputs.values()) if oracle.contract.cost.facts else None
