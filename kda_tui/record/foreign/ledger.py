"""Ledger rows to candidates: ids, observations, lineage, words. A row is never dropped: what is no candidate is an event."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kda_tui.record.foreign.measurements import stem_of
from kda_tui.record.foreign.values import NOTHING, is_nothing, number_of, time_of, unit_of, words_of
from kda_tui.record.foreign.words import bucket_of, correctness_of, is_event, kind_of
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Finding

_IDS = (
    "id",
    "candidate_id",
    "name",
    "solution_name",
    "solution_tag",
    "node_id",
    "record_id",
    "iteration",
    "candidate",
)
_PARENTS = ("parents", "parent", "parent_id", "parent_candidate", "parent_context", "derived_from")
_REASONS = (
    "reason", "rejection_reason", "reject_reason", "reason_not_promoted", "archive_reason", "notes", "note", "finding", "summary",
    "description", "change", "mechanism", "hypothesis", "idea",
)  # fmt: skip
_IDEAS = ("hypothesis", "idea", "description", "summary", "mechanism", "change", "structure", "direction")
_STAMPS = ("timestamp", "timestamp_utc", "ts", "utc", "date", "time", "at", "recorded_at", "created_at")
_SPEEDUPS = (
    "speedup",
    "speedup_x",
    "speedup_median",
    "speedup_vs_baseline",
    "geomean_speedup",
    "geomean_speedup_x",
)
_DEEPER = ("benchmark", "result", "results", "metrics", "evidence")
_NOT_ITS_OWN = ("base", "ref", "per_", "build", "compile")  # numbers that are not what the candidate achieves
_CAREFUL_CUTS = 50
_HASH = re.compile(r"[0-9a-f]{7,40}")

Found = Callable[[Finding], None]


@dataclass(frozen=True, slots=True)
class LedgerRow:
    file: str
    line: int
    body: Mapping[str, Any]


@dataclass(slots=True)
class Node:
    """Everything the ledgers say under one id; the last row says how things stand."""

    id: str
    rows: list[LedgerRow] = field(default_factory=list)
    parents: tuple[str, ...] = ()
    ghosts: tuple[str, ...] = ()  # parents that no row describes
    kind: str = "candidate"
    aliases: set[str] = field(default_factory=set)

    @property
    def last(self) -> LedgerRow:
        return self.rows[-1]

    @property
    def is_event(self) -> bool:
        return is_event(self.kind)


def nodes_of(rows: Sequence[LedgerRow], found: Found) -> dict[str, Node]:
    """Rows by id, in order of first appearance, their lineage resolved: unknown parents are ghosts, cycles are cut."""
    nodes: dict[str, Node] = {}
    for place, row in enumerate(rows, 1):
        ident = _ident(row, place, found)
        node = nodes.setdefault(ident, Node(ident, kind=kind_of(row.body)))
        node.rows.append(row)
        path = row.body.get("candidate")
        if isinstance(path, str) and stem_of(path) != ident:
            node.aliases.add(stem_of(path))
    _resolve(nodes, found)
    _cut_cycles(nodes, found)
    return nodes


def _ident(row: LedgerRow, place: int, found: Found) -> str:
    for key in _IDS:
        value = row.body.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and not is_nothing(value):
            return stem_of(str(value))[:200] or f"row-{place}"
    found(Finding(row.file, row.line, "a row without an id", f"called row-{place}"))
    return f"row-{place}"


# --- lineage -------------------------------------------------------------------------------------------------


def _resolve(nodes: Mapping[str, Node], found: Found) -> None:
    known = {alias: node.id for node in nodes.values() for alias in (*node.aliases, node.id.casefold())}
    known |= {ident: ident for ident in nodes}
    for node in nodes.values():
        parents: dict[str, None] = {}
        ghosts: dict[str, None] = {}
        for row in node.rows:
            for text in _parent_texts(row.body):
                for parent, is_ghost in _named(text, known):
                    if parent == node.id:
                        found(
                            Finding(
                                row.file,
                                row.line,
                                f"{node.id} names itself as its parent",
                                "left out of the lineage",
                            )
                        )
                    else:
                        (ghosts if is_ghost else parents)[parent] = None
        node.parents, node.ghosts = tuple(parents), tuple(ghosts)


def _parent_texts(body: Mapping[str, Any]) -> list[str]:
    for key in _PARENTS:
        value = body.get(key)
        listed = value if isinstance(value, list) else [value]
        texts = [str(item).strip() for item in listed if isinstance(item, str | int) and not is_nothing(item)]
        if texts:
            return [text for text in texts if text.lower() not in NOTHING]
    return []


def _named(text: str, known: Mapping[str, str]) -> list[tuple[str, bool]]:
    """The parents a text names, each with whether it is a ghost."""
    stem = stem_of(text)
    for form in (text, stem, text.casefold(), stem.casefold()):
        if form in known:
            return [(known[form], False)]
    if _HASH.fullmatch(text):
        return [(f"commit {text[:10]}", True)]
    inside = list(dict.fromkeys(known[word] for word in words_of(text[:2000]) if word in known))
    if inside and not text.lower().startswith("baseline:"):
        return [(ident, False) for ident in inside]
    return [(text[:80], True)]


def _cut_cycles(nodes: Mapping[str, Node], found: Found) -> None:
    """Cut each circle at its later row; once there are very many, where the search happens to meet them."""
    order = {ident: place for place, ident in enumerate(nodes)}
    for _ in range(_CAREFUL_CUTS):
        first = next(_cycles(nodes), None)
        if first is None:
            return
        later = max(first, key=lambda ident: order[ident])
        _cut(nodes, first, first.index(later), found)
    for cycle in _cycles(nodes):
        _cut(nodes, cycle, len(cycle) - 1, found)


def _cut(nodes: Mapping[str, Node], cycle: Sequence[str], at: int, found: Found) -> None:
    """Take from the node at this place in a circle the parent that comes next in it."""
    node, parent = nodes[cycle[at]], cycle[(at + 1) % len(cycle)]
    node.parents = tuple(p for p in node.parents if p != parent)
    seen = f"{' -> '.join(cycle[:6])} is a circle"
    found(Finding(node.last.file, node.last.line, seen, f"{node.id} is shown without its parent {parent}"))


def _cycles(nodes: Mapping[str, Node]) -> Iterator[list[str]]:
    """Circles, each from child to parent; whoever goes on has cut the link from a circle's last to its first.

    Depth first and without recursion: a chain may be as long as the ledger.
    """
    on_path: dict[str, int] = {}
    done: set[str] = set()
    for start in nodes:
        if start in done:
            continue
        path = [(start, iter(nodes[start].parents))]
        on_path[start] = 0
        while path:
            ident, parents = path[-1]
            parent = next(parents, None)
            if parent is None:
                done.add(ident)
                del on_path[ident]
                path.pop()
            elif parent in on_path:
                yield [name for name, _ in path[on_path[parent] :]]
            elif parent not in done:
                on_path[parent] = len(path)
                path.append((parent, iter(nodes[parent].parents)))


def visible_parents(node: Node, nodes: Mapping[str, Node]) -> tuple[str, ...]:
    """The nearest ancestors that are candidates: events carry the chain, but the table does not show them."""
    result: dict[str, None] = {}
    seen = {node.id}
    waiting = list(reversed(node.parents))
    while waiting:
        ident = waiting.pop()
        if ident in seen:
            continue
        seen.add(ident)
        if nodes[ident].is_event:
            waiting += reversed(nodes[ident].parents)
        else:
            result[ident] = None
    return (*result, *node.ghosts)


# --- candidates ----------------------------------------------------------------------------------------------


def candidate_from(node: Node, nodes: Mapping[str, Node], place: int) -> Candidate:
    """The record of a node. The raw rows, where they stand, the words and the bucket are in ``extra``."""
    body = node.last.body
    bucket, words = bucket_of(body)
    correct, correct_words = correctness_of(body)
    value, unit = _metric(node)
    ratio, key = _speedup(body) if len(node.rows) == 1 else (None, "")
    extra: dict[str, Any] = {
        "source": f"{node.last.file}:{node.last.line}",
        "raw": body,
        "kind": node.kind,
        "bucket": bucket,
        "words": words,
        "correct": correct,
        "correctness": correct_words,
    }
    if len(node.rows) > 1:
        extra["observations"] = tuple(f"{row.file}:{row.line}" for row in node.rows)
    if key:
        extra["ratio_key"] = key
    if value is not None and len(node.rows) == 1:
        extra["metric"] = f"{value:g} {unit}"
    for key in ("superseded_by", "supersedes", "children"):
        if not is_nothing(body.get(key)):
            extra[key] = body[key]
    if node.ghosts:
        extra["ghosts"] = node.ghosts
    return Candidate(
        id=node.id,
        seq=place,
        t=next((time_of(body[key]) for key in _STAMPS if not is_nothing(body.get(key))), ""),
        author="import",
        lang="",
        trust="foreign",
        parents=visible_parents(node, nodes),
        family=_text(body, ("family", "kind", "direction")) if node.kind == "candidate" else node.kind,
        hypothesis=_text(body, _IDEAS),
        stage="judged"
        if correct in ("passed", "incorrect") or bucket not in ("", "pending")
        else "submitted",
        validity={"passed": "passed", "incorrect": "incorrect"}.get(correct, ""),
        time_us=_time_us(node),
        ratio=ratio,
        speed="",
        decision=bucket if bucket not in ("measured", "validated", "other") else "",
        reason=_text(body, _REASONS),
        extra=extra,
    )


def _text(body: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next(
        (body[key] for key in keys if isinstance(body.get(key), str) and not is_nothing(body[key])), ""
    )


def _metric(node: Node) -> tuple[float | None, str]:
    """The first number with a unit in the last row, the candidate's own."""
    for name, value in node.last.body.items():
        unit = unit_of(name)
        number = number_of(value) if isinstance(value, int | float) else None
        own = not name.startswith(_NOT_ITS_OWN) and "spread" not in name
        if unit is not None and number is not None and own and unit.name not in ("x", "%"):
            return number, unit.name
    return None, ""


def _time_us(node: Node) -> float | None:
    """The time of a candidate that was measured once; several rows are several workloads, which have no one time."""
    if len(node.rows) != 1:
        return None
    for name, value in node.last.body.items():
        unit = unit_of(name)
        number = number_of(value) if isinstance(value, int | float) else None
        own = not name.startswith(_NOT_ITS_OWN) and "spread" not in name
        if unit is not None and unit.us is not None and number is not None and own:
            return number * unit.us
    return None


def _speedup(body: Mapping[str, Any]) -> tuple[float | None, str]:
    """The speedup that a row states, and the key when it stands deeper or is called something else."""
    inner = [(f"{key}.", body[key]) for key in _DEEPER if isinstance(body.get(key), dict)]
    for prefix, source in (("", body), *inner):
        for key in _SPEEDUPS:
            value = number_of(source.get(key))
            if value is not None and value > 0:
                return value, f"{prefix}{key}" if prefix else ""
    for prefix, source in (("", body), *inner):
        for key, said in source.items():
            value = number_of(said) if "geomean" in key and isinstance(said, int | float) else None
            if value is not None and value > 0:
                return value, f"{prefix}{key}"
    return None, ""
