"""What panes show of a workspace that no kda wrote: its task, its documents, its rows as they stand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kda_tui.record.foreign.artifacts import artifacts_of
from kda_tui.record.foreign.best import Best
from kda_tui.record.foreign.measurements import Measurement
from kda_tui.record.foreign.series import series_of
from kda_tui.record.foreign.tables import TableRow
from kda_tui.record.plain_file import Absent, Refused, read_beginning
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Snapshot
from kda_tui.tui import words
from kda_tui.tui.line import Line, plain, span, split, wrap
from kda_tui.tui.panes.pane import Keyed

LABEL = 12
MOST_LINES = 2000  # of a text that a pane lays out
MAX_TEXT = 256 * 1024
STATES: Mapping[str, str] = {"there": "good", "missing": "warn", "remote": "dim", "outside": "bad"}


class Put:
    """Collects labelled rows."""

    def __init__(self, cells: int) -> None:
        self.rows: list[Keyed] = []
        self._cells = cells

    def __call__(self, label: str, *lines: Line) -> None:
        for n, line in enumerate(lines):
            head = (span(f"{label if n == 0 else '':<{LABEL}}", "dim"),)
            self.rows += [
                (f"{label}:{n}:{m}", part) for m, part in enumerate(wrap((*head, *line), self._cells, LABEL))
            ]


# --- the task ------------------------------------------------------------------------------------------------


def task_rows(snapshot: Snapshot, cells: int) -> list[Keyed]:
    """Title, device, what is there and what was found; then the task in its own words."""
    task, extra = snapshot.extra.get("task", {}), snapshot.extra
    put = Put(cells)
    put("task", plain(task.get("title") or "no task description was found", "bold"))
    if task.get("device"):
        put("device", plain(task["device"]))
    put("best", best_line(extra.get("best")))
    put("rows", plain(_rows(extra)))
    counted = [f"{n} {word}" for word, n in snapshot.counts.items() if n and word != "candidates"]
    put("candidates", plain(", ".join((str(len(snapshot.candidates)), *counted))))
    for kind, names in extra.get("documents", {}).items():
        if names:
            put(kind, plain("  ".join(names)))
    if extra.get("transcripts"):
        put("transcripts", plain("  ".join(extra["transcripts"])))
    put("findings", plain(f"{len(snapshot.findings)}, i shows them" if snapshot.findings else "none"))
    for name, value in _facts(task.get("facts", {})):
        put(name, plain(value))
    rows = put.rows
    text = str(task.get("text", ""))
    if text:
        rows.append(("rule", plain("─" * min(cells, 60), "dim")))
        rows += text_rows(text, cells)
    return rows


def best_line(best: Best | None) -> Line:
    """Who is the result, by which number and where both stand."""
    if best is None:
        return plain("nobody promoted or kept anything", "dim")
    ratio = f"{best.ratio:.3f}x" if best.ratio is not None else best.metric or "no number"
    stated = f" ({best.stated or best.source})"
    said = f" {best.source}: {best.words}" if best.words else ""
    return (span(best.cand, "bold"), span(f"  {ratio}"), span(stated, "dim"), span(said, "dim"))


def _rows(extra: Mapping[str, Any]) -> str:
    rows = extra.get("rows", {})
    return f"{rows.get('ledger', 0)} in ledgers, {rows.get('table', 0)} in tables"


def _facts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The values of config.toml, one level down."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            text = "  ".join(f"{key}={_short(item)}" for key, item in value.items())
        else:
            text = _short(value)
        yield name[: LABEL - 1], text


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 400 else f"{text[:400]}…"


def text_rows(text: str, cells: int) -> list[Keyed]:
    """A document, its beginning if it is very long; headings stand out."""
    lines = text.split("\n")
    rows: list[Keyed] = []
    for number, raw in enumerate(lines[:MOST_LINES], 1):
        style = "bold" if raw.startswith("#") else ""
        for line in split(raw, style):
            rows += [(f"line:{number}:{m}", part) for m, part in enumerate(wrap(line, cells, 2))]
    if len(lines) > MOST_LINES:
        rows.append(("cut", plain(f"(only the first {MOST_LINES} of {len(lines)} lines are shown)", "dim")))
    return rows


# --- documents -----------------------------------------------------------------------------------------------


def documents_of(snapshot: Snapshot, view: str) -> tuple[str, ...]:
    """The files of a view of the plan pane, the newest first."""
    documents = snapshot.extra.get("documents", {})
    if view == "reviews":
        rounds = snapshot.extra.get("rounds", ())
        return tuple(name for one in reversed(rounds) for _, name in sorted(one.files.items()))
    names = documents.get({"plan": "plan", "draft": "draft", "notes": "notes"}[view], ())
    return tuple(names) if view == "notes" else tuple(reversed(names))


def read_documents(root: Path, names: Sequence[str]) -> str:
    """The texts of files inside the workspace one after another, at most 256 KB; what is not read is said."""
    parts: list[str] = []
    room = MAX_TEXT
    for at, name in enumerate(names):
        if room <= 0:
            parts.append(f"({len(names) - at} more files are not shown: {', '.join(names[at : at + 8])})")
            break
        text = document(root, name, room)
        room -= len(text)
        parts.append(f"# {name}\n\n{text}" if len(names) > 1 else text)
    return "\n\n".join(parts)


def document(root: Path, name: str, limit: int = MAX_TEXT) -> str:
    """One file inside the workspace as text; '' where there is none."""
    try:
        data = read_beginning(root / name, root, limit + 1)
    except Absent:
        return ""
    except Refused as error:
        return f"({name} {error}; it is not opened)"
    cut = f"\n\n(only the first {limit // 1024} KB are shown)" if len(data) > limit else ""
    return data[:limit].decode("utf-8", "backslashreplace") + cut


# --- one candidate -------------------------------------------------------------------------------------------


def overview(snapshot: Snapshot, cand: Candidate, cells: int) -> list[Keyed]:
    """What people wrote of it, in our words and in theirs; every key of its row."""
    put = Put(cells)
    extra = cand.extra
    put("said", plain(extra.get("words") or "nothing about promotion"))
    put("read as", plain(extra.get("bucket") or cand.decision or "-"))
    put("correct", plain(f"{extra.get('correct', 'unknown')}  {extra.get('correctness', '')}".rstrip()))
    put("speed", _speed(cand))
    put("idea", plain(cand.hypothesis or "-"))
    if cand.reason and cand.reason != cand.hypothesis:
        put("reason", plain(cand.reason))
    put("time", plain(cand.t or "-"))
    put("parents", plain(" ".join(cand.parents) or "none"))
    children = [c.id for c in snapshot.candidates.values() if cand.id in c.parents]
    put("children", plain(" ".join(children) or "none"))
    for key in ("superseded_by", "supersedes", "children", "ghosts"):
        if key in extra:
            put(key.replace("_", " ")[:LABEL], plain(_short(extra[key])))
    put("stands in", plain(" ".join(extra.get("observations", (extra.get("source", ""),)))))
    raw = extra.get("raw")
    if isinstance(raw, Mapping):
        for artifact in artifacts_of(snapshot.workspace, raw):
            put("file", (span(f"{artifact.state:<8}", STATES[artifact.state]), span(artifact.path)))
        put("row", *split(json.dumps(raw, ensure_ascii=False, indent=1, default=str), "dim"))
    return put.rows


def _speed(cand: Candidate) -> Line:
    parts = []
    if cand.ratio is not None:
        where = cand.extra.get("ratio_stated") or cand.extra.get("ratio_key") or cand.extra.get("source")
        parts.append(f"{cand.ratio:.4g}x ({where})")
    if cand.extra.get("metric"):
        parts.append(str(cand.extra["metric"]))
    elif cand.time_us is not None:
        parts.append(f"{words.micros(cand.time_us)} us")
    return plain(", ".join(parts) or "no number")


def measured_rows(snapshot: Snapshot, cand: str, cells: int) -> list[Keyed]:
    """Every table row about a candidate: its numbers, whether it may count, then its cells."""
    by_row: dict[tuple[str, int], list[Measurement]] = {}
    for m in snapshot.extra.get("measurements", ()):
        if cand in (m.cand, m.of):
            by_row.setdefault((m.file, m.line), []).append(m)
    tables = snapshot.extra.get("table_rows", {})
    put = Put(cells)
    for (file, line), group in by_row.items():
        put(f"{line}", (span(f"{file}:{line}", "bold"),), *(_measurement(m) for m in group))
        row = next((r for r in tables.get(file, ()) if r.line == line), None)
        if row is not None:
            put("", plain(cells_text(row), "dim"))
    return put.rows or [("none", plain("no table row is about it", "dim"))]


def _measurement(m: Measurement) -> Line:
    speed = f"  {m.speedup:.4g}x{' (both arms)' if m.paired else ''}" if m.speedup is not None else ""
    counts = {True: "", False: f"  may not count: {m.why}", None: ""}[m.admissible]
    return (
        span(f"{m.arm:<10} {series_of(m)}  {m.value:g} {m.unit.name}"),
        span(speed, "good" if (m.speedup or 0) > 1 else ""),
        span(counts, "warn"),
    )


def cells_text(row: TableRow) -> str:
    """A table row as ``name=cell`` pairs; empty cells are left out."""
    return "  ".join(f"{name}={cell}" for name, cell in row.cells.items() if cell.strip())


def text_only_rows(snapshot: Snapshot, cells: int) -> list[Keyed]:
    """Table rows without a number that has a unit, as they are."""
    measured = {(m.file, m.line) for m in snapshot.extra.get("measurements", ())}
    put = Put(cells)
    for rows in snapshot.extra.get("table_rows", {}).values():
        for row in rows:
            if (row.file, row.line) not in measured:
                put(f"line {row.line}", (span(f"{row.file}  ", "dim"), span(cells_text(row))))
    return put.rows
