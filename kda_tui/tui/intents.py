"""From a key to a decision: target and ``expect`` fixed at that moment, and words for what will happen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kda_tui.record.records import NEVER_OVERRIDDEN, Candidate
from kda_tui.record.snapshot import Gate, Review, Snapshot
from kda_tui.text import UserError, clean_line
from kda_tui.tui import words

Comment = Mapping[str, Any]


class NotNow(UserError):
    """The action has nothing to act on; says why in one line."""


@dataclass(frozen=True, slots=True)
class Here:
    """Where the person stands: what the key is about."""

    snapshot: Snapshot
    pane: str = "candidates"
    cand: str = ""
    comments: tuple[Comment, ...] = ()


@dataclass(frozen=True, slots=True)
class Intent:
    """A decision before it is sent. ``ask`` names what is typed: reason, text, or amount."""

    kind: str
    title: str
    happens: tuple[str, ...]
    target: Mapping[str, Any] = field(default_factory=dict)
    expect: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[Comment, ...] = ()
    ask: str = "reason"
    options: tuple[str, ...] = ()


def intend(action: str, here: Here) -> Intent:
    """The decision that an action means here; raises :class:`NotNow` when there is none."""
    return _MAKERS[action](here)


def intended() -> frozenset[str]:
    """Actions that become a decision."""
    return frozenset(_MAKERS)


def check_typed(intent: Intent, typed: str) -> dict[str, Any]:
    """What the typed line gives: ``reason``, ``text`` or ``amount``; raises NotNow when it is not enough."""
    typed = typed.strip()
    if intent.ask == "amount":
        return _amount(typed)
    if len(typed) < 2 or typed.lower() in {"ye", "yes"}:
        raise NotNow("Type a reason of at least two letters; y alone never confirms.")
    if intent.ask == "text":
        return {"text": typed}
    return {"reason": typed}


def _amount(typed: str) -> dict[str, Any]:
    parts = typed.split(None, 2)
    try:
        value = float(parts[1])
    except (IndexError, ValueError):
        value = math.nan
    if (
        len(parts) < 3
        or parts[0] not in ("candidates", "hours", "usd")
        or not (math.isfinite(value) and value >= 0)
    ):
        raise NotNow("Type an axis, a number and a reason, for example: usd 40 one more night")
    whole = int(value) if value == int(value) else value
    return {"amount": {"axis": parts[0], "value": whole}, "reason": parts[2]}


# --- what an action is about -------------------------------------------------


def _candidate(here: Here) -> Candidate:
    cand = here.snapshot.candidates.get(here.cand)
    if cand is None:
        raise NotNow("No candidate is selected; 4 goes to the candidates.")
    return cand


def _gate(here: Here, *kinds: str) -> Gate:
    """The gate that a key means: of the pane, else of the selected candidate, else the oldest."""
    gates = [gate for gate in here.snapshot.gates if gate.kind in kinds]
    if not gates:
        raise NotNow(f"Nothing waits for that; open gates: {_gates(here.snapshot)}.")
    if here.pane == "plan":
        gates.sort(key=lambda gate: gate.kind != "plan")
        return gates[0]
    own = [gate for gate in gates if gate.kind == "promotion" and gate.target.get("cand") == here.cand]
    if own:
        return own[0]
    others = [gate for gate in gates if gate.kind != "promotion"]
    if others:
        return others[0]
    raise NotNow(
        f"{here.cand or 'This candidate'} asks for nothing; w goes to {words.gate_words(gates[0], here.snapshot)}."
    )


def _gates(snapshot: Snapshot) -> str:
    return ", ".join(words.gate_words(gate, snapshot) for gate in snapshot.gates) or "none"


def _numbers(cand: Candidate) -> str:
    interval = f" [{words.ratio(cand.lo)} {words.ratio(cand.hi)}]" if cand.lo is not None else ""
    against = f" against {cand.opponent}" if cand.opponent else ""
    verdict = " and ".join(part for part in (cand.validity, cand.speed) if part) or "not judged"
    ratio = f", {words.ratio(cand.ratio)}{interval}{against}" if cand.ratio is not None else ""
    return f"{cand.id} is {verdict}{ratio}. {cand.hypothesis}".strip()


def _promotion_expect(here: Here, cand: Candidate) -> dict[str, Any]:
    return {"eval": cand.eval, "incumbent": here.snapshot.incumbent.cand}


def _opinion(review: Review) -> str:
    """The reviewer's word, clean, as a sentence."""
    return clean_line(f"{review.words[:1].upper()}{review.words[1:]}.", 300)


def _approve(here: Here) -> Intent:
    gate = _gate(here, "plan", "promotion", "end")
    if gate.kind == "plan":
        rev = here.snapshot.plan.newest
        number = gate.target.get("plan_rev", gate.target.get("rev", rev.rev if rev else None))
        happens: tuple[str, ...] = (
            f"Plan r{number} ({gate.sha[:6] or (rev.sha[:6] if rev else '?')}) comes into force; the agent starts to iterate.",
            "A change of the plan before this is taken makes it refused, with the reason.",
        )
        if (review := here.snapshot.review_of(gate)) is not None:
            happens = (*happens, _opinion(review))
        sha = gate.sha or (rev.sha if rev else "")
        return Intent(
            "approve_plan",
            f"Approve plan r{number}",
            happens,
            {"gate": gate.id, "plan_rev": number},
            {"plan_sha": sha},
        )
    if gate.kind == "end":
        return Intent(
            "end_after",
            "Let the run end",
            ("The run ends after the work that is running; nothing is lost.",),
            {"gate": gate.id},
            {"gate_seq": gate.seq},
        )
    cand = here.snapshot.candidates.get(str(gate.target.get("cand")))
    if cand is None:
        raise NotNow(f"Gate {gate.id} names a candidate that the record does not have.")
    review = here.snapshot.review_of(gate)
    happens = (
        _numbers(cand),
        *((_opinion(review),) if review is not None else ()),
        f"It becomes the incumbent in place of {here.snapshot.incumbent.cand}, if its confirmation holds.",
        "A new verdict or another incumbent before this is taken makes it refused.",
    )
    return Intent(
        "approve_promotion",
        f"Approve the promotion of {cand.id}",
        happens,
        {"gate": gate.id, "cand": cand.id},
        {**_promotion_expect(here, cand), "eval": gate.target.get("eval") or cand.eval},
    )


def _decline(here: Here) -> Intent:
    gate = _gate(here, "promotion", "end", "budget")
    name = words.gate_words(gate, here.snapshot)
    target = {"gate": gate.id, **({"cand": gate.target["cand"]} if "cand" in gate.target else {})}
    happens: tuple[str, ...] = (
        "The request is closed; the candidate stays judged and can be asked for again.",
    )
    if gate.kind != "promotion":
        happens = ("The request is closed; the agent goes on working.",)
    return Intent("decline", f"Decline: {name}", happens, target, {"gate_seq": gate.seq})


def _changes(here: Here) -> Intent:
    rev = here.snapshot.plan.newest
    if rev is None:
        raise NotNow("There is no plan yet.")
    gate = next((g for g in here.snapshot.gates if g.kind == "plan"), None)
    count = len(here.comments)
    happens = (
        f"The agent gets your reason{f' and {count} comments on lines' if count else ''} and writes the next revision.",
        "Work does not start before a revision is approved."
        if gate
        else "Work goes on under the plan in force.",
    )
    target = {"plan_rev": rev.rev, **({"gate": gate.id} if gate else {})}
    return Intent(
        "request_changes",
        f"Ask for changes to plan r{rev.rev}",
        happens,
        target,
        {"plan_sha": rev.sha},
        here.comments,
    )


def _veto(here: Here) -> Intent:
    cand = _candidate(here)
    if cand.decision == "vetoed":
        raise NotNow(f"{cand.id} is vetoed already; W withdraws it.")
    running = next((claim for claim in here.snapshot.claims if claim.cand == cand.id), None)
    happens: tuple[str, ...]
    if cand.id == here.snapshot.incumbent.cand:
        happens = (
            "It is the incumbent: the promotion is revoked, the last promoted one comes back, outputs/ is rebuilt.",
            "Verdicts against it become stale.",
        )
    elif running is not None:
        happens = (f"Its {running.op} is killed and cancelled; samples are kept and are not admissible.",)
    elif cand.validity:
        happens = (
            _numbers(cand),
            "It is judged and becomes vetoed; it cannot be promoted until the veto is withdrawn.",
        )
    else:
        happens = ("It is queued and is dropped.",)
    return Intent("veto", f"Veto {cand.id}", happens, {"cand": cand.id})


def _unveto(here: Here) -> Intent:
    cand = _candidate(here)
    if cand.decision != "vetoed":
        raise NotNow(f"{cand.id} is not vetoed.")
    happens = ("It is judged again as before the veto, never promoted by this.",)
    return Intent("unveto", f"Withdraw the veto of {cand.id}", happens, {"cand": cand.id})


def _promote(here: Here) -> Intent:
    cand = _candidate(here)
    if cand.validity in NEVER_OVERRIDDEN:
        raise NotNow(f"{cand.id} is {cand.validity}: nobody can promote that.")
    if cand.validity != "passed":
        raise NotNow(f"{cand.id} has not passed an evaluation: M measures it.")
    if cand.decision == "vetoed":
        raise NotNow(f"{cand.id} is vetoed; W withdraws the veto.")
    if cand.id == here.snapshot.incumbent.cand:
        raise NotNow(f"{cand.id} is the incumbent.")
    happens = [
        _numbers(cand),
        "A confirmation with fresh seeds runs first, unless one against the incumbent is there.",
    ]
    if cand.opponent and cand.opponent != here.snapshot.incumbent.cand:
        happens.append(
            f"Its numbers are against {cand.opponent}, not {here.snapshot.incumbent.cand}: it is measured again."
        )
    if cand.speed not in ("faster", ""):
        happens.append(
            f"It is {cand.speed}: promoting it overrides the speed rule, which is recorded with your name."
        )
    return Intent(
        "promote", f"Promote {cand.id}", tuple(happens), {"cand": cand.id}, _promotion_expect(here, cand)
    )


def _revoke(here: Here) -> Intent:
    incumbent = here.snapshot.incumbent
    if incumbent.cand == "baseline":
        raise NotNow("The incumbent is the baseline; there is nothing to revoke.")
    happens = (
        "The last promoted candidate that is not vetoed comes back, else the baseline; outputs/ is rebuilt.",
    )
    return Intent(
        "revoke", f"Revoke {incumbent.cand}", happens, {"cand": incumbent.cand}, {"incumbent": incumbent.cand}
    )


def _on_candidate(kind: str, title: str, happens: str) -> Callable[[Here], Intent]:
    def make(here: Here) -> Intent:
        cand = _candidate(here)
        if cand.decision == "vetoed":
            raise NotNow(f"{cand.id} is vetoed; W withdraws the veto.")
        return Intent(kind, f"{title} {cand.id}", (_numbers(cand), happens), {"cand": cand.id})

    return make


def _steer(here: Here) -> Intent:
    _alive(here)
    happens = ("The agent sees the note in its next turn; it stays pinned until then.",)
    return Intent("steer", "Steer the agent", happens, ask="text")


def _unpin(here: Here) -> Intent:
    note = next((s for s in here.snapshot.steering if s.pinned), None)
    if note is None:
        raise NotNow("No steering note is pinned.")
    happens = (f"{note.who}: {note.text}", "The agent no longer gets this note.")
    return Intent("unpin", "Unpin a steering note", happens, {"decision": note.decision})


def _reply(here: Here) -> Intent:
    gate = _gate(here, "question")
    name = str(gate.target.get("question") or gate.target.get("q") or gate.id)
    question = here.snapshot.questions.get(name)
    text = question.text if question else "(the question's text is not in the record)"
    default = (f"Without an answer: {gate.default}",) if gate.default else ()
    options = question.options if question else ()
    return Intent(
        "answer",
        f"Answer {name}",
        (text, *default),
        {"question": name, "gate": gate.id},
        {"gate_seq": gate.seq},
        (),
        "text",
        options,
    )


def _hold(here: Here) -> Intent:
    _alive(here)
    if here.snapshot.hold:
        raise NotNow(
            f"The run is {words.HOLD_WORDS.get(here.snapshot.hold, here.snapshot.hold)} already; U goes on."
        )
    return Intent("pause", "Hold the run", ("The running work ends as usual; nothing new starts until U.",))


def _resume(here: Here) -> Intent:
    if not here.snapshot.hold:
        raise NotNow("The run is not held.")
    why = here.snapshot.hold_why
    held = words.HOLD_WORDS.get(here.snapshot.hold, here.snapshot.hold)
    return Intent(
        "resume",
        "Go on",
        (f"The run is {held}{f': {why}' if why else ''}.", "The worker takes up work again."),
    )


def _end(here: Here) -> Intent:
    _alive(here)
    happens = ("The running work ends as usual, then the run ends. A new run can be started later.",)
    return Intent("end_after", "End the run after the current work", happens)


def _end_now(here: Here) -> Intent:
    _alive(here)
    happens = (
        "The running work is killed: cancelled, no verdict, the attempt is not charged. Then the run ends.",
    )
    return Intent("end_now", "End the run now", happens)


def _alive(here: Here) -> None:
    if here.snapshot.phase in ("", "ended"):
        raise NotNow("No run is going on.")


def _budget(here: Here) -> Intent:
    lines = tuple(
        f"{line.axis}: {words.number(line.used, 2)} of {words.number(line.limit, 2)} used"
        for line in here.snapshot.budget.values()
    )
    happens = (
        *(lines or ("No budget is set.",)),
        "The new limit replaces the contract's; the contract's hash stays.",
    )
    return Intent("set_budget", "Set a budget", happens, ask="amount")


def _ambiguous(kind: str, title: str, happens: str) -> Callable[[Here], Intent]:
    def make(here: Here) -> Intent:
        gate = _gate(here, "ambiguous")
        claim = str(gate.target.get("claim", ""))
        return Intent(
            kind, f"{title} {claim}", (happens,), {"gate": gate.id, "claim": claim}, {"gate_seq": gate.seq}
        )

    return make


_MAKERS: Mapping[str, Callable[[Here], Intent]] = {
    "approve": _approve,
    "decline": _decline,
    "changes": _changes,
    "veto": _veto,
    "unveto": _unveto,
    "promote": _promote,
    "revoke": _revoke,
    "measure": _on_candidate("measure", "Measure", "It is measured again against the incumbent."),
    "profile": _on_candidate("profile", "Profile", "Nsight Compute runs on every step of its launch plan."),
    "autotune": _on_candidate("autotune", "Autotune", "The values of its [tune] table are searched."),
    "steer": _steer,
    "unpin": _unpin,
    "reply": _reply,
    "hold": _hold,
    "resume": _resume,
    "end": _end,
    "end_now": _end_now,
    "budget": _budget,
    "rerun": _ambiguous("rerun", "Run again", "It runs again and costs again."),
    "abandon": _ambiguous("abandon", "Abandon", "It is closed without a result; its cost stays booked."),
}
