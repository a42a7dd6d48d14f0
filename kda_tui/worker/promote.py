"""outputs/: what was promoted, ready to use, with its evidence. Built beside it, then swapped in (R1).

Everything here is derived from the record, so that a crash at any point is mended by building again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kda_tui.record.artifacts import write_file
from kda_tui.record.ledger import sync_folder
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate, Decision, to_line
from kda_tui.record.snapshot import Evaluation, Incumbent, Snapshot
from kda_tui.worker.facts import BASELINE, contract_sha

EVIDENCE = "evidence.json"
REPORT = "REPORT.md"


def build(ws: Workspace, snap: Snapshot, chosen: Incumbent) -> Path:
    """Write outputs.new/ with kernel, launch plan, evidence and report, all of it on disk (fsync)."""
    new = ws.root / "outputs.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    source = _source(ws, snap, chosen.cand)
    if source is not None:
        for path in sorted(source.iterdir()):
            if path.is_file() and path.name != "notes.md":
                write_file(new / path.name, path.read_bytes())
    candidate = snap.candidates.get(chosen.cand)
    evaluation = snap.evaluations.get(chosen.eval)
    decision = next((d for d in snap.decisions if d.id == chosen.decision), None)
    evidence = _evidence(snap, chosen, candidate, evaluation, decision)
    write_file(new / EVIDENCE, (json.dumps(evidence, ensure_ascii=False, indent=2) + "\n").encode())
    write_file(new / REPORT, _report(snap, chosen, candidate, evaluation, decision).encode())
    sync_folder(new)
    return new


def swap(ws: Workspace) -> None:
    """Put outputs.new/ in the place of outputs/. A crash in between is found by :func:`current`."""
    new, old = ws.root / "outputs.new", ws.root / "outputs.old"
    shutil.rmtree(old, ignore_errors=True)
    if ws.outputs.exists():
        ws.outputs.rename(old)
    new.rename(ws.outputs)
    sync_folder(ws.root)
    shutil.rmtree(old, ignore_errors=True)


def current(ws: Workspace) -> dict[str, Any]:
    """What outputs/ says it is; empty when there is none or it cannot be read."""
    try:
        found = json.loads((ws.outputs / EVIDENCE).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def rebuild(ws: Workspace, snap: Snapshot) -> bool:
    """R2: make outputs/ what the journal says, if it is not. True if something was done."""
    for debris in ("outputs.new", "outputs.old"):
        if ws.outputs.exists():
            shutil.rmtree(ws.root / debris, ignore_errors=True)
    if not snap.incumbents:
        return False
    shown = current(ws)
    now = snap.incumbent
    if [shown.get(k) for k in ("cand", "why", "decision_id")] == [now.cand, now.why, now.decision]:
        return False
    build(ws, snap, snap.incumbent)
    swap(ws)
    return True


def _source(ws: Workspace, snap: Snapshot, cand: str) -> Path | None:
    if cand != BASELINE:
        return ws.candidate(cand)
    folder = snap.contract.baseline.candidate if snap.contract else None
    path = ws.root / folder if folder else None
    return path if path is not None and path.is_dir() else None


def _evidence(
    snap: Snapshot,
    chosen: Incumbent,
    candidate: Candidate | None,
    evaluation: Evaluation | None,
    decision: Decision | None,
) -> dict[str, Any]:
    return {
        "v": 1,
        "cand": chosen.cand,
        "prev": chosen.prev,
        "why": chosen.why,
        "decision_id": chosen.decision,
        "run": snap.run.name if snap.run else "",
        "contract_sha": contract_sha(snap),
        "head": snap.head,
        "candidate": to_line(candidate) if candidate else None,
        "evaluation": _plain(asdict(evaluation)) if evaluation else None,
        "decision": to_line(decision) if decision else None,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def _report(
    snap: Snapshot,
    chosen: Incumbent,
    candidate: Candidate | None,
    evaluation: Evaluation | None,
    decision: Decision | None,
) -> str:
    task = snap.contract.task.name if snap.contract else snap.name
    lines = [f"# {task}: {chosen.cand}", ""]
    if chosen.why == "revoked":
        lines += [f"{chosen.prev} was revoked; {chosen.cand} is in force again.", ""]
    if candidate is not None and candidate.hypothesis:
        lines += [f"Hypothesis: {candidate.hypothesis}", ""]
    if evaluation is not None:
        lines += _numbers(evaluation)
    if decision is not None:
        lines += _who(decision)
    device = evaluation.device if evaluation else ""
    if device.startswith("cpu"):
        lines += ["These are times of the cpu device, of use for checking the loop, not of a GPU.", ""]
    lines += [
        "| | |",
        "| --- | --- |",
        f"| contract | {contract_sha(snap) or 'unknown'} |",
        f"| source | {candidate.sha256 if candidate else 'the baseline'} |",
        f"| run | {snap.run.name if snap.run else 'none'} |",
        f"| head of the record | {snap.head or 'none yet'} |",
        "",
        "Check the record against this head with `kda verify --against HEAD`.",
        "",
    ]
    return "\n".join(lines)


def _numbers(e: Evaluation) -> list[str]:
    interval = f" [{e.lo:.3f} {e.hi:.3f}]" if e.lo is not None and e.hi is not None else ""
    ratio = f"{e.ratio:.3f}{interval}" if e.ratio is not None else "not measured"
    lines = [
        f"Compared with {e.opponent or 'nothing'} by {e.op} {e.id}: {ratio}, {e.validity}, {e.speed}.",
        "",
    ]
    rows = [w for w in e.extra.get("workloads") or () if isinstance(w, Mapping)]
    if rows:
        lines += [
            "| workload | time us | incumbent us | baseline us | ratio | interval | floor |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        lines += [_row(w) for w in rows]
        lines.append("")
    return lines


def _row(w: Mapping[str, Any]) -> str:
    def number(key: str, form: str) -> str:
        value = w.get(key)
        return format(value, form) if isinstance(value, int | float) else "-"

    share = w.get("floor_share")
    return (
        f"| {w.get('workload')} | {number('time_us', '.1f')} | {number('incumbent_us', '.1f')} "
        f"| {number('baseline_us', '.1f')} | {number('ratio', '.3f')} "
        f"| {number('lo', '.3f')} {number('hi', '.3f')} "
        f"| {format(share, '.0%') if isinstance(share, int | float) else '-'} |"
    )


def _who(d: Decision) -> list[str]:
    who = _rule_words(d.rule or {}) if d.by == "rule" else (d.who or "a person")
    why = d.reason or d.text
    lines = [f"{d.kind} by {who} at {d.t}" + (f": {why}" if why else "") + ".", ""]
    if d.override:
        lines += [f"Overridden by that person: {', '.join(d.override)}.", ""]
    return lines


def _rule_words(rule: Mapping[str, Any]) -> str:
    numbers = rule.get("numbers")
    given = (
        [f"{k} {v:.4g}" for k, v in numbers.items() if isinstance(v, int | float)]
        if isinstance(numbers, Mapping)
        else []
    )
    return f"the written rule `{rule.get('contract_key')}`" + (f" ({', '.join(given)})" if given else "")
