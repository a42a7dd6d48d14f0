"""Ledger and tables together: whose a table's rows are, and what the tables say of a candidate."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kda_tui.record.foreign.best import ratio_from
from kda_tui.record.foreign.ledger import Node, candidate_from
from kda_tui.record.foreign.measurements import Measurement, candidate_of, measure
from kda_tui.record.foreign.tables import TableRow
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Finding

Found = Callable[[Finding], None]


def measure_all(
    tables: Mapping[str, Sequence[TableRow]], nodes: Mapping[str, Node], found: Found
) -> list[Measurement]:
    """What every row of every table measured, under the ids of the ledger where these can be told."""
    ids = {
        alias: node.id for node in nodes.values() for alias in (*node.aliases, node.id.casefold(), node.id)
    }
    measurements: list[Measurement] = []
    for name, rows in tables.items():
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
    return measurements


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
    """Whose a table without a candidate column is: the one candidate with the table's word in its id, else a name of its own."""
    word = _stem(table)
    fits = [node.id for node in nodes.values() if not node.is_event and word in re.split(r"[-_.]", node.id)]
    owner = fits[0] if len(fits) == 1 else word
    how = "shown with it, by its name" if len(fits) == 1 else "shown under the table's name"
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
