"""Plans, drafts and review rounds of somebody's workspace, and what a contract file says of the task."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kda_tui.record.artifacts import sha256_bytes
from kda_tui.record.foreign.found import Layout
from kda_tui.record.plain_file import Refused, read_beginning
from kda_tui.record.snapshot import Finding, Plan, PlanItem, PlanRevision
from kda_tui.text import clean_line

MAX_DOCUMENT = 4 << 20

_CHECKBOX = re.compile(r"^\s*[-*]\s*\[([ xX])\]\s+(.{1,300})")
_TASK_ROW = re.compile(r"^\|\s*`?((?:task|P|T)[\w.\-]*\d[\w.\-]*)`?\s*\|\s*([^|]{1,300})\|", re.IGNORECASE)
_COPY = re.compile(r"^-+\s*Original Design Draft Start", re.IGNORECASE)
_ROUND = re.compile(r"round-(\d+)-([\w\-]+)\.md")
_STATED_ROUND = re.compile(r"^current_round:\s*(\d+)", re.MULTILINE)

Found = Callable[[Finding], None]


@dataclass(frozen=True, slots=True)
class Round:
    """A round of a review loop: its files by what they are (prompt, summary, review-result, contract)."""

    session: str
    number: int
    files: Mapping[str, str]


def read_document(root: Path, name: str, found: Found) -> bytes:
    """A document's bytes, its beginning if it is huge; b'' where it cannot be read, which is a finding."""
    try:
        data = read_beginning(root / name, root, MAX_DOCUMENT + 1)
    except Refused as error:
        found(Finding(name, 0, str(error), "not read", "error"))
        return b""
    if len(data) > MAX_DOCUMENT:
        found(Finding(name, 0, f"more than {MAX_DOCUMENT} bytes", "only the beginning is read"))
    return data[:MAX_DOCUMENT]


def plan_of(layout: Layout, found: Found) -> Plan:
    """Every plan file as a revision, in the order of their names. Nobody recorded an approval, so none is in force."""
    revisions = []
    for rev, name in enumerate(layout.plans, 1):
        data = read_document(layout.root, name, found)
        items = plan_items(data.decode("utf-8", "replace"))
        revisions.append(PlanRevision(rev=rev, file=name, sha=sha256_bytes(data), items=items))
    items = revisions[-1].items if revisions else ()
    return Plan(proposed=revisions[-1] if revisions else None, revisions=tuple(revisions), items=items)


def plan_items(text: str) -> tuple[PlanItem, ...]:
    """Checkboxes and rows of task tables; a plan that ends with a copy of its draft is read up to there."""
    items: dict[str, PlanItem] = {}
    for line in text.splitlines():
        if _COPY.match(line):
            break
        box, row = _CHECKBOX.match(line), _TASK_ROW.match(line)
        if box is not None:
            ident = f"{len(items) + 1}"
            items[ident] = PlanItem(ident, clean_line(box[2].strip()), "done" if box[1] in "xX" else "open")
        elif row is not None:
            items.setdefault(row[1], PlanItem(row[1], clean_line(row[2].strip())))
    return tuple(items.values())


def rounds_of(layout: Layout, found: Found) -> tuple[Round, ...]:
    """The rounds of all sessions of a review loop, by session and number; what its state file says is checked."""
    sessions: dict[str, dict[int, dict[str, str]]] = {}
    states: dict[str, str] = {}
    for name in layout.rounds:
        session, _, base = name.removeprefix(".humanize/rlcr/").partition("/")
        rounds = sessions.setdefault(session, {})
        match = _ROUND.fullmatch(base)
        if match is not None:
            rounds.setdefault(int(match[1][:6]), {})[match[2]] = name
        elif base.endswith("state.md"):
            states[session] = name
    for session, rounds in sessions.items():
        _check_state(layout.root, session, states.get(session, ""), rounds, found)
    return tuple(
        Round(session, number, files)
        for session in sorted(sessions)
        for number, files in sorted(sessions[session].items())
    )


def _check_state(root: Path, session: str, state: str, rounds: Mapping[int, object], found: Found) -> None:
    folder = f".humanize/rlcr/{session}"
    if not state:
        found(Finding(folder, 0, "no state file", f"{len(rounds)} rounds are shown by their files", "note"))
        return
    stated = _STATED_ROUND.search(read_document(root, state, found).decode("utf-8", "replace"))
    newest = max(rounds, default=0)
    if stated is not None and int(stated[1][:6]) != newest:
        found(
            Finding(
                state, 0, f"says round {stated[1]}, there are files up to round {newest}", "the files count"
            )
        )


def task_of(layout: Layout, found: Found) -> Mapping[str, Any]:
    """What the contract files say of the task: ``title``, ``device``, ``facts`` (a table of config.toml), ``text``."""
    task: dict[str, Any] = {"files": layout.contracts}
    for name in layout.contracts:
        data = read_document(layout.root, name, found)
        if name.endswith(".toml"):
            task |= _config(name, data, found)
        elif name.endswith(".md") and "text" not in task:
            text = data.decode("utf-8", "replace")
            task["text"] = text
            task.setdefault("title", clean_line(_title(text), 200))
    return task


def _config(name: str, data: bytes, found: Found) -> dict[str, Any]:
    try:
        facts = tomllib.loads(data.decode("utf-8", "replace"))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        found(Finding(name, 0, clean_line(str(error), 120), "not used"))
        return {}
    task = facts.get("task")
    known = task if isinstance(task, dict) else {}
    title = next((known[key] for key in ("slug", "name", "family") if isinstance(known.get(key), str)), "")
    device = next(
        (known[key] for key in ("target_gpu", "arch", "device") if isinstance(known.get(key), str)), ""
    )
    return {"title": title, "device": device, "facts": facts}


def _title(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line.lstrip("# ") for line in lines if line.startswith("#")), lines[0] if lines else "")


def newest_time(times: Sequence[str]) -> str:
    """The newest of times in the form of our records; other texts are no times."""
    return max((t for t in times if re.fullmatch(r"\d{4}-\d{2}-\d{2}T[\d:.]+Z", t)), default="")
