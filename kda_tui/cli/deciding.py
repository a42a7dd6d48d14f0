"""Decisions on plans and candidates. ``expect`` is what the record says when the command starts (rule R4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from kda_tui.cli.deliver import decision_options, deliver
from kda_tui.cli.target import find_candidate, find_workspace, read, workspace_option
from kda_tui.record.snapshot import Gate, Snapshot
from kda_tui.text import UserError

DECIDABLE = ("plan", "promotion", "end")


@click.command("approve")
@click.argument("what", required=False)
@click.option("--sha", default="", help="Approve the plan only if its sha256 starts with this.")
@workspace_option
@decision_options
def approve_command(
    what: str | None, sha: str, workspace: Path | None, reason: str, wait: float, as_json: bool
) -> int:
    """Approve what waits: `plan`, a candidate's promotion, a gate by its id, or the only thing that waits."""
    from kda_tui.record.inbox import new_decision

    ws = find_workspace(workspace)
    snap = read(ws)
    gate = _waiting(snap, what)
    if gate.kind == "plan":
        target = {"gate": gate.id, "plan_rev": gate.target.get("plan_rev")}
        decision = new_decision(
            "approve_plan", target=target, expect={"plan_sha": sha or gate.sha}, reason=reason
        )
    elif gate.kind == "promotion":
        target = {"gate": gate.id, "cand": gate.target.get("cand")}
        decision = new_decision("approve_promotion", target=target, expect=_seen(snap, gate), reason=reason)
    else:
        decision = new_decision("end_after", target={"gate": gate.id}, reason=reason)
    return deliver(ws, decision, wait, as_json)


@click.command("request-changes")
@click.argument("text", required=False, default="")
@click.option(
    "-l",
    "--line",
    "lines",
    multiple=True,
    metavar="N:TEXT",
    help="A comment on line N of the plan; may be given several times.",
)
@workspace_option
@decision_options
def request_changes_command(
    text: str, lines: tuple[str, ...], workspace: Path | None, reason: str, wait: float, as_json: bool
) -> int:
    """Ask for changes to the plan that waits, else to the one in force."""
    from kda_tui.record.inbox import new_decision

    ws = find_workspace(workspace)
    snap = read(ws)
    gate = next((g for g in snap.gates if g.kind == "plan"), None)
    plan = snap.plan.proposed or snap.plan.in_force
    if plan is None:
        raise UserError(f"{ws.root}: there is no plan yet; kda status says what the run is doing")
    if not text and not lines:
        raise UserError("say what should change: kda request-changes TEXT, or --line N:TEXT")
    source = (ws.root / plan.file).read_text(encoding="utf-8", errors="replace").splitlines() if lines else []
    target = {"plan_rev": plan.rev} | ({"gate": gate.id} if gate is not None else {})
    decision = new_decision(
        "request_changes",
        target=target,
        expect={"plan_sha": plan.sha},
        reason=reason,
        text=text,
        lines=tuple(_comment(word, plan.rev, source) for word in lines),
    )
    return deliver(ws, decision, wait, as_json)


@click.command("decline")
@click.argument("what", required=False)
@workspace_option
@decision_options
def decline_command(what: str | None, workspace: Path | None, reason: str, wait: float, as_json: bool) -> int:
    """Decline a candidate's promotion, the end of the run, or the only thing that waits."""
    from kda_tui.record.inbox import new_decision

    ws = find_workspace(workspace)
    snap = read(ws)
    gate = _waiting(snap, what)
    target = {"gate": gate.id} | ({"cand": gate.target["cand"]} if gate.target.get("cand") else {})
    return deliver(ws, new_decision("decline", target=target, reason=reason), wait, as_json)


def _on_candidate(
    kind: str, help: str, expect: Callable[[Snapshot, str], Mapping[str, Any]] = lambda snap, cand: {}
) -> click.Command:
    """A command that sends one decision about one candidate."""

    @click.command(kind, help=help)
    @click.argument("candidate")
    @workspace_option
    @decision_options
    def command(candidate: str, workspace: Path | None, reason: str, wait: float, as_json: bool) -> int:
        from kda_tui.record.inbox import new_decision

        ws = find_workspace(workspace)
        snap = read(ws)
        cand = find_candidate(snap, candidate)
        decision = new_decision(kind, target={"cand": cand}, expect=expect(snap, cand), reason=reason)
        return deliver(ws, decision, wait, as_json)

    return command


veto_command = _on_candidate(
    "veto",
    "Veto CANDIDATE: a waiting one is dropped, a running one is stopped, the incumbent is revoked.",
)
unveto_command = _on_candidate("unveto", "Withdraw the veto of CANDIDATE; it never comes back as promoted.")
promote_command = _on_candidate(
    "promote",
    "Promote CANDIDATE. Without a confirmation against the incumbent, one runs first and you are asked again.",
    lambda snap, cand: {"incumbent": snap.incumbent.cand},
)
revoke_command = _on_candidate("revoke", "Take back the promotion of CANDIDATE, the incumbent.")
measure_command = _on_candidate("measure", "Have the worker evaluate CANDIDATE again, before its next step.")


def _on_claim(kind: str, help: str) -> click.Command:
    """A command about work that died without a result."""

    @click.command(kind, help=help)
    @click.argument("what", required=False)
    @workspace_option
    @decision_options
    def command(what: str | None, workspace: Path | None, reason: str, wait: float, as_json: bool) -> int:
        from kda_tui.record.inbox import new_decision

        ws = find_workspace(workspace)
        snap = read(ws)
        gate = _pick(snap, what, ("ambiguous",))
        if gate is not None:
            target: dict[str, Any] = {"gate": gate.id, **gate.target}
        elif what:
            target = {"cand": find_candidate(snap, what)} if kind == "rerun" else {"claim": what}
        else:
            raise UserError(f"{ws.root}: nothing died without a result")
        return deliver(ws, new_decision(kind, target=target, reason=reason), wait, as_json)

    return command


rerun_command = _on_claim("rerun", "Run again WHAT (a gate, a claim or a candidate) died without a result.")
abandon_command = _on_claim("abandon", "Give up on WHAT (a gate or a claim) died without a result.")


def _seen(snap: Snapshot, gate: Gate) -> dict[str, Any]:
    seen: dict[str, Any] = {"incumbent": snap.incumbent.cand, "gate_seq": gate.seq}
    if gate.target.get("eval"):
        seen["eval"] = gate.target["eval"]
    return seen


def _waiting(snap: Snapshot, what: str | None) -> Gate:
    gate = _pick(snap, what, DECIDABLE)
    if gate is not None:
        return gate
    waiting = [_name(g) for g in snap.gates if g.kind in DECIDABLE]
    if what and not waiting:
        raise UserError(f"{what} does not wait for a decision; nothing does")
    if what:
        raise UserError(f"{what} does not wait for a decision; what waits: {', '.join(waiting)}")
    if not waiting:
        raise UserError(f"nothing waits for a decision in {snap.workspace}")
    raise UserError(f"{len(waiting)} decisions wait; name one: {', '.join(waiting)}")


def _pick(snap: Snapshot, what: str | None, kinds: tuple[str, ...]) -> Gate | None:
    """The gate that ``what`` names (kind, candidate, claim or id); without a name the only one there is."""
    gates = [g for g in snap.gates if g.kind in kinds]
    if not what:
        return gates[0] if len(gates) == 1 else None
    names = {what}
    if what in snap.candidates or what.removeprefix("c").isdecimal():
        names.add(find_candidate(snap, what))
    for gate in reversed(gates):
        if names & {gate.id, gate.kind, str(gate.target.get("cand")), str(gate.target.get("claim"))}:
            return gate
    return None


def _name(gate: Gate) -> str:
    return str(gate.target.get("cand") or gate.kind)


def _comment(word: str, rev: int, source: list[str]) -> dict[str, Any]:
    number, colon, text = word.partition(":")
    if not colon or not number.isdecimal() or not text.strip():
        raise UserError(f"--line {word}: a comment on a line is N:TEXT, for example 12:why this order?")
    line = int(number)
    if not 1 <= line <= len(source):
        raise UserError(f"--line {word}: the plan has {len(source)} lines")
    return {"rev": rev, "line": line, "quote": source[line - 1], "text": text.strip()}
