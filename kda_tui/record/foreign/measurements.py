"""What a row measured: per arm, kind and unit; two kinds or two units never end in one series."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kda_tui.record.foreign.tables import TableRow
from kda_tui.record.foreign.values import (
    SPEEDUP,
    Unit,
    is_nothing,
    is_unit,
    number_of,
    time_of,
    truth_of,
    unit_called,
    unit_of,
)
from kda_tui.record.foreign.words import correctness_of
from kda_tui.record.snapshot import Finding

BUSY_PCT = 10  # a GPU used this much by others beside a measurement makes it inadmissible
FAR_APART = 0.02  # a stated speedup this far from the quotient of its own row is a finding

_ARMS = {
    "cand": "candidate",
    "candidate": "candidate",
    "base": "baseline",
    "baseline": "baseline",
    "reference": "baseline",
}
_ARMS |= {"torch": "torch", "triton": "triton", "eager": "eager"}
_STATS = {"median": 0, "p50": 0, "trimmed": 1, "mean": 2, "avg": 2, "": 3, "min": 4}  # smaller is preferred
_ASIDE = frozenset(
    [
        "std",
        "iqr",
        "p10",
        "p90",
        "p95",
        "p99",
        "max",
        "delta",
        "spread",
        "theoretical",
        "warmup",
        "timeout",
        "timed",
        "idle",
        "used",
        "rel",
        "threshold",
    ]
)
_ASIDE |= {"util", "mem", "source", "peak", "rate", "full", "locked", "size", "target"}
_SILENT = frozenset(["latency", "time", "value"])  # say nothing about the kind
_WORKLOADS = (
    "workload", "case", "case_name", "case_id", "shape", "shape_id", "name", "N", "workload_set", "config", "preset", "bucket",
)  # fmt: skip
_ALSO = {"workload_set": ("batch_size",), "config": ("bench", "threads"), "case_id": (), "shape": ()}
_CANDIDATES = (
    "candidate_id", "candidate_name", "solution_name", "solution_tag", "candidate_version", "candidate", "tag", "run_id",
    "cand_src_sha16", "branch",
)  # fmt: skip
_TIMES = ("timestamp_utc", "timestamp", "ts", "utc", "date", "time", "at", "recorded_at", "created_at")
_SUMMARY = re.compile(r"geomean|provenance|idle_check|^all_|average|overall", re.IGNORECASE)
_UTIL = re.compile(r"util\s*=\s*(\d{1,3})%")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number (and its statistics) of one arm in one row. ``value`` is in ``unit``, not converted."""

    file: str
    line: int
    cand: str
    workload: str
    arm: str
    kind: str
    unit: Unit
    value: float
    least: float | None = None
    t: str = ""
    speedup: float | None = None
    paired: bool = False  # the speedup is not written there but comes from another row, the other arm's
    of: str = ""  # whom the row names, also in the baseline's rows
    summary: bool = False  # over several workloads: no point of any of them
    admissible: bool | None = None
    why: str = ""


@dataclass(slots=True)
class _Group:
    """The statistics of one arm, kind and unit while a row is looked at."""

    arm: str
    kind: str
    unit: Unit
    by_stat: dict[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        stat = min(self.by_stat, key=lambda s: _STATS[s], default=None)
        return self.by_stat[stat] if stat is not None else None


def measure(row: TableRow, default_cand: str, found: Callable[[Finding], None]) -> list[Measurement]:
    """Everything a table row measured. An empty list is a row without numbers, which its table still shows."""
    cells = row.cells
    metric = _text(cells, "metric")
    workload = workload_of(cells)
    summary = bool(_SUMMARY.search(metric) or _SUMMARY.search(workload))
    own_arm = _own_arm(cells)
    groups = _groups(cells, own_arm, metric)
    speedup = _speedup(cells)
    if summary and "geomean" in metric and speedup is None:
        speedup = number_of(_text(cells, "value") or _text(cells, "candidate_us"))
    cand = candidate_of(cells) or default_cand
    admissible, why = _admissible(cells, cand)
    if summary and speedup is not None and not any(group.arm == "candidate" for group in groups):
        groups.append(_Group("candidate", _kind_of_metric(metric), SPEEDUP, {"": speedup}))
    compared = _compared(groups)
    _check_speedup(row, groups, speedup, summary, found)
    _check_bandwidth(row, groups, found)
    return [
        Measurement(
            file=row.file,
            line=row.line,
            cand=cand if group.arm == "candidate" else group.arm,
            workload=workload,
            arm=group.arm,
            kind=group.kind,
            unit=group.unit,
            value=value,
            least=group.by_stat.get("min"),
            t=next((time_of(cells[key]) for key in _TIMES if not is_nothing(cells.get(key))), ""),
            speedup=speedup if group is compared else None,
            of=cand,
            summary=summary,
            admissible=admissible,
            why=why,
        )
        for group in groups
        if (value := group.value) is not None
    ]


def _compared(groups: Sequence[_Group]) -> _Group | None:
    """The group that a row's speedup is about: the candidate's first that has a baseline beside it, else its first."""
    mine = [group for group in groups if group.arm == "candidate"]
    others = {(group.kind, group.unit.name) for group in groups if group.arm == "baseline"}
    both = [group for group in mine if (group.kind, group.unit.name) in others]
    return next(iter(both or mine), None)


def candidate_of(cells: Mapping[str, Any]) -> str:
    """Whose row it is: an id, the stem where it is a path, or ''."""
    for key in _CANDIDATES:
        value = cells.get(key)
        if isinstance(value, str) and not is_nothing(value):
            return stem_of(value)
    return ""


def stem_of(text: str) -> str:
    """The last part of a path without its suffix; other text as it is."""
    text = text.strip()
    if "/" in text or re.search(r"\.(py|cu|cuh|cpp|so)$", text):
        text = re.sub(r"\.(py|cu|cuh|cpp|so)$", "", text.rstrip("/").rpartition("/")[2])
    return text


def workload_of(cells: Mapping[str, Any]) -> str:
    rows, cols = cells.get("shape_rows"), cells.get("shape_cols")
    if rows and cols:
        return f"{rows}x{cols}"
    for key in _WORKLOADS:
        value = cells.get(key)
        if not is_nothing(value) and isinstance(value, str | int):
            more = [str(cells[also]) for also in _ALSO.get(key, ()) if not is_nothing(cells.get(also))]
            return " ".join((f"N={value}" if key == "N" else str(value), *more))
    return ""


def _groups(cells: Mapping[str, Any], own_arm: str, metric: str) -> list[_Group]:
    context = " ".join(word for word in (_kind_of_metric(metric), _mode(cells)) if word)
    groups: dict[tuple[str, str, str], _Group] = {}
    for name, cell in cells.items():
        column = _column(name)
        if column is None or (value := number_of(cell)) is None:
            continue
        unit = column.unit or _unit_of_metric(metric, cells)
        if unit is None or unit.name in ("x", "%"):
            continue
        arm = own_arm if column.arm in ("", "candidate") else column.arm
        kind = " ".join(part for part in (column.kind, context) if part)
        group = groups.setdefault((arm, kind, unit.name), _Group(arm, kind, unit))
        group.by_stat.setdefault(column.stat, value)
    return list(groups.values())


@dataclass(frozen=True, slots=True)
class _Column:
    """What a column's name says about its numbers; ``unit`` None: the row's metric says it."""

    arm: str
    stat: str
    kind: str
    unit: Unit | None


@lru_cache(maxsize=4096)
def _column(name: str) -> _Column | None:
    """None for a column that holds no measurement."""
    unit = unit_of(name)
    if unit is None and name not in ("metric_value", "value"):
        return None
    words = [
        word
        for word in name.lower().split("_")
        if not is_unit(word) and word not in ("per", "sec", "op", "ops")
    ]
    if _ASIDE & set(words):
        return None
    stat = next((word for word in words if word in _STATS), "")
    rest = [w for w in words if w not in _ARMS and w not in _STATS and w not in _SILENT and w != "metric"]
    return _Column(next((_ARMS[word] for word in words if word in _ARMS), ""), stat, " ".join(rest), unit)


def _own_arm(cells: Mapping[str, Any]) -> str:
    """Whose the columns without an arm in their name are."""
    if candidate_of(cells).casefold() in ("baseline", "base", "reference"):
        return "baseline"
    for key in ("impl", "arm", "mode"):
        if _text(cells, key).lower().startswith(("baseline", "reference")):
            return "baseline"
    return "candidate"


def _mode(cells: Mapping[str, Any]) -> str:
    mode = _text(cells, "mode")
    parts = [mode] if "impl" in cells and mode else []
    parts += [_text(cells, "level")] if _text(cells, "level") else []
    return " ".join(parts)


def _kind_of_metric(metric: str) -> str:
    words = [word for word in metric.lower().split("_") if word not in _STATS and not is_unit(word)]
    return " ".join(words)


def _unit_of_metric(metric: str, cells: Mapping[str, Any]) -> Unit | None:
    return unit_called(_text(cells, "unit")) or unit_of(metric)


@lru_cache(maxsize=4096)
def _is_speedup(name: str) -> bool:
    return "speedup" in name.lower() and "torch" not in name.lower()


def _speedup(cells: Mapping[str, Any]) -> float | None:
    preferred = (
        "speedup",
        "speedup_x",
        "speedup_median",
        "speedup_vs_baseline",
        "candidate_to_baseline_speedup",
    )
    names = [
        *preferred,
        *(name for name in cells if _is_speedup(name)),
    ]
    return next(
        (value for name in names if (value := number_of(cells.get(name))) is not None and value > 0), None
    )


def _check_speedup(
    row: TableRow,
    groups: Sequence[_Group],
    stated: float | None,
    summary: bool,
    found: Callable[[Finding], None],
) -> None:
    if stated is None or summary:
        return
    quotients = [
        base.value / cand.value
        for cand in groups
        for base in groups
        if (cand.arm, base.arm) == ("candidate", "baseline")
        and (cand.kind, cand.unit) == (base.kind, base.unit)
        and cand.unit.us is not None
        and cand.value
        and base.value
    ]
    if quotients and all(abs(q / stated - 1.0) > FAR_APART for q in quotients):
        found(
            Finding(
                row.file,
                row.line,
                f"speedup {stated:g}, but its times give {quotients[0]:.4g}",
                "shown as stated",
            )
        )


def _check_bandwidth(row: TableRow, groups: Sequence[_Group], found: Callable[[Finding], None]) -> None:
    peak = number_of(row.cells.get("theoretical_bw_gbs"))
    if peak is None:
        return
    for group in groups:
        if group.unit.name == "GB/s" and group.value is not None and group.value > peak:
            found(
                Finding(
                    row.file, row.line, f"{group.value:g} GB/s, above the peak of {peak:g}", "shown as stated"
                )
            )


def _admissible(cells: Mapping[str, Any], cand: str) -> tuple[bool | None, str]:
    """Whether the row may count; None where it says nothing about that."""
    said: bool | None = None
    for key in ("valid", "admissible", "idle_before", "idle_after"):
        word = truth_of(cells.get(key))
        if word is False:
            return False, f"{key} is false"
        said = True if word else said
    for key in (key for key in cells if "idle" in key):
        cell = cells[key]
        used = _UTIL.search(cell) if isinstance(cell, str) else None
        percent = float(used[1]) if used else number_of(cell) if key.endswith("util") else None
        if percent is not None and percent > BUSY_PCT:
            return False, f"{key}: the GPU was {percent:g} % in use"
        said = True if percent is not None else said
    if re.search(r"invalidated|contaminated", cand, re.IGNORECASE):
        return False, f"the candidate is called {cand}"
    verdict, words = correctness_of({k: v for k, v in cells.items() if k != "valid"})
    if verdict == "incorrect":
        return False, words
    return said, ""


def _text(cells: Mapping[str, Any], key: str) -> str:
    value = cells.get(key)
    return value.strip() if isinstance(value, str) and not is_nothing(value) else ""
