"""R2: go on after whatever happened. And beginning a run, which ends in the same state."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import kda_tui
from kda_tui.agents.interface import Agent
from kda_tui.agents.load import skills_of
from kda_tui.record import trust
from kda_tui.record.contract import Contract, load_contract
from kda_tui.record.journal import Recorder
from kda_tui.record.lines import parse_line, read_lines
from kda_tui.record.lock import WorkspaceLock, boot_id, start_ticks
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate
from kda_tui.record.state_folder import RunSecret, load_run_secret, new_run_secret
from kda_tui.text import Redactor, UserError
from kda_tui.worker import gates
from kda_tui.worker.book import PAID, Book
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.dispatch import parked_candidate
from kda_tui.worker.ending import end_run
from kda_tui.worker.facts import BASELINE
from kda_tui.worker.intake import source_sha
from kda_tui.worker.jobs import is_last_attempt

ALPHA = 0.01  # what all confirmations of a workspace and contract may spend together


@dataclass(frozen=True, slots=True)
class Opened:
    """A run that is open for writing."""

    clerk: Clerk
    secret: RunSecret
    new: bool


def journal_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The committed lines of a journal; torn ones are left out."""
    for line in read_lines(path):
        body = parse_line(line.data)
        if body is not None:
            yield body


def read_book(ws: Workspace, run: str) -> Book:
    """The book of a run, from its journal."""
    book = Book()
    for line in journal_lines(ws.run(run).events):
        book.fold(line)
    return book


def run_secret(book: Book) -> RunSecret:
    """The secret of the run that the book is about; raises UserError where this user does not have it."""
    return load_run_secret(str((book.started or {}).get("seed_commit") or ""))


def require_trust(ws: Workspace) -> None:
    """Reference and baseline run only if they were made here or trusted as they are."""
    if not trust.is_trusted(ws):
        raise UserError(
            f"{ws.root}: its reference and baseline were not made here; read them, then: kda trust {ws.root}"
        )


def open_run(
    ws: Workspace,
    lock: WorkspaceLock,
    redactor: Redactor,
    agent: Agent,
    *,
    device: Mapping[str, Any],
    resume: bool,
    ambiguous: str = "ask",
) -> Opened:
    """Go on with the newest run if it has not ended, else begin the next one.

    A changed contract or reference ends the old run: its verdicts are inadmissible in the new one. With
    ``resume`` that is an error instead.
    """
    require_trust(ws)
    contract = load_contract(ws.contract)
    names = ws.run_names()
    newest = names[-1] if names else ""
    book = read_book(ws, newest) if newest else Book()
    if book.started is None:
        if resume:
            raise UserError(f"{ws.root}: there is no run to resume; start one with kda run")
        return _begin(ws, lock, redactor, agent, contract, device, parent="")
    if book.ended:
        if resume:
            raise UserError(f"{ws.root}: run {newest} has ended; start a new one with kda run")
        return _begin(ws, lock, redactor, agent, contract, device, parent=newest)
    changed = _changed_inputs(ws, contract, book.started)
    if not changed:
        return _go_on(ws, lock, redactor, newest, book, ambiguous)
    if resume:
        raise UserError(
            f"{ws.root}: {changed} changed since {newest} started; put it back, or start a new run with kda run"
        )
    _end_amended(ws, lock, redactor, newest, book, changed)
    return _begin(ws, lock, redactor, agent, contract, device, parent=newest)


def _changed_inputs(ws: Workspace, contract: Contract, started: Mapping[str, Any]) -> str:
    """Which input of a run is not what it was when the run started; empty if none."""
    if started.get("contract_sha") not in (None, contract.sha256):
        return "contract.toml"
    reference = started.get("reference_sha")
    if reference and (not ws.reference.is_file() or _sha(ws.reference) != reference):
        return "reference.py"
    return ""


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- a new run ---


def _begin(
    ws: Workspace,
    lock: WorkspaceLock,
    redactor: Redactor,
    agent: Agent,
    contract: Contract,
    device: Mapping[str, Any],
    parent: str,
) -> Opened:
    secret = new_run_secret()
    recorder = Recorder.create_run(ws, lock, redactor)
    clerk = Clerk(ws, recorder, redactor, Book())
    baseline = ws.root / contract.baseline.candidate if contract.baseline.candidate else None
    prompts = dict(agent.prompts())
    fields: dict[str, Any] = {
        **recorder.keep_inputs(baseline),
        "agent": agent.name,
        "model": agent.model,
        "prompts_sha": hashlib.sha256(json.dumps(prompts, sort_keys=True).encode()).hexdigest()
        if prompts
        else "",
        "skills": skills_of(agent),
        "versions": {"kda": kda_tui.__version__, "python": sys.version.split()[0]},
        "device": dict(device),
        "seed_commit": secret.commit,
        "alpha": ALPHA,
        "host": socket.gethostname(),
        "boot_id": boot_id(),
        "pid": os.getpid(),
        "start_ticks": start_ticks(os.getpid()),
    }
    if parent:
        fields["parent_run"] = parent
    clerk.event("run_started", **fields)
    _forget_other_contracts(clerk)
    clerk.settle_outputs()
    clerk.checkpoint()
    return Opened(clerk, secret, new=True)


def _forget_other_contracts(clerk: Clerk) -> None:
    """What was promoted or asked for under another contract is nothing under this one; the baseline is the rival."""
    snap = clerk.snap
    in_force = snap.run.contract_sha if snap.run else ""
    evaluation = snap.evaluations.get(snap.incumbent.eval)
    if snap.incumbent.cand != BASELINE and (evaluation is None or evaluation.contract_sha != in_force):
        prev = snap.incumbent.cand
        clerk.event("incumbent", cand=BASELINE, prev=prev, why="revoked", text="the contract was amended")
    for c in snap.candidates.values():
        judged = snap.evaluations.get(c.eval)
        if c.decision in ("requested", "promoted", "declined") and judged and judged.contract_sha != in_force:
            clerk.change(c.id, decision="", reason=f"{c.decision} under another contract")


def _end_amended(
    ws: Workspace, lock: WorkspaceLock, redactor: Redactor, run: str, book: Book, changed: str
) -> None:
    clerk = Clerk(ws, Recorder.open(ws, lock, run, redactor), redactor, book)
    try:
        clerk.redo()
        close_open_claims(clerk)
        for gate in clerk.snap.gates:
            gates.close(clerk, gate, "ended")
        end_run(clerk, run_secret(book), f"{changed} was amended", "person")
    finally:
        clerk.close()


# --- an old run ---


def _go_on(
    ws: Workspace, lock: WorkspaceLock, redactor: Redactor, run: str, book: Book, ambiguous: str
) -> Opened:
    secret = run_secret(book)
    kill_orphans(book)
    clerk = Clerk(ws, Recorder.open(ws, lock, run, redactor), redactor, book)
    _check_incumbent(clerk)
    clerk.redo()
    clerk.settle_outputs()
    close_open_claims(clerk, ambiguous)
    _close_orphaned_questions(clerk)
    clerk.drain()
    clerk.checkpoint()
    return Opened(clerk, secret, new=False)


def kill_orphans(book: Book) -> list[int]:
    """End process groups of open claims that outlived their worker; only if they are the same processes."""
    killed = []
    for claim in book.open_claims.values():
        pgid, ticks = claim.get("pgid"), claim.get("start_ticks")
        if not isinstance(pgid, int) or pgid <= 1 or ticks is None or start_ticks(pgid) != ticks:
            continue
        try:
            os.killpg(pgid, signal.SIGKILL)
            killed.append(pgid)
        except (ProcessLookupError, PermissionError):
            continue
    return killed


def _check_incumbent(clerk: Clerk) -> None:
    """The incumbent's source must still be what was judged."""
    cand = clerk.snap.incumbent.cand
    c = clerk.snap.candidates.get(cand)
    if c is None or not c.sha256:
        return
    folder = clerk.ws.candidate(cand)
    try:
        files = {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir() if p.is_file()}
        found = source_sha(files)
    except (OSError, ValueError):
        found = ""
    if found != c.sha256:
        clerk.close()
        raise UserError(
            f"{folder}: the incumbent is not what was judged; put its files back (kda verify names them)"
        )


def close_open_claims(clerk: Clerk, ambiguous: str = "ask") -> None:
    """R9: no result came. Work of the judge is done again by itself, paid work asks, a promotion is finished."""
    for claim, line in list(clerk.book.open_claims.items()):
        op, cand = str(line.get("op") or ""), str(line.get("cand") or "")
        if op in PAID:
            _close_paid(clerk, claim, line, ambiguous)
        elif op == "promote":
            done = clerk.snap.incumbent.cand == cand
            _close(
                clerk,
                claim,
                line,
                "ok" if done else "cancelled",
                reason="finished after a restart" if done else "",
            )
        else:
            _close_died(clerk, claim, line, op, cand)


def cancel_open_claims(clerk: Clerk, reason: str) -> None:
    """At the end of a run nothing is done again; candidates go back to what they were before the claim."""
    for claim, line in list(clerk.book.open_claims.items()):
        c = clerk.snap.candidates.get(str(line.get("cand") or ""))
        after = replace(c, stage="compiled") if c is not None and c.stage == "claimed" else None
        _close(clerk, claim, line, "cancelled", after, reason=reason)


def _close(
    clerk: Clerk,
    claim: str,
    line: Mapping[str, Any],
    outcome: str,
    after: Candidate | None = None,
    **fields: Any,
) -> None:
    kept = {k: line[k] for k in ("cand", "op", "attempt", "opponent", "for") if line.get(k)}
    clerk.event("result", candidate=after, claim=claim, outcome=outcome, **kept, **fields)


def _close_died(clerk: Clerk, claim: str, line: Mapping[str, Any], op: str, cand: str) -> None:
    snap, book = clerk.snap, clerk.book
    c = snap.candidates.get(cand)
    reason = "the worker died while it ran; what it measured counts for nothing"
    fields: dict[str, Any] = {"reason": reason, "died": True, "samples": _left_samples(clerk, claim)}
    if op == "autotune":
        _close(clerk, claim, line, "infrastructure_error", retry=True, **fields)
        return
    after = None
    parked = c is not None and is_last_attempt(book, op, cand, died=True)
    if c is not None and parked:
        after = parked_candidate(c, "two evaluations of it ended with the death of the worker or the judge")
    elif c is not None and c.stage == "claimed":
        after = replace(c, stage="submitted" if op == "compile" else "compiled")
    again: dict[str, Any] = {} if parked else {"retry": True}
    _close(clerk, claim, line, "infrastructure_error", after, **fields, **again)


def _left_samples(clerk: Clerk, claim: str) -> list[dict[str, Any]]:
    """Sample files of a claim that died: kept, hashed, inadmissible."""
    folder = clerk.paths.samples / claim
    if not folder.is_dir():
        return []
    root = clerk.paths.root
    return [
        {
            "path": p.relative_to(root).as_posix(),
            "sha": _sha(p),
            "bytes": p.stat().st_size,
            "admissible": False,
        }
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    ]


def _close_paid(clerk: Clerk, claim: str, line: Mapping[str, Any], ambiguous: str) -> None:
    """The cost is booked as estimated, where there was a price; a person says whether to do it again, unless once is allowed by setting."""
    booked: dict[str, Any] = {"usd": float(line["est_usd"])} if line.get("est_usd") is not None else {}
    _close(
        clerk, claim, line, "infrastructure_error", reason="the worker died before its result came", **booked
    )
    if ambiguous != "retry-once" or int(line.get("attempt") or 1) > 1:
        gates.open_new(clerk, "ambiguous", {"claim": claim, "op": line.get("op")}, blocking=True)


def _close_orphaned_questions(clerk: Clerk) -> None:
    """Whoever asked is gone with the old process; it asks again if it still wants to know."""
    for gate in clerk.snap.gates:
        if gate.kind == "question":
            gates.close(clerk, gate, "asker_gone")
