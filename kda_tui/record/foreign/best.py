"""The result of somebody's workspace: what its people promoted last and did not take back, never just the largest number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kda_tui.record.foreign.measurements import Measurement
from kda_tui.record.foreign.values import words_of
from kda_tui.record.records import Candidate

_EVIDENCE = ("evidence", "evidence_files", "benchmark_csv", "benchmark", "artifacts", "report")
_ANCESTORS = 8  # steps up the lineage for a number

Stated = tuple[float | None, str]
_NOTHING: Stated = (None, "")


@dataclass(frozen=True, slots=True)
class Best:
    """``ratio`` and ``stated`` (where it stands) may be absent: then nobody wrote a speedup that may count."""

    cand: str
    words: str  # of the people who promoted or kept it
    source: str  # file and line of these words
    ratio: float | None = None
    stated: str = ""
    metric: str = ""  # its own number with its unit


def best_of(
    candidates: Mapping[str, Candidate], events: Sequence[Candidate], measurements: Sequence[Measurement]
) -> Best | None:
    """The last promoted candidate that is correct as far as anybody said, and not superseded by another one.

    An event that is a promotion or a decision (an arbiter's pass, say) promotes the candidate it follows. Where
    nobody promoted anything it is the last one that was kept.
    """
    promotions = [(c.seq, c, c) for c in candidates.values() if c.decision == "promoted"]
    promotions += [(e.seq, c, e) for e in events if (c := _promoted_by(e, candidates)) is not None]
    kept = [(c.seq, c, c) for c in candidates.values() if c.decision == "kept"]
    replaced = {name for c in candidates.values() for name in _names(c.extra.get("supersedes"))}
    for group in (promotions, kept):
        for _, candidate, said in sorted(group, key=lambda p: p[0], reverse=True):
            if _counts(candidate) and candidate.id not in replaced:
                ratio, stated = _stated(candidate, said, candidates, measurements)
                words, source = str(said.extra.get("words", "")), str(said.extra.get("source", ""))
                metric = str(candidate.extra.get("metric", ""))
                return Best(candidate.id, words, source, ratio, stated, metric)
    return None


def _promoted_by(event: Candidate, candidates: Mapping[str, Candidate]) -> Candidate | None:
    kind, bucket = str(event.extra.get("kind")), event.extra.get("bucket")
    promotes = ("promotion" in kind and bucket in ("promoted", "validated")) or (
        "decision" in kind and bucket == "promoted"
    )
    return candidates.get(event.parents[0]) if promotes and event.parents else None


def _counts(candidate: Candidate) -> bool:
    taken_back = candidate.decision in ("superseded", "rejected") or candidate.extra.get("superseded_by")
    return candidate.validity != "incorrect" and not taken_back


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


# --- the number ----------------------------------------------------------------------------------------------


def _stated(
    candidate: Candidate,
    said: Candidate,
    candidates: Mapping[str, Candidate],
    measurements: Sequence[Measurement],
) -> Stated:
    """The ledger's own number, else the tables' of it, else of what its row names, else of its nearest ancestor."""
    for who in (said, candidate):
        found = _written(who)
        if found[0] is None:
            found = ratio_from(who.id, measurements)
        if found[0] is None:
            found = _named_in_evidence(who, measurements)
        if found[0] is not None:
            return found
    for ancestor in _ancestors(candidate, candidates):
        found = _written(ancestor)
        if found[0] is None:
            found = ratio_from(ancestor.id, measurements)
        if found[0] is not None:
            return found[0], f"{found[1]}, of its ancestor {ancestor.id}"
    return _NOTHING


def _written(candidate: Candidate) -> Stated:
    if candidate.ratio is None or "ratio_stated" in candidate.extra:
        return _NOTHING
    key = candidate.extra.get("ratio_key")
    return candidate.ratio, f"{candidate.extra.get('source', '')}{f' {key}' if key else ''}"


def _named_in_evidence(candidate: Candidate, measurements: Sequence[Measurement]) -> Stated:
    """The tables' number of a tag or a run that the candidate's row names as its evidence."""
    raw = candidate.extra.get("raw")
    known = {m.cand for m in measurements if m.arm == "candidate"}
    for key in _EVIDENCE:
        for text in _texts(raw.get(key) if isinstance(raw, Mapping) else None):
            for word in words_of(text):
                if word in known and word != candidate.id:
                    ratio, stated = ratio_from(word, measurements)
                    if ratio is not None:
                        return ratio, f"{stated}, of {word}, which its row names"
    return _NOTHING


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:2000]
    elif isinstance(value, Mapping | list) and depth < 3:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item, depth + 1)


def _ancestors(candidate: Candidate, candidates: Mapping[str, Candidate]) -> Iterator[Candidate]:
    at: Candidate | None = candidate
    for _ in range(_ANCESTORS):
        at = candidates.get(at.parents[0]) if at is not None and at.parents else None
        if at is None or at.decision == "baseline":
            return
        yield at


def ratio_from(cand: str, measurements: Sequence[Measurement]) -> Stated:
    """A candidate's speedup by the tables, and where it stands: the last summary row, else a geometric mean.

    The mean is over the newest admissible row of each workload in the last file, of the kind and unit that its
    rows begin with, times before others; written speedups count before computed ones.
    """
    mine = [
        m
        for m in measurements
        if m.cand == cand and m.arm == "candidate" and m.speedup and m.admissible is not False
    ]
    summaries = [m for m in mine if m.summary]
    if summaries:
        return summaries[-1].speedup, f"{summaries[-1].file}:{summaries[-1].line}"
    if not mine:
        return _NOTHING
    counting = [m for m in mine if not m.paired] or mine
    here = [m for m in counting if m.file == counting[-1].file]
    head = min(here, key=lambda m: m.unit.us is None)
    same = [m for m in here if (m.kind, m.unit) == (head.kind, head.unit)]
    newest = {m.workload: m for m in same}.values()
    mean = math.exp(sum(math.log(m.speedup or 1.0) for m in newest) / len(newest))
    several = f"geometric mean of {len(newest)} workloads" if len(newest) > 1 else f"line {same[-1].line}"
    paired = ", computed from both arms" if head.paired else ""
    return mean, f"{head.file}: {several}{f', {head.kind}' if head.kind else ''}{paired}"
