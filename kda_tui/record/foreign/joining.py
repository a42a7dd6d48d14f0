"""Ledger and tables together: whose a table's rows are, and what the tables say of a candidate."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kda_tui.record.foreign.best import ratio_from
from kda_tui.record.foreign.ledger import Node, candidate_from
from kda_tui.record.foreign.measurements import Measurement, candidate_of, measure
from kda_tui.record.foreign.pairing import pair_arms
from kda_tui.record.foreign.tables import TableRow
from kda_tui.record.foreign.words import bucket_of
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Finding

_LONGEST_CELL = 1 << 16

Found = Callable[[Finding], None]


def measure_all(
    tables: Mapping[str, Sequence[TableRow]], nodes: Mapping[str, Node], found: Found
) -> list[Measurement]:
    """What every row of every table measured, under the ids of the ledger where these can be told.

    Results nested in ledger rows are rows of a table, too: those of the ledger's name.
    """
    ids = {
        alias: node.id for node in nodes.values() for alias in (*node.aliases, node.id.casefold(), node.id)
    }
    measurements: list[Measurement] = []
    nested = _nested(nodes)
    for name, rows in (*tables.items(), *nested.items()):
        anonymous = bool(rows) and not any(candidate_of(row.cells) for row in rows)
        owner = _owner(name, nodes, found) if anonymous else _stem(name)
        doubts: list[Finding] = []
        for row in rows:
            for m in measure(row, owner, doubts.append):
                known = ids.get(m.cand) or ids.get(m.cand.casefold())
                measurements.append(
                    replace(m, cand=known) if known is not None and m.arm == "candidate" else m
                )
        for finding in alike_together(doubts):
            found(finding)
        _say_left_out(name, rows, measurements, found)
    return pair_arms(measurements)


def _nested(nodes: Mapping[str, Node]) -> dict[str, list[TableRow]]:
    """``results`` lists inside ledger rows, one row a result, under the name of the ledger."""
    found: dict[str, list[TableRow]] = {}
    for node in nodes.values():
        for row in node.rows:
            inner = row.body.get("benchmark")
            results = (inner if isinstance(inner, dict) else row.body).get("results")
            for result in results if isinstance(results, list) else ():
                if isinstance(result, dict):
                    cells = {"candidate_id": node.id, **cells_of(result)}
                    found.setdefault(row.file, []).append(TableRow(row.file, row.line, cells))
    return found


def cells_of(body: Mapping[str, Any]) -> dict[str, str]:
    """A JSON object as the cells of a table row; a list of numbers is a shape, other deeper values stay JSON."""
    cells = {}
    for key, value in body.items():
        if isinstance(value, list) and value and all(isinstance(item, int) for item in value):
            cells[key] = "x".join(str(item) for item in value)
        elif value is None:
            cells[key] = ""
        else:
            cells[key] = value if isinstance(value, str) else json.dumps(value, default=str)[:_LONGEST_CELL]
    return cells


def alike_together(findings: Sequence[Finding]) -> list[Finding]:
    """Findings that differ in numbers only become the first of them, and how many more there are."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(re.sub(r"\d[\d.]*", "#", finding.seen), []).append(finding)
    return [
        group[0]
        if len(group) == 1
        else replace(group[0], seen=f"{group[0].seen}, and {len(group) - 1} more like it")
        for group in groups.values()
    ]


def _say_left_out(
    name: str, rows: Sequence[TableRow], measurements: Sequence[Measurement], found: Found
) -> None:
    mine = [m for m in measurements if m.file == name]
    without = len(rows) - len({m.line for m in mine})
    if without:
        found(Finding(name, 0, f"{without} rows without a number that has a unit", "shown as text", "note"))
    whys: dict[str, set[int]] = {}
    for m in mine:
        if m.admissible is False:
            whys.setdefault(m.why, set()).add(m.line)
    for why, lines in whys.items():
        found(
            Finding(
                name,
                min(lines),
                f"{len(lines)} rows may not count: {why}",
                "shown, but never as the best",
                "note",
            )
        )


def _stem(table: str) -> str:
    """What a table's own name says: ``v3`` of benchmark_v3.csv."""
    stem = table.rpartition("/")[2].removesuffix(".csv")
    return stem.removeprefix("benchmark").strip("_.") or stem


def _owner(table: str, nodes: Mapping[str, Node], found: Found) -> str:
    """Whose a table without a candidate column is: the only candidate, the only one with the table's word, else a new one."""
    word = _stem(table)
    tried = [n.id for n in nodes.values() if not n.is_event and bucket_of(n.last.body)[0] != "baseline"]
    fits = tried if len(tried) == 1 else [ident for ident in tried if word in re.split(r"[-_.]", ident)]
    owner = fits[0] if len(fits) == 1 else word
    how = "shown with it" if len(fits) == 1 else "shown under the table's name"
    found(Finding(table, 0, f"no column says whose rows these are; taken for {owner}", how, "note"))
    return owner


def candidates_of(
    nodes: Mapping[str, Node], measurements: Sequence[Measurement]
) -> tuple[dict[str, Candidate], tuple[Candidate, ...]]:
    """Candidates by id, those that only tables know after the others, and the events beside them."""
    made = [candidate_from(node, nodes, place) for place, node in enumerate(nodes.values(), 1)]
    events = tuple(c for c in made if nodes[c.id].is_event)
    candidates = {c.id: c for c in made if not nodes[c.id].is_event}
    mine: dict[str, list[Measurement]] = {}
    for m in measurements:
        if m.arm == "candidate":
            mine.setdefault(m.cand, []).append(m)
    for cand, rows in mine.items():
        if cand not in candidates and cand not in nodes and not all(m.summary for m in rows):
            candidates[cand] = _from_table(cand, rows[0], len(nodes) + len(candidates))
        if cand in candidates:
            candidates[cand] = _with_table(candidates[cand], rows)
    return candidates, events


def _from_table(cand: str, first: Measurement, seq: int) -> Candidate:
    extra = {"source": f"{first.file}:{first.line}", "kind": "benchmark only", "bucket": "", "words": ""}
    return Candidate(
        cand, seq=seq, t=first.t, author="import", lang="", trust="foreign", stage="judged", extra=extra
    )


def _with_table(candidate: Candidate, rows: Sequence[Measurement]) -> Candidate:
    """With the table's speedup where the ledger has none, and its time if it was measured on one workload only."""
    ratio, stated = ratio_from(candidate.id, rows)
    if candidate.ratio is None and ratio is not None:
        candidate = replace(candidate, ratio=ratio, extra={**candidate.extra, "ratio_stated": stated})
    timed = [m for m in rows if m.unit.us is not None and not m.summary and m.admissible is not False]
    if candidate.time_us is None and timed and len({(m.workload, m.kind, m.unit) for m in timed}) == 1:
        candidate = replace(candidate, time_us=timed[-1].value * (timed[-1].unit.us or 1.0))
    return candidate
