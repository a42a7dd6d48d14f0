"""What the recorder writes can be read again, whatever was in it."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kda_tui.record import recovery
from kda_tui.record.journal import Recorder, SecretFound
from kda_tui.record.ledger import RecordFailed
from kda_tui.record.lines import MAX_LINE, encode_line, parse_line
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.projections import csv_key, jsonl_key, missing_projections
from kda_tui.record.records import BENCHMARK_COLUMNS, Candidate, Decision, TranscriptBlock, from_line
from kda_tui.record.verify import verify
from kda_tui.text import Redactor, UserError

PLAIN = Redactor({})
any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)


def as_read(value: Any) -> Any:
    """What a reader gets of a value: lone surrogates as U+FFFD, numbers that are not finite as null."""
    if isinstance(value, str):
        return "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in value)
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    if isinstance(value, dict):
        return {as_read(key): as_read(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_read(item) for item in value]
    return value


@given(st.dictionaries(any_text, values, max_size=4))
def test_a_line_is_one_line_and_survives(body: dict[str, Any]) -> None:
    data = encode_line(body)
    assert b"\n" not in data
    assert data.decode().splitlines() == [data.decode()], (
        "also for tools that split at every Unicode line end"
    )
    assert not set(data.decode()) & set("\x7f\x85\x9b\u2028\u202e")
    again = parse_line(data)
    keys = [as_read(key) for key in body]
    if len(set(keys)) == len(keys):
        assert again == as_read(body)


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def objects(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1] if not line.endswith(b"#torn")]


def rows_of(ws: Workspace) -> list[dict[str, str]]:
    with ws.benchmark.open(newline="") as file:
        return list(csv.DictReader(file))


@settings(max_examples=40)
@given(any_text, any_text, any_text)
def test_any_text_in_candidate_decision_row_and_block_comes_back(
    scratch: Path, a: str, b: str, c: str
) -> None:
    ws = Workspace(Path(tempfile.mkdtemp(dir=scratch)))
    with WorkspaceLock.acquire(ws) as lock, Recorder.create_run(ws, lock, PLAIN) as recorder:
        seq = recorder.event(
            "result",
            candidate=Candidate("c1", hypothesis=a, defines={b: c}),
            decision=Decision("d1", "note", text=b),
            rows=[{"workload": a, "arm": b, "why": c}, {"workload": a, "arm": b}],
        )
        recorder.transcript(TranscriptBlock(text=c))
    [line] = objects(ws.candidates_ledger)
    candidate = from_line(Candidate, line)
    assert (candidate.hypothesis, candidate.defines) == (as_read(a), {as_read(b): as_read(c)})
    assert from_line(Decision, objects(ws.decisions)[0]).text == as_read(b)
    assert objects(ws.run("r001").transcript)[0].get("text", "") == as_read(c)
    assert [(row["seq"], row["end"]) for row in rows_of(ws)] == [(str(seq), ".")] * 2
    assert verify(ws).ok, verify(ws).problems


def test_a_line_and_its_projections_share_run_and_seq(ws: Workspace) -> None:
    with WorkspaceLock.acquire(ws) as lock, Recorder.create_run(ws, lock, PLAIN) as recorder:
        recorder.event("phase", to="draft")
        recorder.transcript(TranscriptBlock(text="between"))
        seq = recorder.event(
            "result",
            claim="e1",
            attempt=2,
            cand="c1",
            opponent="baseline",
            candidate=Candidate("c1", stage="judged"),
            decision=Decision("d1", "note", t="2026-01-01T00:00:00.000Z", outcome="taken"),
            rows=[{"workload": "w", "arm": "c1", "median_us": 1.25, "admissible": False, "foreign": [3, 4]}],
        )
    journal = objects(ws.run("r001").events)[-1]
    assert (journal["seq"], journal["run"], seq) == (3, "r001", 3)
    [candidate], [decision], [row] = objects(ws.candidates_ledger), objects(ws.decisions), rows_of(ws)
    stamp = {key: journal[key] for key in ("v", "seq", "t", "run")}
    assert candidate == {**stamp, "id": "c1", "stage": "judged"}
    assert decision["sent"] == "2026-01-01T00:00:00.000Z"
    assert decision["t"] == journal["t"]
    assert {key: row[key] for key in ("seq", "run", "eval", "attempt", "candidate", "opponent")} == {
        "seq": "3", "run": "r001", "eval": "e1", "attempt": "2", "candidate": "c1", "opponent": "baseline",
    }  # fmt: skip
    assert (row["median_us"], row["admissible"], row["foreign"], row["n"]) == ("1.25", "0", "3 4", "")


def test_runs_follow_each_other_and_only_the_newest_goes_on(ws: Workspace) -> None:
    with WorkspaceLock.acquire(ws) as lock:
        for name in ("r001", "r002"):
            with Recorder.create_run(ws, lock, PLAIN) as recorder:
                assert recorder.run == name
                assert recorder.event("run_started") == 1
        with pytest.raises(UserError, match="r001 is over, r002 came after it"):
            Recorder.open(ws, lock, "r001", PLAIN)
        with pytest.raises(UserError, match="no run r007"):
            Recorder.open(ws, lock, "r007", PLAIN)
        with Recorder.open(ws, lock, "r002", PLAIN) as recorder:
            assert recorder.event("phase") == 2
    assert verify(ws).ok


def test_what_a_crashed_run_left_is_mended_when_the_next_begins(ws: Workspace) -> None:
    with WorkspaceLock.acquire(ws) as lock:
        with Recorder.create_run(ws, lock, PLAIN) as recorder:
            recorder.event("candidate", candidate=Candidate("c1"))
            recorder.transcript(TranscriptBlock(text="x"))
        ws.candidates_ledger.write_bytes(ws.candidates_ledger.read_bytes()[:-9])
        with ws.run("r001").events.open("ab") as file:
            file.write(b'{"v":1,"seq":3,"ki')
        with ws.run("r001").transcript.open("ab") as file:
            file.write(b'{"v')
        with Recorder.create_run(ws, lock, PLAIN) as recorder:
            assert recorder.run == "r002"
    found = {e["ledger"]: (e["offset"], e["bytes"]) for e in objects(ws.run("r002").events)}
    assert set(found) == {"candidates.jsonl", "runs/r001/events.jsonl", "runs/r001/transcript.jsonl"}
    offset, size = found["runs/r001/events.jsonl"]
    data = ws.run("r001").events.read_bytes()
    assert data[offset:] == b'{"v":1,"seq":3,"ki#torn\n'
    assert size == 18
    assert [line["id"] for line in objects(ws.candidates_ledger)] == ["c1"]
    assert verify(ws).ok, verify(ws).problems


def test_a_line_stays_short_and_nothing_is_lost(ws: Workspace) -> None:
    text, many = "ü" * 70_000, [{"workload": f"w{i}", "arm": "a", "median_us": i / 7} for i in range(3000)]
    with WorkspaceLock.acquire(ws) as lock, Recorder.create_run(ws, lock, PLAIN) as recorder:
        recorder.event(
            "result", rows=many, compile={"log": text, "ok": True}, candidate=Candidate("c1", reason=text)
        )
        recorder.transcript(TranscriptBlock(text=text))
        recorder.transcript(TranscriptBlock(kind="tool_call", args={"source": text}))
        recorder.checkpoint({})
    blobs = ws.run("r001").blobs
    for path in (ws.run("r001").events, ws.run("r001").transcript, ws.candidates_ledger):
        assert max(len(line) for line in path.read_bytes().split(b"\n")) < MAX_LINE
    [line, _] = objects(ws.run("r001").events)
    assert json.loads((blobs / line["rows_blob"]).read_bytes()) == many
    assert line["compile"]["ok"] is True
    assert all((blobs / sha).exists() for sha in line["blobs"])
    assert text.encode() in [(blobs / sha).read_bytes() for sha in line["blobs"]]
    block, call = objects(ws.run("r001").transcript)
    assert (blobs / block["blob"]).read_text() == text
    assert text.startswith(block["text"])
    assert call["args"]["source"].startswith("üüü")
    assert len(rows_of(ws)) == 3000
    assert verify(ws).ok, verify(ws).problems


def test_secrets_do_not_enter(ws: Workspace) -> None:
    key = 'sk-"quoted"\\0123456789'
    redactor = Redactor({"API_KEY": key})
    with WorkspaceLock.acquire(ws) as lock, Recorder.create_run(ws, lock, redactor) as recorder:
        recorder.event("hold", text=f"with {key}", candidate=Candidate("c1", reason=key))
        recorder.transcript(TranscriptBlock(text=key * 5000))
        recorder.blob(key.encode())
        with pytest.raises(SecretFound, match=r"kernel\.cu: holds the value of API_KEY"):
            recorder.artifacts(ws.candidate("c1"), {"launch.toml": b"", "kernel.cu": f"// {key}".encode()})
        assert not ws.candidate("c1").exists(), "refused before anything is written"
        with pytest.raises(SecretFound):
            recorder.artifact(ws.plan, key.encode())
    inside = [path for path in ws.root.rglob("*") if path.is_file() and b"0123456789" in path.read_bytes()]
    assert inside == []


def test_artifacts_stay_inside_the_workspace(ws: Workspace, tmp_path: Path) -> None:
    with WorkspaceLock.acquire(ws) as lock, Recorder.create_run(ws, lock, PLAIN) as recorder:
        for path in (Path("../x"), tmp_path.parent / "x"):
            with pytest.raises(ValueError, match="outside"):
                recorder.artifact(path, b"")
        recorder.artifact(ws.plan, b"one")
        recorder.artifact(Path("docs/plan.md"), b"two")
        assert ws.plan.read_bytes() == b"two"
        (ws.plan.parent / ".kda-new-left-by-a-crash").write_bytes(b"")
    with WorkspaceLock.acquire(ws) as lock, Recorder.create_run(ws, lock, PLAIN):
        assert [path.name for path in ws.plan.parent.iterdir()] == ["plan.md"]


def test_the_recorder_writes_its_own_stamps_and_needs_the_lock(ws: Workspace) -> None:
    with WorkspaceLock.acquire(ws) as lock:
        recorder = Recorder.create_run(ws, lock, PLAIN)
        with pytest.raises(ValueError, match="seq"):
            recorder.event("phase", seq=7)
        recorder.close()
    with pytest.raises(ValueError, match="lock"):
        Recorder.create_run(ws, lock, PLAIN)
    with pytest.raises(RecordFailed):
        recorder.event("phase")


def test_a_disk_that_does_not_keep_what_was_written_ends_the_recorder(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with WorkspaceLock.acquire(ws) as lock:
        recorder = Recorder.create_run(ws, lock, PLAIN)
        recorder.event("phase")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", broken)
            with pytest.raises(RecordFailed, match="Input/output error"):
                recorder.event("phase")
        with pytest.raises(RecordFailed, match="open the run again"):
            recorder.event("phase")
        recorder.close()
        with Recorder.open(ws, lock, "r001", PLAIN) as recorder:
            recorder.event("phase")
    assert verify(ws).ok, verify(ws).problems


def test_somebody_elses_table_is_not_mixed_with_ours(ws: Workspace) -> None:
    ws.benchmark.write_text("kernel,time\n")
    with WorkspaceLock.acquire(ws) as lock, pytest.raises(UserError, match=r"benchmark\.csv.*other columns"):
        Recorder.create_run(ws, lock, PLAIN)
    assert ws.benchmark.read_text() == "kernel,time\n"


@given(st.lists(st.sampled_from([b"1,a", b"1,b", b"2,a"]), max_size=8), st.data())
def test_missing_lines_are_found_also_where_keys_repeat(expected: list[bytes], data: st.DataObject) -> None:
    """Whatever prefix of each key's lines is there, adding the missing ones gives every line once."""
    cut = data.draw(st.integers(0, len(expected)))
    present = expected[:cut]
    missing = missing_projections(expected, present, lambda line: tuple(line.decode().split(",")))
    assert sorted(present + missing) == sorted(expected)


def test_keys_of_lines_that_are_not_ours() -> None:
    assert jsonl_key(b'{"id": "c1"}') is None
    assert jsonl_key(b'{"seq":1,"run":"r001"}#torn') is None
    assert jsonl_key(b'{"seq":1,"run":"r001"}') == ("r001", "1")
    assert csv_key(",".join(BENCHMARK_COLUMNS).encode()) is None
    whole = ["3", "t", "r001", "", "", "", "w", "arm", *[""] * 20, "."]
    assert csv_key(",".join(whole).encode()) == ("r001", "3", "w", "arm")
    assert csv_key((",".join(whole) + "#torn").encode()) is None


def test_a_long_transcript_is_not_read_to_go_on(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with WorkspaceLock.acquire(ws) as lock:
        with Recorder.create_run(ws, lock, PLAIN) as recorder:
            recorder.event("run_started")
            for _ in range(40):
                last = recorder.transcript(TranscriptBlock(text="x" * 40_000))
        tail = recovery.transcript_tail(ws.run("r001").transcript)
        assert tail.seq == last
        with Recorder.open(ws, lock, "r001", PLAIN) as recorder:
            assert recorder.transcript(TranscriptBlock(text="next")) == last + 1
    assert verify(ws).ok


def test_a_run_keeps_the_inputs_it_started_with(ws: Workspace) -> None:
    ws.contract.write_text("[task]\n")
    ws.reference.write_text("x = 1\n")
    baseline = ws.root / "baseline"
    (baseline / "deep").mkdir(parents=True)
    (baseline / "kernel.cu").write_text("k")
    (baseline / "deep" / "a.cuh").write_text("a")
    with WorkspaceLock.acquire(ws) as lock, Recorder.create_run(ws, lock, PLAIN) as recorder:
        recorder.event("run_started", **recorder.keep_inputs(baseline))
    (baseline / "kernel.cu").write_text("changed afterwards")
    ws.contract.unlink()
    assert (ws.run("r001").root / "baseline" / "kernel.cu").read_text() == "k"
    assert (ws.run("r001").root / "contract.toml").read_text() == "[task]\n"
    assert verify(ws).ok, verify(ws).problems
