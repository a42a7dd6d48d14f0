"""Somebody's workspace: what is shown, what is told, and what hostile files cannot do."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kda_tui.record.foreign.check import check
from kda_tui.record.foreign.found import find_workspaces, layout_of
from kda_tui.record.foreign.reader import ForeignReader
from kda_tui.record.open import is_own, open_reader
from kda_tui.record.reader import Reader
from kda_tui.text import UserError
from tests.record.make_workspace import make_workspace

LEDGER = [
    {"id": "base", "parent": None, "status": "baseline", "latency_us": 10.0},
    {
        "id": "v1",
        "parent": "base",
        "status": "promoted",
        "latency_us": 8.0,
        "speedup": 1.25,
        "passed": True,
        "colour": "red",
    },
]
TABLE = "candidate,case,baseline_us,candidate_us,speedup\nv1,big,10,8,1.25\nv1,small,2,1.6,1.25\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "kernel"
    (root / "docs").mkdir(parents=True)
    (root / "candidates.jsonl").write_text("".join(json.dumps(row) + "\n" for row in LEDGER))
    (root / "benchmark.csv").write_text(TABLE)
    (root / "docs" / "plan.md").write_text(
        "# Plan\n\n- [x] measure\n- [ ] tile\n\n| task1 | write it | AC-1 |\n"
    )
    (root / "docs" / "draft.md").write_text("# Draft\n")
    (root / "prompt.md").write_text("# Make it fast\n\nplease\n")
    return root


@pytest.fixture
def public(workspace: Path) -> Iterator[Path]:
    """The workspace where another user, who owns none of it, comes to it."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        root = Path(folder) / "kernel"
        shutil.copytree(workspace, root)
        yield root
        (root / "docs").chmod(0o755)


def as_nobody(ask: Callable[[], Any]) -> Any:
    """The answer of a process that is nobody: it may read what all may read and write nothing."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(into, json.dumps(ask()).encode())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as answer:
        data = answer.read()
    os.waitpid(pid, 0)
    return json.loads(data)


def test_everything_is_mapped_and_says_where_it_stands(workspace: Path) -> None:
    snapshot = open_reader(workspace).settle()
    assert (snapshot.foreign, snapshot.read_only, snapshot.liveness) == (True, True, "none")
    v1 = snapshot.candidates["v1"]
    assert (v1.parents, v1.validity, v1.decision, v1.ratio, v1.time_us) == (
        ("base",),
        "passed",
        "promoted",
        1.25,
        8.0,
    )
    assert v1.extra["source"] == "candidates.jsonl:2"
    assert v1.extra["raw"]["colour"] == "red"
    assert snapshot.incumbent.cand == "v1"
    assert snapshot.extra["best"].stated == "candidates.jsonl:2"
    assert snapshot.bench is not None
    assert snapshot.bench.rows == 4
    assert [(i.title, i.state) for i in snapshot.plan.items] == [
        ("measure", "done"),
        ("tile", "open"),
        ("write it", "open"),
    ]
    assert snapshot.plan.in_force is None
    assert snapshot.extra["task"]["title"] == "Make it fast"
    assert snapshot.findings == ()


def test_our_own_workspaces_are_told_from_others(workspace: Path, tmp_path: Path) -> None:
    own = make_workspace(tmp_path / "own")
    assert isinstance(open_reader(own), Reader)
    assert isinstance(open_reader(workspace), ForeignReader)
    (tmp_path / "new").mkdir()
    shutil.copy(own / "contract.toml", tmp_path / "new")
    assert is_own(tmp_path / "new")
    shutil.copy(own / "contract.toml", workspace)
    assert not is_own(workspace)  # its ledger is nobody's of ours


def test_workspaces_are_found_in_folders_and_repositories(workspace: Path, tmp_path: Path) -> None:
    for place in ("repo/workspaces/a", "repo/kernels/b", "plain"):
        shutil.copytree(workspace, tmp_path / "all" / place)
    (tmp_path / "all" / "nothing").mkdir()
    (tmp_path / "all" / "loop").symlink_to(tmp_path / "all")
    shutil.copy(workspace / "prompt.md", tmp_path / "all" / "repo")  # a workspace that holds others
    (tmp_path / "all" / "site").mkdir()
    (tmp_path / "all" / "site" / "config.toml").write_text("title = 'a blog'\n")
    names = [root.relative_to(tmp_path / "all").as_posix() for root in find_workspaces(tmp_path / "all")]
    assert names == ["plain", "repo", "repo/kernels/b", "repo/workspaces/a"]
    assert find_workspaces(workspace) == [workspace]
    assert [entry["candidates"] for entry in check(tmp_path / "all")] == [2, 0, 2, 2]
    with pytest.raises(UserError, match="no workspace here"):
        check(tmp_path / "all" / "nothing")
    json.dumps(check(tmp_path / "all"))


def test_results_of_a_bench_folder_are_rows_of_a_table(workspace: Path) -> None:
    (workspace / "bench").mkdir()
    row = {
        "candidate": "v1",
        "shape": [2, 8],
        "candidate_us": 4.0,
        "baseline_us": 6.0,
        "note": None,
        "env": {"gpu": "x"},
    }
    (workspace / "bench" / "results_final.jsonl").write_text(json.dumps(row) + "\n")
    snapshot = open_reader(workspace).settle()
    assert list(snapshot.candidates) == ["base", "v1"]
    ((m, *_),) = [
        [m for m in snapshot.extra["measurements"] if m.file.startswith("bench/") and m.arm == "candidate"]
    ]
    assert (m.cand, m.workload, m.value, m.speedup, m.paired) == ("v1", "2x8", 4.0, 1.5, True)
    assert dict(snapshot.extra["table_rows"]["bench/results_final.jsonl"][0].cells)["env"] == '{"gpu": "x"}'


# --- live ----------------------------------------------------------------------------------------------------


def test_a_workspace_that_is_rewritten_is_read_again(workspace: Path) -> None:
    reader = ForeignReader(workspace)
    before = reader.first()
    assert reader.poll() is None
    (workspace / "candidates.jsonl").write_text(json.dumps({"candidate_id": "other"}) + "\n")
    after = reader.poll()
    assert after is not None
    assert list(after.candidates) == ["other", "v1"]  # v1 is in the table still
    assert after.version > before.version
    (workspace / "benchmark.csv").write_text("")
    assert list(reader.settle().candidates) == ["other"]
    (workspace / "candidates.jsonl").unlink()
    assert reader.settle().candidates == {}


def test_a_change_of_the_same_size_is_seen(workspace: Path) -> None:
    reader = ForeignReader(workspace)
    reader.settle()
    path = workspace / "benchmark.csv"
    path.write_text(TABLE.replace("v1", "v2"))
    os.utime(path, ns=(1, 1))
    assert "v2" in reader.settle().candidates


def test_slices_end_where_reading_at_once_ends(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kda_tui.record.foreign.reader.FIRST_S", 0.0)
    monkeypatch.setattr("kda_tui.record.foreign.reader.SLICE_S", 0.0)
    monkeypatch.setattr("kda_tui.record.foreign.reader.CHUNK", 16)
    reader = ForeignReader(workspace)
    snapshot = reader.first()
    assert snapshot.extra["loading"] < 1
    for _ in range(1000):
        snapshot = reader.poll() or snapshot
    assert snapshot.candidates == ForeignReader(workspace).settle().candidates


# --- hostile -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b'{"id": "a"', "not JSON at column 11: "),
        (b"\xef\xbb\xbf" + b'{"id": "a"}\n', "a byte order mark"),
        ('{"id": "a"}\n'.encode("utf-16"), "the file is UTF-16"),
        (b'{"id": "a\xff"}\n', "bytes that are not UTF-8: "),
        (b'{"id": "a"}\0\0\n', "2 NUL bytes: "),
        (b'{"id": "a"}\r\n', "CR LF line ends"),
        (b"[" * 100_000 + b"\n", "nested too deeply: "),
        (b'{"id": "a", "n": ' + b"9" * 100_000 + b"}\n", "a number of thousands of digits, kept as text: "),
        (b'{"id": "' + b"x" * 1_000_000 + b'"}\n', "1000010 bytes on one line: "),
        (b"x" * 1_000_000, "1000000 bytes on the last line"),
        (b'["a"]\n', "a JSON list, not an object: "),
    ],
    ids=["torn", "mark", "utf16", "bytes", "nul", "crlf", "deep", "number", "long", "longest", "list"],
)
def test_trouble_in_a_ledger_is_a_finding_and_no_more(workspace: Path, data: bytes, seen: str) -> None:
    (workspace / "candidates.jsonl").write_bytes(data)
    snapshot = ForeignReader(workspace).settle()
    (finding,) = [f for f in snapshot.findings if f.file == "candidates.jsonl" and f.seen.startswith(seen)]
    assert finding.done
    assert snapshot.bench is not None
    assert snapshot.bench.rows == 4


def test_a_ledger_without_a_final_newline_is_whole(workspace: Path) -> None:
    path = workspace / "candidates.jsonl"
    path.write_text(path.read_text().rstrip("\n"))
    assert list(ForeignReader(workspace).settle().candidates) == ["base", "v1"]


@pytest.mark.parametrize("kind", ["fifo", "link out", "device", "folder"])
def test_what_is_no_plain_file_is_never_opened(workspace: Path, tmp_path: Path, kind: str) -> None:
    path = workspace / "benchmark.csv"
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        (tmp_path / "outside.csv").write_text(TABLE)
        path.symlink_to("/dev/zero" if kind == "device" else tmp_path / "outside.csv")
    snapshot = ForeignReader(workspace).settle()
    assert snapshot.bench is None or snapshot.bench.rows == 0
    assert kind == "folder" or [f.file for f in snapshot.findings if f.severity == "error"] == [
        "benchmark.csv"
    ]


def test_names_that_lead_out_stay_names(workspace: Path) -> None:
    row = {
        "id": "../../etc/passwd",
        "candidate": "../../../etc/shadow",
        "evidence": ["/etc/passwd"],
        "parent": "../x",
    }
    (workspace / "candidates.jsonl").write_text(json.dumps(row) + "\n")
    snapshot = ForeignReader(workspace).settle()
    assert next(iter(snapshot.candidates)) == "passwd"


def test_a_large_ledger_is_bounded_and_told(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kda_tui.record.foreign.reader.MOST_ROWS", 50)
    (workspace / "candidates.jsonl").write_text("".join(f'{{"id": "c{n}"}}\n' for n in range(120)))
    snapshot = ForeignReader(workspace).settle()
    assert snapshot.extra["rows"]["ledger"] == 50
    assert any(f.seen == "120 lines" for f in snapshot.findings)


def test_a_file_that_may_not_be_read_is_told(public: Path) -> None:
    (public / "candidates.jsonl").chmod(0)
    (public / "docs").chmod(0)
    found = as_nobody(lambda: check(public)[0])
    assert found["candidates"] == 1  # of the table
    assert [(f["file"], f["severity"]) for f in found["findings"]] == [("candidates.jsonl", "error")]
    assert "cannot be opened" in found["findings"][0]["seen"]
    assert found["documents"]["plan"] == []


def test_nothing_is_written_where_nothing_may_be(public: Path) -> None:
    def state() -> dict[str, tuple[int, ...]]:
        paths = [public, *sorted(public.rglob("*"))]
        return {str(p): (p.lstat().st_ino, p.lstat().st_mtime_ns, p.lstat().st_ctime_ns) for p in paths}

    before = state()
    found = as_nobody(lambda: check(public)[0])
    assert (found["candidates"], found["findings"]) == (2, [])
    assert state() == before


def test_reading_writes_nothing_and_works_without_permission_to_write(workspace: Path) -> None:
    def state() -> dict[str, tuple[int, ...]]:
        paths = [workspace, *sorted(workspace.rglob("*"))]
        return {str(p): (p.lstat().st_ino, p.lstat().st_mtime_ns, p.lstat().st_ctime_ns) for p in paths}

    folders = [workspace, workspace / "docs"]
    for folder in folders:
        folder.chmod(0o555)
    try:
        before = state()
        reader = open_reader(workspace)
        assert len(reader.settle().candidates) == 2
        reader.poll()
        assert state() == before
    finally:
        for folder in folders:
            folder.chmod(0o755)


# --- review rounds and transcripts -----------------------------------------------------------------------------


def test_review_rounds_are_shown_by_their_files(workspace: Path) -> None:
    session = workspace / ".humanize" / "rlcr" / "2026-05-23"
    session.mkdir(parents=True)
    (session / "plan.md").write_text("# P\n- [ ] x\n")
    (session / "state.md").write_text("---\ncurrent_round: 0\n---\n")
    for number in (0, 1, 10):
        (session / f"round-{number}-summary.md").write_text("done")
    snapshot = ForeignReader(workspace).settle()
    assert [(r.number, list(r.files)) for r in snapshot.extra["rounds"]] == [
        (n, ["summary"]) for n in (0, 1, 10)
    ]
    assert [f.seen for f in snapshot.findings] == ["says round 0, there are files up to round 10"]


def test_a_recorded_session_is_the_transcript(workspace: Path) -> None:
    (workspace / "session.jsonl").write_text(
        json.dumps({"type": "user", "sessionId": "s", "message": {"content": "hi"}}) + "\n"
    )
    (workspace / "agent-notes.jsonl").write_text('{"note": 1}\n')
    reader = ForeignReader(workspace)
    assert reader.settle().transcript.path == workspace / "session.jsonl"
    assert layout_of(workspace).transcripts == ("agent-notes.jsonl", "session.jsonl")
    with (workspace / "session.jsonl").open("a") as file:
        file.write("{}\n")
    grown = reader.poll()
    assert grown is not None
    assert grown.transcript.size == (workspace / "session.jsonl").stat().st_size
