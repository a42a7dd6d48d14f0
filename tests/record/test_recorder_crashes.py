"""A crash at every byte, a second one while mending, a full disk, and kill -9: nothing lost, nothing doubled."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_disk import FaultyDisk, PowerCut

from kda_tui.record.journal import Recorder
from kda_tui.record.ledger import DiskFull
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate, Decision, TranscriptBlock
from kda_tui.record.verify import verify
from kda_tui.text import Redactor

PLAIN = Redactor({})
NO_END = 1 << 60
STEPS = ("s0", "s1", "s2", "s3", "s4")


def step(recorder: Recorder, name: str) -> None:
    """One thing that a worker records; the line carries the step's name."""
    if name == "s0":
        recorder.event("phase", step=name)
    elif name == "s1":
        sha = recorder.artifact(recorder.ws.candidate("c1") / "kernel.cu", b"x")
        recorder.event(
            "candidate", step=name, candidate=Candidate("c1"), files={"candidates/c1/kernel.cu": sha}
        )
    elif name == "s2":
        recorder.transcript(TranscriptBlock(text="hi", extra={"step": name}))
    elif name == "s3":
        rows = [{"workload": "w", "arm": arm, "median_us": 1.5} for arm in ("c1", "b")]
        candidate, decision = Candidate("c1", stage="judged"), Decision("d1", "note", outcome="taken")
        recorder.event("result", step=name, candidate=candidate, decision=decision, rows=rows, claim="e1")
    else:
        recorder.checkpoint({"step": name})


def begin(ws: Workspace, lock: WorkspaceLock) -> Recorder:
    """What a worker does at its start: go on with the newest run, or begin one."""
    from kda_tui.record.recovery import committed_runs

    runs = committed_runs(ws)
    return Recorder.open(ws, lock, runs[-1], PLAIN) if runs else Recorder.create_run(ws, lock, PLAIN)


def recorded(ws: Workspace) -> Counter[str]:
    """The steps that a reader finds, each as often as it stands there."""
    names: Counter[str] = Counter()
    for path in ws.runs.glob("*/*.jsonl"):
        for line in whole_lines(path):
            body = json.loads(line)
            names[body.get("step") or body.get("summary", {}).get("step", "")] += 1
    names.pop("", None)
    return names


def whole_lines(path: Path) -> Iterator[bytes]:
    for line in path.read_bytes().split(b"\n")[:-1]:
        if not line.endswith(b"#torn"):
            yield line


def work(ws: Workspace, acknowledged: list[str]) -> None:
    """Record every step that is not there yet, as a worker that starts or starts again."""
    with WorkspaceLock.acquire(ws) as lock, begin(ws, lock) as recorder:
        there = recorded(ws)
        for name in STEPS:
            if name not in there:
                step(recorder, name)
                acknowledged.append(name)


def crash(ws: Workspace, budget: int, acknowledged: list[str]) -> bool:
    """Work until the power goes after ``budget`` bytes; whether it went."""
    with FaultyDisk(budget, "cut"):
        try:
            work(ws, acknowledged)
        except PowerCut:
            return True
    return False


def contents(ws: Workspace) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (*ws.root.glob("*.jsonl"), *ws.runs.glob("*/*.jsonl"))}


def check_whole(ws: Workspace, acknowledged: list[str], before: dict[Path, bytes]) -> None:
    """After the last start: every step once, all that was acknowledged, and no file rewritten in place."""
    assert recorded(ws) == Counter(STEPS)
    assert set(acknowledged) <= set(STEPS)
    for path, data in before.items():
        assert path.read_bytes().startswith(data), f"{path.name} was cut or rewritten under its readers"
    for path, columns in ((ws.candidates_ledger, ["submitted", "judged"]), (ws.decisions, ["taken"])):
        states = [json.loads(line) for line in whole_lines(path)]
        assert [state.get("outcome") or state["stage"] for state in states] == columns
    rows = [line.split(b",") for line in whole_lines(ws.benchmark)]
    assert [row[7] for row in rows if row[-1] == b"."] == [b"c1", b"b"]


def measure(scratch: Path) -> int:
    ws = Workspace(scratch / "measure")
    ws.root.mkdir()
    with FaultyDisk(NO_END, "cut") as disk:
        work(ws, [])
    shutil.rmtree(ws.root)
    return disk.used


def test_a_crash_at_every_byte_loses_and_doubles_nothing(scratch: Path) -> None:
    total = measure(scratch)
    assert total > 1500
    for budget in range(total):
        ws = Workspace(scratch / "w")
        ws.root.mkdir()
        acknowledged: list[str] = []
        assert crash(ws, budget, acknowledged)
        assert set(acknowledged) <= set(recorded(ws)), "what was acknowledged is in the record at once"
        before = contents(ws)
        with FaultyDisk(NO_END, "cut"):
            work(ws, acknowledged)
        check_whole(ws, acknowledged, before)
        if budget % 5 == 0:
            assert verify(ws).ok, verify(ws).problems
        shutil.rmtree(ws.root)


def test_a_second_crash_while_mending_loses_and_doubles_nothing(scratch: Path) -> None:
    total = measure(scratch)
    chance = random.Random(7)
    for case in range(500):
        ws = Workspace(scratch / "w")
        ws.root.mkdir()
        acknowledged: list[str] = []
        crash(ws, chance.randrange(total), acknowledged)
        crash(ws, chance.randrange(total // 2), acknowledged)
        assert set(acknowledged) <= set(recorded(ws))
        before = contents(ws)
        with FaultyDisk(NO_END, "cut"):
            work(ws, acknowledged)
        check_whole(ws, acknowledged, before)
        if case % 5 == 0:
            assert verify(ws).ok, verify(ws).problems
        shutil.rmtree(ws.root)


def test_a_full_disk_commits_nothing_by_half(scratch: Path) -> None:
    """DiskFull means: not committed, try again. Returning means: committed, and the projections follow."""
    total = measure(scratch)
    for budget in range(0, total, 5):
        ws = Workspace(scratch / "w")
        ws.root.mkdir()
        with FaultyDisk(NO_END, "full") as disk, WorkspaceLock.acquire(ws) as lock:
            recorder = Recorder.create_run(ws, lock, PLAIN)
            disk.budget = max(budget, disk.used)
            for name in STEPS:
                try:
                    step(recorder, name)
                except DiskFull:
                    assert name not in recorded(ws)
                    with pytest.raises(DiskFull):
                        step(recorder, name)
                    disk.budget = NO_END
                    step(recorder, name)
            disk.budget = NO_END
            recorder.event("phase", step="after")
            recorder.close()
        assert recorded(ws) == Counter((*STEPS, "after"))
        assert verify(ws).ok, verify(ws).problems
        shutil.rmtree(ws.root)


CHILD = """
import sys
from pathlib import Path
from kda_tui.record.journal import Recorder
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.recovery import committed_runs
from kda_tui.record.records import Candidate, TranscriptBlock
from kda_tui.text import Redactor

ws = Workspace(Path(sys.argv[1]))
lock = WorkspaceLock.acquire(ws, 10)
runs = committed_runs(ws)
r = Recorder.open(ws, lock, runs[-1], Redactor({})) if runs else Recorder.create_run(ws, lock, Redactor({}))
n = int(sys.argv[2])
while True:
    rows = [{"workload": f"w{i}", "arm": "c", "median_us": 1.0} for i in range(20)]
    r.event("result", n=n, candidate=Candidate(f"c{n}"), rows=rows, text="ü" * (n % 7 * 900))
    r.transcript(TranscriptBlock(text=str(n), extra={"n": n}))
    if n % 5 == 0:
        r.checkpoint({})
    print(n, flush=True)
    n += 1
"""


def test_kill_9_while_appending(tmp_path: Path) -> None:
    ws = Workspace(tmp_path)
    acknowledged = -1
    for seed in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path), str(1000 * seed)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(random.Random(seed).uniform(0.0, 0.12))
        child.send_signal(signal.SIGKILL)
        acknowledged = int((first + child.stdout.read()).split()[-1])
        child.wait()
        lines = [json.loads(line) for line in whole_lines(ws.run("r001").events)]
        counted = Counter(line["n"] for line in lines if line["kind"] == "result")
        assert set(counted.values()) == {1}
        assert set(range(1000 * seed, acknowledged + 1)) <= set(counted)
    with WorkspaceLock.acquire(ws) as lock, Recorder.open(ws, lock, "r001", PLAIN) as recorder:
        recorder.checkpoint({})
    report: Any = verify(ws)
    assert report.ok, report.problems
