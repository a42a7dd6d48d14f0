"""R1, R2, R7, R9 and amended contracts: what a new worker makes of what an old one left."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kda_tui.agents.tuner.agent import TunerAgent
from kda_tui.evaluation.verdict import Verdict
from kda_tui.record import trust
from kda_tui.record.inbox import new_decision, send
from kda_tui.record.lock import WorkspaceLock, start_ticks
from kda_tui.record.paths import Workspace
from kda_tui.record.reader import Reader
from kda_tui.record.records import to_line
from kda_tui.record.snapshot import Snapshot
from kda_tui.record.verify import verify
from kda_tui.text import Redactor, UserError
from kda_tui.worker import promote
from kda_tui.worker.clerk import Clerk
from kda_tui.worker.offline import apply_pending
from kda_tui.worker.resume import open_run
from kda_tui.worker.rulings import Effect
from tests.worker.make import CONTRACT
from tests.worker.stage import journal, stage

ALL = ("plan", "promotion", "end")


@contextmanager
def clerk_of(ws: Workspace, resume: bool = True) -> Iterator[Clerk]:
    """The record open as a worker has it, without a loop."""
    with WorkspaceLock.acquire(ws) as lock:
        redactor = Redactor.from_environment(os.environ)
        opened = open_run(ws, lock, redactor, TunerAgent(), device={}, resume=resume)
        try:
            yield opened.clerk
        finally:
            opened.clerk.close()


def read(ws: Workspace) -> Snapshot:
    return Reader(ws.root).settle()


def events(ws: Workspace, kind: str) -> list[dict[str, object]]:
    return [x for run in ws.run_names() for x in journal(ws.run(run).events) if x["kind"] == kind]


async def judged_candidate(ws: Workspace) -> str:
    """A workspace with one judged candidate and a stopped worker; its id."""
    async with stage(ws, yes=("plan",), pause_s=0.02) as s:
        found = await s.until(lambda x: [c.id for c in x.candidates.values() if c.stage == "judged"])
        return str(found[0])


async def promoted(ws: Workspace) -> str:
    async with stage(ws, yes=ALL) as s:
        await s.ended()
        return s.snap.incumbent.cand


async def test_a_stopped_worker_leaves_a_run_that_goes_on(ws: Workspace) -> None:
    async with stage(ws, yes=("plan",), pause_s=0.4) as s:
        running = await s.running()
        s.worker.stop()
        assert await s.ended() == "stopped"
    assert read(ws).phase == "iterate"
    results = [x for x in events(ws, "result") if x.get("cand") == running.id and x["op"] == "evaluate"]
    assert [x["outcome"] for x in results] == ["cancelled"]
    async with stage(ws, yes=ALL, resume=True) as s:
        assert await s.ended() == "ended"
        assert s.snap.candidates[running.id].stage == "judged"
    results = [x for x in events(ws, "result") if x.get("cand") == running.id and x["op"] == "evaluate"]
    assert [(x["outcome"], x["attempt"]) for x in results] == [("cancelled", 1), ("ok", 1)], "not charged"
    assert verify(ws).ok


async def test_a_claim_that_died_is_attempted_again_and_twice_is_enough(ws: Workspace) -> None:
    cand = await judged_candidate(ws)

    def die() -> None:
        with clerk_of(ws) as clerk:
            clerk.event(
                "claim",
                claim=clerk.next_name(),
                op="evaluate",
                cand=cand,
                attempt=1,
                level="time",
                opponent="baseline",
            )

    die()
    async with stage(ws, yes=("plan",), resume=True) as s:
        before = s.snap.candidates[cand].eval
        await s.until(lambda x: x.candidates[cand].eval != before, "a second attempt")
    died = [x for x in events(ws, "result") if x.get("died")]
    assert [x["outcome"] for x in died] == ["infrastructure_error"]
    assert died[0]["retry"] is True and "rows" not in died[0]
    die()
    with clerk_of(ws) as clerk:
        assert clerk.book.deaths[cand] == 2
        assert not clerk.book.retries
        assert clerk.snap.candidates[cand].validity == "passed", "a verdict that was there before stays"
    assert verify(ws).ok


async def test_a_judge_that_dies_twice_parks_a_candidate_without_blame(ws: Workspace) -> None:
    died = Verdict("infrastructure_error", reason="the judge was ended by signal 11", extra={"died": True})
    fatal: list[str] = []

    def speeds(folder: str) -> float | Verdict:
        fatal.append(folder) if not fatal else None
        return died if folder == fatal[0] else 1.0

    async with stage(ws, yes=("plan",), speeds=speeds) as s:
        await s.until(lambda x: x.candidates.get("c0001") and x.candidates["c0001"].validity)
        parked = s.snap.candidates["c0001"]
        assert (parked.stage, parked.validity) == ("judged", "infrastructure_error")
        attempts = [x["attempt"] for x in journal(s.worker.clerk.paths.events) if x["kind"] == "claim" and x["op"] == "evaluate" and x["cand"] == "c0001"]  # fmt: skip
        assert attempts == [1, 2]
        await s.until(lambda x: any(c.validity == "passed" for c in x.candidates.values()))
        assert (
            s.worker.meter.lines(s.snap, s.worker.contract)["candidates"].used == len(s.snap.candidates) - 1
        )
        fatal[0] = "mended"
        assert (await s.decide("rerun", target={"cand": "c0001"})).outcome == "taken"
        await s.until(lambda x: x.candidates["c0001"].validity == "passed")


async def test_a_judge_that_fails_on_everything_holds_the_run(ws: Workspace) -> None:
    broken = Verdict("infrastructure_error", reason="the baseline does not compile")
    async with stage(ws, yes=("plan",), speeds=lambda folder: broken) as s:
        await s.until(lambda x: x.hold == "crash_loop")
        assert "baseline does not compile" in s.snap.hold_why
        assert len(s.snap.candidates) <= 3


@pytest.mark.parametrize(("setting", "asks"), [("ask", True), ("retry-once", False)])
async def test_a_paid_claim_without_result_asks_or_is_repeated_once(
    ws: Workspace, setting: str, asks: bool
) -> None:
    await judged_candidate(ws)
    with clerk_of(ws) as clerk:
        claim = clerk.next_name()
        clerk.event("claim", claim=claim, op="turn", paid=True, est_usd=0.25, attempt=1)
    async with stage(ws, yes=("plan",), resume=True, ambiguous=setting) as s:
        assert s.worker.clerk.book.usd == 0.25
        if not asks:
            await s.until(lambda x: sum(c.stage == "judged" for c in x.candidates.values()) > 1)
            return
        await s.gate("ambiguous")
        before = len(s.snap.candidates)
        await s.worker._changed.wait(0.2)
        assert len(s.snap.candidates) == before, "nothing goes on before somebody decides"
        assert (await s.decide("abandon", target={"claim": claim})).outcome == "taken"
        await s.until(lambda x: len(x.candidates) > before)


async def test_a_promotion_is_finished_from_the_journal(ws: Workspace) -> None:
    cand = await promoted(ws)
    promote.shutil.rmtree(ws.outputs)  # the crash came after the journal line and before the swap
    (ws.root / "outputs.new").mkdir()
    with clerk_of(ws, resume=False):
        assert promote.current(ws)["cand"] == cand
    assert not (ws.root / "outputs.new").exists()


async def test_effects_that_a_crash_cut_off_are_written(ws: Workspace) -> None:
    cand = await judged_candidate(ws)
    with clerk_of(ws) as clerk:
        c = clerk.snap.candidates[cand]
        from dataclasses import replace

        d = replace(new_decision("veto", target={"cand": cand}), outcome="taken", run=clerk.run)
        effect = Effect("candidate", candidate=replace(c, decision="vetoed", decision_id=d.id))
        clerk.event("decision", decision=d, todo=[effect.to_todo()])
    assert read(ws).candidates[cand].decision == ""
    with clerk_of(ws) as clerk:
        assert clerk.snap.candidates[cand].decision == "vetoed"
        assert clerk.book.unfinished_decision() is None
    assert verify(ws).ok


@pytest.mark.parametrize(("shift", "killed"), [(0, True), (1, False)])
async def test_orphans_are_killed_only_if_they_are_the_same_processes(
    ws: Workspace, shift: int, killed: bool
) -> None:
    cand = await judged_candidate(ws)
    sleeper = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        ticks = (start_ticks(sleeper.pid) or 0) + shift
        with clerk_of(ws) as clerk:
            clerk.event(
                "claim", claim="k", op="evaluate", cand=cand, attempt=1, pgid=sleeper.pid, start_ticks=ticks
            )
        with clerk_of(ws):
            pass
        time.sleep(0.1)
        assert (sleeper.poll() is not None) == killed
    finally:
        sleeper.kill()
        sleeper.wait()


# --- what may not go on ---


async def test_an_amended_contract_is_a_new_run_and_old_verdicts_do_not_count(ws: Workspace) -> None:
    async with stage(ws, yes=("plan", "promotion")) as s:
        await s.until(lambda x: x.incumbent.cand != "baseline")
        cand = s.snap.incumbent.cand
    ws.contract.write_text(CONTRACT.replace("min_speedup = 1.02", "min_speedup = 1.03"))
    with pytest.raises(UserError, match=r"contract\.toml changed"):
        async with stage(ws, resume=True):
            pass
    async with stage(ws, yes=ALL) as s:
        assert s.snap.run is not None
        assert (s.snap.run.name, s.snap.run.parent_run) == ("r002", "r001")
        assert s.snap.incumbent.cand == "baseline"
        assert s.snap.confirmations == 0
        assert await s.ended() == "ended"
        best = s.snap.incumbent.cand
        evaluation = s.snap.evaluations[s.snap.incumbent.eval]
        assert evaluation.run == "r002" and evaluation.contract_sha == s.snap.run.contract_sha
        assert best == cand, "the same source is measured again, not submitted again"
    assert len(s.snap.runs) == 2 and s.snap.runs[0].end_why.startswith("contract.toml")
    assert verify(ws).ok


async def test_a_contract_that_changes_under_a_run_holds_it(ws: Workspace) -> None:
    async with stage(ws, yes=("plan",), pause_s=0.02) as s:
        await s.running()
        ws.contract.write_text(CONTRACT + "\n# changed\n")
        await s.until(lambda x: x.hold == "person" and "contract.toml" in x.hold_why)
        ws.contract.write_text(CONTRACT)
        await s.decide("resume")
        before = len(s.snap.candidates)
        await s.until(lambda x: len(x.candidates) > before)


async def test_an_incumbent_that_was_edited_stops_the_run(ws: Workspace) -> None:
    async with stage(ws, yes=("plan", "promotion")) as s:
        await s.until(lambda x: x.incumbent.cand != "baseline")
        cand = s.snap.incumbent.cand
    source = ws.candidate(cand) / "kernel.cu"
    source.write_text(source.read_text() + "// faster\n")
    with pytest.raises(UserError, match="not what was judged"):
        async with stage(ws, resume=True):
            pass


def test_a_workspace_made_elsewhere_does_not_run_before_it_is_trusted(ws: Workspace) -> None:
    ws.reference.write_text(ws.reference.read_text() + "# changed\n")
    with pytest.raises(UserError, match="kda trust"), clerk_of(ws, resume=False):
        pass
    trust.grant(ws)
    with clerk_of(ws, resume=False) as clerk:
        assert clerk.run == "r001"


def test_resuming_without_a_run_says_so(ws: Workspace) -> None:
    with pytest.raises(UserError, match="no run to resume"), clerk_of(ws):
        pass


# --- no worker alive ---


async def test_decisions_without_a_worker_follow_the_same_rules(ws: Workspace) -> None:
    cand = await judged_candidate(ws)
    send(ws, new_decision("veto", target={"cand": cand}, reason="no"))
    send(ws, new_decision("veto", target={"cand": cand}))
    first, second = apply_pending(ws)
    assert (first.outcome, second.outcome) == ("taken", "moot")
    assert read(ws).candidates[cand].decision == "vetoed"
    assert not list(ws.inbox.glob("*.json"))
    assert apply_pending(ws) == []
    assert verify(ws).ok


async def test_a_run_is_ended_without_a_worker(ws: Workspace) -> None:
    await judged_candidate(ws)
    send(ws, new_decision("end_now"))
    assert [d.outcome for d in apply_pending(ws)] == ["taken"]
    snap = read(ws)
    assert snap.phase == "ended" and not snap.claims
    assert events(ws, "run_ended")[0]["seed"]
    assert verify(ws).ok


async def test_a_confirmed_promotion_is_granted_after_the_end(ws: Workspace) -> None:
    async with stage(ws, yes=("plan",)) as s:
        gate = await s.gate("promotion")
        await s.decide("end_now")
        assert await s.ended() == "ended"
    cand = str(gate.target["cand"])
    assert [g.id for g in read(ws).gates] == [gate.id]
    send(
        ws,
        new_decision(
            "approve_promotion", target={"gate": gate.id, "cand": cand}, expect={"incumbent": "baseline"}
        ),
    )
    assert [d.outcome for d in apply_pending(ws)] == ["taken"]
    assert read(ws).incumbent.cand == cand == promote.current(ws)["cand"]
    send(ws, new_decision("veto", target={"cand": cand}))
    apply_pending(ws)
    assert read(ws).incumbent.cand == "baseline" == promote.current(ws)["cand"]
    assert verify(ws).ok


def test_a_file_in_the_inbox_that_is_no_decision_is_refused_by_name(ws: Workspace) -> None:
    with clerk_of(ws, resume=False):
        pass
    ws.inbox.mkdir(exist_ok=True)
    (ws.inbox / "0000.json").write_text("{not json")
    apply_pending(ws)
    last = read(ws).decisions[-1]
    assert last.outcome == "refused" and "not JSON" in last.why
    assert to_line(last)["id"] == "0000"
