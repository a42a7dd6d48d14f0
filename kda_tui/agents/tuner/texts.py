"""The draft and the plan that the tuner writes: what is known, what will be tried, in what order, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kda_tui.agents.tuner.space import Space, words
from kda_tui.expressions import ExpressionError, evaluate
from kda_tui.record.contract import (
    Contract,
    TensorSpec,
    WorkloadSpec,
    element_size,
    tensor_shape,
    workload_names,
)
from kda_tui.record.snapshot import Snapshot


def minimum_bytes(contract: Contract, workload: WorkloadSpec) -> int | None:
    """Bytes that must move for one call: the contract's cost, else every tensor once."""
    names = workload_names(contract, workload)
    try:
        if contract.cost.bytes is not None:
            return evaluate(contract.cost.bytes, names)
        return sum(_size(t, names) for t in contract.tensors)
    except ExpressionError:
        return None


def _size(tensor: TensorSpec, names: Mapping[str, Any]) -> int:
    count = 1
    for extent in tensor_shape(tensor, names):
        count *= extent
    return count * int(element_size(tensor.dtype))


def floor_lines(snap: Snapshot, contract: Contract) -> list[str]:
    """One line per workload: bytes that must move, and the time that takes at the device's peak."""
    device = snap.run.device if snap.run else {}
    peak = device.get("bandwidth")
    lines = []
    for workload in contract.workloads:
        needed = minimum_bytes(contract, workload)
        if needed is None:
            lines.append(
                f"* `{workload.id}`: the cost depends on the inputs (facts), so the judge reports it"
            )
        elif isinstance(peak, int | float) and peak > 0:
            lines.append(
                f"* `{workload.id}`: {needed:,} bytes, {needed / peak * 1e6:.1f} us at {peak / 1e9:.0f} GB/s"
            )
        else:
            lines.append(
                f"* `{workload.id}`: {needed:,} bytes; the peak bandwidth of this device is not known here"
            )
    return lines


def draft_text(snap: Snapshot, contract: Contract, spaces: Sequence[Space]) -> str:
    """docs/draft.md"""
    baseline = contract.baseline.candidate or contract.baseline.python or "none"
    checks = [t for t in contract.tensors if t.check is not None]
    lines = [
        f"# Draft: {contract.task.name}",
        "",
        contract.task.objective or "No objective is written in the contract.",
        "",
        "## Baseline and how results are checked",
        "",
        f"The baseline is `{baseline}`, on the device `{contract.task.device}`. Outputs are compared with the",
        "float64 reference of this workspace:",
        "",
        *[f"* `{t.name}`: {_check_words(t)}" for t in checks],
        "",
        f"{len(contract.workloads)} workloads; times are taken in pairs with the incumbent ({contract.benchmark.cache} cache).",
        f"A promotion needs a speed-up of at least {contract.promotion.min_speedup:g}, no workload below "
        f"{contract.promotion.floor:g}, and is decided by a {contract.promotion.by}.",
        "",
        "## Floor",
        "",
        "What must move at least, if every byte moves once:",
        "",
        *floor_lines(snap, contract),
        "",
        "## Where the search starts",
        "",
    ]
    for space in spaces:
        lines += [
            f"* `{space.name}`: {space.hypothesis}. Grid of {space.size}: "
            + (
                "; ".join(f"{name} in {', '.join(map(str, values))}" for name, values in space.axes)
                or "nothing to vary"
            )
        ]
    if not spaces:
        lines.append("* no folder under seeds/ holds a launch plan: there is nothing to tune")
    lines += [
        "",
        "## Risks",
        "",
        "* Some points of a grid may not compile or not launch (shared memory, registers, block size); they count as tried.",
        "* Coordinate descent can stop at a local optimum; restarts from far points lower that risk, they do not remove it.",
        "* A point that is best on average may be worse on one workload; the contract's floor per workload decides.",
        "* The tuner changes declared values only. It finds no new algorithm.",
    ]
    return "\n".join(lines) + "\n"


def _check_words(t: TensorSpec) -> str:
    check = t.check
    if check is None:
        return "not checked"
    if check.exact:
        return "bit exact"
    parts = []
    if check.rel_l2 is not None:
        parts.append(f"relative L2 at most {check.rel_l2:g}")
    if check.max_abs_over_rms is not None:
        parts.append(f"largest error over rms at most {check.max_abs_over_rms:g}")
    if check.vs_baseline is not None:
        parts.append(f"error at most {check.vs_baseline:g} times the baseline's")
    return ", ".join(parts) or "compared"


def plan_items(spaces: Sequence[Space], restarts: int) -> list[tuple[str, str]]:
    """(id, title) of every step, in the order they are done."""
    titles = [f"measure {space.name} with its declared defaults ({words(space.start)})" for space in spaces]
    for space in spaces:
        titles += [
            f"vary {name} of {space.name} over {', '.join(map(str, values))}"
            for name, values in space.axes
            if len(values) > 1
        ]
    for space in spaces:
        if space.axes and space.size > len(space.axes):
            titles.append(
                f"restart the search of {space.name} from {restarts} far point{'s' if restarts > 1 else ''}"
            )
    titles.append("ask for the promotion of the fastest candidate, if it beats the incumbent beyond doubt")
    return [(f"P{n}", title) for n, title in enumerate(titles, 1)]


def plan_text(
    snap: Snapshot,
    contract: Contract,
    spaces: Sequence[Space],
    restarts: int,
    comments: Sequence[Mapping[str, Any]],
) -> str:
    """docs/plan.md"""
    lines = [f"# Plan: {contract.task.name}", ""]
    if comments:
        lines += ["## What was asked, and what follows from it", ""]
        for comment in comments:
            quote = f' on "{comment["quote"]}"' if comment.get("quote") else ""
            lines.append(f"* {comment.get('who') or 'A person'}{quote}: {comment.get('text') or '(no text)'}")
        lines += [
            "",
            "The tuner follows two kinds of comments: `only NAME` or `skip NAME` with the name of a tunable or of a seed.",
            "It cannot act on any other; change the grid in seeds/ for that, or use another agent.",
            "",
        ]
    lines += ["## Steps, in this order", ""]
    lines += [f"* {ident} {title}" for ident, title in plan_items(spaces, restarts)]
    lines += [
        "",
        "## Why this order",
        "",
        "The defaults come first, since everything else is compared with them. Then one tunable at a time, in the order",
        "in which the seed declares them; the best value is kept before the next one is varied, and the round is repeated",
        "until nothing improves by more than 0.5 %. Restarts come last: they only matter if a better optimum hides.",
        "",
        "## What to expect",
        "",
        *floor_lines(snap, contract),
        "",
        f"At most {sum(s.size for s in spaces)} candidates exist; descent and restarts usually measure half of them or fewer.",
        "",
        "## Evidence for a promotion",
        "",
        "A full evaluation whose lower bound is above 1 against the incumbent, then a confirm with fresh seeds and processes.",
    ]
    return "\n".join(lines) + "\n"
