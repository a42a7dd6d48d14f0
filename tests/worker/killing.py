"""Kill a worker at seeded random moments, start it again, and say whether anything was lost or doubled."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kda_tui.record.inbox import new_decision, send
from kda_tui.record.journal import Recorder
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.reader import Reader
from kda_tui.record.verify import verify
from kda_tui.text import Redactor
from kda_tui.worker import promote
from kda_tui.worker.offline import apply_pending
from tests.worker.stage import journal, state_of


@dataclass
class Killed:
    """One kill: when, what the journal ended with, and whether verify was clean after the next start."""

    number: int
    after_s: float
    last: str
    lines: int
    clean: bool


@dataclass
class Story:
    """How a killed run went."""

    kills: list[Killed] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    ended: bool = False


def play(
    ws: Workspace,
    command: Callable[[bool], Sequence[str]],
    seed: int,
    kills: int,
    longest_s: float,
    timeout_s: float = 120.0,
    on_kill: Callable[[Killed], None] = lambda killed: None,
) -> Story:
    """Start ``command(resume)``, kill it ``kills`` times, then let it end."""
    rng = random.Random(seed)
    story = Story()
    deadline = time.monotonic() + timeout_s
    for number in range(kills + 1):
        resume = bool(ws.run_names()) and _begun(ws)
        process = subprocess.Popen(command(resume), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if number < kills:
            wait = rng.uniform(0.0, longest_s)
            _disturb(ws, rng, story)
            over = _finished_within(process, wait)
            if not over:
                process.send_signal(signal.SIGKILL)
            process.communicate()
            story.kills.append(_look(ws, number + 1, wait))
            on_kill(story.kills[-1])
            if _ended(ws):
                break
            continue
        try:
            output = process.communicate(timeout=max(1.0, deadline - time.monotonic()))[0]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            story.problems.append(f"the last worker did not end: {state_of(Reader(ws.root).settle())}")
            break
        if process.returncode != 0:
            story.problems.append(f"the last worker failed: {output.decode()[-2000:]}")
    story.ended = _ended(ws)
    story.problems += problems_of(ws, story.sent)
    return story


def _finished_within(process: subprocess.Popen[bytes], wait: float) -> bool:
    """Whether the process ended by itself; output is drained by the caller."""
    try:
        process.wait(timeout=wait)
    except subprocess.TimeoutExpired:
        return False
    return True


def _ended(ws: Workspace) -> bool:
    """Ended, and nothing that people sent in the last moment is left; a worker or a command would take it."""
    if not any(x["kind"] == "run_ended" for r in ws.run_names() for x in journal(ws.run(r).events)):
        return False
    apply_pending(ws)
    return True


def _begun(ws: Workspace) -> bool:
    return any(journal(ws.run(r).events) for r in ws.run_names())


def _disturb(ws: Workspace, rng: random.Random, story: Story) -> None:
    """People keep deciding: notes, a short hold, a measurement, a veto."""
    snap = Reader(ws.root).settle()
    if snap.run is None:
        return
    picks = [new_decision("note", text=f"note {len(story.sent)}")]
    judged = [c.id for c in snap.candidates.values() if c.stage == "judged" and not c.decision]
    if judged and rng.random() < 0.3:
        picks.append(new_decision("measure", target={"cand": rng.choice(judged)}))
    if len(judged) > 3 and rng.random() < 0.2:
        picks.append(new_decision("veto", target={"cand": judged[0]}, reason="a test"))
    if rng.random() < 0.2:
        picks += [new_decision("pause"), new_decision("resume")]
    for d in picks:
        send(ws, d)
        story.sent.append(d.id)


def _look(ws: Workspace, number: int, wait: float) -> Killed:
    lines = [x for r in ws.run_names() for x in journal(ws.run(r).events)]
    last = lines[-1] if lines else {}
    words = " ".join(str(last.get(k)) for k in ("kind", "op", "cand") if last.get(k))
    return Killed(number, wait, words or "nothing yet", len(lines), _clean_when_opened(ws) if lines else True)


def _clean_when_opened(ws: Workspace) -> bool:
    """Whether verify is clean once the record is opened again; on a copy, so the next worker mends it itself."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Workspace(Path(folder) / "copy")
        shutil.copytree(ws.root, copy.root, ignore=shutil.ignore_patterns(".cache"))
        with WorkspaceLock.acquire(copy) as lock:
            Recorder.open(copy, lock, copy.run_names()[-1], Redactor.from_environment({})).close()
        return verify(copy).ok


def problems_of(ws: Workspace, sent: Sequence[str]) -> list[str]:
    """Everything that was lost or doubled, in words; empty if the record is whole."""
    found: list[str] = []
    report = verify(ws)
    found += [
        f"verify: {p.file}:{p.line} {p.seen}; {p.done}" for p in report.problems if p.severity == "error"
    ]
    lines = [x for r in ws.run_names() for x in journal(ws.run(r).events)]
    claims = Counter(x["claim"] for x in lines if x["kind"] == "claim")
    results = Counter(x["claim"] for x in lines if x["kind"] == "result")
    found += [f"claim {c} {n} times" for c, n in claims.items() if n > 1]
    found += [f"claim {c} has {results[c]} results" for c in claims if results[c] != 1]
    orders = Counter(
        x["for"] for x in lines if x["kind"] == "result" and x.get("for") and x["outcome"] == "ok"
    )
    found += [f"order {o} was done {n} times" for o, n in orders.items() if n > 1]
    compiled = Counter(
        x["cand"] for x in lines if x["kind"] == "result" and x["op"] == "compile" and x["outcome"] == "ok"
    )
    found += [f"{c} compiled {n} times" for c, n in compiled.items() if n > 1]
    measured = Counter(
        (x["cand"], x["opponent"]) for x in lines
        if x["kind"] == "result" and x["op"] == "evaluate" and x["outcome"] == "ok" and not x.get("for")
        and x.get("speed") != "inconclusive"
    )  # fmt: skip
    found += [f"{c} measured {n} times against {o}" for (c, o), n in measured.items() if n > 1]
    outcomes = Counter(x["decision"]["id"] for x in lines if x["kind"] == "decision")
    found += [f"decision {d} was ruled {outcomes[d]} times" for d in sent if outcomes[d] != 1]
    found += [f"{p.name} is still in the inbox" for p in ws.inbox.glob("*.json")]
    effects = Counter((x["decision"], x["effect"]) for x in lines if "effect" in x)
    planned = {
        (x["decision"]["id"], i)
        for x in lines
        if x["kind"] == "decision"
        for i in range(len(x.get("todo") or ()))
    }
    found += [f"effect {e} {n} times" for e, n in effects.items() if n > 1]
    found += [f"effect {e} was lost" for e in planned - set(effects)]
    found += _doubled(ws.candidates_ledger) + _doubled(ws.decisions)
    snap = Reader(ws.root).settle()
    if snap.incumbents and promote.current(ws).get("cand") != snap.incumbent.cand:
        found.append(f"outputs/ is {promote.current(ws).get('cand')}, the incumbent {snap.incumbent.cand}")
    known = {c.id for c in snap.candidates.values()}
    folders = {p.name for p in ws.candidates.iterdir()} if ws.candidates.is_dir() else set()
    found += [f"candidates/{c} is in no ledger" for c in folders - known]
    found += [f"candidate {c} has no folder" for c in known - folders]
    return found


def _doubled(path: Path) -> list[str]:
    keys = Counter()
    for raw in path.read_bytes().split(b"\n"):
        if raw and not raw.endswith(b"#torn"):
            line = json.loads(raw)
            keys[line["run"], line["seq"]] += 1
    return [f"{path.name}: {key} {n} times" for key, n in keys.items() if n > 1]
