"""Rules for promotion (R8): never without a confirm against the incumbent of this very moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kda_tui.record.records import Candidate, Decision
from kda_tui.record.snapshot import Evaluation, Gate, Snapshot
from kda_tui.worker.facts import (
    by_whom,
    newest_confirm,
    open_gate,
    promotable,
    taken_for,
)
from kda_tui.worker.rulings import Effect, Ruling, moot, refused, superseded, taken

SPEED_GATES = ("confirm", "aa", "alone")  # gates of the judge that are about speed alone
CONFIRM_FIRST = "compared with what is the incumbent now, by a confirm that runs first; you are asked again with its numbers"


def objections(snap: Snapshot, confirm: Evaluation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What speaks against promoting on ``confirm``: (what a person may override, what nobody may)."""
    hard = [] if confirm.validity == "passed" else [confirm.validity or "no verdict"]
    hard += [
        f"{g} {word}"
        for g, word in sorted(confirm.gates.items())
        if word != "passed" and g not in SPEED_GATES
    ]
    soft = _speed_objections(snap, confirm)
    contract = snap.contract
    needs_profile = contract is not None and contract.promotion.profile == "required"
    if needs_profile and not _is_profiled(snap, confirm.cand):
        soft.append("profile")
    return tuple(soft), tuple(hard)


def _speed_objections(snap: Snapshot, confirm: Evaluation) -> list[str]:
    """speed and floor, where the written rule of the confirm does not hold."""
    if confirm.extra.get("rule_passed"):
        return []
    numbers = confirm.extra.get("extra")
    bounds = numbers.get("floor_bounds") if isinstance(numbers, Mapping) else None
    low = []
    if snap.contract is not None and isinstance(bounds, Mapping):
        promotion = snap.contract.promotion
        floors = {w.id: w.floor if w.floor is not None else promotion.floor for w in snap.contract.workloads}
        low = [
            w for w, bound in bounds.items() if isinstance(bound, int | float) and bound < floors.get(w, 0.0)
        ]
    only_floor = bool(low) and confirm.speed == "mixed"
    return (["floor"] if low else []) + ([] if only_floor else ["speed"])


def _is_profiled(snap: Snapshot, cand: str) -> bool:
    return any(
        e.op == "profile" and e.cand == cand and e.gates.get("profile") == "passed"
        for e in snap.evaluations.values()
    )


def _grant(snap: Snapshot, d: Decision, confirm: Evaluation) -> Ruling | tuple[str, ...]:
    """The overrides a promotion on ``confirm`` needs, or why it is refused."""
    soft, hard = objections(snap, confirm)
    if hard:
        return refused(f"{confirm.cand} cannot be promoted: {', '.join(hard)}; nobody overrides that")
    if not soft:
        return ()
    numbers = f"speed {confirm.speed or 'unknown'}"
    if confirm.ratio is not None and confirm.lo is not None:
        numbers += f", ratio {confirm.ratio:.3f}, lower bound {confirm.lo:.3f}"
    if d.by == "rule":
        return refused(f"the written rule does not hold ({', '.join(soft)}; {numbers})")
    if not (d.reason or d.text).strip():
        return refused(f"this overrides {', '.join(soft)} ({numbers}): give a reason")
    return soft


def _approve(gate: Gate, confirm: Evaluation, override: Sequence[str]) -> Ruling:
    return taken(
        Effect(
            "gate_close",
            {
                "gate": gate.id,
                "outcome": "approved",
                "gate_kind": "promotion",
                **gate.target,
                "eval": confirm.id,
            },
        ),
        override=override,
    )


def _confirm_first(snap: Snapshot, c: Candidate, d: Decision, gate: Gate | None) -> Ruling:
    if snap.phase in ("", "ended"):
        return refused(
            f"{c.id} needs a confirm against {snap.incumbent.cand} first, and the run has ended (kda run)"
        )
    effects = []
    if gate is not None:
        effects.append(
            Effect(
                "gate_close",
                {"gate": gate.id, "outcome": "reconfirm", "gate_kind": "promotion", **gate.target},
            )
        )
    if c.decision != "requested" or gate is None:
        asked = replace(c, decision="requested", decision_id=d.id, reason=d.reason or d.text)
        effects.append(Effect("candidate", candidate=asked))
    return taken(*effects, why=f"{c.id} is {CONFIRM_FIRST}")


def approve_promotion(snap: Snapshot, d: Decision) -> Ruling:
    wanted, cand = str(d.target.get("gate") or ""), str(d.target.get("cand") or "")
    gate = open_gate(snap, "promotion", gate=wanted, cand=cand)
    if gate is None:
        first = taken_for(snap, gate=wanted) or taken_for(
            snap, cand=cand, kinds=("approve_promotion", "decline", "veto", "promote")
        )
        if first is not None:
            return superseded(f"decided before{by_whom(first)}")
        return refused(f"no promotion request waits for {cand or wanted or 'a decision'}")
    c = snap.candidates.get(str(gate.target.get("cand") or ""))
    if c is None:
        return refused(f"there is no candidate {gate.target.get('cand')}")
    return _decide(snap, d, c, gate)


def promote(snap: Snapshot, d: Decision) -> Ruling:
    """A person wants a candidate promoted, whether or not the agent asked."""
    cand = str(d.target.get("cand") or "")
    c = snap.candidates.get(cand)
    if c is None:
        return refused(f"there is no candidate {cand or '(none named)'}")
    if snap.incumbent.cand == cand:
        return moot(f"{cand} is the incumbent")
    return _decide(snap, d, c, open_gate(snap, "promotion", cand=cand))


def _decide(snap: Snapshot, d: Decision, c: Candidate, gate: Gate | None) -> Ruling:
    if stopped := promotable(snap, c):
        return refused(stopped)
    confirm = newest_confirm(snap, c.id)
    if confirm is None:
        return _confirm_first(snap, c, d, gate)
    override = _grant(snap, d, confirm)
    if isinstance(override, Ruling):
        return override
    if gate is not None:
        return _approve(gate, confirm, override)
    name = f"g-{d.id}"
    target = {"cand": c.id, "eval": confirm.id}
    opened = Gate(id=name, kind="promotion", target=target)
    approval = _approve(opened, confirm, override)
    ask = Effect("gate_open", {"gate": name, "gate_kind": "promotion", "target": target, "blocking": False})
    return taken(ask, *approval.effects, override=override)
