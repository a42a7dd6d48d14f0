"""Pane 1: what is to be made, how it is judged, what may promote it, and what is left of the budget."""

from __future__ import annotations

from kda_tui.record.contract import Check, Contract, TensorSpec, WorkloadSpec
from kda_tui.record.snapshot import BudgetLine, Snapshot
from kda_tui.tui import words
from kda_tui.tui.foreign import task_rows
from kda_tui.tui.line import EMPTY, Line, join, plain, span, split, wrap
from kda_tui.tui.panes.pane import Keyed, TextPane, bar

LABEL = 11


class ContractPane(TextPane):
    number = 1
    title = "contract"
    scope = "workspace"

    def layout_rows(self, snapshot: Snapshot, now: float, cells: int) -> tuple[Line, list[Keyed]]:
        rows: list[Keyed] = []

        def put(label: str, *lines: Line, style: str = "dim") -> None:
            for n, line in enumerate(lines):
                head = (span(f"{label if n == 0 else '':<{LABEL}}", style),)
                for m, part in enumerate(wrap((*head, *line), cells, LABEL)):
                    rows.append((f"{label}:{n}:{m}", part))

        contract = snapshot.contract
        sha = snapshot.contract_sha or (contract.sha256 if contract else "")
        details = join(
            [
                plain(sha[:6]),
                plain("device cpu", "warn") if contract and contract.task.device == "cpu" else EMPTY,
            ]
        )
        if contract is None and snapshot.foreign:
            return details, task_rows(snapshot, cells)
        if contract is None:
            return details, self._missing(snapshot, cells)
        put("objective", *split(contract.task.objective or contract.task.name))
        put("promote", plain(promotion_rule(contract)))
        for line in snapshot.budget.values():
            put(line.axis, budget_line(line, cells - LABEL))
        gates = [
            plain(f"{words.gate_words(g, snapshot)} waits {words.age(g.opened, now)}", "warn")
            for g in snapshot.gates
        ]
        put("gates", *(gates or [plain("none open", "dim")]))
        put("self-test", _selftest(snapshot))
        put("device", plain(_device(contract, snapshot)))
        put("tensors", *(tensor_line(tensor) for tensor in contract.tensors))
        put("workloads", *(_workload(load) for load in contract.workloads))
        put("correct", plain(_correctness(contract)))
        put("timing", plain(_timing(contract)))
        for n, finding in enumerate(f for f in snapshot.findings if f.file.startswith("contract")):
            put(f"finding {n + 1}", plain(f"line {finding.line}: {finding.seen}: {finding.done}", "warn"))
        return details, rows

    def _missing(self, snapshot: Snapshot, cells: int) -> list[Keyed]:
        why = snapshot.contract_error or "contract.toml is not there"
        lines = [part for line in split(why, "warn") for part in wrap(line, cells)]
        return [(f"missing:{n}", line) for n, line in enumerate(lines)]


def _device(contract: Contract, snapshot: Snapshot) -> str:
    facts = snapshot.run.device if snapshot.run else {}
    name = str(facts.get("name", "")) if facts else ""
    arch = contract.task.arch or ""
    label = " (times are the cpu device's, not a GPU's)" if contract.task.device == "cpu" else ""
    return " ".join(part for part in (contract.task.device, arch, name) if part) + label


def tensor_line(tensor: TensorSpec) -> Line:
    shape = " x ".join(str(axis) for axis in tensor.shape) or "scalar"
    check = f"  {_check(tensor.check)}" if tensor.check else ""
    more = "  strided" if tensor.strides else ""
    fill = f"  {tensor.kind}" if tensor.kind != "data" else ""
    return (
        span(f"{tensor.role:<6}"),
        span(f"{tensor.name:<10} ", "bold"),
        span(f"{tensor.dtype} [{shape}]{fill}{more}{check}"),
    )


def _check(check: Check) -> str:
    if check.exact:
        return "bit exact"
    parts = []
    if check.rel_l2 is not None:
        parts.append(f"rel L2 {check.rel_l2:g}")
    if check.max_abs_over_rms is not None:
        parts.append(f"max abs/rms {check.max_abs_over_rms:g}")
    if check.vs_baseline is not None:
        parts.append(f"{check.vs_baseline:g}x the baseline's error")
    tile = f" per tile {' x '.join(check.tile)}" if check.tile else ""
    return (", ".join(parts) or "default tolerance") + tile


def _workload(load: WorkloadSpec) -> Line:
    axes = " ".join(f"{name}={value}" for name, value in load.axes.items())
    notes = [f"weight {load.weight:g}"] if load.weight != 1.0 else []
    notes += [] if load.timed else ["correctness only"]
    return (span(f"{load.id}  "), span(axes, "dim"), span("  " + ", ".join(notes) if notes else "", "dim"))


def _correctness(contract: Contract) -> str:
    rule = contract.correctness
    parts = [
        f"{rule.seeds} seeds",
        f"{rule.repeats} repeats bit for bit" if rule.deterministic else f"spread {rule.spread or 0:g}",
    ]
    parts.append("probes" if rule.probes else "no probes")
    if contract.hidden is not None:
        parts.append(f"{contract.hidden.count} hidden shapes at confirm")
    return ", ".join(parts)


def promotion_rule(contract: Contract) -> str:
    rule = contract.promotion
    profile = ", profile required" if rule.profile == "required" else ""
    lower = ", lower trust may promote" if rule.lower_trust else ""
    return (
        f">= {rule.min_speedup:g} confirmed, no workload under {rule.floor:g}, by {rule.by}{profile}{lower}"
    )


def _timing(contract: Contract) -> str:
    spec = contract.benchmark
    return f"{spec.cache} cache, {spec.launch}, {spec.blocks} blocks x {spec.launches} launches"


def budget_line(line: BudgetLine, cells: int) -> Line:
    unit = {"usd": "$", "hours": "h", "candidates": ""}.get(line.axis, "")
    used = (
        f"{line.used:.2f}"
        if line.axis == "usd"
        else words.number(line.used, 1)
        if line.used != int(line.used)
        else f"{line.used:.0f}"
    )
    if line.limit is None:
        return (span(f"{used}{unit} used, no limit"),)
    share = line.used / line.limit if line.limit else 1.0
    style = {"notice": "warn", "reached": "bad"}.get(line.level, "")
    text = f"{used} of {line.limit:g}{unit}"
    level = f"  {line.level.upper()}" if line.level != "ok" else ""
    gauge = bar(share, min(20, max(4, cells - 24)))
    return (
        span(gauge + " ", style),
        span(f"{words.share(share):>4} "),
        span(text, "dim"),
        span(level, style),
    )


def _selftest(snapshot: Snapshot) -> Line:
    result = snapshot.extra.get("selftest")
    if not isinstance(result, dict):
        return plain("not run in this record; kda contract check runs it", "dim")
    passed, total = result.get("passed", 0), result.get("total", 0)
    return plain(f"{passed}/{total} mutants and controls as expected", "good" if passed == total else "bad")
