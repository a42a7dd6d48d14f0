"""The speed of light: bytes and flops of the contract against the device's peaks.

Two floors: what nothing can beat (theoretical peaks: being faster is *impossible*), and what a good
kernel can reach (peaks measured once per device with a copy and a matrix product: the target).
"""

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
    """Microseconds of one call: ``us`` is the target, ``least_us`` what cannot be beaten where ``binding``."""

    us: float
    least_us: float
    binding: bool

    def is_beaten_by(self, time_us: float, device: str) -> bool:
        """Faster than physics allows; also a time that is no positive number."""
        if not time_us > 0.0:
            return True
        return self.binding and self.least_us / time_us > IMPOSSIBLE_SHARE[device]


def floor_of(
    contract: Contract, workload: WorkloadSpec, facts: DeviceFacts, numbers: dict[str, int] | None = None
) -> Floor | None:
    """None where the contract gives no cost or the device no peak.

    A warm working set smaller than the L2 cache may beat the memory: its floor is shown, not binding.
    """
    names: dict[str, Number] = {**workload_names(contract, workload), **(numbers or {})}
    moved = _cost(contract.cost.bytes, names, "bytes")
    work = _cost(contract.cost.flops, names, "flops")
    dtype = contract.cost.flops_dtype or ""
    least = _longest(
        facts.launch_floor_us, moved, facts.peak_bandwidth, work, facts.peak_flops.get(dtype, 0.0)
    )
    if least <= 0:
        return None
    target = _longest(
        facts.empty_launch_us, moved, facts.reached_bandwidth, work, facts.reached_flops.get(dtype, 0.0)
    )
    cached = contract.benchmark.cache == "warm" and (moved or 0) <= facts.l2_bytes
    return Floor(max(least, target), least, binding=not cached)


def _longest(
    launch_us: float, moved: int | None, bandwidth: float | None, work: int | None, flops: float
) -> float:
    times = [launch_us]
    if moved is not None and bandwidth:
        times.append(1e6 * moved / bandwidth)
    if work is not None and flops > 0:
        times.append(1e6 * work / flops)
    return max(times)


def sol_score(time_us: float, baseline_us: float, floor_us: float) -> float | None:
    """1 at the floor, 0.5 at the baseline's time, towards 0 beyond (SOL-ExecBench, arXiv 2603.19173), clamped.

    None where a baseline at or below the floor leaves it without meaning.
    """
    if baseline_us <= floor_us:
        return None
    return min(1.0, 1.0 / (1.0 + max(0.0, time_us - floor_us) / (baseline_us - floor_us)))


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
