"""A workspace as a run leaves it, written by the recorder itself: for tests of readers and screens.

>>> root = make_workspace(tmp_path / "softmax_rows", candidates=12)

There are no kernels in it that could be run; everything else is what a real run of the tuner writes.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kda_tui.record.inbox import new_decision
from kda_tui.record.journal import Recorder
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate, Decision, TranscriptBlock
from kda_tui.text import Redactor

TEMPLATE = Path(__file__).parents[2] / "workspaces" / "softmax_rows"
WORKLOADS = ("r24_c1024", "r17_c777", "r6_c3001")
BASELINE_US = {"r24_c1024": 220.0, "r17_c777": 150.0, "r6_c3001": 190.0}
ITEMS = [
    {"id": "P1", "title": "one pass over the row, kept in registers"},
    {"id": "P2", "title": "vectors of four"},
    {"id": "P3", "title": "two rows per block"},
]


def make_workspace(
    root: Path,
    candidates: int = 12,
    workloads: Sequence[str] = WORKLOADS,
    phase: str = "iterate",
    hold: str = "",
    files: bool = True,
) -> Path:
    """A workspace with one run up to ``phase``: draft, plan_review, iterate or ended. Returns ``root``.

    In iterate every fourth candidate is incorrect, the third is promoted, the fifth vetoed, the seventh waits for
    promotion, a question waits, and the last one is being evaluated. ``files`` False leaves out sources.
    """
    _copy_template(root)
    with run(root) as story:
        story.begin()
        if phase != "draft":
            story.plan()
        if phase in ("iterate", "ended"):
            story.approve_plan()
            for n in range(1, candidates + 1):
                story.candidate(n, workloads, files=files, running=n == candidates and phase == "iterate")
            story.ask("May the sum be taken in double?", ("keep float", "double"))
        if hold:
            story.recorder.event("hold", on=True, why=hold, text="told to wait")
        story.checkpoint(phase)
        if phase == "ended":
            story.end()
    return root


@contextmanager
def run(root: Path, resume: str = "") -> Iterator[Story]:
    """A new run of the workspace, or the run ``resume``, under the lock; nothing waits for the disk."""
    ws = Workspace(root)
    with patch.object(os, "fsync", lambda fd: None), WorkspaceLock.acquire(ws) as lock:
        recorder = (
            Recorder.open(ws, lock, resume, Redactor({}))
            if resume
            else Recorder.create_run(ws, lock, Redactor({}))
        )
        with recorder:
            yield Story(ws, recorder)


def _copy_template(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name in ("contract.toml", "reference.py"):
        shutil.copy(TEMPLATE / name, root / name)
    shutil.copytree(TEMPLATE / "baseline", root / "baseline", dirs_exist_ok=True)


class Story:
    """What a worker would write, one method a chapter."""

    def __init__(self, ws: Workspace, recorder: Recorder) -> None:
        self.ws = ws
        self.recorder = recorder
        self.contract_sha = ""
        self.incumbent = "baseline"
        self.confirms = 0

    def begin(self) -> None:
        inputs = self.recorder.keep_inputs(self.ws.root / "baseline")
        self.contract_sha = inputs["contract_sha"]
        self.recorder.event(
            "run_started", **inputs, parent_run="", agent="tuner", model="", skills=[], versions={"kda": "0"},
            device={"name": "cpu", "driver": "", "uuid": ""}, seed_commit="5e" * 32, alpha=0.01, host="box", pid=os.getpid(),
        )  # fmt: skip
        self.say("text", "The rows fit into registers; I begin with the draft.", iter=0, turn=1)

    def plan(self, rev: int = 1, answers: Sequence[str] = ()) -> None:
        """A draft and a plan revision whose gate waits."""
        if rev == 1:
            sha = self.recorder.artifact(
                self.ws.draft, b"# Draft\n\nThree passes read the row three times.\n"
            )
            self.recorder.event(
                "phase",
                **{"from": "draft", "to": "plan", "why": "the draft is written"},
                files={"docs/draft.md": sha},
            )
        text = f"# Plan r{rev}\n\n" + "\n".join(f"* {item['id']} {item['title']}" for item in ITEMS) + "\n"
        path = self.ws.plans / f"r{rev:03d}.md"
        self.plan_sha = self.recorder.artifact(path, text.encode())
        name = path.relative_to(self.ws.root).as_posix()
        self.recorder.event("plan", rev=rev, file=name, sha=self.plan_sha, author="tuner", answers=list(answers), items=ITEMS)  # fmt: skip
        self.plan_gate = self.gate("plan", {"plan_rev": rev}, sha=self.plan_sha, blocking=rev == 1)
        if rev == 1:
            self.recorder.event(
                "phase", **{"from": "plan", "to": "plan_review", "why": "plan r1 is proposed"}
            )

    def approve_plan(self, rev: int = 1, who: str = "jw") -> Decision:
        target = {"gate": self.plan_gate, "plan_rev": rev}
        decided = self.decide("approve_plan", target=target, expect={"plan_sha": self.plan_sha}, who=who)
        self.close(self.plan_gate, "plan", "approved", decided.id, plan_rev=rev)
        if rev == 1:
            self.recorder.event("phase", **{"from": "plan_review", "to": "iterate", "why": "plan r1 approved"}, decision=decided.id)  # fmt: skip
        return decided

    def candidate(
        self, n: int, workloads: Sequence[str] = WORKLOADS, files: bool = False, running: bool = False
    ) -> None:
        """One candidate from submission to verdict, and what people made of some of them."""
        c = Candidate(
            f"c{n:04d}", author="tuner", sha256=f"{n:064x}", item=ITEMS[n % 3]["id"], family="tunable",
            parents=(f"c{n // 2:04d}",) if n > 1 else (), hypothesis=f"{32 << n % 4} threads a row, vectors of {1 << n % 3}",
            defines={"THREADS": 32 << n % 4, "VEC": 1 << n % 3}, extra={"born": self.recorder.run},
        )  # fmt: skip
        if files:
            self._sources(c)
        self.recorder.event("candidate", candidate=c)
        self.say(
            "tool_call", "", turn=n, tool="submit", call=f"t{n}", args={"hypothesis": c.hypothesis}, cand=c.id
        )
        claim = self.claim("compile", c)
        built = {
            "registers": 24 + n % 9,
            "spills": 0,
            "shared_bytes": 1024,
            "compile_s": 0.31,
            "cubin": f"{n:064x}",
        }
        c = replace(c, stage="compiled", **built)
        report = {
            "ok": True,
            "compiler": "g++ 12",
            "seconds": 0.31,
            "registers": c.registers,
            "log": "ok\n" * 10,
        }
        self.result(claim, "compile", c, validity="passed", compile=report)
        claim = self.claim("evaluate", replace(c, stage="claimed"))
        if running:
            live = {
                "v": 1,
                "claim": claim,
                "op": "evaluate",
                "cand": c.id,
                "stage": "time",
                "fraction": 0.62,
                "pid": os.getpid(),
            }
            self.recorder.paths.live.write_text(json.dumps(live))
            return
        c = self._judged(c, claim, n, workloads)
        self.say("tool_result", f"{c.id}: {c.validity} {c.speed}", turn=n, call=f"t{n}", dur_s=1.5, cand=c.id)
        if n == 3:
            self.promote(c)
        elif n == 5:
            decided = self.decide("veto", target={"cand": c.id}, reason="reads past the row", who="kl")
            vetoed = replace(c, decision="vetoed", decision_id=decided.id, reason="reads past the row")
            self.recorder.event("candidate", candidate=vetoed, decision=decided.id, effect=0)
        elif n == 6:
            self.steer("try one warp per row", "jw")
        elif n == 7:
            self.request(c)

    def _judged(self, c: Candidate, claim: str, n: int, workloads: Sequence[str]) -> Candidate:
        wrong = n % 4 == 0
        ratio = 1.0 + 0.2 * math.sin(n)
        c = replace(
            c, stage="judged", attempt=1, eval=claim, opponent=self.incumbent, stage_reached="correct" if wrong else "time",
            validity="incorrect" if wrong else "passed", speed="not_measured" if wrong else _speed(ratio),
        )  # fmt: skip
        if wrong:
            worst = {"workload": workloads[0], "tile": "(3, 0)", "err": 2.5}
            c = replace(c, worst=worst, reason="row 3 differs from the reference")
            mismatch = {
                "workload": workloads[0],
                "index": [3, 17],
                "got": 0.25,
                "expected": 0.125,
                "guess": "a row too far",
            }
            self.result(
                claim, "evaluate", c, validity="incorrect", mismatch=mismatch, gates={"correct": "failed"}
            )
            return c
        c = replace(
            c, time_us=180.0 / ratio, ratio=ratio, lo=ratio - 0.02, hi=ratio + 0.02, floor_share=0.1 * ratio
        )
        gates = {"correct": "passed", "speed": "passed" if ratio > 1.1 else "failed", "floor": "passed"}
        rows = [row for w in workloads for row in _rows(w, c.id, self.incumbent, ratio)]
        self.result(claim, "evaluate", c, rows, validity="passed", speed=c.speed, ratio=ratio, lo=c.lo, hi=c.hi, gates=gates, dur_s=1.5)  # fmt: skip
        return c

    # --- parts --------------------------------------------------------------------------------------

    def claim(self, op: str, c: Candidate, **fields: Any) -> str:
        claim = f"{self.recorder.run}-{self.recorder.seq + 1}"
        self.recorder.event(
            "claim", candidate=c, claim=claim, op=op, key=f"{op}:{c.id}", cand=c.id, sha=c.sha256, opponent=self.incumbent,
            item=c.item, attempt=1, paid=False, **fields,
        )  # fmt: skip
        return claim

    def result(
        self, claim: str, op: str, c: Candidate, rows: Sequence[dict[str, Any]] = (), **fields: Any
    ) -> None:
        self.recorder.event(
            "result", candidate=c, rows=rows, claim=claim, op=op, cand=c.id, attempt=1, outcome="ok", opponent=self.incumbent,
            contract_sha=self.contract_sha, device="cpu", trust="kernel", **fields,
        )  # fmt: skip

    def confirm(self, c: Candidate) -> str:
        claim = self.claim("confirm", c)
        self.confirms += 1
        self.result(
            claim, "confirm", c, [row for w in WORKLOADS for row in _rows(w, c.id, self.incumbent, 1.3)],
            validity="passed", speed="faster", ratio=1.3, lo=1.25, hi=1.35, rule_passed=True, k=self.confirms,
            alpha_spent=0.01 / (self.confirms * (self.confirms + 1)), gates={"correct": "passed", "speed": "passed"},
        )  # fmt: skip
        return claim

    def request(self, c: Candidate) -> tuple[str, str]:
        """The agent asks for promotion; a confirm runs, a gate opens. Returns the gate and the confirm."""
        c = replace(c, decision="requested", reason="the fastest so far")
        self.recorder.event("candidate", candidate=c)
        confirm = self.confirm(c)
        return self.gate("promotion", {"cand": c.id, "eval": confirm}), confirm

    def promote(self, c: Candidate, who: str = "jw") -> None:
        gate, confirm = self.request(c)
        decided = self.decide("approve_promotion", target={"gate": gate, "cand": c.id}, who=who)
        self.close(gate, "promotion", "approved", decided.id, cand=c.id, eval=confirm)
        promoted = replace(c, decision="promoted", decision_id=decided.id)
        self.recorder.event("incumbent", candidate=promoted, decision=decided.id, cand=c.id, prev=self.incumbent, why="promoted", eval=confirm)  # fmt: skip
        self.incumbent = c.id

    def gate(self, kind: str, target: dict[str, Any], **fields: Any) -> str:
        gate = f"{self.recorder.run}-g{self.recorder.seq + 1}"
        self.recorder.event("gate_open", gate=gate, gate_kind=kind, target=target, **fields)
        return gate

    def close(self, gate: str, kind: str, outcome: str, decision: str, **target: Any) -> None:
        self.recorder.event(
            "gate_close", gate=gate, gate_kind=kind, outcome=outcome, decision=decision, **target
        )

    def decide(self, kind: str, outcome: str = "taken", why: str = "", **fields: Any) -> Decision:
        sent = new_decision(kind, **fields)
        decided = replace(sent, outcome=outcome, why=why, uid=1000, run=self.recorder.run)
        self.recorder.event("decision", decision=decided)
        return decided

    def steer(self, text: str, who: str) -> None:
        """A note, and the agent sees it."""
        decided = self.decide("steer", text=text, who=who)
        self.say("steer", text, decision=decided.id)
        self.recorder.event("steer_seen", decision=decided.id, turn=7)

    def ask(self, text: str, options: Sequence[str]) -> None:
        question = f"{self.recorder.run}-q{self.recorder.seq + 1}"
        self.recorder.event("question", q=question, text=text, options=list(options))
        self.gate("question", {"question": question}, default=options[0], timeout_s=3600.0)

    def say(self, kind: str, text: str, **fields: Any) -> None:
        known = {k: v for k, v in fields.items() if k in TranscriptBlock.__dataclass_fields__}
        extra = {k: v for k, v in fields.items() if k not in known}
        self.recorder.transcript(TranscriptBlock(kind=kind, text=text, **known, extra=extra))

    def checkpoint(self, phase: str) -> str:
        budget = {"hours": {"used": 0.4, "limit": 2.0, "level": "ok"}}
        return self.recorder.checkpoint(
            {"phase": phase, "hold": "", "gates": [], "best": {}, "counts": {}, "budget": budget}
        )

    def end(self) -> None:
        self.recorder.event("phase", **{"from": "iterate", "to": "ended", "why": "end_after"})
        self.recorder.event("run_ended", why="end_after", by="jw", seed="ab" * 16)

    def _sources(self, c: Candidate) -> None:
        folder = self.ws.candidate(c.id)
        for name in ("kernel.cu", "launch.toml"):
            self.recorder.artifact(folder / name, (TEMPLATE / "baseline" / name).read_bytes())
        self.recorder.artifact(folder / "notes.md", f"# {c.id}\n\n{c.hypothesis}\n".encode())


def _speed(ratio: float) -> str:
    return "faster" if ratio > 1.02 else "slower" if ratio < 0.98 else "same"


def _rows(workload: str, cand: str, opponent: str, ratio: float) -> Iterator[dict[str, Any]]:
    rival = BASELINE_US.get(workload, 200.0)
    for arm, name, us in (("candidate", cand, rival / ratio), ("incumbent", opponent, rival)):
        yield {
            "workload": workload, "candidate": name, "arm": arm, "protocol": "warm/stream", "device": "cpu", "trust": "kernel",
            "n": 80, "min_us": 0.97 * us, "median_us": us, "p95_us": 1.1 * us, "iqr_us": 0.02 * us, "floor_us": 20.0,
            "ratio": ratio if arm == "candidate" else None, "ratio_lo": ratio - 0.02 if arm == "candidate" else None,
            "ratio_hi": ratio + 0.02 if arm == "candidate" else None, "aa_spread": 0.002, "admissible": True, "sha12": "ab" * 6,
        }  # fmt: skip
