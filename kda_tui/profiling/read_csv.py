"""ncu's CSV exports of any version: the raw, details and source pages, and metric lists.

Columns are found by name, never by number: 12 columns became 15 and then 20 over the years. Lines
before the header (``==PROF==``, ``==WARNING==``) are skipped, thousands separators read, units taken
from the unit row or column.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kda_tui.profiling.model import Instruction, KernelProfile, Profile, Rule, Value
from kda_tui.profiling.units import parse_number, to_base

_SAMPLE_COLUMNS = ("# Samples", "Warp Stall Sampling (All Samples)", "Samples")


def is_csv(text: str) -> bool:
    """Whether a text looks like one of ncu's CSV pages."""
    return _header_index(text.splitlines()[:200]) is not None or _source_start(text) is not None


def read_csv(text: str, path: str) -> Profile:
    """Parse one export; what cannot be understood becomes a finding."""
    warnings = [line.strip() for line in text.splitlines()[:50] if line.startswith("==WARNING==")]
    if _source_start(text) is not None:
        return replace(_source(text, path), findings=tuple(warnings))
    lines = text.splitlines()
    start = _header_index(lines)
    if start is None:
        why = warnings[0] if warnings else "no ncu header line found"
        return Profile(path, "csv", findings=(why,))
    rows = [row for row in csv.reader(lines[start:]) if row and not row[0].startswith("==")]
    header = [cell.strip() for cell in rows[0]]
    if "Metric Name" in header:
        return _details(header, rows[1:], path, warnings)
    return _raw(header, rows[1:], path, warnings)


def _header_index(lines: Sequence[str]) -> int | None:
    for i, line in enumerate(lines):
        if line.lstrip("\ufeff").startswith(('"ID"', "ID,")) and "Kernel Name" in line:
            return i
    return None


def _source_start(text: str) -> int | None:
    for i, line in enumerate(text.splitlines()[:200]):
        if ("Address" in line or line.startswith(('"#"', "#,"))) and "Source" in line and "Sampl" in line:
            return i
    return None


def _launch(row: dict[str, str]) -> KernelProfile:
    return KernelProfile(
        name=row.get("Kernel Name", ""),
        grid=_dims(row.get("Grid Size", "")),
        block=_dims(row.get("Block Size", "")),
        device=row.get("Device Name", ""),
        cc=row.get("CC", ""),
        no_hotspots="a CSV of this page has no samples per line: open the .ncu-rep, or export --page source --csv",
    )


def _dims(cell: str) -> tuple[int, int, int] | None:
    numbers = [parse_number(part) for part in cell.strip("() ").split(",")]
    if len(numbers) != 3 or any(n is None for n in numbers):
        return None
    x, y, z = (int(n) for n in numbers if n is not None)
    return x, y, z


def _value(cell: str, unit: str) -> Value | None:
    number = parse_number(cell)
    if number is not None:
        scaled, base = to_base(number, unit.strip())
        return Value(scaled, base)
    text = cell.strip()
    return Value(text, unit.strip()) if text and text.lower() not in ("nan", "n/a", "no data") else None


def _raw(header: list[str], rows: list[list[str]], path: str, warnings: list[str]) -> Profile:
    units: dict[str, str] = {}
    if rows and not rows[0][0].strip():
        units = dict(zip(header, rows[0], strict=False))
        rows = rows[1:]
    kernels, short = [], 0
    for i, cells in enumerate(rows):
        if len(cells) < len(header):
            short += 1
        row = dict(zip(header, cells, strict=False))
        metrics = {}
        for name, cell in row.items():
            value = _value(cell, units.get(name, "")) if "__" in name else None
            if value is not None:
                metrics[name] = value
        kernels.append(replace(_launch(row), index=i, metrics=metrics))
    if short:
        warnings = [*warnings, f"{short} of {len(rows)} rows are shorter than the header: the rest is n/a"]
    return Profile(path, "raw csv", kernels=tuple(kernels), findings=tuple(warnings))


def _details(header: list[str], rows: list[list[str]], path: str, warnings: list[str]) -> Profile:
    order: list[str] = []
    launches: dict[str, KernelProfile] = {}
    metrics: dict[str, dict[str, Value]] = {}
    displayed: dict[str, dict[str, Value]] = {}
    rules: dict[str, list[Rule]] = {}
    for cells in rows:
        row = dict(zip(header, cells, strict=False))
        key = row.get("ID", "")
        if key not in launches:
            order.append(key)
            launches[key] = replace(_launch(row), index=len(order) - 1)
            metrics[key], displayed[key], rules[key] = {}, {}, []
        name = row.get("Metric Name", "").strip()
        value = _value(row.get("Metric Value", ""), row.get("Metric Unit", "")) if name else None
        if value is not None and "__" in name:
            metrics[key][name] = value
        elif value is not None:
            section = row.get("Section Name", "")
            slot = f"{section}/{name}"
            displayed[key][slot if slot not in displayed[key] else f"{section} ({value.unit})/{name}"] = value
        if row.get("Rule Name"):
            rules[key].append(_rule(row))
    kernels = tuple(
        replace(launches[k], metrics=metrics[k], displayed=displayed[k], rules=tuple(rules[k])) for k in order
    )
    return Profile(path, "details csv", kernels=kernels, findings=tuple(warnings))


def _rule(row: dict[str, str]) -> Rule:
    return Rule(
        name=row.get("Rule Name", ""),
        section=row.get("Section Name", ""),
        title=row.get("Rule Name", ""),
        message=row.get("Rule Description", ""),
        kind=row.get("Rule Type", ""),
        speedup=parse_number(row.get("Estimated Speedup", "") or ""),
    )


def _source(text: str, path: str) -> Profile:
    """The source page: one table a kernel, preceded by File Path / Function Name / Kernel Name rows."""
    kernels: list[KernelProfile] = []
    name, file, header = "", "", [""]
    found: list[Instruction] = []

    def close() -> None:
        same = bool(kernels) and kernels[-1].name == name and kernels[-1].instructions == tuple(found)
        if found and not same:  # ncu prints the SASS view twice where it has no source text
            why = "" if any(i.samples for i in found) else "the source page holds no warp samples"
            kernels.append(
                KernelProfile(name=name, index=len(kernels), instructions=tuple(found), no_hotspots=why)
            )
        found.clear()

    for row in csv.reader(text.splitlines()):
        cells = [cell.strip() for cell in row]
        if not cells or cells[0].startswith("=="):
            continue
        if cells[0] in ("Kernel Name", "Function Name", "File Path", "File Name") and len(cells) > 1:
            if cells[0] in ("Kernel Name", "Function Name"):
                close()
                name = cells[1]
            else:
                file = cells[1]
        elif "Source" in cells and ("Address" in cells or "#" in cells):
            header = cells
        elif header != [""]:
            instruction = _source_row(header, cells, file)
            if instruction is not None:
                found.append(instruction)
    close()
    return Profile(path, "source csv", kernels=tuple(kernels))


def _source_row(header: list[str], cells: list[str], file: str) -> Instruction | None:
    row: dict[str, str] = {}
    for column, cell in zip(header, cells, strict=False):
        row.setdefault(column, cell)
    samples = _first_number(row, _SAMPLE_COLUMNS)
    address = row.get("Address", "")
    line = parse_number(row.get("#", "")) if "Address" not in row else None
    if samples is None and not address:
        return None
    stalls = {
        column.removeprefix("stall_").split(" ")[0]: int(number)
        for column, cell in row.items()
        if column.startswith("stall_") and "not_issued" not in column.lower().replace("-", "_")
        for number in (parse_number(cell),)
        if number
    }
    executed = parse_number(row.get("Instructions Executed", ""))
    return Instruction(
        pc=int(address, 16) if address.startswith("0x") and len(address) < 20 else 0,
        sass=row.get("Source", "") if address else "",
        file=file,
        line=int(line) if line is not None else 0,
        samples=int(samples or 0),
        stalls=stalls,
        executed=int(executed) if executed is not None else None,
    )


def _first_number(row: dict[str, str], columns: Iterable[str]) -> float | None:
    for column in columns:
        if column in row:
            return parse_number(row[column])
    return None
