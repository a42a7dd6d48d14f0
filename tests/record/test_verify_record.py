"""Every kind of tampering is found, and the file and the line that was edited are named."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kda_tui.record.checkpoint import head_of
from kda_tui.record.journal import Recorder
from kda_tui.record.lines import encode_line, link_of
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
from kda_tui.record.projections import project
from kda_tui.record.records import Candidate, Decision, TranscriptBlock
from kda_tui.record.state_folder import commitment
from kda_tui.record.verify import verify
from kda_tui.text import Redactor, UserError


def record(root: Path) -> Workspace:
    """Two runs with sources, samples, blobs, a plan, copies of the inputs, and two checkpoints each."""
    ws = Workspace(root)
    ws.contract.write_text("[task]\n")
    (root / "baseline").mkdir()
    (root / "baseline" / "kernel.cu").write_text("base")
    with WorkspaceLock.acquire(ws) as lock:
        for number in (1, 2):
            with Recorder.create_run(ws, lock, Redactor({})) as r:
                _one_run(ws, r, f"c{number}")
    return ws


def _one_run(ws: Workspace, r: Recorder, cand: str) -> None:
    inputs = r.keep_inputs(ws.root / "baseline")
    r.event("run_started", agent="tuner", seed_commit=commitment("secret"), **inputs)
    plan = r.artifact(ws.plans / f"{cand}.md", b"# Plan\n")
    r.event("plan", rev=1, file=f"docs/plans/{cand}.md", sha=plan)
    files = r.artifacts(ws.candidate(cand), {"kernel.cu": b"kernel", "launch.toml": b"plan"})
    r.event("candidate", candidate=Candidate(cand), files=files)
    r.transcript(TranscriptBlock(text="first"))
    r.transcript(TranscriptBlock(text="long " * 20_000))
    r.transcript(TranscriptBlock(text="third"))
    r.checkpoint({"n": 1})
    data = b"[1.5, 1.25]\n"
    sample = {
        "path": "samples/e1.jsonl",
        "sha": r.artifact(r.paths.samples / "e1.jsonl", data),
        "bytes": len(data),
    }
    r.event(
        "result",
        claim=f"e{cand}",
        outcome="ok",
        samples=[sample],
        candidate=Candidate(cand, stage="judged", ratio=1.25),
        rows=[{"workload": w, "arm": cand, "median_us": 1.5} for w in ("w1", "w2")],
    )
    r.event("decision", decision=Decision(f"d{cand}", "note", outcome="taken", who="Ada"))
    r.checkpoint({"n": 2})
    r.event("run_ended", why="end_after", seed="secret")


@pytest.fixture(scope="session")
def original(scratch: Path) -> Workspace:
    return record(Path(tempfile.mkdtemp(dir=scratch)))


@pytest.fixture
def ws(original: Workspace, scratch: Path) -> Workspace:
    copy = Path(tempfile.mkdtemp(dir=scratch)) / "w"
    shutil.copytree(original.root, copy)
    return Workspace(copy)


def found(ws: Workspace, against: str | None = None) -> set[tuple[str, int]]:
    """Where errors are, after checking that there are any."""
    report = verify(ws, against)
    assert not report.ok
    return {(p.file, p.line) for p in report.problems if p.severity == "error"}


def edit(path: Path, line: int, old: str, new: str) -> None:
    lines = path.read_text("utf-8").split("\n")
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    path.write_text("\n".join(lines), "utf-8")


def remove(path: Path, line: int) -> None:
    lines = path.read_bytes().split(b"\n")
    del lines[line - 1]
    path.write_bytes(b"\n".join(lines))


def test_an_honest_record_is_whole(ws: Workspace) -> None:
    report = verify(ws)
    assert report.ok
    assert report.problems == ()
    assert len(report.head) == 64
    assert report.lines == 2 * (8 + 3) + 2 * 2 + 2 * 1 + (2 * 2 + 1)
    assert verify(ws, report.head).ok
    assert verify(ws, report.head[:12].upper()).ok


def test_verifying_writes_nothing(ws: Workspace) -> None:
    before = {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in ws.root.rglob("*")}
    verify(ws)
    assert {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in ws.root.rglob("*")} == before


J, T = "runs/r001/events.jsonl", "runs/r001/transcript.jsonl"
EDITS: list[tuple[str, int, str, str]] = [
    (J, 1, '"tuner"', '"human"'),
    (J, 2, '"rev":1', '"rev":2'),
    (J, 5, "1.5", "1.1"),
    (J, 4, '"n":1', '"n":9'),
    (J, 6, "Ada", "Bob"),
    (J, 7, '"n":2', '"n":3'),
    (T, 2, "long", "tall"),
    ("runs/r002/transcript.jsonl", 1, "first", "worst"),
    ("candidates.jsonl", 2, "1.25", "1.95"),
    ("candidates.jsonl", 3, "submitted", "judged"),
    ("decisions.jsonl", 1, "taken", "refused"),
    ("benchmark.csv", 3, "1.5", "0.5"),
    ("benchmark.csv", 2, "w1", "w9"),
]


@pytest.mark.parametrize(("file", "line", "old", "new"), EDITS, ids=lambda value: str(value)[:24])
def test_an_edited_line_is_named(ws: Workspace, file: str, line: int, old: str, new: str) -> None:
    edit(ws.root / file, line, old, new)
    assert (file, line) in found(ws)


@pytest.mark.parametrize("file", [J, T, "candidates.jsonl", "decisions.jsonl", "benchmark.csv"])
def test_a_removed_line_is_noticed_in_its_file(ws: Workspace, file: str) -> None:
    remove(ws.root / file, 2)
    assert file in {name for name, _ in found(ws)}


def test_a_removed_first_line_is_named(ws: Workspace) -> None:
    remove(ws.root / T, 1)
    assert (T, 1) in found(ws)


def test_an_added_line_is_named(ws: Workspace) -> None:
    with ws.candidates_ledger.open("a") as file:
        file.write('{"v":1,"seq":99,"t":"","run":"r001","id":"c9"}\n')
        file.write('{"id":"c10"}\n')
    assert {("candidates.jsonl", 5), ("candidates.jsonl", 6)} <= found(ws)


def test_a_cut_ledger_is_noticed(ws: Workspace) -> None:
    os.truncate(ws.root / T, 200)
    assert T in {name for name, _ in found(ws)}
    (ws.root / T).unlink()
    assert T in {name for name, _ in found(ws)}


def test_an_edit_of_the_last_line_of_a_transcript_is_bounded_by_the_checkpoint(ws: Workspace) -> None:
    edit(ws.root / T, 3, "third", "THIRD")
    assert (T, 1) in found(ws)  # no line follows it: "something in lines 1 to 3"
    assert any("lines 1 to 3" in p.seen for p in verify(ws).problems)


ARTIFACTS = [
    "candidates/c1/kernel.cu",
    "candidates/c2/launch.toml",
    "docs/plans/c1.md",
    "runs/r001/samples/e1.jsonl",
    "runs/r002/contract.toml",
    "runs/r001/baseline/kernel.cu",
]


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("file", ARTIFACTS)
@pytest.mark.parametrize("change", [_append, _flip, Path.unlink, _link])
def test_a_changed_artifact_is_named(ws: Workspace, file: str, change: Callable[[Path], object]) -> None:
    change(ws.root / file)
    named = {name for name, _ in found(ws)}
    assert file in named or str(Path(file).parent) in named


def test_a_changed_blob_is_named(ws: Workspace) -> None:
    [blob] = ws.run("r001").blobs.iterdir()
    _flip(blob)
    assert (f"runs/r001/blobs/{blob.name}", 0) in found(ws)


def test_a_file_added_beside_a_source_is_a_warning(ws: Workspace) -> None:
    (ws.candidate("c1") / "extra.cuh").write_text("")
    report = verify(ws)
    assert report.ok
    assert [(p.file, p.severity) for p in report.problems] == [("candidates/c1/extra.cuh", "warning")]


def test_a_path_out_of_the_workspace_is_not_followed(ws: Workspace) -> None:
    edit(ws.root / J, 3, "candidates/c1/kernel.cu", "../../etc/passwd")
    assert ("../../etc/passwd", 0) in found(ws)


def test_another_seed_than_the_one_committed_to_is_named(ws: Workspace) -> None:
    edit(ws.root / J, 8, '"secret"', '"chosen"')
    assert (J, 8) in found(ws)


def rewrite(ws: Workspace, change: Callable[[dict[str, Any]], None]) -> None:
    """Tamper like an insider: change journal lines, then links, heads, checkpoints and projections to fit."""
    tables: dict[Path, list[bytes]] = {ws.candidates_ledger: [], ws.decisions: [], ws.benchmark: []}
    tables[ws.benchmark].append(ws.benchmark.read_bytes().split(b"\n")[0])
    journals: dict[Path, list[bytes]] = {}
    head = ""
    for run in ws.run_names():
        out = journals.setdefault(ws.run(run).events, [])
        for raw in ws.run(run).events.read_bytes().split(b"\n")[:-1]:
            line = json.loads(raw)
            change(line)
            line["link"] = link_of(out[-1]) if out else ""
            if line["kind"] == "checkpoint":
                for path, lines in {**journals, **tables}.items():
                    if path.relative_to(ws.root).as_posix() not in line["ledgers"]:
                        continue
                    data = b"".join(one + b"\n" for one in lines)
                    line["ledgers"][path.relative_to(ws.root).as_posix()] = [
                        len(data),
                        hashlib.sha256(data).hexdigest(),
                    ]
                line["prev_head"] = head
                line["head"] = head = head_of(line)
            out.append(encode_line(line))
            projected = project(json.loads(out[-1]))
            for path, lines in zip(
                tables, (projected.candidates, projected.decisions, projected.benchmark), strict=True
            ):
                tables[path] += lines
    for path, lines in {**journals, **tables}.items():
        path.write_bytes(b"".join(one + b"\n" for one in lines))


def test_a_record_rewritten_as_a_whole_is_found_against_a_noted_head(ws: Workspace) -> None:
    noted = verify(ws).head

    def flatter(line: dict[str, Any]) -> None:
        if line["kind"] == "result":
            line["candidate"]["ratio"] = 9.0

    rewrite(ws, lambda line: None)
    assert verify(ws, noted).ok, "the insider of this test rewrites faithfully when nothing is changed"
    rewrite(ws, flatter)
    assert verify(ws).ok, "consistent in itself"
    assert found(ws, noted) == {("runs", 0)}


def test_a_head_that_cannot_be_one_is_refused(ws: Workspace) -> None:
    for head in ("abc", "not-a-head-at-all"):
        with pytest.raises(UserError, match="hex digits"):
            verify(ws, head)


def test_a_torn_tail_is_no_tampering(ws: Workspace) -> None:
    with (ws.root / "runs/r002/events.jsonl").open("ab") as file:
        file.write(b'{"v":1,"se')
    with ws.candidates_ledger.open("ab") as file:
        file.write(b'{"v"')
    report = verify(ws)
    assert report.ok
    assert {p.severity for p in report.problems} == {"note"}


def test_a_record_can_be_verified_while_it_is_written(ws: Workspace) -> None:
    with WorkspaceLock.acquire(ws) as lock, Recorder.open(ws, lock, "r002", Redactor({})) as r:
        for number in range(20):
            r.event("candidate", candidate=Candidate(f"x{number}"))
            r.transcript(TranscriptBlock(text="x"))
            assert verify(ws).ok
        # The journal line is there, its projection is just being written.
        ws.candidates_ledger.write_bytes(b"".join(ws.candidates_ledger.read_bytes().splitlines(True)[:-1]))
        assert verify(ws).ok
    assert found(ws) == {("candidates.jsonl", 0)}


def test_a_workspace_without_runs_is_whole(tmp_path: Path) -> None:
    assert verify(Workspace(tmp_path)) == verify(Workspace(tmp_path / "nowhere"))
    assert verify(Workspace(tmp_path)).ok


def test_many_problems_of_one_file_are_counted_not_listed(ws: Workspace) -> None:
    with ws.decisions.open("a") as file:
        file.write('{"id":"x"}\n' * 150)
    problems = verify(ws).problems
    assert len(problems) == 101
    assert "50 more" in problems[-1].seen
