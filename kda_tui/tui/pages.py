"""Pages to read, as functions of the width: help, findings, decisions."""

from __future__ import annotations

from kda_tui.record.records import Decision
from kda_tui.record.snapshot import Snapshot
from kda_tui.tui import words
from kda_tui.tui.actions import PARENTS, SCOPES
from kda_tui.tui.keymap import Keymap
from kda_tui.tui.line import Line, fit, plain, span, wrap
from kda_tui.tui.panes.pane import Keyed

RULES = (
    "A capital letter changes something and asks once; Enter with a typed reason confirms, y never does.",
    "Leaving (q), a lost connection or a closed laptop change nothing: the run goes on in its own process.",
)


def help_rows(keymap: Keymap, scope: str, cells: int) -> list[Keyed]:
    """Every key that works in a scope, the scope's own first."""
    rows: list[Keyed] = []
    for n, rule in enumerate(RULES):
        rows += [(f"rule:{n}:{m}", line) for m, line in enumerate(wrap(plain(rule, "dim"), cells))]
    for where in (scope, *PARENTS.get(scope, ("everywhere",))):
        own = [action for action in keymap.actions.values() if action.scope == where]
        if not own:
            continue
        rows += [(f"gap:{where}", ()), (f"scope:{where}", plain(SCOPES[where], "bold"))]
        for action in own:
            mark = span("* " if action.changes else "  ", "warn")
            line: Line = (mark, span(fit(keymap.keys(action.id), 16), "key"), span(action.help))
            rows += [(f"{action.id}:{n}", part) for n, part in enumerate(wrap(line, cells, 18))]
    rows += [("gap:end", ()), ("end", plain("* asks first", "dim"))]
    rows += [(f"problem:{n}", plain(p, "warn")) for n, p in enumerate(keymap.problems)]
    return rows


def finding_rows(snapshot: Snapshot, cells: int) -> list[Keyed]:
    """What the reader could not take as it was."""
    if not snapshot.findings:
        return [("none", plain("every line of this workspace was taken as it is", "dim"))]
    rows: list[Keyed] = []
    styles = {"error": "bad", "warning": "warn", "note": "dim"}
    for n, finding in enumerate(snapshot.findings):
        where = f"{finding.file}:{finding.line}" if finding.line else finding.file
        line: Line = (
            span(fit(finding.severity, 8), styles.get(finding.severity, "warn")),
            span(f"{where}  ", "bold"),
            span(finding.seen),
            span(f"  -> {finding.done}", "dim"),
        )
        rows += [(f"{n}:{m}", part) for m, part in enumerate(wrap(line, cells, 8))]
    return rows


def decision_rows(snapshot: Snapshot, cells: int) -> list[Keyed]:
    """Every decision, newest first: who, when, why, and what became of it."""
    rows: list[Keyed] = []
    everything = [*snapshot.decisions, *snapshot.pending]
    for decision in reversed(everything):
        fate, style = words.fate(decision)
        who = (
            f"rule {(decision.rule or {}).get('contract_key', '')}" if decision.by == "rule" else decision.who
        )
        head: Line = (
            span(f"{decision.t[:10]} {words.time_of_day(decision.t)}  ", "dim"),
            span(fit(fate, 11), style),
            span(fit(f"{words.decision_name(decision.kind)} {words.target_of(decision)}", 30), "bold"),
            span(f" {who}"),
        )
        rows.append((decision.id, head))
        for n, (name, text) in enumerate(_more(decision)):
            for m, part in enumerate(wrap((span(f"{'':21}{name} ", "dim"), span(text)), cells, 23)):
                rows.append((f"{decision.id}:{n}:{m}", part))
    return rows or [("none", plain("nobody decided anything yet", "dim"))]


def _more(decision: Decision) -> list[tuple[str, str]]:
    out = [("why", decision.reason), ("text", decision.text), ("outcome", decision.why)]
    out += [("override", ", ".join(decision.override))] if decision.override else []
    out += [(f"line {c.get('line', '?')}", str(c.get("text", ""))) for c in decision.lines]
    return [(name, text) for name, text in out if text]
