"""What the worker itself must remember, rebuilt from the journal of its run: orders, approvals, deaths.

A snapshot says what is; the book says what is still to be done. It is fed with every journal
line, at the start from the file and then as lines are written, so a new process knows as much as the old.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kda_tui.record.snapshot import BudgetLine

ORDERS = ("measure", "rerun", "profile", "autotune")
PAID = ("turn", "review")  # ops whose claims cost money and are never repeated by themselves
STOPPED = "stopped"  # result.stop of a claim that ended because the worker was asked to stop


@dataclass(frozen=True, slots=True)
class Order:
    """Work that a person ordered: op is evaluate, profile or autotune."""

    decision: str
    op: str
    cand: str
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Approval:
    """A promotion that was approved and is not yet carried out."""

    cand: str
    decision: str
    eval: str
    gate: str


@dataclass(slots=True)
class Book:
    orders: dict[str, Order] = field(default_factory=dict)
    approvals: dict[str, Approval] = field(default_factory=dict)  # by candidate
    open_claims: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    claims: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    retries: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)  # (op, cand) -> claim
    deaths: Counter[str] = field(default_factory=Counter)  # of worker or judge, by candidate
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)  # in a row, by (op, candidate)
    broken_off: Counter[tuple[str, str]] = field(
        default_factory=Counter
    )  # confirms, by (candidate, opponent)
    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    gates: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # every gate_open by id
    closed: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # gate_close by gate id
    asked: set[str] = field(default_factory=set)  # evaluations that a promotion gate was opened for
    ending: str = ""  # end_after | end_now, once taken
    ending_by: str = ""
    ending_why: str = ""  # in that person's words
    ended: bool = False
    started: Mapping[str, Any] | None = None
    declined_end: int = 0  # seq of the newest gate_close that declined to end the run
    newest_work: int = 0  # seq of the newest result that is not a paid turn
    retry_at: str = ""  # when the hold of this moment ends by itself
    reviews: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by subject; also given-up ones
    usd: float = 0.0
    hours: float = 0.0
    budget: dict[str, BudgetLine] = field(default_factory=dict)  # as the meter last read it
    _redo: tuple[Mapping[str, Any], set[int]] | None = None

    def fold(self, line: Mapping[str, Any]) -> None:
        """Take in one journal line."""
        kind = str(line.get("kind") or "")
        self._watch_effects(line)
        handler = getattr(self, f"_on_{kind}", None)
        if handler is not None:
            handler(line)

    def unfinished_decision(self) -> tuple[Mapping[str, Any], list[tuple[int, Mapping[str, Any]]]] | None:
        """The newest decision line and those of its effects that did not reach the journal."""
        if self._redo is None:
            return None
        line, done = self._redo
        left = [(i, todo) for i, todo in enumerate(line.get("todo") or ()) if i not in done]
        return (line, left) if left else None

    def end_was_declined(self) -> bool:
        """People declined to end the run, and no candidate came or was judged since."""
        return self.declined_end > self.newest_work

    def next_autotune(self) -> Order | None:
        return next((o for o in self.orders.values() if o.op == "autotune"), None)

    def _watch_effects(self, line: Mapping[str, Any]) -> None:
        if self._redo is not None and "effect" in line:
            decision, done = self._redo
            if line.get("decision") == (decision.get("decision") or {}).get("id"):
                done.add(int(line["effect"]))

    def _on_run_started(self, line: Mapping[str, Any]) -> None:
        self.started = line

    def _on_run_ended(self, line: Mapping[str, Any]) -> None:
        self.ended = True

    def _on_decision(self, line: Mapping[str, Any]) -> None:
        d = line.get("decision")
        if not isinstance(d, Mapping):
            return
        if line.get("todo"):
            self._redo = (line, set())
        if d.get("outcome") != "taken":
            return
        kind, target = str(d.get("kind") or ""), d.get("target") or {}
        cand, ident = str(target.get("cand") or ""), str(d.get("id") or "")
        if kind in ORDERS and cand:
            op = "evaluate" if kind in ("measure", "rerun") else kind
            amount = (d.get("amount") or {}).get("value") or 0
            self.orders[ident] = Order(ident, op, cand, int(amount))
        if kind == "rerun" and cand:
            self.deaths.pop(cand, None)
            self.faults = Counter({key: n for key, n in self.faults.items() if key[1] != cand})
        if kind in ("end_after", "end_now"):
            self.ending = kind
            self.ending_by = str(d.get("who") or d.get("by") or "")
            self.ending_why = str(d.get("reason") or d.get("text") or "")

    def _on_claim(self, line: Mapping[str, Any]) -> None:
        claim, op, cand = str(line.get("claim") or ""), str(line.get("op") or ""), str(line.get("cand") or "")
        self.open_claims[claim] = line
        self.claims[claim] = line
        self.attempts[op, cand] += 1
        self.retries.pop((op, cand), None)

    def _on_result(self, line: Mapping[str, Any]) -> None:
        if line.get("op") not in PAID:
            self.newest_work = int(line.get("seq") or 0)
        claim = self.open_claims.pop(str(line.get("claim") or ""), None)
        self.usd += float(line.get("usd") or 0.0)
        if claim is None:
            return
        op, cand = str(claim.get("op") or ""), str(claim.get("cand") or "")
        outcome, stop = line.get("outcome"), line.get("stop")
        if outcome == "cancelled":
            self.attempts[op, cand] -= 1  # not charged
        if stop == STOPPED or line.get("retry"):
            self.retries[op, cand] = claim
        elif claim.get("for"):
            self.orders.pop(str(claim["for"]), None)
        if outcome == "infrastructure_error":
            self.faults[op, cand] += 1
            self.deaths[cand] += 1 if line.get("died") else 0
            if not line.get("retry"):
                self.broken_off[cand, str(line.get("opponent") or "")] += op == "confirm"
        elif outcome == "ok":
            self.faults.pop((op, cand), None)

    def _on_hold(self, line: Mapping[str, Any]) -> None:
        self.retry_at = str(line.get("until") or "") if line.get("on") else ""

    def _on_review(self, line: Mapping[str, Any]) -> None:
        self.reviews[str(line.get("subject") or "")] = line

    def _on_gate_open(self, line: Mapping[str, Any]) -> None:
        self.gates[str(line.get("gate") or "")] = line
        evaluation = str((line.get("target") or {}).get("eval") or "")
        if line.get("gate_kind") == "promotion" and evaluation:
            self.asked.add(evaluation)

    def _on_gate_close(self, line: Mapping[str, Any]) -> None:
        gate = str(line.get("gate") or "")
        self.closed[gate] = line
        if line.get("gate_kind") == "end" and line.get("outcome") == "declined":
            self.declined_end = int(line.get("seq") or 0)
        if line.get("gate_kind") == "ambiguous" and line.get("outcome") == "abandoned":
            self._forget_review(str(line.get("claim") or ""))
        if line.get("outcome") != "approved" or line.get("gate_kind") != "promotion":
            return
        cand = str(line.get("cand") or "")
        self.approvals[cand] = Approval(
            cand, str(line.get("decision") or ""), str(line.get("eval") or ""), gate
        )

    def _forget_review(self, claim: str) -> None:
        """A person gave up on a review that died: its subject is decided without one."""
        op, _, subject = str(self.claims.get(claim, {}).get("key") or "").partition(":")
        if op == "review":
            self.reviews.setdefault(subject, {"subject": subject, "verdict": "none"})

    def _on_incumbent(self, line: Mapping[str, Any]) -> None:
        self.approvals.pop(str(line.get("cand") or ""), None)

    def _on_candidate(self, line: Mapping[str, Any]) -> None:
        c = line.get("candidate")
        if not isinstance(c, Mapping):
            return
        cand = str(c.get("id") or "")
        if c.get("decision") in ("vetoed", "revoked"):
            self.approvals.pop(cand, None)
            self.orders = {k: o for k, o in self.orders.items() if o.cand != cand}
            self.retries = {k: v for k, v in self.retries.items() if k[1] != cand}

    def _on_checkpoint(self, line: Mapping[str, Any]) -> None:
        budget = (line.get("summary") or {}).get("budget") or {}
        hours = budget.get("hours") or {}
        self.hours = max(self.hours, float(hours.get("used") or 0.0))
