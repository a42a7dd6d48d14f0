"""The restarting parent, hooks, the budget's clock, live.json, seeds, the queue of jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kda_tui.record.contract import parse_contract
from kda_tui.record.paths import Workspace
from kda_tui.record.snapshot import Incumbent
from kda_tui.text import UserError
from kda_tui.worker import attention, supervise
from kda_tui.worker.book import Book
from kda_tui.worker.budget import Meter, level, raised
from kda_tui.worker.jobs import has_ticket, must_stop, next_job
from kda_tui.worker.live import LiveWriter
from kda_tui.worker.seeds import seed_pool
from kda_tui.worker.start import RunOptions
from kda_tui.worker.status import facts
from kda_tui.worker.supervise import Restarts
from tests.worker.make import CONTRACT, confirm, decided, judged, open_claim, queued, snapshot

# --- the restarting parent ---


def test_three_deaths_in_ten_minutes_hold_the_next_worker() -> None:
    now = [0.0]
    restarts = Restarts(clock=lambda: now[0])
    first = restarts.after_death(RunOptions(yes=("plan",)))
    assert first.resume and first.yes == ("plan",) and not first.hold
    now[0] = 700.0  # the first is forgotten
    assert not restarts.after_death(first).hold
    now[0] = 800.0
    assert not restarts.after_death(first).hold
    now[0] = 900.0
    assert restarts.after_death(first).hold == "crash_loop"


def test_the_parent_restarts_after_a_signal_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = tmp_path / "starts"
    script = (
        "import os, signal, sys\n"
        f"open({str(notes)!r}, 'a').write(sys.argv[1] + chr(10))\n"
        "if 'crash_loop' not in sys.argv[1]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.exit(3)\n"
    )
    monkeypatch.setattr(supervise, "PAUSE_S", 0.0)
    monkeypatch.setattr(
        supervise, "_command", lambda ws, options: [sys.executable, "-c", script, options.to_json()]
    )
    code = supervise.supervise(Workspace(tmp_path), RunOptions())
    starts = [json.loads(line) for line in notes.read_text().splitlines()]
    assert code == 3
    assert [(s["resume"], s["hold"]) for s in starts] == [
        (False, ""),
        (True, ""),
        (True, ""),
        (True, "crash_loop"),
    ]


def test_options_travel_as_json() -> None:
    options = RunOptions("tuner", "cpu", ("plan", "end"), True, "m", 3, "crash_loop")
    assert RunOptions.from_json(options.to_json()) == options
    with pytest.raises(UserError):
        RunOptions.from_json("[]")


def test_children_die_with_their_parent() -> None:
    parent = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'from kda_tui.worker.processes import die_with_parent\\n"
        "die_with_parent()\\nprint(1, flush=True)\\nimport time; time.sleep(60)'], stdout=subprocess.PIPE)\n"
        "child.stdout.read(1)\nprint(child.pid, flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", parent], capture_output=True, text=True, timeout=30)
    pid = int(done.stdout)
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        subprocess.run(["sleep", "0.05"], check=True)
    os.kill(pid, 9)
    raise AssertionError("the child outlived its parent")


# --- hooks ---


async def test_a_hook_gets_the_facts_and_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2-hunter2-hunter2")
    script = (
        "import os, sys; print(sys.stdin.read().strip(), os.environ['KDA_WHAT'], 'MY_TOKEN' in os.environ)"
    )
    called = await attention.call([sys.executable, "-c", script], {"what": "waits: plan", "n": 1})
    assert called.code == 0
    assert called.output == '{"what": "waits: plan", "n": 1} waits: plan False'


async def test_hooks_cannot_stop_or_flood_the_worker() -> None:
    loud = await attention.call([sys.executable, "-c", "print('x' * 10_000_000)"], {})
    assert loud.code == 0 and len(loud.output) <= attention.OUTPUT_BYTES
    slow = await attention.call(["sleep", "30"], {}, timeout_s=0.2)
    assert slow.code is None and "killed" in slow.output
    assert (await attention.call(["/no/such/program"], {})).code is None


# --- the budget ---


@pytest.mark.parametrize(
    ("used", "limit", "word"), [(0, None, "ok"), (7.9, 10, "ok"), (8, 10, "notice"), (10, 10, "reached"), (0, 0, "reached")]
)  # fmt: skip
def test_levels(used: float, limit: float | None, word: str) -> None:
    assert level(used, limit) == word


def test_held_time_counts_only_if_the_contract_says_so() -> None:
    for count_held, hours in ((False, 2.0), (True, 3.0)):
        now = [0.0]
        meter = Meter(count_held, hours=1.0, clock=lambda now=now: now[0])
        meter.tick(True)
        for at, working in ((3600.0, True), (7200.0, False)):
            now[0] = at
            meter.tick(working)
        assert meter.hours == pytest.approx(hours)


def test_a_level_is_told_once() -> None:
    contract = parse_contract(CONTRACT.replace("candidates = 50", "candidates = 3").encode())
    snap = snapshot(contract=contract)
    lines = Meter(False).lines(snap, contract)
    assert [line.axis for line in raised({}, lines)] == ["candidates"]
    assert raised(lines, lines) == []


# --- small things ---


def test_live_json_is_written_at_most_four_times_a_second(tmp_path: Path) -> None:
    live = LiveWriter(tmp_path / "live.json")
    for n in range(100):
        live.set(fraction=n / 100)
    assert json.loads(live.path.read_text())["fraction"] == 0.0
    live.flush(force=True)
    assert json.loads(live.path.read_text())["fraction"] == 0.99
    live.idle()
    live.waits("a person")
    live.flush(force=True)
    shown = json.loads(live.path.read_text())
    assert shown["waiting"] == "a person" and shown["waiting_since"] and "fraction" not in shown


def test_seeds_are_fixed_by_the_secret_and_fresh_for_each_confirm() -> None:
    draw = seed_pool("s" * 64, 3)
    assert draw("") == draw("") and len(set(draw(""))) == 3
    assert set(draw("r001-7")).isdisjoint(draw("r001-8"))
    assert seed_pool("t" * 64, 3)("") != draw("")


def test_status_is_plain_json() -> None:
    shown = json.loads(json.dumps(facts(snapshot())))
    assert shown["incumbent"]["cand"] == "c0001" and shown["phase"] == "iterate"


def test_peoples_orders_come_before_an_agents() -> None:
    book = Book()
    snap = snapshot(candidates={"c0002": judged("c0002")})
    assert next_job(snap, book) is None
    order = {"id": "o1", "kind": "measure", "outcome": "taken", "target": {"cand": "c0002"}}
    book.fold({"kind": "decision", "decision": order})
    job = next_job(snap, book)
    assert job is not None and (job.op, job.cand, job.order) == ("evaluate", "c0002", "o1")
    requested = replace(snap, candidates={"c0002": judged("c0002", decision="requested")}, evaluations={})
    job = next_job(requested, book)
    assert job is not None and job.op == "confirm"
    book.fold({"kind": "claim", "claim": "k", "op": "evaluate", "cand": "c0002", "for": "o1"})
    book.fold({"kind": "result", "claim": "k", "outcome": "cancelled", "stop": "stopped"})
    assert next_job(snap, book) is not None, "a worker that was stopped did not do it"
    book.fold({"kind": "claim", "claim": "k2", "op": "evaluate", "cand": "c0002", "for": "o1"})
    book.fold({"kind": "result", "claim": "k2", "outcome": "ok"})
    assert next_job(snap, book) is None


def test_what_stops_a_running_claim() -> None:
    claim = open_claim("c0003")
    assert must_stop(snapshot(), Book(), claim) == ""
    assert must_stop(snapshot(), Book(ending="end_now"), claim)
    assert must_stop(snapshot(), Book(ending="end_after"), claim) == ""
    assert must_stop(snapshot(candidates={"c0003": queued("c0003", decision="vetoed")}), Book(), claim)
    assert must_stop(snapshot(decisions=(decided("abandon", "a", target={"claim": "k1"}),)), Book(), claim)


def test_the_entry_ticket_of_a_confirm() -> None:
    full = confirm("e5", "c0002", "c0001", op="evaluate", lo=1.01)
    assert has_ticket(snapshot(evaluations={"e5": full}), "c0002") == ""
    for change, words in (({"lo": 0.99}, "not above 1"), ({"opponent": "baseline"}, "evaluate it again"),
                          ({"gates": {"aa": "not_evaluated"}}, "disturbed"), ({"contract_sha": "d" * 64}, "no full evaluation")):  # fmt: skip
        snap = snapshot(evaluations={"e5": replace(full, **change)})  # type: ignore[arg-type]
        assert words in has_ticket(snap, "c0002")
    assert has_ticket(snapshot(incumbent=Incumbent("baseline"), evaluations={"e5": full}), "c0002")
