"""The lines around the panes: status, what waits for a person, the last decision, the keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kda_tui.record.snapshot import BudgetLine, Snapshot
from kda_tui.tui import words
from kda_tui.tui.actions import Action
from kda_tui.tui.keymap import Keymap
from kda_tui.tui.line import EMPTY, Line, crop, join, plain, span, spread, width
from kda_tui.tui.panes.pane import bar

PANES: Sequence[tuple[int, str]] = (
    (1, "contract"), (2, "plan"), (3, "transcript"), (4, "candidates"), (5, "benchmarks"), (6, "hotspots"),
)  # fmt: skip

ALL_CELLS = 160  # from this width there is no line of tabs, and the budget is on the status line


def status_line(snapshot: Snapshot, now: float, cells: int) -> Line:
    """Workspace, run, phase, what runs, the worker, the device, the budget, the clock."""
    left: list[Line] = [
        (
            span(snapshot.name or snapshot.workspace.name, "bold"),
            span(f" {snapshot.run.name}" if snapshot.run else ""),
        )
    ]
    if snapshot.read_only:
        left.append(plain("READ-ONLY", "warn"))
    left.append(_phase(snapshot, now))
    running = _running(snapshot)
    if running:
        left.append(running)
    clock = plain(f"UTC {words.clock(now)}", "dim")
    right = [_worker(snapshot, now, cells >= 140)]
    for part, needs in (
        (_device(snapshot), 70),
        (_budget(snapshot.budget) if cells >= ALL_CELLS else EMPTY, 100),
        (clock, 70),
    ):
        if part and cells >= needs and width(join([*left, *right, part])) + 2 <= cells:
            right.append(part)
    return spread(join(left), join(right), cells)


def _phase(snapshot: Snapshot, now: float) -> Line:
    if snapshot.foreign:
        return plain("foreign", "dim")
    phase = plain(snapshot.phase.replace("_", " ") or "no run yet", "info" if snapshot.phase else "dim")
    if snapshot.hold:
        held = f" HELD {snapshot.hold} {words.age(snapshot.hold_since, now)}".rstrip()
        return (*phase, span(held, "warn"))
    return phase


def _running(snapshot: Snapshot) -> Line:
    """The claim that runs with its stage; else what the worker waits for."""
    live = snapshot.live if snapshot.liveness == "alive" else None
    claim = next(iter(snapshot.claims), None)
    if claim is None or snapshot.liveness != "alive":
        return plain(f"waits for {live.waiting}", "dim") if live is not None and live.waiting else EMPTY
    stage = live.stage if live is not None and live.claim == claim.id and live.stage else claim.op
    head = span(f"{claim.cand} {stage}".strip(), "info")
    if live is None or live.claim != claim.id or live.fraction is None:
        return (head,)
    gauge = f" [{bar(live.fraction, 6)}] {words.share(live.fraction)}"
    return (head, span(gauge, "info"))


def _worker(snapshot: Snapshot, now: float, with_pid: bool) -> Line:
    word, style = words.status_word(snapshot)
    pid = snapshot.run.pid if with_pid and snapshot.run and snapshot.liveness == "alive" else None
    since = (
        f" {words.age(snapshot.last_activity, now)}"
        if snapshot.liveness == "gone" and snapshot.last_activity
        else ""
    )
    return (span(f"{word}{f' pid {pid}' if pid else since}", style),)


def _device(snapshot: Snapshot) -> Line:
    """Device name, clock and foreign processes on it."""
    facts: Mapping[str, object] = snapshot.run.device if snapshot.run else {}
    name = str(facts.get("name") or facts.get("kind") or "")
    if len(name) > 18:
        name = name[:17] + "…"
    live = snapshot.live
    parts = [name]
    if live is not None:
        clock = live.clocks.get("sm_mhz") or live.clocks.get("sm")
        parts.append(f"{clock} MHz" if clock else "")
        parts.append(f"{len(live.foreign)} foreign" if live.foreign else "")
    text = " ".join(part for part in parts if part)
    return plain(text, "warn" if live is not None and live.foreign else "dim") if text else EMPTY


def _budget(budget: Mapping[str, BudgetLine]) -> Line:
    out: list[Line] = []
    for line in budget.values():
        style = {"notice": "warn", "reached": "bad"}.get(line.level, "dim")
        unit = {"usd": "$", "hours": "h", "candidates": "c"}.get(line.axis, line.axis)
        if line.limit is None:
            continue
        used = (
            f"{line.used:.2f}"
            if line.axis == "usd"
            else f"{line.used:.1f}"
            if line.axis == "hours"
            else f"{line.used:.0f}"
        )
        text = f"${used}/{line.limit:g}" if line.axis == "usd" else f"{used}/{line.limit:g}{unit}"
        out.append((span(text, style),))
    return join(out)


def tabs_line(focused: int, snapshot: Snapshot | None, cells: int) -> Line:
    """The panes with their digits; the one shown in brackets. Budget and clock at the right."""
    short = cells < 90
    names = (
        {"contract": "contrct", "transcript": "transcr", "candidates": "cands", "benchmarks": "bench"}
        if short
        else {}
    )
    parts: list[Line] = []
    for number, name in PANES:
        text = f"{number} {names.get(name, name)}"
        parts.append(plain(f"[{text}]", "bold") if number == focused else plain(text, "dim"))
    left = join(parts, " ")
    right = _budget(snapshot.budget) if snapshot is not None else EMPTY
    return spread(left, right, cells) if width(left) + width(right) + 2 <= cells else crop(left, cells)


def waits_line(snapshot: Snapshot, now: float, cells: int) -> Line:
    """What waits for a person, oldest first, with its age; else what went wrong; else empty."""
    gates = snapshot.gates if snapshot.phase != "ended" else ()
    if gates:
        listed = []
        for gate in gates:
            text = f"{words.gate_words(gate, snapshot)} {words.age(gate.opened, now)}"
            if gate.blocking:
                text += " (blocks)"
            elif gate.default and cells >= 110:
                text += f" (default '{gate.default}'{_left(gate.opened, gate.timeout_s, now)})"
            listed.append(text)
        verb = "waits" if len(gates) == 1 else "wait"
        left = plain(f"!! {len(gates)} {verb} for you: {', '.join(listed)}", "wait")
        right = plain("w shows it", "wait")
        return spread(left, right, cells)
    if snapshot.liveness == "gone" and snapshot.phase not in ("", "ended"):
        return crop(plain("!! the worker is gone; Y starts it again, nothing is lost", "wait"), cells)
    if snapshot.hold:
        why = f": {snapshot.hold_why}" if snapshot.hold_why else ""
        return crop(
            plain(f"!! {words.HOLD_WORDS.get(snapshot.hold, snapshot.hold)}{why}; U goes on", "wait"), cells
        )
    loading = snapshot.extra.get("loading")
    if isinstance(loading, float) and loading < 1.0:
        return crop(plain(f"reading the record, {words.share(loading)}", "dim"), cells)
    return EMPTY


def _left(opened: str, timeout_s: float | None, now: float) -> str:
    then = words.epoch(opened)
    if then is None or timeout_s is None:
        return ""
    return f" in {words.span_of(max(0.0, then + timeout_s - now))}"


def decision_line(snapshot: Snapshot, cells: int) -> Line:
    """The newest decision of a person: sent, taken, refused or superseded, and why."""
    newest = (
        snapshot.pending[-1]
        if snapshot.pending
        else next((d for d in reversed(snapshot.decisions) if d.by == "person"), None)
    )
    if newest is None:
        return EMPTY
    fate, style = words.fate(newest)
    about = words.target_of(newest)
    why = f": {newest.why}" if newest.why and newest.outcome in ("refused", "superseded", "moot") else ""
    line: Line = (
        span(f"{words.decision_name(newest.kind)} {about} ".replace("  ", " "), ""),
        span(fate, style),
        span(f"{why} {words.time_of_day(newest.t)} {newest.who}", "dim"),
    )
    return crop(line, cells)


def hint_line(
    keymap: Keymap,
    scope: str,
    cells: int,
    read_only: bool,
    useful: Callable[[Action], bool] = lambda action: True,
) -> Line:
    """Keys that do something here: what changes something, then the rest; cut at the width.

    ``useful`` says whether an action that changes something has anything to act on now.
    """
    actions = [a for a in keymap.in_scope(scope) if a.hint and a.keys and a.id not in ("leave", "help")]
    changing = [] if read_only else [a for a in actions if a.changes and useful(a)]
    others = [a for a in actions if not a.changes]
    gap = "  " if cells >= 110 else " "
    tail = join([_hint(keymap, keymap.actions[name]) for name in ("help", "leave")], gap)
    room = cells - width(tail) - len(gap)
    first = _fill([_hint(keymap, a) for a in changing], room * 6 // 10 if others else room, gap)
    if first and others:
        first = (*first, (f"{gap}| ", "dim"))
    if read_only:
        first = (("read-only ", "warn"),)
    rest = _fill([_hint(keymap, a) for a in others], room - width(first), gap)
    return crop((*first, *rest, (gap, ""), *tail), cells)


def _hint(keymap: Keymap, action: Action) -> Line:
    return (span(keymap.key(action.id), "key"), span(f" {action.words}"))


def _fill(pieces: Sequence[Line], room: int, gap: str) -> Line:
    """As many pieces as fit, in order."""
    out: Line = EMPTY
    for piece in pieces:
        longer = join([out, piece], gap)
        if width(longer) > room:
            break
        out = longer
    return out
