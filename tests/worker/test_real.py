"""A detached worker with the real judge on the cpu device: start, look, decide, kill, resume, end."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kda_tui.record.inbox import new_decision, send
from kda_tui.record.lock import LockHeld, probe
from kda_tui.record.paths import Workspace
from kda_tui.record.reader import Reader
from kda_tui.record.snapshot import Snapshot
from kda_tui.record.verify import verify
from kda_tui.text import UserError
from kda_tui.worker import promote
from kda_tui.worker.start import RunOptions, start_detached
from tests.worker.make import CONTRACT, make_workspace
from tests.worker.stage import state_of

PATIENCE_S = 60.0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Workspace]:
    """A grid of two points; whatever still runs at the end is ended by its lock's pid."""
    ws = make_workspace(tmp_path / "small", CONTRACT.replace("min_speedup = 1.02", "min_speedup = 1.5"))
    seed = ws.seeds / "loop" / "launch.toml"
    seed.write_text(
        seed.read_text().replace("[16, 32, 64]", "[16]").replace("WORK = [8, 1]", "WORK = [64, 1]")
    )
    for launch in (seed, ws.root / "baseline" / "launch.toml"):
        launch.write_text(
            launch.read_text().replace("WORK = 8", "WORK = 64").replace("WORK = [8, 1]", "WORK = [64, 1]")
        )
    from kda_tui.record import trust

    trust.mark_own(ws)
    yield ws
    state, holder = probe(ws)
    if state == "held" and holder is not None:
        os.kill(holder.pid, signal.SIGTERM)


def until(ws: Workspace, holds: Callable[[Snapshot], Any]) -> Snapshot:
    reader = Reader(ws.root)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        snap = reader.settle()
        if holds(snap):
            return snap
        time.sleep(0.05)
    log = ws.run(ws.run_names()[-1]).log
    raise AssertionError(f"{state_of(reader.settle())}\n{log.read_text()}")


def test_a_detached_run_survives_a_kill_and_ends_with_a_promotion(small: Workspace) -> None:
    pid = start_detached(small, RunOptions(yes=("promotion", "end")))
    snap = until(small, lambda s: s.phase == "plan_review")
    assert snap.liveness == "alive" and snap.run is not None and snap.run.seed_commit
    holder = probe(small)[1]
    assert holder is not None and holder.pid != pid, "the restarting parent holds no lock"
    assert os.getsid(holder.pid) == pid and str(Path(f"/proc/{holder.pid}/cwd").readlink()) == "/"
    with pytest.raises(LockHeld):
        start_detached(small, RunOptions())
    gate = snap.gates[0]
    send(small, new_decision("approve_plan", target={"gate": gate.id}, expect={"plan_sha": gate.sha}))
    until(small, lambda s: any(c.op == "evaluate" for c in s.claims))
    os.kill(holder.pid, signal.SIGKILL)
    snap = until(small, lambda s: s.phase == "ended" and s.liveness != "alive")
    best = snap.candidates[snap.incumbent.cand]
    assert best.defines["WORK"] == 1 and best.decision == "promoted"
    assert promote.current(small)["cand"] == best.id
    report = verify(small)
    assert report.ok, report.problems
    assert snap.bench is not None and snap.bench.rows > 0
    lines = [json.loads(x) for x in (small.run("r001").events).read_text().splitlines()]
    assert [x for x in lines if x["kind"] == "result" and x.get("died")], "the kill hit a running claim"


def test_sigterm_stops_cleanly_and_a_mistake_is_one_line(small: Workspace) -> None:
    pid = start_detached(small, RunOptions(yes=("plan",)))
    until(small, lambda s: bool(s.claims))
    os.kill(pid, signal.SIGTERM)
    snap = until(small, lambda s: s.liveness != "alive")
    assert snap.phase == "iterate" and not snap.claims
    assert verify(small).ok
    small.reference.write_text("# something else\n")
    with pytest.raises(UserError) as error:
        start_detached(small, RunOptions(resume=True))
    assert "kda trust" in str(error.value) and "\n" not in str(error.value)


def test_a_device_that_the_contract_does_not_name_is_refused(small: Workspace) -> None:
    with pytest.raises(UserError, match="the contract's device is cpu"):
        start_detached(small, RunOptions(device="cuda"))
