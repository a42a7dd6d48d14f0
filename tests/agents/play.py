"""A whole run as a play: a scripted model, a worker process with the real judge, and a person who decides.

The script knows no more than a model would: it decides from what the requests say. So it goes on after a
kill wherever the record says that things stand.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.record import trust
from kda_tui.record.inbox import new_decision, send
from kda_tui.record.lock import probe
from kda_tui.record.paths import Workspace
from kda_tui.record.reader import Reader
from kda_tui.record.snapshot import Gate, Snapshot
from kda_tui.worker.start import RunOptions
from tests.agents.fake_api import FakeApi, Request, Say, say, text, thinking, tool
from tests.agents.rig import DRAFT, ITEMS, MODEL, PLAN
from tests.worker.make import CONTRACT, KERNEL, make_workspace
from tests.worker.make import launch as launch_text
from tests.worker.stage import state_of

PATIENCE_S = 120.0
ROUNDS = 64  # of the baseline
WRONG = KERNEL.replace("2.0f * x[i] : sum", "2.01f * x[i] : sum")
FAILING = KERNEL.replace("int n)", "int n, undeclared z)")
SETTINGS = """\
[agent]
base_url = "{url}"
model = "{model}"
max_tokens = 4096

[agent.prices]
{model} = {{input = 10.0, output = 100.0, cache_write = 12.5, cache_read = 1.0}}
"""
Holds = Callable[[Snapshot], Any]


# --- the model ---


def model(request: Request) -> Say:
    """What the scripted model says."""
    if request.system.startswith("You review"):
        return _review(request)
    names = {t["name"] for t in request.body["tools"]}
    if "write_draft" in names:
        if not request.results:
            return say(
                thinking("Look first."), text("I look around first. " * 8), tool("list_files"), delay_s=0.02
            )
        return say(tool("write_draft", markdown=DRAFT))
    if "write_plan" in names:
        return _plan(request)
    return _iterate(request)


def _review(request: Request) -> Say:
    finding = {
        "severity": "minor",
        "text": "One workload only.",
        "evidence": "contract.toml: [[workload]] n256",
    }
    verdict = "revise" if "revision 1" in request.opening else "accept"
    return say(tool("write_review", verdict=verdict, summary="It does the work.", findings=[finding]))


def _plan(request: Request) -> Say:
    asked = re.findall(r"^\* \[(\S+)\]", request.opening.split("# Comments to answer")[1], re.MULTILINE)
    words = f"{PLAN}\nNo autotune, as asked.\n" if asked else PLAN
    return say(tool("write_plan", markdown=words, items=ITEMS, answers=asked))


def _submit(kernel: str, rounds: int, why: str) -> dict[str, Any]:
    plan = re.sub(r"\[tune\][^$]*", "", launch_text(16, rounds, why))
    given = {"kernel": kernel, "launch": plan, "hypothesis": why, "family": "rounds"}
    return tool("submit_candidate", **given, parents=["baseline"], item="P1")


def _iterate(request: Request) -> Say:
    """The next step of: failing, wrong, slow, fast, profile, request; as far as the requests show it is not done."""
    told = request.opening + "\n".join(str(r["content"]) for r in request.results)
    born = int(re.search(r"candidates so far: (\d+)", request.opening)[1])  # type: ignore[index]
    born += sum(
        '"candidate": "c' in str(r["content"]) and '"compiled"' in str(r["content"]) for r in request.results
    )
    used = [
        b["name"]
        for m in request.messages
        if m["role"] == "assistant"
        for b in m["content"]
        if b["type"] == "tool_use"
    ]
    submissions = (
        (FAILING, 1, "does not compile"),
        (WRONG, 1, "wrong"),
        (KERNEL, 256, "slow"),
        (KERNEL, 1, "fast"),
    )
    newest = f"c{born:04d}"
    is_judged = (
        re.search(rf"{newest}[^\n]*?(incorrect|passed|compile_error)", told)
        or "not compile" in told.rsplit(newest, 1)[-1]
    )
    if born >= 2 and not is_judged:
        return say(text(f"Evaluate {newest}."), tool("evaluate", candidate=newest))
    if born == 4:
        return _fast(request, used)
    if "evaluate" in used:
        return say(text(f"{newest} is judged; next time something else."))
    return say(text("Next candidate. " * 6), _submit(*submissions[born]), delay_s=0.01)


def _fast(request: Request, used: Sequence[str]) -> Say:
    if "incumbent: c0004" in request.opening:
        return say(tool("request_end", why="nothing is left")) if not used else say(text("I wait."))
    if "not decided: c0004" in request.opening:
        return say(text("A person decides."))
    if "profile" not in used:
        return say(tool("profile", candidate="c0004"))
    if "request_promotion" not in used:
        return say(tool("request_promotion", candidate="c0004", reasons="one round instead of 64"))
    return say(text("Asked for the promotion."))


# --- the person and the worker ---


@dataclass
class Play:
    """One run from the first worker to its end. ``kills``: when to kill -9 the worker, in this order."""

    ws: Workspace
    api: FakeApi
    settings: Path
    kills: Sequence[Holds] = ()
    decided: set[str] = field(default_factory=set)
    killed: list[str] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None

    def run(self) -> Snapshot:
        reader = Reader(self.ws.root)
        left = list(self.kills)
        self._start(resume=False)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            snap = reader.settle()
            if left and left[0](snap):
                left.pop(0)
                self._kill(snap)
            elif snap.phase == "ended":
                assert self.process is not None
                self.process.wait(20)
                return reader.settle()
            for gate in snap.gates:
                self._decide(snap, gate)
            assert self.process is not None
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        log = self.settings.with_name("worker.log").read_text()[-3000:]
        raise AssertionError(
            f"{state_of(reader.settle())}\nkilled at {self.killed}, {len(left)} kills left\n{log}"
        )

    def _start(self, resume: bool) -> None:
        options = RunOptions(agent="anthropic", model=MODEL, resume=resume)
        command = (
            sys.executable,
            "-m",
            "kda_tui.worker",
            str(self.ws.root),
            "--options",
            options.to_json(),
            "--worker",
        )
        with self.settings.with_name("worker.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, "KDA_CONFIG": str(self.settings)}
            )

    def _kill(self, snap: Snapshot) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.killed.append(f"{snap.phase}: {[c.op for c in snap.claims]}")
        while probe(self.ws)[0] == "held":
            time.sleep(0.02)
        self._start(resume=True)

    def _decide(self, snap: Snapshot, gate: Gate) -> None:
        if gate.id in self.decided:
            return
        self.decided.add(gate.id)
        target = {"gate": gate.id, **gate.target}
        if gate.kind == "plan" and gate.target["plan_rev"] == 1:
            line = {"item": "P2", "line": 5, "quote": "more threads", "text": "no autotune, please"}
            send(
                self.ws,
                new_decision("request_changes", target=target, expect={"plan_sha": gate.sha}, lines=(line,)),
            )
        elif gate.kind == "plan":
            send(self.ws, new_decision("approve_plan", target=target, expect={"plan_sha": gate.sha}))
        elif gate.kind == "promotion":
            expect = {"incumbent": snap.incumbent.cand, "gate_seq": gate.seq}
            send(self.ws, new_decision("approve_promotion", target=target, expect=expect, reason="it holds"))
        elif gate.kind == "ambiguous":
            send(self.ws, new_decision("rerun", target=target))
        elif gate.kind == "end":
            send(self.ws, new_decision("end_after", target=target))

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def stage_play(folder: Path, api: FakeApi, kills: Sequence[Holds] = ()) -> Play:
    """A small workspace whose baseline does 64 rounds where one would do."""
    contract = CONTRACT.replace("min_speedup = 1.02", "min_speedup = 1.5").replace(
        "rel_l2 = 1e-6", "rel_l2 = 1e-4"
    )
    ws = make_workspace(folder / "scale", contract)
    plan = ws.root / "baseline" / "launch.toml"
    plan.write_text(re.sub(r"\[tune\][^$]*", "", launch_text(16, ROUNDS, "the baseline", "")))
    trust.mark_own(ws)
    settings = folder / "kda.toml"
    settings.write_text(SETTINGS.format(url=api.url, model=MODEL))
    return Play(ws, api, settings, kills)


def lines_of(ws: Workspace, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(x) for x in ws.run("r001").events.read_text().splitlines() if x.startswith("{")]
    return [x for x in lines if x["kind"] == kind]
