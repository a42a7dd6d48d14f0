"""The clerk writes: events, and what becomes of decisions. It holds the record open and the lock behind it.

Everything is synchronous. Between a decision's journal line and its effects nothing else is written,
and the line lists its effects, so that a crash in between is finished by :meth:`Clerk.redo` (R1, R2).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kda_tui.record import inbox
from kda_tui.record.clock import now
from kda_tui.record.journal import Recorder
from kda_tui.record.paths import RunPaths, Workspace
from kda_tui.record.reader import Reader
from kda_tui.record.records import Candidate, Decision, TranscriptBlock, to_line
from kda_tui.record.snapshot import Incumbent, Snapshot
from kda_tui.text import Redactor
from kda_tui.worker import promote
from kda_tui.worker.book import Book
from kda_tui.worker.decisions import known, rule
from kda_tui.worker.rulings import Effect, Ruling


class Clerk:
    """Writes the record of one run and knows what is in it."""

    def __init__(self, ws: Workspace, recorder: Recorder, redactor: Redactor, book: Book) -> None:
        self.ws = ws
        self.recorder = recorder
        self.redactor = redactor
        self.book = book
        self.on_change: Callable[[], None] = lambda: None
        self._reader = Reader(ws.root)
        self._snap: Snapshot | None = None

    @property
    def run(self) -> str:
        return self.recorder.run

    @property
    def paths(self) -> RunPaths:
        return self.ws.run(self.recorder.run)

    @property
    def snap(self) -> Snapshot:
        """The record at this moment, everything written so far included."""
        if self._snap is None:
            self._snap = self._reader.settle()
        return self._snap

    # --- events ---

    def event(
        self,
        kind: str,
        *,
        candidate: Candidate | None = None,
        decision: Decision | str | None = None,
        rows: Sequence[Mapping[str, Any]] = (),
        **fields: Any,
    ) -> int:
        """One journal line; returns its seq. ``decision`` is a decision, or the id of one this follows from."""
        seq = self.recorder.event(kind, candidate=candidate, decision=decision, rows=rows, **fields)
        line: dict[str, Any] = {"kind": kind, "seq": seq, **fields}
        if candidate is not None:
            line["candidate"] = to_line(candidate)
        if decision is not None:
            line["decision"] = decision if isinstance(decision, str) else to_line(decision)
        self.book.fold(line)
        self._snap = None
        self.on_change()
        return seq

    def change(self, cand: str, **changes: Any) -> Candidate:
        """A candidate's new state, without an evaluation."""
        candidate = replace(self.snap.candidates[cand], **changes)
        self.event("candidate", candidate=candidate)
        return candidate

    def phase(self, to: str, why: str, **fields: Any) -> None:
        """Enter a phase and chain a checkpoint."""
        self.event("phase", **{"from": self.snap.phase, "to": to, "why": why, **fields})
        self.checkpoint()

    def say(self, block: TranscriptBlock) -> int:
        seq = self.recorder.transcript(block)
        self._snap = None
        return seq

    def artifact(self, path: Path, text: str) -> str:
        """Write a document; returns its sha256, to be named in the line that brings it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        return self.recorder.artifact(path, text.encode())

    def write_candidate(self, cand: str, files: Mapping[str, bytes]) -> None:
        """The folder of a candidate that is about to be recorded; debris of a crash under its name goes."""
        folder = self.ws.candidate(cand)
        shutil.rmtree(folder, ignore_errors=True)
        self.recorder.artifacts(folder, files)

    def next_name(self, letter: str = "") -> str:
        """A name unique in the workspace for a claim or a gate: the run and the seq of the next line."""
        return f"{self.run}-{letter}{self.recorder.seq + 1}"

    # --- decisions ---

    def drain(self) -> list[Decision]:
        """R3: take everything that waits in the inbox, in order; a file goes after its line is written."""
        self.redo()
        decided = []
        for waiting in inbox.pending(self.ws):
            d = waiting.decision
            if d is None:
                d = Decision(id=waiting.path.stem, kind="unreadable", t=now(), via="inbox")
                self._record(d, Ruling("refused", f"{waiting.path.name}: {waiting.error}"))
            elif not known(self.snap, d.id):
                decided.append(self.decide(d))
            inbox.take(waiting.path)
        return decided

    def decide(self, d: Decision) -> Decision:
        """Rule on a decision now and write down what became of it."""
        ruling = rule(self.snap, d, self.redactor.holds_secret)
        for cand, files in ruling.files.items():
            self.write_candidate(cand, {name: text.encode() for name, text in files.items()})
        decided = self._record(d, ruling)
        if ruling.outcome == "taken":
            self._say_decision(decided)
            self.settle_outputs()
        return decided

    def by_rule(self, kind: str, rule_text: Mapping[str, Any], **fields: Any) -> Decision:
        """A decision that a written rule takes, by the same road as a person's."""
        d = inbox.new_decision(kind, via="worker", who="rule", **fields)
        return self.decide(replace(d, by="rule", rule=dict(rule_text)))

    def _record(self, d: Decision, ruling: Ruling) -> Decision:
        first = self.recorder.seq + 2  # the decision's own line comes before its effects
        decided = replace(
            d,
            outcome=ruling.outcome,
            why=ruling.why,
            override=ruling.override,
            effects=tuple(range(first, first + len(ruling.effects))),
            run=self.run,
            extra={k: v for k, v in d.extra.items() if k != "files"},
        )
        todo = [effect.to_todo() for effect in ruling.effects]
        fields: dict[str, Any] = {"todo": todo} if todo else {}
        self.event("decision", decision=decided, **fields)
        for index, effect in enumerate(ruling.effects):
            self._carry_out(decided.id, index, effect)
        return decided

    def _carry_out(self, decision: str, index: int, effect: Effect) -> int:
        return self.event(
            effect.kind, candidate=effect.candidate, decision=decision, effect=index, **effect.fields
        )

    def redo(self) -> bool:
        """R2: write the effects of a decision that a crash cut off. True if there were any."""
        found = self.book.unfinished_decision()
        if found is None:
            return False
        line, left = found
        ident = str(line["decision"]["id"])
        for index, todo in left:
            self._carry_out(ident, index, Effect.from_todo(todo))
        return True

    def _say_decision(self, d: Decision) -> None:
        """People's words to the agent stand in the transcript too."""
        if d.kind in ("steer", "answer") and d.by == "person":
            self.say(
                TranscriptBlock(kind=d.kind, text=d.text or d.reason, extra={"decision": d.id, "who": d.who})
            )

    # --- promotion ---

    def promote(self, cand: str, decision: str, evaluation: str) -> None:
        """R1: build outputs.new/, journal ``incumbent``, swap. May be called again after a full disk."""
        if self.snap.incumbent.decision == decision:
            self.settle_outputs()
            return
        self.checkpoint()
        prev = self.snap.incumbent.cand
        chosen = Incumbent(cand, prev, "promoted", decision, evaluation)
        promote.build(self.ws, self.snap, chosen)
        candidate = replace(self.snap.candidates[cand], decision="promoted", decision_id=decision)
        self.event(
            "incumbent",
            candidate=candidate,
            decision=decision,
            cand=cand,
            prev=prev,
            why="promoted",
            eval=evaluation,
        )
        promote.swap(self.ws)

    def settle_outputs(self) -> None:
        """Make outputs/ what the journal says."""
        if self.snap.incumbents and promote.rebuild(self.ws, self.snap):
            self._snap = None

    # --- checkpoints ---

    def checkpoint(self) -> str:
        """Chain a checkpoint with what the runs screen shows; returns the head."""
        head = self.recorder.checkpoint(summary(self.snap, self.book))
        self._snap = None
        return head

    def close(self) -> None:
        self.recorder.close()


def summary(snap: Snapshot, book: Book) -> dict[str, Any]:
    """{phase, hold, gates, best, counts, budget}: what a list of runs shows without reading further."""
    best = snap.candidates.get(snap.incumbent.cand)
    return {
        "phase": snap.phase,
        "hold": snap.hold,
        "gates": [
            {"gate": g.id, "gate_kind": g.kind, "target": dict(g.target), "t": g.opened} for g in snap.gates
        ],
        "best": {
            "cand": snap.incumbent.cand,
            "ratio": best.ratio if best else None,
            "floor_share": best.floor_share if best else None,
            "time_us": best.time_us if best else None,
        },
        "counts": dict(snap.counts),
        "budget": {
            axis: {"used": line.used, "limit": line.limit, "level": line.level}
            for axis, line in book.budget.items()
        },
    }
