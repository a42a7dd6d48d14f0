"""The reader: what a workspace's ledgers say, however they arrive, and that reading changes nothing."""

from __future__ import annotations

import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kda_tui.record.inbox import new_decision, send
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.reader import Reader
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Snapshot
from kda_tui.text import UserError
from tests.record.make_workspace import WORKLOADS, make_workspace, run

LEDGERS = ("runs/r001/events.jsonl", "candidates.jsonl", "decisions.jsonl", "benchmark.csv")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("finished") / "softmax_rows")


@pytest.fixture
def workspace(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "softmax_rows", symlinks=True))


def seen(snapshot: Snapshot) -> tuple[Snapshot, list[tuple[object, ...]]]:
    """A snapshot without what depends on how often the reader looked, and its benchmark rows."""
    rows: list[tuple[object, ...]] = []
    if (bench := snapshot.bench) is not None:
        keys = (bench.candidate, bench.workload, bench.arm, bench.opponent, bench.eval, bench.protocol)
        numbers = (
            bench.median_us,
            bench.min_us,
            bench.p95_us,
            bench.iqr_us,
            bench.ratio,
            bench.ratio_lo,
            bench.ratio_hi,
        )
        for i in range(bench.rows):
            known = [None if math.isnan(column[i]) else column[i] for column in numbers]
            rows.append(
                (*(bench.names[k[i]] for k in keys), bench.t[i], bench.seq[i], *known, bench.admissible[i])
            )
    return replace(snapshot, version=0, workspace=Path(), bench=None), rows


def poll_to_the_end(reader: Reader) -> Snapshot:
    snapshot = reader.first()
    while "loading" in snapshot.extra:
        snapshot = reader.poll() or snapshot
    return snapshot


# --- what is shown -------------------------------------------------------------------------------------


def test_a_run_is_shown_whole(workspace: Path) -> None:
    snapshot = Reader(workspace).settle()
    assert (snapshot.phase, snapshot.hold, snapshot.liveness) == ("iterate", "", "gone")
    assert list(snapshot.candidates) == [f"c{n:04d}" for n in range(1, 13)]
    assert snapshot.candidates["c0004"].validity == "incorrect"
    assert snapshot.candidates["c0005"].decision == "vetoed"
    assert snapshot.counts["passed"] == 9
    assert snapshot.incumbent.cand == "c0003"
    assert [gate.kind for gate in snapshot.gates] == ["promotion", "question"]
    assert [claim.cand for claim in snapshot.claims] == ["c0012"]
    assert snapshot.confirmations == 2
    assert snapshot.budget["candidates"].used == 12
    assert snapshot.budget["candidates"].limit == 40
    assert snapshot.budget["hours"].used == 0.4
    assert snapshot.plan.approved_by == "jw"
    assert snapshot.contract is not None
    assert snapshot.contract.task.name == "softmax_rows"
    assert snapshot.draft_sha
    assert snapshot.findings == ()


def test_an_evaluation_keeps_everything_the_journal_says(workspace: Path) -> None:
    snapshot = Reader(workspace).settle()
    evaluation = snapshot.evaluations[snapshot.candidates["c0004"].eval]
    assert (evaluation.op, evaluation.validity, evaluation.cand) == ("evaluate", "incorrect", "c0004")
    assert evaluation.extra["mismatch"]["guess"] == "a row too far"
    assert "rows" not in evaluation.extra
    confirm = next(e for e in snapshot.evaluations.values() if e.op == "confirm")
    assert confirm.extra["rule_passed"] is True


def test_benchmark_rows_are_columns(workspace: Path) -> None:
    bench = Reader(workspace).settle().bench
    assert bench is not None
    row = next(i for i in range(bench.rows) if bench.names[bench.candidate[i]] == "c0002")
    assert bench.names[bench.workload[row]] == WORKLOADS[0]
    assert bench.names[bench.arm[row]] == "candidate"
    assert bench.median_us[row] == pytest.approx(220.0 / bench.ratio[row])
    assert bench.admissible[row] == 1


def test_nothing_new_is_none_and_something_new_shares_the_rest(workspace: Path) -> None:
    reader = Reader(workspace)
    before = reader.settle()
    assert reader.poll() is None
    assert reader.settle() is before
    with run(workspace, resume="r001") as story:
        story.recorder.event("item", id="P2", state="doing")
        after = reader.poll()
    assert after is not None
    assert after.version > before.version
    assert {item.id: item.state for item in after.plan.items}["P2"] == "doing"
    assert after.candidates is before.candidates
    assert after.evaluations is before.evaluations
    assert after.bench is before.bench


def test_an_older_snapshot_does_not_change(workspace: Path) -> None:
    reader = Reader(workspace)
    before = reader.settle()
    known, rows = dict(before.candidates), before.bench.rows if before.bench else 0
    with run(workspace, resume="r001") as story:
        story.contract_sha = before.contract_sha
        story.candidate(13)
    after = reader.settle()
    assert dict(before.candidates) == known
    assert "c0013" in after.candidates
    assert after.bench is not None
    assert before.bench is not None
    assert (before.bench.rows, after.bench.rows) == (rows, rows + 6)


def test_before_the_first_run_there_is_only_a_contract(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[2] / "workspaces" / "softmax_rows", tmp_path / "new")
    snapshot = Reader(tmp_path / "new").settle()
    assert (snapshot.phase, snapshot.run, snapshot.liveness) == ("", None, "none")
    assert snapshot.contract is not None


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        Reader(tmp_path / "nowhere").first()


# --- the plan, holds, gates ----------------------------------------------------------------------------


def test_a_revision_after_approval_is_only_proposed(workspace: Path) -> None:
    with run(workspace, resume="r001") as story:
        story.plan(rev=2)
        snapshot = Reader(workspace).settle()
        assert snapshot.plan.in_force is not None
        assert snapshot.plan.proposed is not None
        assert (snapshot.plan.in_force.rev, snapshot.plan.proposed.rev) == (1, 2)
        story.approve_plan(rev=2, who="kl")
    snapshot = Reader(workspace).settle()
    assert snapshot.plan.in_force is not None
    assert (snapshot.plan.in_force.rev, snapshot.plan.approved_by, snapshot.plan.proposed) == (2, "kl", None)


def test_the_newest_hold_counts(workspace: Path) -> None:
    reader = Reader(workspace)
    with run(workspace, resume="r001") as story:
        story.recorder.event("hold", on=True, why="person", text="lunch")
        assert (reader.settle().hold, reader.settle().hold_why) == ("person", "lunch")
        story.recorder.event("hold", on=False, why="person")
        assert reader.settle().hold == ""


def test_a_steering_note_is_pinned_until_it_is_seen(workspace: Path) -> None:
    reader = Reader(workspace)
    with run(workspace, resume="r001") as story:
        decided = story.decide("steer", text="use shuffles", who="jw")
        assert reader.settle().steering[-1].pinned
        story.recorder.event("steer_seen", decision=decided.id, turn=9)
        note = reader.settle().steering[-1]
        assert (note.pinned, note.seen_turn) == (False, 9)
        unseen = story.decide("steer", text="and float4", who="jw")
        story.decide("unpin", target={"decision": unseen.id}, who="jw")
        note = reader.settle().steering[-1]
        assert (note.text, note.pinned, note.seen_turn) == ("and float4", False, None)


def test_a_decision_is_pending_until_its_line_is_written(workspace: Path) -> None:
    reader = Reader(workspace)
    reader.settle()
    sent = send(Workspace(workspace), new_decision("pause", who="jw"))
    snapshot = reader.poll()
    assert snapshot is not None
    assert [d.id for d in snapshot.pending] == [sent.id]
    with run(workspace, resume="r001") as story:
        story.recorder.event("decision", decision=replace(sent, outcome="moot", run="r001"))
        snapshot = reader.settle()
    assert snapshot.pending == ()
    assert snapshot.decisions[-1].outcome == "moot"


def test_a_malformed_file_in_the_inbox_is_a_finding_until_it_is_gone(workspace: Path) -> None:
    (workspace / "inbox").mkdir()
    bad = workspace / "inbox" / "x.json"
    bad.write_text("{")
    os.mkfifo(workspace / "inbox" / "fifo.json")
    reader = Reader(workspace)
    assert {f.file for f in reader.settle().findings} == {"inbox/x.json", "inbox/fifo.json"}
    bad.unlink()
    assert {f.file for f in reader.settle().findings} == {"inbox/fifo.json"}


# --- several runs, and whether one is alive ---------------------------------------------------------------


def test_the_newest_run_decides_and_the_workspace_remembers(workspace: Path) -> None:
    with run(workspace) as story:
        story.begin()
        story.incumbent = "c0003"
        snapshot = Reader(workspace).settle()
    assert [info.name for info in snapshot.runs] == ["r001", "r002"]
    assert snapshot.run is not None
    assert (snapshot.run.name, snapshot.phase) == ("r002", "draft")
    assert (snapshot.gates, snapshot.claims, snapshot.plan.revisions) == ((), (), ())
    assert snapshot.incumbent.cand == "c0003"
    assert snapshot.confirmations == 2
    assert len(snapshot.candidates) == 12
    assert snapshot.budget["candidates"].used == 0


def test_a_run_that_goes_on_keeps_its_beginning(workspace: Path) -> None:
    started = Reader(workspace).settle().run
    with run(workspace, resume="r001") as story:
        story.begin()
        snapshot = Reader(workspace).settle()
    assert started is not None
    assert snapshot.run is not None
    assert (snapshot.run.started, snapshot.phase) == (started.started, "iterate")


def test_liveness_is_the_lock(workspace: Path) -> None:
    reader = Reader(workspace)
    assert reader.settle().liveness == "gone"
    assert reader.settle().live is None
    with run(workspace, resume="r001") as story:
        snapshot = reader.settle()
        assert snapshot.liveness == "alive"
        assert snapshot.live is not None
        assert (snapshot.live.cand, snapshot.live.fraction) == ("c0012", 0.62)
        story.end()
        assert reader.settle().phase == "ended"
    assert reader.settle().liveness == "none"


def test_a_lock_left_on_another_machine_may_be_held_there(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = {"pid": 7, "start_ticks": 1, "boot_id": "another", "host": "elsewhere", "v": 1, "role": "worker"}
    (workspace / "workspace.lock").write_text(json.dumps(holder))
    monkeypatch.setattr("kda_tui.record.lock.file_system", lambda path: "nfs4")
    assert Reader(workspace).settle().liveness == "foreign_host"


def test_a_contract_changed_during_a_run_is_a_finding_and_not_in_force(workspace: Path) -> None:
    reader = Reader(workspace)
    before = reader.settle()
    path = workspace / "contract.toml"
    path.write_text(path.read_text().replace('by = "person"', 'by = "rule"'))
    after = reader.settle()
    assert after.contract == before.contract
    assert [f.file for f in after.findings] == ["contract.toml"]
    with run(workspace, resume="r001") as story:
        story.end()
    after = reader.settle()
    assert after.contract is not None
    assert after.contract.promotion.by == "rule"


def test_a_broken_contract_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "contract.toml").write_text("[task]\nname = 3\n")
    snapshot = Reader(tmp_path).settle()
    assert snapshot.contract is None
    assert "line" in snapshot.contract_error


# --- however the bytes arrive -------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_split_of_the_bytes_gives_the_same_snapshot(
    finished: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = {name: (finished / name).read_bytes() for name in LEDGERS}
    cuts = {
        name: sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=4), label=name))
        for name, body in whole.items()
    }
    copy = tmp_path_factory.mktemp("split") / "softmax_rows"
    shutil.copytree(finished, copy)
    for name in LEDGERS:
        (copy / name).write_bytes(b"")
    reader = Reader(copy)
    steps = sorted((at, name) for name, places in cuts.items() for at in places)
    for at, name in [*steps, *((len(body), name) for name, body in whole.items())]:
        with (copy / name).open("ab") as file:
            file.write(whole[name][file.tell() : at])
        reader.poll()
    assert seen(reader.settle()) == seen(Reader(copy).settle())
    assert reader.settle().candidates == Reader(finished).settle().candidates


def test_slices_give_what_reading_at_once_gives(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kda_tui.record.reader.SLICE_S", 0.0)
    monkeypatch.setattr("kda_tui.record.reader.CHUNK", 700)
    reader = Reader(workspace)
    first = reader.first()
    assert 0 < first.extra["loading"] < 1
    assert first.phase == "iterate"  # the end of the journal is looked at before its middle
    assert {gate.kind for gate in first.gates} <= {"promotion", "question"}
    assert seen(poll_to_the_end(reader)) == seen(Reader(workspace).settle())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rubbish=st.lists(
        st.tuples(
            st.sampled_from(LEDGERS),
            st.one_of(
                st.binary(min_size=1, max_size=80),
                st.sampled_from(
                    [
                        b"{",
                        b"[1]",
                        b'{"id": 5}',
                        b'{"id": []}',
                        b"null",
                        b"\xff\xfe",
                        b"{" * 5000,
                        b"1" * 5000,
                    ]
                ),
            ),
        ),
        max_size=6,
    )
)
def test_rubbish_costs_nothing_but_itself(
    finished: Path, tmp_path_factory: pytest.TempPathFactory, rubbish: list[tuple[str, bytes]]
) -> None:
    copy = tmp_path_factory.mktemp("rubbish") / "softmax_rows"
    shutil.copytree(finished, copy)
    for name, body in rubbish:
        with (copy / name).open("ab") as file:
            file.write(body.replace(b"\n", b" ") + b"\n")
    before, after = Reader(finished).settle(), Reader(copy).settle()
    assert {c: after.candidates[c] for c in before.candidates} == dict(before.candidates)
    assert (after.incumbent, after.gates, after.claims) == (before.incumbent, before.gates, before.claims)
    assert after.bench is not None
    assert before.bench is not None
    assert (
        list(after.bench.median_us)[: before.bench.rows] == list(before.bench.median_us)[: before.bench.rows]
    )


def test_every_line_that_is_left_out_is_named(workspace: Path) -> None:
    with (workspace / "candidates.jsonl").open("ab") as file:
        lines = sum(1 for _ in (workspace / "candidates.jsonl").open())
        file.write(b"not json\n[]\n" + b'{"id": "c0001", "time_us": "fast"}\n' + b'{"stage": "judged"}\n')
    snapshot = Reader(workspace).settle()
    found = {(f.line - lines, f.seen) for f in snapshot.findings}
    assert found == {
        (1, "not JSON at column 1"),
        (2, "a JSON list, not an object"),
        (3, "time_us is 'fast'"),
        (4, 'a candidate without id: {"stage": "judged"}'),
    }
    assert snapshot.candidates["c0001"].extra["time_us"] == "fast"


def test_an_event_nobody_knows_is_counted(workspace: Path) -> None:
    with run(workspace, resume="r001") as story:
        for _ in range(3):
            story.recorder.event("rainbow", colour="red")
    (finding,) = Reader(workspace).settle().findings
    assert "3 events of kind 'rainbow'" in finding.seen


def test_a_torn_tail_waits_and_a_closed_one_is_dropped(workspace: Path) -> None:
    path = workspace / "candidates.jsonl"
    before = Reader(workspace).settle()
    with path.open("ab") as file:
        file.write(b'{"id": "c0001", "stage": "gone')
    reader = Reader(workspace)
    torn = reader.settle()
    assert torn.candidates == before.candidates
    assert [f.seen for f in torn.findings] == ["the last line is not whole"]
    with path.open("ab") as file:
        file.write(b"#torn\n")
    closed = reader.settle()
    assert closed.candidates == before.candidates
    assert closed.findings == ()


@pytest.mark.parametrize("ledger", LEDGERS)
def test_a_replaced_ledger_is_read_again(workspace: Path, ledger: str) -> None:
    reader = Reader(workspace)
    reader.settle()
    path = workspace / ledger
    lines = path.read_bytes().splitlines(keepends=True)
    replacement = path.with_name("new")
    replacement.write_bytes(b"".join(lines[: len(lines) // 2]))
    replacement.replace(path)
    after = reader.settle()
    assert [(f.file, f.severity) for f in after.findings][:1] == [(ledger, "warning")]
    assert seen(replace(after, findings=())) == seen(Reader(workspace).settle())


def test_a_ledger_that_grew_and_changed_in_one_step_is_read_again(workspace: Path) -> None:
    path = workspace / "candidates.jsonl"
    reader = Reader(workspace)
    reader.settle()
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"tuner"', b'"agent"') + b'{"id": "c0099"}\n')
    after = reader.settle()
    assert "c0099" in after.candidates
    assert after.candidates["c0001"].author == "agent"


# --- what may not be opened -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fifo", "folder", "link out", "secret"])
def test_what_is_no_plain_file_is_refused_and_told(workspace: Path, tmp_path: Path, kind: str) -> None:
    path = workspace / "decisions.jsonl"
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link out":
        outside = tmp_path / "outside.jsonl"
        outside.write_text('{"id": "d1", "kind": "veto"}\n')
        path.symlink_to(outside)
    else:
        if os.getuid() == 0:
            pytest.skip("root may read everything")
        path.write_text("{}\n")
        path.chmod(0)
    snapshot = Reader(workspace).settle()
    assert snapshot.decisions == ()
    assert [(f.file, f.severity) for f in snapshot.findings] == [("decisions.jsonl", "error")]
    assert len(snapshot.candidates) == 12


def test_a_ledger_that_goes_away_is_told(workspace: Path) -> None:
    reader = Reader(workspace)
    before = reader.settle()
    (workspace / "candidates.jsonl").unlink()
    after = reader.settle()
    assert after.candidates == before.candidates
    assert [f.seen for f in after.findings] == ["is not there any more"]


def test_reading_writes_nothing(workspace: Path) -> None:
    def state() -> dict[str, tuple[int, ...]]:
        return {
            str(path): (s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
            for path in [workspace, *sorted(workspace.rglob("*"))]
            for s in [path.lstat()]
        }

    before = state()
    reader = Reader(workspace, read_only=True)
    snapshot = reader.settle()
    reader.poll()
    assert snapshot.read_only
    assert state() == before


def test_a_read_only_folder_is_read(workspace: Path) -> None:
    folders = [workspace, *(path for path in workspace.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert len(Reader(workspace, read_only=True).settle().candidates) == 12
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_a_probe_does_not_keep_the_lock(workspace: Path) -> None:
    reader = Reader(workspace)
    for _ in range(5):
        reader.settle()
    with WorkspaceLock.acquire(Workspace(workspace), wait_s=0.0):
        assert reader.settle().liveness == "alive"


def test_a_huge_line_is_not_parsed(workspace: Path) -> None:
    body = json.dumps({"id": "c0001", "reason": "x" * 300_000})
    with (workspace / "candidates.jsonl").open("a") as file:
        file.write(body + "\n" + json.dumps({"id": "c0100"}) + "\n")
    snapshot = Reader(workspace).settle()
    assert isinstance(snapshot.candidates["c0100"], Candidate)
    (finding,) = snapshot.findings
    assert finding.seen.startswith(f"{len(body)} bytes on one line: ")
