"""Writes a small workspace with the real recorder: a run in the middle of the night."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from kda_tui.config import share_path
from kda_tui.record.journal import Recorder
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate, Decision, TranscriptBlock
from kda_tui.text import Redactor

PLAN_1 = "# Plan r1\n\n- P1 vectorised store\n- P3 row in registers\n"
PLAN_2 = "# Plan r2\n\n- P1 vectorised store\n- P3 row in registers\n- P4 swizzle\n"
SOURCE = """// one block a row
extern "C" __global__ void softmax(const float* x, float* y, int C) {
    __shared__ float smem[32];
    float m = -1e30f;
    for (int i = threadIdx.x; i < C; i += blockDim.x) m = fmaxf(m, x[blockIdx.x * C + i]);
    smem[threadIdx.x % 32] = m;  /* a[0]=b[/] */
}
"""


def make_workspace(root: Path, candidates: int = 6, blocks: int = 30) -> Workspace:
    """A workspace with one run, a plan in force, one promotion and some of everything."""
    shutil.copytree(share_path("workspaces") / "softmax_rows", root)
    ws = Workspace(root)
    with WorkspaceLock.acquire(ws) as lock, Recorder.create_run(ws, lock, Redactor({})) as recorder:
        recorder.event(
            "run_started", agent="tuner", model="", device={"name": "CPU", "kind": "cpu"}, host="h", pid=1
        )
        recorder.event("phase", **{"from": "", "to": "draft"})
        recorder.artifact(ws.draft, b"# Draft\n\nMemory bound: read once, write once.\n")
        for rev, text in ((1, PLAN_1), (2, PLAN_2)):
            name = f"docs/plans/r{rev:03d}.md"
            sha = recorder.artifact(ws.root / name, text.encode())
            items = [{"id": "P1", "title": "vectorised store"}, {"id": "P3", "title": "row in registers"}]
            recorder.event("plan", rev=rev, file=name, sha=sha, author="tuner", items=items)
            if rev == 1:
                approve = Decision(
                    "d1", "approve_plan", who="jw", via="ui", target={"plan_rev": 1}, outcome="taken"
                )
                recorder.event("decision", decision=approve)
        recorder.event("item", id="P1", state="done")
        recorder.event("phase", **{"from": "plan_review", "to": "iterate"})
        for n in range(1, candidates + 1):
            _candidate(recorder, ws, n)
        recorder.event(
            "incumbent", cand="c0001", prev="baseline", why="promoted", decision="d2", eval="k0001"
        )
        for n in range(blocks):
            _blocks(recorder, n)
        recorder.event(
            "gate_open", gate="g1", gate_kind="promotion", target={"cand": "c0003"}, blocking=False
        )
    return ws


def _candidate(recorder: Recorder, ws: Workspace, n: int) -> None:
    cand, claim = f"c{n:04d}", f"k{n:04d}"
    folder = ws.candidate(cand)
    recorder.artifact(folder / "kernel.cu", SOURCE.replace("32", str(32 * n)).encode())
    recorder.artifact(folder / "launch.toml", b'hypothesis = "one block a row"\n')
    parents = (f"c{n - 1:04d}",) if n > 1 else ()
    validity = "incorrect" if n % 4 == 0 else "passed"
    us, ratio = 100.0 - n, 1.0 + n / 100
    line = Candidate(
        cand, author="tuner", parents=parents, item="P1", hypothesis=f"tile of {32 * n}", stage="judged", validity=validity,
        speed="faster" if validity == "passed" else "", eval=claim, opponent="baseline" if n < 3 else "c0001",
        time_us=us if validity == "passed" else None, ratio=ratio if validity == "passed" else None, lo=ratio - 0.01, hi=ratio + 0.01,
        floor_share=0.5, registers=32, spills=0, shared_bytes=1024, compile_s=0.2, decision="promoted" if n == 1 else "requested" if n == 3 else "",
    )  # fmt: skip
    recorder.event("claim", claim=claim, op="evaluate", cand=cand, opponent=line.opponent)
    name = f"samples/{claim}.jsonl"
    slot = {
        "child": 0,
        "block": 0,
        "workload": "4096x4096",
        "arm": "candidate",
        "pair": 0,
        "order": 0,
        "us": [us, us + 1, us + 2],
    }
    recorder.artifact(recorder.paths.root / name, (json.dumps(slot) + "\n").encode())
    row = {
        "candidate": cand,
        "workload": "4096x4096",
        "opponent": line.opponent,
        "protocol": "ABBA",
        "device": "cpu",
        "trust": "kernel",
        "n": 3,
    }
    rows = [
        {
            **row,
            "arm": "candidate",
            "median_us": us,
            "min_us": us - 1,
            "ratio": ratio,
            "floor_us": 48.1,
            "admissible": 1,
        },
        {
            **row,
            "arm": "incumbent",
            "candidate": line.opponent,
            "median_us": us * ratio,
            "min_us": us,
            "admissible": 1,
        },
    ]
    recorder.event(
        "result", claim=claim, op="evaluate", cand=cand, outcome="ok", validity=validity, speed=line.speed, stage_reached="time",
        gates={"memory": "passed", "determinism": "passed"}, opponent=line.opponent, ratio=line.ratio, lo=line.lo, hi=line.hi,
        samples=[{"path": name, "sha": "0", "bytes": 10}], compile={"ok": True, "log": "ptxas info: 32 registers", "compiler": "g++ 12"},
        dur_s=0.4, attempt=1, candidate=line, rows=rows if validity == "passed" else [],
    )  # fmt: skip


def _blocks(recorder: Recorder, n: int) -> None:
    def say(kind: str, **fields: object) -> None:
        recorder.transcript(TranscriptBlock(iter=n, turn=n, kind=kind, **fields))  # type: ignore[arg-type]

    say("thinking", text="The barrier is the top stall.\nSo fewer barriers.\nOr none.")
    say("text", text=f"Step {n}: next is a tile of {32 * n} so that the second pass is conflict free.")
    say("tool_call", tool="submit_candidate", call=f"t{n}", cand=f"c{n:04d}", args={"tile": 32 * n})
    say("tool_result", call=f"t{n}", text="40 registers\n0 spills", dur_s=0.31)
