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

WIKI_HITS = 12  # sections shown for one search


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


def wiki_rows(words: str, cells: int) -> list[Keyed]:
    """Sections of the skills that fit some words, best first, each whole."""
    from kda_tui.config import share_path, user_folder
    from kda_tui.skills.search import SkillIndex
    from kda_tui.skills.skill import find_skills

    hits = SkillIndex(find_skills([share_path("skills"), user_folder() / "skills"])).search(words, WIKI_HITS)
    if not hits:
        return [("none", plain(f"no page of a skill has '{words}'", "dim"))]
    rows: list[Keyed] = []
    for n, hit in enumerate(hits):
        section = hit.section
        rows.append(
            (
                f"{n}:head",
                (span(f"{section.page} / {section.heading}", "bold"), span(f"  {section.skill}", "dim")),
            )
        )
        for m, text in enumerate(section.text.splitlines()):
            rows += [(f"{n}:{m}:{k}", part) for k, part in enumerate(wrap(plain(text), cells))]
        rows.append((f"{n}:gap", ()))
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
