"""Whole runs with the real recorder and reader: the loop, people at the gates, and the rules R3 to R10."""

from __future__ import annotations

from pathlib import Path

import pytest

from kda_tui.record.paths import Workspace
from kda_tui.record.snapshot import Snapshot
from kda_tui.record.verify import verify
from kda_tui.worker import loop, promote
from tests.worker.make import CONTRACT, KERNEL, launch, make_workspace
from tests.worker.stage import journal, stage

ALL = ("plan", "promotion", "end")


def counts(snap: Snapshot) -> int:
    return sum(c.stage == "judged" for c in snap.candidates.values())


async def test_a_run_from_contract_to_promotion_by_written_rules(ws: Workspace) -> None:
    async with stage(ws, yes=ALL) as s:
        assert await s.ended() == "ended"
        snap = s.snap
        best = snap.candidates[snap.incumbent.cand]
        assert dict(best.defines) == {"THREADS": 64, "WORK": 1}
        assert best.decision == "promoted"
        assert snap.phase == "ended"
        assert {i.state for i in snap.plan.items} == {"done"}
        assert all(d.by == "rule" and d.rule for d in snap.decisions)
    shown = promote.current(ws)
    assert shown["cand"] == best.id
    assert (ws.outputs / "kernel.cu").read_text() == KERNEL
    report = (ws.outputs / "REPORT.md").read_text()
    assert (
        best.id in report
        and snap.run is not None
        and snap.run.contract_sha in report
        and shown["head"] in report
    )
    assert "not of a GPU" in report
    found = verify(ws)
    assert found.ok, found.problems
    assert verify(ws, shown["head"]).ok


async def test_nothing_starts_before_the_plan_is_approved_and_the_person_promotes(ws: Workspace) -> None:
    async with stage(ws) as s:
        await s.gate("plan")
        assert s.snap.phase == "plan_review" and not s.snap.candidates
        await s.until(lambda x: "waits: plan" in s.told)
        assert "vary THREADS" in ws.plan.read_text()
        assert ws.draft.read_text().startswith("# Draft: scale")
        assert (await s.approve_plan()).outcome == "taken"
        gate = await s.gate("promotion")
        cand = str(gate.target["cand"])
        assert not ws.outputs.exists() and s.snap.incumbent.cand == "baseline"
        taken = await s.decide(
            "approve_promotion", target={"gate": gate.id, "cand": cand}, expect={"eval": s.snap.candidates[cand].eval, "incumbent": "baseline"},
        )  # fmt: skip
        assert taken.outcome == "taken"
        await s.until(lambda x: x.incumbent.cand == cand)
        await s.gate("end")
        await s.until(lambda x: "waits: end" in s.told)
        await s.decide("end_after", target={"gate": (await s.gate("end")).id})
        assert await s.ended() == "ended"
    assert verify(ws).ok
    assert {"waits: plan", "waits: promotion", "waits: end", "ended"} <= set(s.told)


async def test_two_people_at_one_gate_the_first_wins(ws: Workspace) -> None:
    async with stage(ws) as s:
        gate = await s.gate("plan")
        target = {"gate": gate.id, **gate.target}
        first = s.send(
            "request_changes", "ann", target=target, text="skip THREADS", expect={"plan_sha": gate.sha}
        )
        second = s.send("approve_plan", "bob", target=target, expect={"plan_sha": gate.sha})
        assert (await s.answer(first)).outcome == "taken"
        late = await s.answer(second)
        assert late.outcome == "superseded" and "ann" in late.why
        revised = await s.gate("plan", {"plan_rev": 2})
        assert revised.id != gate.id
        titles = [i.title for i in s.snap.plan.items]
        assert not any(t.startswith("vary THREADS") for t in titles) and any(
            t.startswith("vary WORK") for t in titles
        )
        assert s.snap.plan.revisions[1].answers == (first.id,)
    assert verify(ws).ok


async def test_vetoing_the_running_candidate_kills_it_and_work_goes_on(ws: Workspace) -> None:
    async with stage(ws, yes=("plan",), pause_s=0.6) as s:
        running = await s.running()
        judge = s.judges[-1]
        assert (await s.decide("veto", target={"cand": running.id}, reason="no")).outcome == "taken"
        await s.until(lambda x: not any(c.cand == running.id for c in x.claims))
        after = s.snap.candidates[running.id]
        assert (after.stage, after.decision, after.validity) == ("cancelled", "vetoed", "")
        assert judge._killed.is_set()
        lines = journal(s.worker.clerk.paths.events)
        result = next(
            x
            for x in lines
            if x["kind"] == "result" and x.get("cand") == running.id and x["op"] == "evaluate"
        )
        assert result["outcome"] == "cancelled" and "validity" not in result and "rows" not in result
        assert (
            s.worker.meter.lines(s.snap, s.worker.contract)["candidates"].used == len(s.snap.candidates) - 1
        )
        await s.until(lambda x: any(c.stage == "judged" for c in x.candidates.values()))
        assert running.id not in [c.id for c in s.snap.candidates.values() if c.stage == "judged"]


async def test_vetoing_the_incumbent_brings_the_baseline_back(ws: Workspace) -> None:
    async with stage(ws, yes=("plan", "promotion")) as s:
        await s.until(lambda x: x.incumbent.cand != "baseline")
        cand = s.snap.incumbent.cand
        await s.gate("end")
        assert promote.current(ws)["cand"] == s.snap.incumbent.cand
        cand = s.snap.incumbent.cand
        assert (await s.decide("veto", target={"cand": cand}, reason="wrong on NaN")).outcome == "taken"
        back = await s.until(lambda x: x.incumbents[-1].why == "revoked" and x.incumbents[-1])
        assert back.prev == cand
        assert s.snap.candidates[cand].decision == "revoked"
        await s.until(
            lambda x: promote.current(ws)["cand"] == back.cand == x.incumbent.cand, "outputs/ rebuilt"
        )
        assert "revoked" in (ws.outputs / "REPORT.md").read_text()
        assert (await s.decide("unveto", target={"cand": cand})).outcome == "taken"
        assert s.snap.candidates[cand].decision != "promoted"
    assert verify(ws).ok


async def test_a_plan_revised_after_approval_is_only_proposed(ws: Workspace) -> None:
    async with stage(ws, pause_s=0.05) as s:
        await s.approve_plan()
        await s.running()
        asked = await s.decide("request_changes", target={"plan_rev": 1}, text="skip WORK")
        gate = await s.gate("plan", {"plan_rev": 2})
        assert s.snap.phase == "iterate" and not gate.blocking
        plan = s.snap.plan
        assert plan.in_force is not None and plan.in_force.rev == 1
        assert plan.proposed is not None and plan.proposed.rev == 2 and plan.proposed.answers == (asked.id,)
        before = len(s.snap.candidates)
        await s.until(lambda x: len(x.candidates) > before, "work under the plan in force")
        claims = [x for x in journal(s.worker.clerk.paths.events) if x["kind"] == "claim"]
        assert {c["plan_rev"] for c in claims} == {1}
        assert (
            await s.decide("approve_plan", target=gate.target, expect={"plan_sha": gate.sha})
        ).outcome == "taken"
        assert s.snap.plan.in_force is not None and s.snap.plan.in_force.rev == 2
    first, second = (ws.plans / f"r{n:03d}.md" for n in (1, 2))
    assert first.read_text() != second.read_text() == ws.plan.read_text()
    assert verify(ws).ok


async def test_a_hold_starts_nothing_and_still_takes_decisions(ws: Workspace) -> None:
    async with stage(ws) as s:
        await s.gate("plan")
        await s.decide("pause", reason="lunch")
        assert (await s.approve_plan()).outcome == "taken"
        await s.worker._changed.wait(0.1)
        assert s.snap.hold == "person" and s.snap.phase == "iterate" and not s.snap.candidates
        await s.until(lambda x: '"waiting": "hold: person"' in s.worker.live.path.read_text())
        await s.decide("resume")
        await s.until(lambda x: counts(x) >= 1)


async def test_a_running_claim_ends_under_a_hold_and_end_now_kills_it(ws: Workspace) -> None:
    async with stage(ws, yes=("plan",), pause_s=0.3) as s:
        running = await s.running()
        await s.decide("pause")
        await s.until(lambda x: x.candidates[running.id].stage == "judged")
        assert not s.snap.claims
        await s.decide("resume")
        running = await s.running()
        await s.decide("end_now", reason="enough")
        assert await s.ended() == "ended"
        assert s.snap.candidates[running.id].validity == ""
        assert s.snap.candidates[running.id].stage == "compiled"
    assert verify(ws).ok


async def test_the_budget_holds_and_a_person_raises_it(tmp_path: Path) -> None:
    ws = make_workspace(tmp_path / "small", CONTRACT.replace("candidates = 50", "candidates = 2"))
    async with stage(ws, yes=("plan",)) as s:
        await s.until(lambda x: x.hold == "budget")
        assert counts(s.snap) == 2, "the last admitted candidate was judged before the hold"
        gate = await s.gate("budget")
        assert gate.target == {"axis": "candidates"}
        assert (await s.decide("resume")).outcome == "refused"
        await s.decide("set_budget", amount={"axis": "candidates", "value": 5})
        assert s.snap.hold == ""
        await s.until(lambda x: x.hold == "budget" and counts(x) == 5)
        levels = [x["level"] for x in journal(s.worker.clerk.paths.events) if x["kind"] == "budget"]
        assert levels == ["reached", "ok", "notice", "reached"]
        assert any(t.startswith("budget") for t in s.told)


async def test_a_full_disk_holds_and_lets_go_by_itself(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = {"bytes": 1 << 40}
    monkeypatch.setattr(loop, "free_bytes", lambda path: free["bytes"])
    async with stage(ws, yes=("plan",), pause_s=0.02) as s:
        await s.until(lambda x: counts(x) >= 1)
        free["bytes"] = 1 << 20
        await s.until(lambda x: x.hold == "disk")
        await s.until(lambda x: not x.claims)
        before = len(s.snap.candidates)
        await s.worker._changed.wait(0.2)
        assert len(s.snap.candidates) == before
        free["bytes"] = 1 << 40
        await s.until(lambda x: len(x.candidates) > before)
        assert s.snap.hold == ""


async def test_a_disk_that_is_full_at_once_loses_nothing(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kda_tui.record.journal import Recorder
    from kda_tui.record.ledger import DiskFull

    full = {"now": False}
    real = Recorder._commit_line

    def commit(self: Recorder, data: bytes) -> int:
        if full["now"]:
            raise DiskFull("events.jsonl: no room left; free some space")
        return real(self, data)

    monkeypatch.setattr(Recorder, "_commit_line", commit)
    async with stage(ws, yes=ALL, pause_s=0.02) as s:
        await s.running()
        full["now"] = True
        sent = s.send("note", text="is anybody there?")
        await s.worker._changed.wait(0.3)
        await s.worker._changed.wait(0.3)
        assert not any(d.id == sent.id for d in s.snap.decisions)
        full["now"] = False
        assert (await s.answer(sent)).outcome == "taken"
        assert await s.ended() == "ended"
    assert verify(ws).ok


async def test_people_submit_measure_profile_and_steer(ws: Workspace) -> None:
    async with stage(ws, yes=("plan",), pause_s=0.02) as s:
        await s.until(lambda x: counts(x) >= 1)
        files = {
            "kernel.cu": KERNEL + "\n// mine\n",
            "launch.toml": launch(threads=64, work=1, family="mine"),
        }
        taken = await s.decide("submit", files=files, text="by hand")
        assert taken.outcome == "taken" and "files" not in taken.extra
        mine = taken.why.split()[-1]
        await s.until(lambda x: x.candidates[mine].stage == "judged")
        assert s.snap.candidates[mine].author == "person"
        assert (ws.candidate(mine) / "kernel.cu").read_text() == files["kernel.cu"]
        again = await s.decide("submit", files=files)
        assert again.outcome == "refused" and mine in again.why
        before = s.snap.candidates[mine].eval
        await s.decide("measure", target={"cand": mine})
        await s.until(lambda x: x.candidates[mine].eval != before)
        await s.decide("profile", target={"cand": mine})
        found = await s.until(lambda x: [e for e in x.evaluations.values() if e.op == "profile"])
        assert "NVIDIA" in found[0].extra["reason"]
        note = await s.decide("steer", text="fewer threads")
        await s.until(lambda x: [n for n in x.steering if n.decision == note.id and n.seen_turn is not None])
        await s.decide("promote", target={"cand": mine})
        gate = await s.gate("promotion", {"cand": mine})
        assert gate.target["eval"] == s.snap.candidates[mine].eval
    assert verify(ws).ok


async def test_an_autotune_that_a_person_orders(ws: Workspace) -> None:
    async with stage(ws, yes=("plan", "promotion")) as s:
        await s.gate("end")
        files = {"kernel.cu": KERNEL + "\n// mine\n", "launch.toml": launch(family="mine")}
        mine = (await s.decide("submit", files=files)).why.split()[-1]
        await s.until(lambda x: x.candidates[mine].stage == "judged")
        await s.decide("autotune", target={"cand": mine}, amount={"axis": "candidates", "value": 2})
        await s.until(lambda x: sum(c.family == "mine" for c in x.candidates.values()) == 3)
        await s.until(lambda x: x.phase == "iterate" and not x.claims)
        phases = [x["to"] for x in journal(s.worker.clerk.paths.events) if x["kind"] == "phase"]
        assert phases[-2:] == ["autotune", "iterate"]


async def test_an_end_request_has_a_default_and_a_timeout(tmp_path: Path) -> None:
    contract = CONTRACT.replace("max_open = 2", "max_open = 2\nquestion_timeout_s = 1")
    ws = make_workspace(tmp_path / "short", contract)
    async with stage(ws, yes=("plan", "promotion")) as s:
        await s.gate("end")
        assert await s.ended() == "ended"
        last = s.snap.decisions[-1]
        assert (last.kind, last.by) == ("end_after", "rule")
        assert last.rule is not None and last.rule["contract_key"] == "gates.question_timeout_s"


async def test_a_declined_end_is_not_asked_for_again_until_something_happens(ws: Workspace) -> None:
    async with stage(ws, yes=("plan", "promotion")) as s:
        gate = await s.gate("end")
        await s.decide("decline", target={"gate": gate.id}, reason="wait for me")
        await s.worker._changed.wait(0.2)
        await s.worker._changed.wait(0.2)
        assert not [g for g in s.snap.gates if g.kind == "end"]
        await s.decide("measure", target={"cand": "c0001"})
        await s.gate("end")


async def test_a_rule_that_does_not_hold_declines(tmp_path: Path) -> None:
    ws = make_workspace(
        tmp_path / "strict", CONTRACT.replace("min_speedup = 1.02", 'min_speedup = 1.02\nby = "rule"')
    )
    async with stage(ws, yes=("plan",), speeds=lambda folder: 1.015) as s:
        await s.until(lambda x: x.gates and x.gates[-1].kind == "end")
        assert s.snap.incumbent.cand == "baseline"
        declined = [d for d in s.snap.decisions if d.kind == "decline"]
        assert all(d.by == "rule" for d in declined)
        assert {c.decision for c in s.snap.candidates.values()} <= {"", "declined"}


async def test_an_approval_with_a_new_incumbent_in_between_is_confirmed_again(ws: Workspace) -> None:
    async with stage(ws, yes=("plan",)) as s:
        gate = await s.gate("promotion")
        first = str(gate.target["cand"])
        files = {
            "kernel.cu": KERNEL + "\n// mine\n",
            "launch.toml": launch(threads=32, work=1, family="mine"),
        }
        mine = (await s.decide("submit", files=files)).why.split()[-1]
        await s.until(lambda x: x.candidates[mine].stage == "judged")
        await s.decide("promote", target={"cand": mine})
        own = await s.gate("promotion", {"cand": mine})
        await s.decide(
            "approve_promotion", target={"gate": own.id, "cand": mine}, expect={"incumbent": "baseline"}
        )
        await s.until(lambda x: x.incumbent.cand == mine)
        late = await s.decide(
            "approve_promotion", target={"gate": gate.id, "cand": first}, expect={"incumbent": "baseline"}
        )
        assert late.outcome == "refused" and mine in late.why
        again = await s.decide(
            "approve_promotion", target={"gate": gate.id, "cand": first}, expect={"incumbent": mine}
        )
        assert again.outcome == "taken" and "asked again" in again.why
        renewed = await s.gate("promotion", {"cand": first})
        assert renewed.id != gate.id
        evaluation = s.snap.evaluations[str(renewed.target["eval"])]
        assert evaluation.opponent == mine
        await s.decide(
            "approve_promotion", target={"gate": renewed.id, "cand": first}, expect={"incumbent": mine}
        )
        await s.until(lambda x: x.incumbent.cand == first)
    assert verify(ws).ok
