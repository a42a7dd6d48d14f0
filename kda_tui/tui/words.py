"""Words for what the record says: verdicts, decisions, ages, sizes. One vocabulary for all screens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from kda_tui.record.records import Candidate, Decision
from kda_tui.record.snapshot import Claim, Gate, Live, Snapshot
from kda_tui.tui.line import Line, Span, span

GOOD_SPEED = "good"
SPEED_STYLE: Mapping[str, str] = {
    "faster": "good",
    "slower": "bad",
    "same": "",
    "mixed": "warn",
    "inconclusive": "warn",
    "not_measured": "dim",
}
VALIDITY_STYLE: Mapping[str, str] = {"passed": "good", "infrastructure_error": "warn"}
DECISION_STYLE: Mapping[str, str] = {
    "requested": "warn",
    "promoted": "good",
    "declined": "dim",
    "vetoed": "bad",
    "revoked": "bad",
}
DECISION_WORDS: Mapping[str, str] = {
    "approve_plan": "approve plan",
    "request_changes": "request changes",
    "approve_promotion": "approve promotion",
    "end_after": "end after current",
    "end_now": "end now",
    "set_budget": "set budget",
    "pause": "hold",
    "resume": "go on",
}
HOLD_WORDS: Mapping[str, str] = {
    "person": "held by a person",
    "disk": "held: the disk is full",
    "gpu_busy": "held: the GPU is busy",
    "auth": "held: the API key is missing or refused",
    "api": "held: the API does not answer",
    "budget": "held: the budget is used up",
    "crash_loop": "held: the worker died three times",
}
AGENT_GATE_KEYS: Mapping[str, str] = {
    "plan": "A approve, C ask for changes",
    "promotion": "A approve, D decline",
    "question": "R reply",
    "ambiguous": "L run again, Z abandon",
    "end": "A let it end, D go on working",
    "budget": "B raise the budget, E end",
}


def epoch(t: str) -> float | None:
    """Seconds since 1970 of a record's time, or None when it has none."""
    if not t:
        return None
    try:
        return datetime.fromisoformat(t.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def age(t: str, now: float) -> str:
    """How long ago, coarse so that an idle screen stays still: now, 3m, 14m, 2h, 5d."""
    then = epoch(t)
    return "" if then is None else span_of(max(0.0, now - then))


def ago(t: str, now: float) -> str:
    """How long ago, as a phrase: just now, 14m ago."""
    text = age(t, now)
    return "just now" if text == "now" else f"{text} ago" if text else ""


def span_of(seconds: float) -> str:
    """A duration in its largest unit."""
    if seconds < 60:
        return "now"
    if seconds < 3600:
        return f"{int(seconds // 60)}m"
    if seconds < 2 * 86400:
        return f"{int(seconds // 3600)}h"
    return f"{int(seconds // 86400)}d"


def duration(seconds: float | None) -> str:
    """A measured duration: 0.31 s, 12.4 s, 3 min 20 s."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    if seconds < 100:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def clock(now: float) -> str:
    """Wall clock of the status line, to the minute."""
    return datetime.fromtimestamp(now, UTC).strftime("%H:%M")


def time_of_day(t: str) -> str:
    """HH:MM:SS of a record's time, or blanks."""
    then = epoch(t)
    return " " * 8 if then is None else datetime.fromtimestamp(then, UTC).strftime("%H:%M:%S")


def number(value: float | int | None, digits: int = 1) -> str:
    """A number or ``-``; NaN and infinities are said in words."""
    if value is None:
        return "-"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf"
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)


def micros(value: float | None) -> str:
    """A latency in microseconds with four significant digits, without a unit."""
    if value is None or not math.isfinite(value):
        return "-" if value is None else "nan"
    if value >= 10000:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(value: float | None) -> str:
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "nan"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def share(value: float | None) -> str:
    """A share as per cent."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{100 * value:.1f}%" if 0 < abs(value) < 0.01 else f"{100 * value:.0f}%"


def count(value: float | int | None) -> str:
    """A count with a suffix: 980, 4.0k, 212k, 3.1M."""
    if value is None:
        return "-"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan"
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            part = value / limit
            return f"{part:.1f}{suffix}" if part < 10 else f"{part:.0f}{suffix}"
    return f"{value:g}"


def size(value: float | int | None) -> str:
    """Bytes with a binary suffix."""
    if value is None:
        return "-"
    if value < 1024:
        return f"{value:g}"
    return f"{value / 1024:.1f}k" if value < 10 * 1024 else f"{value / 1024:.0f}k"


def verdict(cand: Candidate, claim: Claim | None, live: Live | None, alive: bool = True) -> Span:
    """One word for what is known: what runs now, else validity, else speed.

    A claim that no living worker works on is *cut off*: it has no result and nobody waits for one.
    """
    if claim is not None and not alive:
        return ("cut off", "warn")
    if claim is not None:
        stage = live.stage if live is not None and live.claim == claim.id and live.stage else claim.op
        fraction = live.fraction if live is not None and live.claim == claim.id else None
        return span(f"{stage} {share(fraction)}" if fraction is not None else f"{stage} …", "info")
    if cand.stage == "cancelled":
        return span("cancelled", "dim")
    if cand.validity and cand.validity != "passed":
        words = "infra error" if cand.validity == "infrastructure_error" else cand.validity.replace("_", " ")
        return span(words, VALIDITY_STYLE.get(cand.validity, "bad"))
    if cand.trust == "foreign" and not cand.validity:
        return span("not run" if cand.extra.get("correct") == "not run" else "not said", "dim")
    if cand.validity == "passed":
        speed = cand.speed or "not_measured"
        word = "passed" if speed == "not_measured" else speed
        return span(word, SPEED_STYLE.get(speed, ""))
    return span(
        {"submitted": "queued", "compiled": "compiled", "claimed": "claimed"}.get(cand.stage, cand.stage),
        "dim",
    )


def comparison(cand: Candidate, snapshot: Snapshot) -> Line:
    """The speedup with its interval, or against whom it was measured when that is not the incumbent."""
    if cand.validity and cand.validity != "passed" and cand.ratio is None:
        return (span(mismatch(cand) or cand.reason, "dim"),)
    if cand.ratio is None:
        metric = cand.extra.get("metric")
        return (span(metric),) if isinstance(metric, str) else (("-", "dim"),)
    style = SPEED_STYLE.get(cand.speed, "")
    head = span(ratio(cand.ratio), style)
    if cand.opponent and cand.opponent != snapshot.incumbent.cand:
        other = snapshot.candidates.get(cand.opponent)
        stale = other is not None and other.decision in ("vetoed", "revoked")
        if stale:
            return (head, (" STALE ", "warn"), span(cand.opponent, "dim"))
        return (head, span(f" vs {cand.opponent}", "dim"))
    if cand.lo is not None and cand.hi is not None:
        return (head, span(f" [{ratio(cand.lo)} {ratio(cand.hi)}]", "dim"))
    return (head,)


def hypothesis(cand: Candidate) -> str:
    """What a candidate tries; its defines first, since siblings often differ in nothing else."""
    defines = " ".join(f"{name}={value}" for name, value in cand.defines.items())
    return f"{defines}  {cand.hypothesis or cand.family}".strip()


def said(cand: Candidate, snapshot: Snapshot) -> Line:
    """What people's words about a candidate are read as, then the words themselves; the result is marked."""
    mark: Line = (("BEST ", "good"),) if cand.id == snapshot.incumbent.cand else ()
    bucket, text = str(cand.extra.get("bucket") or ""), str(cand.extra.get("words") or "")
    if not bucket and not text:
        kind = str(cand.extra.get("kind") or "")
        return (*mark, span(kind if kind != "candidate" else "-", "dim"))
    style = {"promoted": "good", "kept": "good", "rejected": "bad", "failed": "bad"}.get(bucket, "")
    return (*mark, span(bucket or "other", style), span(f": {text}" if text.lower() != bucket else "", "dim"))


def mismatch(cand: Candidate) -> str:
    """Where an incorrect candidate is worst, in a few words."""
    tile = (cand.worst or {}).get("tile")
    return f"worst at {tile}" if tile not in (None, "") else ""


def decision(cand: Candidate, snapshot: Snapshot, now: float, long: bool = False) -> Span:
    """What people decided about a candidate; a decision on its way is *sent*."""
    sent = next((d for d in reversed(snapshot.pending) if d.target.get("cand") == cand.id), None)
    if sent is not None:
        return span(f"SENT {sent.kind.split('_')[0]}" if long else "SENT", "warn")
    if not cand.decision:
        return ("-", "dim")
    style = DECISION_STYLE.get(cand.decision, "")
    if cand.decision == "requested":
        gate = promotion_gate(snapshot, cand.id)
        waiting = age(gate.opened, now) if gate else ""
        return span(f"asked {waiting}".rstrip(), style)
    short = {"vetoed": "VETO", "promoted": "PROM", "declined": "decl", "revoked": "REVO"}
    word = cand.decision.upper() if long else short.get(cand.decision, cand.decision)
    if cand.id == snapshot.incumbent.cand:
        word = "INCUMBENT" if long else "INC"
    return span(word, style)


def promotion_gate(snapshot: Snapshot, cand: str) -> Gate | None:
    """The open promotion gate of a candidate."""
    return next((g for g in snapshot.gates if g.kind == "promotion" and g.target.get("cand") == cand), None)


def decision_name(kind: str) -> str:
    return DECISION_WORDS.get(kind, kind.replace("_", " "))


def target_of(decision: Decision) -> str:
    """What a decision is about, in a word."""
    target = decision.target
    for key in ("cand", "plan_rev", "question", "gate", "claim"):
        value = target.get(key)
        if value not in (None, ""):
            return f"r{value}" if key == "plan_rev" else str(value)
    if decision.amount:
        return f"{decision.amount.get('axis')} {decision.amount.get('value')}"
    return ""


def fate(decision: Decision) -> Span:
    """sent, taken, refused, superseded or moot."""
    if not decision.outcome:
        return ("SENT", "warn")
    return span(decision.outcome, {"taken": "good", "refused": "bad"}.get(decision.outcome, "dim"))


def gate_words(gate: Gate, snapshot: Snapshot) -> str:
    """What a gate waits for: ``promote c0039``, ``plan r2``, ``question q3``."""
    if gate.kind == "promotion":
        return f"promote {gate.target.get('cand', '?')}"
    if gate.kind == "plan":
        rev = gate.target.get("plan_rev") or gate.target.get("rev")
        newest = snapshot.plan.newest
        return f"plan r{rev if rev is not None else newest.rev if newest else '?'}"
    if gate.kind == "question":
        return f"question {gate.target.get('question') or gate.target.get('q') or gate.id}"
    return f"{gate.kind} {gate.target.get('claim') or gate.target.get('axis') or ''}".rstrip()


def status_word(snapshot: Snapshot) -> Span:
    """Liveness and hold in a word: what a person must know about the worker."""
    if snapshot.foreign:
        return ("foreign, read-only", "dim")
    if snapshot.liveness == "gone":
        return ("worker GONE", "bad")
    if snapshot.liveness == "foreign_host":
        return ("worker on another host", "warn")
    if snapshot.liveness == "alive":
        return ("worker alive", "good")
    return ("no worker", "dim")
