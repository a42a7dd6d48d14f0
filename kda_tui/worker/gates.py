"""Gates: opened when people are to decide, opened and closed by written rules, closed by their timeouts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from kda_tui.record import clock
from kda_tui.record.snapshot import Evaluation, Gate, Snapshot
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.decisions_promotion import objections
from kda_tui.worker.facts import newest_confirm, open_gate, promotable
from kda_tui.worker.jobs import is_asked_for

BY_FLAG = {"plan": "--yes plan", "promotion": "--yes promotion", "end": "--yes end"}


def open_new(
    clerk: Clerk,
    kind: str,
    target: Mapping[str, Any],
    *,
    sha: str = "",
    blocking: bool = False,
    default: str = "",
    timeout_s: float | None = None,
) -> str:
    """Open a gate; returns its id."""
    gate = clerk.next_name("g")
    fields: dict[str, Any] = {"target": dict(target), "blocking": blocking}
    if sha:
        fields["sha"] = sha
    if default:
        fields |= {"default": default, "timeout_s": timeout_s}
    clerk.event("gate_open", gate=gate, gate_kind=kind, **fields)
    return gate


def close(clerk: Clerk, gate: Gate, outcome: str) -> None:
    """Close a gate that nobody needs to decide any more."""
    clerk.event("gate_close", gate=gate.id, gate_kind=gate.kind, outcome=outcome, **gate.target)


def tend_requests(
    clerk: Clerk, is_reviewed: Callable[[Evaluation], bool] = lambda confirm: True
) -> list[str]:
    """Put confirmed, reviewed requests before people; drop those that cannot be promoted. Returns the gates opened."""
    opened = []
    for c in list(clerk.snap.candidates.values()):
        if not is_asked_for(clerk.snap, clerk.book, c):
            continue
        if stopped := promotable(clerk.snap, c):
            clerk.change(c.id, decision="", reason=f"not asked for any more: {stopped}")
            continue
        confirm = newest_confirm(clerk.snap, c.id)
        if confirm is None or confirm.id in clerk.book.asked:
            continue
        _, hard = objections(clerk.snap, confirm)
        if hard:
            clerk.change(c.id, decision="", reason=f"confirm {confirm.id}: {', '.join(hard)}")
            continue
        if not is_reviewed(confirm):
            continue
        contract = clerk.snap.contract
        timeout = contract.gates.promotion_timeout_s if contract else None
        default = "decline" if timeout is not None else ""
        target = {"cand": c.id, "eval": confirm.id}
        opened.append(open_new(clerk, "promotion", target, default=default, timeout_s=timeout))
    return opened


def decide_by_rule(clerk: Clerk, yes: Collection[str]) -> bool:
    """Close what the contract, or the flags of this worker, let a written rule decide. True if anything was."""
    acted = False
    for gate in clerk.snap.gates:
        key = _rule_for(clerk.snap, gate, yes)
        if not key:
            continue
        rule = {"contract_key": key}
        if gate.kind == "plan":
            target = {"gate": gate.id, "plan_rev": gate.target.get("plan_rev")}
            clerk.by_rule("approve_plan", rule, target=target, expect={"plan_sha": gate.sha})
        elif gate.kind == "end":
            clerk.by_rule(
                "end_after", rule, target={"gate": gate.id}, reason=str(gate.target.get("why") or "")
            )
        elif gate.kind == "promotion":
            _promotion_by_rule(clerk, gate, rule)
        else:
            continue
        acted = True
    return acted


def _rule_for(snap: Snapshot, gate: Gate, yes: Collection[str]) -> str:
    """Which written rule may decide this gate: a key of the contract, a flag, or none."""
    contract = snap.contract
    if contract is not None:
        if gate.kind == "plan" and contract.gates.plan == "auto":
            return "gates.plan"
        if gate.kind == "promotion" and contract.promotion.by == "rule":
            return "promotion.by"
    return BY_FLAG[gate.kind] if gate.kind in yes and gate.kind in BY_FLAG else ""


def _promotion_by_rule(clerk: Clerk, gate: Gate, rule: Mapping[str, Any]) -> None:
    confirm = clerk.snap.evaluations.get(str(gate.target.get("eval") or ""))
    soft, hard = objections(clerk.snap, confirm) if confirm else (("no confirm",), ())
    fields = {"target": {"gate": gate.id, "cand": gate.target.get("cand")}}
    with_numbers = {**rule, "numbers": _numbers(clerk.snap, confirm)}
    if soft or hard:
        clerk.by_rule(
            "decline", with_numbers, reason=f"the rule does not hold: {', '.join((*hard, *soft))}", **fields
        )
    else:
        clerk.by_rule("approve_promotion", with_numbers, **fields)


def _numbers(snap: Snapshot, confirm: Evaluation | None) -> dict[str, Any]:
    least = snap.contract.promotion.min_speedup if snap.contract else None
    if confirm is None:
        return {"min_speedup": least}
    return {"min_speedup": least, "ratio": confirm.ratio, "lo": confirm.lo, "speed": confirm.speed}


def expire(clerk: Clerk) -> bool:
    """Let the default apply where a gate's time is over. True if one did."""
    acted = False
    for gate in clerk.snap.gates:
        if not gate.default or gate.timeout_s is None or not gate.opened:
            continue
        if clock.parse(clock.now()) - clock.parse(gate.opened) < gate.timeout_s:
            continue
        key = "gates.promotion_timeout_s" if gate.kind == "promotion" else "gates.question_timeout_s"
        rule = {"contract_key": key, "numbers": {"timeout_s": gate.timeout_s}}
        if gate.kind == "question":
            target = {"gate": gate.id, "question": gate.target.get("question")}
            clerk.by_rule("answer", rule, target=target, text=gate.default, reason="nobody answered in time")
        elif gate.kind == "end":
            clerk.by_rule("end_after", rule, target={"gate": gate.id}, reason="nobody answered in time")
        elif gate.kind == "promotion":
            target = {"gate": gate.id, "cand": gate.target.get("cand")}
            clerk.by_rule("decline", rule, target=target, reason="nobody answered in time")
        else:
            continue
        acted = True
    return acted


def waits_for(snap: Snapshot) -> str:
    """What stands open for people, in words; empty if nothing."""
    if open_gate(snap, "plan") is not None and snap.phase == "plan_review":
        return "a decision on the plan"
    words = {
        "promotion": "a promotion",
        "question": "an answer",
        "end": "the end of the run to be granted",
        "ambiguous": "a claim without a result",
        "budget": "a larger budget",
        "plan": "a plan revision",
    }
    kinds = [g.kind for g in snap.gates]
    return ", ".join(dict.fromkeys(words.get(kind, kind) for kind in kinds))
