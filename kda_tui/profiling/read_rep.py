"""``.ncu-rep`` files through NVIDIA's ncu-report package: no GPU, no toolkit, any version it knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kda_tui.profiling.model import Instruction, KernelProfile, Profile, Rule, Value
from kda_tui.profiling.units import to_base
from kda_tui.text import UserError

_STALL = "smsp__pcsamp_warps_issue_stalled_"
_SAMPLES = "smsp__pcsamp_sample_count"
_MAGIC = b"NVR\x00"
_RULE_KINDS = {1: "INF", 2: "OPT", 3: "WRN", 4: "ERR"}


def read_rep(path: Path) -> Profile:
    """Every kernel of a report, with stall samples per instruction where they were taken.

    Raises UserError when the file is no report or the package is missing.
    """
    try:
        import ncu_report
    except ImportError as error:
        raise UserError(
            f"{path}: reading .ncu-rep needs the ncu-report package; install kda-tui[profile]"
        ) from error
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:  # the package takes any bytes for an empty report
            raise UserError(f"{path}: not an ncu report (it does not start as one)")
    try:
        context = ncu_report.load_report(str(path))
    except Exception as error:  # the package raises plain errors of several types
        raise UserError(f"{path}: not a readable ncu report ({error})") from error
    if context is None:
        raise UserError(f"{path}: not a readable ncu report")
    kernels: list[KernelProfile] = []
    for r in range(context.num_ranges()):
        actions = context.range_by_idx(r)
        for a in range(actions.num_actions()):
            kernels.append(_kernel(actions.action_by_idx(a), len(kernels)))
    findings = () if kernels else ("the report holds no kernel: nothing was profiled",)
    return Profile(str(path), "ncu-rep", _version(kernels), tuple(kernels), findings)


def _version(kernels: list[KernelProfile]) -> str:
    for kernel in kernels:
        value = kernel.metrics.get("report__version") or kernel.metrics.get("profiler__version")
        if value is not None:
            return str(value.value)
    return ""


def _kernel(action: Any, index: int) -> KernelProfile:
    metrics: dict[str, Value] = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        if metric is None or not metric.has_value():
            continue
        raw, unit = metric.value(), metric.unit() or ""
        if isinstance(raw, bool | int | float):
            number, unit = to_base(float(raw), unit)
            metrics[name] = Value(number, unit)
        elif raw is not None:
            metrics[name] = Value(str(raw), unit)
    instructions = _instructions(action)
    return KernelProfile(
        name=action.name(),
        index=index,
        mangled=_mangled(action),
        grid=_dims(metrics, "launch__grid_dim"),
        block=_dims(metrics, "launch__block_dim"),
        device=_text(metrics, "device__attribute_display_name"),
        cc=_capability(metrics),
        metrics=metrics,
        rules=_rules(action),
        instructions=instructions,
        sources={path: text for path, text in dict(action.source_files()).items() if text},
        no_hotspots="" if instructions else _why_none(metrics),
    )


def _mangled(action: Any) -> str:
    try:
        return str(action.name(action.NameBase_MANGLED))
    except Exception:
        return ""


def _text(metrics: dict[str, Value], name: str) -> str:
    return str(metrics[name].value) if name in metrics else ""


def _dims(metrics: dict[str, Value], stem: str) -> tuple[int, int, int] | None:
    found = [metrics.get(f"{stem}_{axis}") for axis in "xyz"]
    if any(v is None or v.number is None for v in found):
        return None
    x, y, z = (int(v.number or 0) for v in found if v is not None)
    return x, y, z


def _capability(metrics: dict[str, Value]) -> str:
    parts = [metrics.get(f"device__attribute_compute_capability_{w}") for w in ("major", "minor")]
    if any(p is None or p.number is None for p in parts):
        return ""
    return ".".join(str(int(p.number or 0)) for p in parts if p is not None)


def _why_none(metrics: dict[str, Value]) -> str:
    if _SAMPLES in metrics or any(name.startswith(_STALL) for name in metrics):
        return "the report has sample totals but no samples per instruction: profile with --set full or --set source"
    return "warp samples were not collected: profile with --set full (or --section SourceCounters)"


def _instructions(action: Any) -> tuple[Instruction, ...]:
    counts = action.metric_by_name(_SAMPLES)
    if counts is None or counts.num_instances() == 0 or not counts.has_correlation_ids():
        return ()
    total = _by_pc(counts)
    stalls: dict[int, dict[str, int]] = {pc: {} for pc in total}
    for name in action.metric_names():
        if name.startswith(_STALL) and not name.endswith("_not_issued"):
            for pc, samples in _by_pc(action.metric_by_name(name)).items():
                if samples:
                    stalls.setdefault(pc, {})[name.removeprefix(_STALL)] = samples
    executed_metric = action.metric_by_name("inst_executed")
    executed = _by_pc(executed_metric) if executed_metric is not None else {}
    found = []
    for pc in sorted(set(total) | set(executed)):
        source = action.source_info(pc)
        found.append(
            Instruction(
                pc=pc,
                sass=str(action.sass_by_pc(pc) or "").strip(),
                file=source.file_name() if source is not None else "",
                line=int(source.line()) if source is not None else 0,
                samples=total.get(pc, 0),
                stalls=stalls.get(pc, {}),
                executed=executed.get(pc),
            )
        )
    return tuple(found)


def _by_pc(metric: Any) -> dict[int, int]:
    if metric.num_instances() == 0 or not metric.has_correlation_ids():
        return {}
    ids = metric.correlation_ids()
    return {ids.as_uint64(i): metric.as_uint64(i) for i in range(metric.num_instances())}


def _rules(action: Any) -> tuple[Rule, ...]:
    found = []
    for result in action.rule_results_as_dicts():
        message = result.get("rule_message") or {}
        speedup = (result.get("speedup_estimation") or {}).get("speedup")
        found.append(
            Rule(
                name=str(result.get("name", "")),
                section=str(result.get("section_identifier", "")),
                title=str(message.get("title", "")),
                message=str(message.get("message", "")),
                kind=_RULE_KINDS.get(message.get("type", 0), ""),
                speedup=float(speedup) if isinstance(speedup, int | float) else None,
            )
        )
    return tuple(found)
