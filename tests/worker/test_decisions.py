"""The decision rules as tables: one snapshot, one decision, what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kda_tui.record.records import NEVER_OVERRIDDEN, Decision
from kda_tui.record.snapshot import Gate, Incumbent, Plan, Snapshot, Steering
from kda_tui.worker.decisions import RULES, known, rule
from kda_tui.worker.rulings import Effect, Ruling
from tests.worker.make import (
    KERNEL,
    budget,
    confirm,
    decided,
    decision,
    judged,
    launch,
    open_claim,
    plan,
    plan_gate,
    promotion_gate,
    queued,
    revision,
    snapshot,
)

SHA1, SHA2 = "ab" * 32, "cd" * 32


def ask(snap: Snapshot, d: Decision) -> Ruling:
    return rule(snap, d, lambda text: "API_KEY" if "hunter2-hunter2-hunter2" in text else None)


def kinds(ruling: Ruling) -> list[str]:
    return [e.kind for e in ruling.effects]


def of_kind(ruling: Ruling, kind: str) -> Effect:
    return next(e for e in ruling.effects if e.kind == kind)


def reviewing(**changes: Any) -> Snapshot:
    base = {"phase": "plan_review", "gates": (plan_gate(),), "plan": plan(None, revision(1))}
    return snapshot(**{**base, **changes})


def working(**changes: Any) -> Snapshot:
    """Plan r1 in force, r2 proposed."""
    r1, r2 = revision(1), revision(2, SHA2)
    base: dict[str, Any] = {"gates": (plan_gate(2, SHA2, blocking=False),), "plan": plan(r1, r1, r2)}
    return snapshot(**{**base, **changes})


# --- plans (R4, R6) ---


def test_approving_a_plan_binds_to_its_hash_and_starts_the_work() -> None:
    ruling = ask(reviewing(), decision("approve_plan", target={"plan_rev": 1}, expect={"plan_sha": SHA1}))
    assert ruling.outcome == "taken"
    assert kinds(ruling) == ["gate_close", "phase"]
    assert of_kind(ruling, "phase").fields["to"] == "iterate"


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ({}, "names the plan it approves"),
        ({"plan_sha": SHA2}, "the plan changed"),
        ({"plan_sha": "ab"}, "the plan changed"),  # too short a prefix says nothing
    ],
)
def test_an_approval_of_another_plan_is_refused(expect: dict[str, str], words: str) -> None:
    ruling = ask(reviewing(), decision("approve_plan", target={"plan_rev": 1}, expect=expect))
    assert ruling.outcome == "refused"
    assert words in ruling.why


def test_a_prefix_of_the_hash_is_enough_for_a_person() -> None:
    assert ask(reviewing(), decision("approve_plan", expect={"plan_sha": SHA1[:8]})).outcome == "taken"


def test_the_second_of_two_approvals_is_superseded_and_says_by_whom() -> None:
    first = decided("approve_plan", "a", target={"plan_rev": 1, "gate": "gp"}, who="ann")
    after = reviewing(gates=(), phase="iterate", plan=plan(revision(1), revision(1)), decisions=(first,))
    for target in ({"plan_rev": 1}, {"gate": "gp"}):
        ruling = ask(after, decision("approve_plan", target=target, expect={"plan_sha": SHA1}))
        assert ruling.outcome == "superseded"
        assert "ann" in ruling.why


def test_changes_requested_in_review_close_the_gate_and_go_back_to_planning() -> None:
    ruling = ask(reviewing(), decision("request_changes", target={"plan_rev": 1}, text="skip VEC"))
    assert ruling.outcome == "taken"
    assert [e.fields.get("outcome") or e.fields.get("to") for e in ruling.effects] == ["changes", "plan"]


def test_a_change_request_without_words_is_refused() -> None:
    assert ask(reviewing(), decision("request_changes", target={"plan_rev": 1})).outcome == "refused"


def test_comments_on_the_plan_in_force_leave_it_in_force() -> None:
    ruling = ask(working(), decision("request_changes", target={"plan_rev": 1}, text="try fewer threads"))
    assert ruling.outcome == "taken"
    assert ruling.effects == ()


def test_approving_a_revision_while_working_changes_no_phase() -> None:
    ruling = ask(working(), decision("approve_plan", target={"plan_rev": 2}, expect={"plan_sha": SHA2}))
    assert kinds(ruling) == ["gate_close"]


def test_an_approval_of_the_revision_before_the_proposed_one_is_refused() -> None:
    ruling = ask(working(), decision("approve_plan", target={"plan_rev": 1}, expect={"plan_sha": SHA1}))
    assert ruling.outcome == "refused"


# --- veto, unveto, revoke (R7) ---


def test_vetoing_a_queued_candidate_drops_it() -> None:
    ruling = ask(snapshot(), decision("veto", target={"cand": "c0003"}, reason="not again"))
    changed = of_kind(ruling, "candidate").candidate
    assert changed is not None
    assert (changed.stage, changed.decision, changed.reason) == ("cancelled", "vetoed", "not again")


def test_vetoing_a_running_candidate_cancels_it() -> None:
    running = snapshot(candidates={"c0003": queued("c0003", stage="claimed")}, claims=(open_claim("c0003"),))
    ruling = ask(running, decision("veto", target={"cand": "c0003"}))
    changed = of_kind(ruling, "candidate").candidate
    assert changed is not None and changed.stage == "cancelled"
    assert "without a verdict" in ruling.why


def test_vetoing_a_judged_candidate_closes_its_promotion_gate() -> None:
    ruling = ask(snapshot(gates=(promotion_gate(),)), decision("veto", target={"cand": "c0002"}))
    changed = of_kind(ruling, "candidate").candidate
    assert changed is not None and (changed.stage, changed.decision) == ("judged", "vetoed")
    assert of_kind(ruling, "gate_close").fields["outcome"] == "vetoed"


def test_vetoing_the_incumbent_revokes_it_back_to_the_baseline() -> None:
    ruling = ask(snapshot(), decision("veto", target={"cand": "c0001"}))
    assert of_kind(ruling, "incumbent").fields == {
        "cand": "baseline", "prev": "c0001", "why": "revoked", "eval": ""
    }  # fmt: skip
    changed = of_kind(ruling, "candidate").candidate
    assert changed is not None and changed.decision == "revoked"


@pytest.mark.parametrize(
    ("second", "contract", "expected"),
    [("promoted", "c" * 64, "c0002"), ("vetoed", "c" * 64, "c0001"), ("promoted", "d" * 64, "c0001")],
)
def test_a_revoked_incumbent_falls_back_to_the_last_admissible_one(
    second: str, contract: str, expected: str
) -> None:
    three = Incumbent("c0004", "c0002", "promoted", "d3", "e4", 31)
    snap = snapshot(
        candidates={
            "c0001": judged("c0001", decision="promoted"),
            "c0002": judged("c0002", decision=second),
            "c0004": judged("c0004", decision="promoted"),
        },
        evaluations={
            "e1": confirm("e1", "c0001", "baseline"),
            "e2": confirm("e2", "c0002", "c0001", contract_sha=contract),
            "e4": confirm("e4", "c0004", "c0002"),
        },
        incumbents=(
            Incumbent("c0001", "baseline", "promoted", "d1", "e1", 11),
            Incumbent("c0002", "c0001", "promoted", "d2", "e2", 21),
            three,
        ),
        incumbent=three,
    )
    ruling = ask(snap, decision("veto", target={"cand": "c0004"}))
    assert of_kind(ruling, "incumbent").fields["cand"] == expected


def test_a_second_veto_is_moot_and_names_the_first() -> None:
    snap = snapshot(
        candidates={"c0002": judged("c0002", decision="vetoed")},
        decisions=(decided("veto", "a", target={"cand": "c0002"}, who="ann"),),
    )
    ruling = ask(snap, decision("veto", target={"cand": "c0002"}))
    assert ruling.outcome == "moot"
    assert "ann" in ruling.why


@pytest.mark.parametrize(
    ("before", "stage"),
    [
        (judged("c0002", decision="vetoed"), "judged"),
        (judged("c0002", decision="revoked"), "judged"),
        (queued("c0002", decision="vetoed", stage="cancelled", compile_s=0.2), "compiled"),
        (queued("c0002", decision="vetoed", stage="cancelled"), "submitted"),
    ],
)
def test_unveto_restores_what_was_known_and_never_a_promotion(before: Any, stage: str) -> None:
    snap = snapshot(candidates={"c0002": before}, incumbent=Incumbent("baseline"))
    ruling = ask(snap, decision("unveto", target={"cand": "c0002"}))
    changed = of_kind(ruling, "candidate").candidate
    assert changed is not None and (changed.stage, changed.decision) == (stage, "")
    assert "incumbent" not in kinds(ruling)


def test_only_the_incumbent_is_revoked() -> None:
    assert ask(snapshot(), decision("revoke", target={"cand": "c0002"})).outcome == "refused"
    assert kinds(ask(snapshot(), decision("revoke", target={"cand": "c0001"}))) == ["candidate", "incumbent"]


# --- promotion (R8) ---


def approve(**changes: Any) -> Decision:
    return decision("approve_promotion", **{"target": {"gate": "g2", "cand": "c0002"}, **changes})


def test_an_approved_promotion_with_a_confirm_against_the_incumbent_is_taken() -> None:
    ruling = ask(snapshot(gates=(promotion_gate(),)), approve(expect={"eval": "e2", "incumbent": "c0001"}))
    assert ruling.outcome == "taken"
    assert of_kind(ruling, "gate_close").fields["outcome"] == "approved"
    assert ruling.override == ()


def test_a_promotion_against_another_incumbent_is_confirmed_first() -> None:
    stale = {"e2": confirm("e2", "c0002", "baseline")}
    ruling = ask(snapshot(gates=(promotion_gate(),), evaluations=stale), approve())
    assert ruling.outcome == "taken"
    assert of_kind(ruling, "gate_close").fields["outcome"] == "reconfirm"
    changed = of_kind(ruling, "candidate").candidate if "candidate" in kinds(ruling) else judged("c0002")
    assert changed is not None and changed.decision in ("", "requested")
    assert "asked again" in ruling.why


def test_the_incumbent_that_the_person_saw_must_still_be_it() -> None:
    ruling = ask(snapshot(gates=(promotion_gate(),)), approve(expect={"incumbent": "baseline"}))
    assert ruling.outcome == "refused"
    assert "ann" in ruling.why and "c0001" in ruling.why


def test_newer_numbers_than_the_person_saw_refuse_the_approval() -> None:
    assert "changed" in ask(snapshot(gates=(promotion_gate(),)), approve(expect={"eval": "e0"})).why


def test_a_gate_that_was_opened_anew_refuses_the_old_answer() -> None:
    ruling = ask(snapshot(gates=(promotion_gate(),)), approve(expect={"gate_seq": 3}))
    assert ruling.outcome == "refused"


def test_two_people_on_one_request_the_second_is_superseded() -> None:
    first = decided("decline", "a", target={"gate": "g2", "cand": "c0002"}, who="ann")
    ruling = ask(snapshot(decisions=(first,)), approve())
    assert ruling.outcome == "superseded"
    assert "ann" in ruling.why


@pytest.mark.parametrize("validity", sorted(NEVER_OVERRIDDEN))
@pytest.mark.parametrize("kind", ["approve_promotion", "promote"])
def test_nobody_overrides(validity: str, kind: str) -> None:
    snap = snapshot(candidates={"c0002": judged("c0002", validity=validity)}, gates=(promotion_gate(),))
    ruling = ask(snap, decision(kind, target={"cand": "c0002"}, reason="I am sure"))
    assert ruling.outcome == "refused"
    assert validity in ruling.why


def slow_confirm(**extra: Any) -> dict[str, Any]:
    gates = {"build": "passed", "aa": "passed", "alone": "passed", "confirm": "failed"}
    found = confirm(
        "e2", "c0002", "c0001", gates=gates, speed="inconclusive", extra={"rule_passed": False, **extra}
    )
    return {"e2": found}


def test_a_person_may_override_speed_with_a_reason_and_it_is_recorded() -> None:
    snap = snapshot(gates=(promotion_gate(),), evaluations=slow_confirm())
    assert "reason" in ask(snap, approve()).why
    ruling = ask(snap, approve(reason="simpler code"))
    assert (ruling.outcome, ruling.override) == ("taken", ("speed",))


def test_a_broken_floor_is_overridden_by_its_name() -> None:
    snap = snapshot(
        gates=(promotion_gate(),), evaluations=slow_confirm(extra={"floor_bounds": {"n256": 0.5}})
    )
    assert ask(snap, approve(reason="that size is rare")).override == ("floor", "speed")


def test_a_rule_never_overrides() -> None:
    snap = snapshot(gates=(promotion_gate(),), evaluations=slow_confirm())
    assert ask(snap, approve(by="rule", reason="x")).outcome == "refused"


def test_an_unevaluated_gate_that_is_not_about_speed_is_not_overridden() -> None:
    gates = {"aa": "passed", "sanitizer": "not_evaluated"}
    snap = snapshot(
        gates=(promotion_gate(),), evaluations={"e2": confirm("e2", "c0002", "c0001", gates=gates)}
    )
    assert ask(snap, approve(reason="please")).outcome == "refused"


def test_a_verdict_under_another_contract_does_not_promote() -> None:
    old = {"e2": confirm("e2", "c0002", "c0001", contract_sha="d" * 64)}
    ruling = ask(snapshot(gates=(promotion_gate(),), evaluations=old), approve())
    assert of_kind(ruling, "gate_close").fields["outcome"] == "reconfirm"


def test_a_person_promotes_without_a_request() -> None:
    ruling = ask(snapshot(), decision("promote", target={"cand": "c0002"}))
    assert kinds(ruling) == ["gate_open", "gate_close"]
    ruling = ask(snapshot(evaluations={}), decision("promote", target={"cand": "c0002"}))
    assert kinds(ruling) == ["candidate"]  # requested: the confirm runs first
    assert ask(snapshot(), decision("promote", target={"cand": "c0001"})).outcome == "moot"
    assert ask(snapshot(), decision("promote", target={"cand": "c0003"})).outcome == "refused"


def test_promotion_without_confirm_needs_an_open_run() -> None:
    ended = snapshot(evaluations={}, phase="ended")
    assert "kda run" in ask(ended, decision("promote", target={"cand": "c0002"})).why


def test_declining_a_request() -> None:
    ruling = ask(
        snapshot(gates=(promotion_gate(),)), decision("decline", target={"cand": "c0002"}, reason="later")
    )
    changed = of_kind(ruling, "candidate").candidate
    assert changed is not None and (changed.decision, changed.reason) == ("declined", "later")
    assert ask(reviewing(), decision("decline", target={"gate": "gp"})).outcome == "refused"


# --- holds, the end, the budget (R5, R10) ---


def test_pause_and_resume_are_two_kinds_that_do_not_race() -> None:
    held = snapshot(hold="person", hold_since="2026-07-01T10:00:00.000Z")
    assert kinds(ask(snapshot(), decision("pause"))) == ["hold"]
    assert ask(held, decision("pause")).outcome == "moot"
    assert ask(snapshot(), decision("resume")).outcome == "moot"
    assert of_kind(ask(held, decision("resume")), "hold").fields["on"] is False


def test_a_budget_hold_is_lifted_by_a_larger_budget_only() -> None:
    gate = Gate("gb", "budget", {"axis": "candidates"}, blocking=True, seq=9)
    held = snapshot(hold="budget", budget=budget("candidates", 40, 40, "reached"), gates=(gate,))
    assert ask(held, decision("resume")).outcome == "refused"
    small = ask(held, decision("set_budget", amount={"axis": "candidates", "value": 40}))
    assert kinds(small) == ["budget"]
    ruling = ask(held, decision("set_budget", amount={"axis": "candidates", "value": 60}))
    assert kinds(ruling) == ["budget", "gate_close", "hold"]
    assert of_kind(ruling, "budget").fields["level"] == "ok"


@pytest.mark.parametrize(
    "amount", [None, {"axis": "beer", "value": 1}, {"axis": "usd", "value": -1}, {"axis": "usd", "value": "9"},
               {"axis": "usd", "value": float("nan")}, {"axis": "usd", "value": True}]
)  # fmt: skip
def test_a_budget_that_makes_no_sense_is_refused(amount: Any) -> None:
    assert ask(snapshot(), decision("set_budget", amount=amount)).outcome == "refused"


def test_ending_twice_is_superseded_but_now_beats_after() -> None:
    ending = snapshot(decisions=(decided("end_after", "a"),))
    assert ask(snapshot(), decision("end_after")).outcome == "taken"
    assert ask(ending, decision("end_after")).outcome == "superseded"
    assert ask(ending, decision("end_now")).outcome == "taken"
    assert ask(snapshot(phase="ended"), decision("end_now")).outcome == "moot"


def test_held_runs_still_take_decisions() -> None:
    held = reviewing(hold="person")
    assert ask(held, decision("approve_plan", expect={"plan_sha": SHA1})).outcome == "taken"
    assert ask(snapshot(hold="disk"), decision("veto", target={"cand": "c0002"})).outcome == "taken"


# --- work, notes, questions ---


@pytest.mark.parametrize("kind", ["measure", "rerun", "profile", "autotune"])
def test_work_is_ordered_for_known_candidates_that_are_not_vetoed(kind: str) -> None:
    assert ask(snapshot(), decision(kind, target={"cand": "c0002"})).outcome == "taken"
    assert ask(snapshot(), decision(kind, target={"cand": "c9999"})).outcome == "refused"
    vetoed = snapshot(candidates={"c0002": judged("c0002", decision="vetoed")})
    assert ask(vetoed, decision(kind, target={"cand": "c0002"})).outcome == "refused"
    assert ask(snapshot(phase="ended"), decision(kind, target={"cand": "c0002"})).outcome == "refused"


def test_an_ambiguous_claim_is_run_again_or_given_up_once() -> None:
    gate = Gate("ga", "ambiguous", {"claim": "k7", "op": "turn"}, seq=9)
    snap = snapshot(gates=(gate,))
    for kind, outcome in (("rerun", "rerun"), ("abandon", "abandoned")):
        ruling = ask(snap, decision(kind, target={"claim": "k7"}))
        assert of_kind(ruling, "gate_close").fields["outcome"] == outcome
    after = snapshot(decisions=(decided("rerun", "a", target={"claim": "k7"}),))
    assert ask(after, decision("abandon", target={"claim": "k7"})).outcome == "superseded"


def test_a_running_claim_can_be_abandoned() -> None:
    ruling = ask(snapshot(claims=(open_claim("c0003"),)), decision("abandon", target={"claim": "k1"}))
    assert ruling.outcome == "taken"


def test_an_answer_goes_to_its_question_once() -> None:
    gate = Gate("gq", "question", {"question": "q3"}, default="fp32", seq=9)
    snap = snapshot(gates=(gate,))
    assert ask(snap, decision("answer", target={"question": "q3"}, text="fp16")).outcome == "taken"
    assert ask(snap, decision("answer", target={"question": "q3"})).outcome == "refused"
    assert ask(snap, decision("answer", target={"question": "q4"}, text="x")).outcome == "refused"
    after = snapshot(decisions=(decided("answer", "a", target={"question": "q3"}, who="ann"),))
    late = ask(after, decision("answer", target={"question": "q3"}, text="x"))
    assert late.outcome == "superseded" and "ann" in late.why


def test_steering_notes_can_be_taken_down() -> None:
    snap = snapshot(steering=(Steering("n1", "ann", "less smem", "t"),))
    assert ask(snap, decision("unpin", target={"decision": "n1"})).outcome == "taken"
    assert ask(snap, decision("unpin", target={"decision": "n2"})).outcome == "moot"
    assert ask(snap, decision("steer", text=" ")).outcome == "refused"


# --- a person's own candidate ---


def submission(**files: str) -> Decision:
    brought = {
        "kernel.cu": KERNEL,
        "launch.toml": launch(),
        **{k.replace("_", "."): v for k, v in files.items()},
    }
    return replace(decision("submit", text="mine"), extra={"files": brought})


def test_a_person_submits_a_candidate() -> None:
    ruling = ask(snapshot(), submission())
    changed = of_kind(ruling, "candidate").candidate
    assert changed is not None
    assert (changed.id, changed.author, changed.hypothesis, changed.stage) == (
        "c0004",
        "person",
        "mine",
        "submitted",
    )
    assert set(ruling.files["c0004"]) == {"kernel.cu", "launch.toml"}


def test_the_same_source_is_refused_with_the_earlier_id() -> None:
    first = of_kind(ask(snapshot(), submission()), "candidate").candidate
    assert first is not None
    ruling = ask(
        snapshot(candidates={"c0004": first}), submission(launch_toml=launch(hypothesis="other words"))
    )
    assert ruling.outcome == "refused"
    assert "c0004" in ruling.why
    changed = ask(snapshot(candidates={"c0004": first}), submission(launch_toml=launch(threads=64)))
    assert changed.outcome == "taken"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"kernel_cu": KERNEL + "// hunter2-hunter2-hunter2"}, "API_KEY"),
        ({"launch_toml": "[[step]]\n"}, "launch.toml"),
        ({"../evil_cu": KERNEL}, "not a file of a candidate"),
    ],
)
def test_what_is_not_admitted(files: dict[str, str], words: str) -> None:
    ruling = ask(snapshot(), submission(**files))
    assert ruling.outcome == "refused"
    assert words in ruling.why


# --- all kinds ---


def test_every_kind_has_a_rule() -> None:
    from typing import get_args

    from kda_tui.record.records import DecisionKind

    assert set(RULES) | {"submit"} == set(get_args(DecisionKind))


def test_rules_never_raise_on_empty_decisions() -> None:
    for snap in (
        snapshot(),
        reviewing(),
        snapshot(run=None, phase="", contract=None),
        snapshot(plan=Plan(), gates=()),
    ):
        for kind in (*RULES, "submit", "dance"):
            assert ask(snap, decision(kind)).outcome in ("taken", "refused", "superseded", "moot")


def test_a_known_id_is_a_no_op() -> None:
    assert known(snapshot(), "d1")
    assert not known(snapshot(), "d2")


def test_effects_survive_the_redo_list() -> None:
    ruling = ask(snapshot(gates=(promotion_gate(),)), decision("veto", target={"cand": "c0001"}))
    assert [Effect.from_todo(e.to_todo()) for e in ruling.effects] == list(ruling.effects)
