"""The result of somebody's workspace: what its people promoted last and did not take back, never just the largest number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kda_tui.record.foreign.measurements import Measurement
from kda_tui.record.records import Candidate


@dataclass(frozen=True, slots=True)
class Best:
    """``ratio`` and ``stated`` (where it stands) may be absent: then nobody wrote a number that may count."""

    cand: str
    words: str  # of the people who promoted it
    source: str  # file and line of these words
    ratio: float | None = None
    stated: str = ""


def best_of(
    candidates: Mapping[str, Candidate], events: Sequence[Candidate], measurements: Sequence[Measurement]
) -> Best | None:
    """The last promoted candidate that is correct as far as anybody said, and not superseded by another one.

    An event that is a promotion (an arbiter's pass, say) promotes the candidate it follows.
    """
    replaced = {name for c in candidates.values() for name in _names(c.extra.get("supersedes"))}
    promotions = [(c.seq, c, c) for c in candidates.values() if c.decision == "promoted"]
    promotions += [
        (event.seq, candidates[event.parents[0]], event)
        for event in events
        if "promotion" in str(event.extra.get("kind"))
        and event.extra.get("bucket") in ("promoted", "validated")
        and event.parents
        and event.parents[0] in candidates
    ]
    for _, candidate, said in sorted(promotions, key=lambda p: p[0], reverse=True):
        if candidate.validity == "incorrect" or candidate.decision in ("superseded", "rejected"):
            continue
        if candidate.extra.get("superseded_by") or candidate.id in replaced:
            continue
        ratio, stated = _stated(candidate, said, measurements)
        return Best(
            candidate.id, str(said.extra.get("words", "")), str(said.extra.get("source", "")), ratio, stated
        )
    return None


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _stated(
    candidate: Candidate, said: Candidate, measurements: Sequence[Measurement]
) -> tuple[float | None, str]:
    """The ledger's own number, else what the tables say."""
    if said.ratio is not None and "ratio_stated" not in said.extra:
        return said.ratio, str(said.extra.get("source", ""))
    return ratio_from(candidate.id, measurements)


def ratio_from(cand: str, measurements: Sequence[Measurement]) -> tuple[float | None, str]:
    """A candidate's speedup by the tables, and where it stands: the last summary row, else a geometric mean.

    The mean is over the newest admissible row of each workload, of one file, kind and unit: the last one measured.
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
        return None, ""
    last = mine[-1]
    same = [m for m in mine if (m.file, m.kind, m.unit) == (last.file, last.kind, last.unit)]
    newest = {m.workload: m for m in same}.values()
    mean = math.exp(sum(math.log(m.speedup or 1.0) for m in newest) / len(newest))
    kind = f", {last.kind}" if last.kind else ""
    return mean, f"{last.file}: geometric mean of {len(newest)} workloads{kind}"
