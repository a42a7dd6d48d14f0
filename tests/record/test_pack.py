"""A packed workspace verifies where it is unpacked, also one that was packed while a run wrote."""

from __future__ import annotations

import tarfile
import threading
from pathlib import Path

import pytest

from kda_tui.record.inbox import new_decision, send
from kda_tui.record.journal import Recorder
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.pack import pack
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate, TranscriptBlock
from kda_tui.record.verify import verify
from kda_tui.text import Redactor, UserError


def some_work(recorder: Recorder, number: int) -> None:
    cand = f"c{recorder.run}-{number}"
    files = recorder.artifacts(recorder.ws.candidate(cand), {"kernel.cu": cand.encode()})
    rows = [{"workload": "w", "arm": cand, "median_us": 1.0}]
    recorder.event("result", candidate=Candidate(cand), files=files, rows=rows)
    recorder.transcript(TranscriptBlock(text="x" * 50))


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    ws = Workspace(tmp_path / "softmax")
    ws.root.mkdir()
    ws.contract.write_text("[task]\n")
    with WorkspaceLock.acquire(ws) as lock, Recorder.create_run(ws, lock, Redactor({})) as recorder:
        recorder.event("run_started", **recorder.keep_inputs(None))
        some_work(recorder, 0)
        recorder.checkpoint({})
        some_work(recorder, 1)
    return ws


def unpack(path: Path, into: Path) -> Workspace:
    with tarfile.open(path) as tar:
        tar.extractall(into, filter="data")
    [root] = into.iterdir()
    return Workspace(root)


def test_a_packed_workspace_verifies_where_it_is_unpacked(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "tok-0123456789abcdef")
    send(ws, new_decision("note", text="not to be handed on"))
    ws.run("r001").live.write_text("{}")
    ws.run("r001").log.write_text("failed with tok-0123456789abcdef\n")
    (ws.root / ".git").mkdir()
    (ws.root / ".git" / "config").write_text("")
    (ws.root / "data").symlink_to("/etc")
    before = sorted(ws.root.rglob("*"))
    report = pack(ws, tmp_path / "softmax.tar.gz")
    assert sorted(ws.root.rglob("*")) == before, "packing writes nothing into the workspace"
    assert report.left_out == ("data",)
    with tarfile.open(report.path) as tar:
        members = tar.getmembers()
    assert {member.name.split("/")[0] for member in members} == {"softmax"}
    assert all(member.isfile() and (member.uid, member.uname) == (0, "") for member in members)
    assert len(members) == report.files
    copy = unpack(report.path, tmp_path / "there")
    assert not copy.lock.exists() and not copy.inbox.exists() and not copy.run("r001").live.exists()
    assert copy.run("r001").log.read_text() == "failed with [redacted MY_TOKEN]\n"
    found = verify(copy, report.head)
    assert found.ok, found.problems
    assert found == verify(ws, report.head)


def test_packing_twice_gives_the_same_file(ws: Workspace, tmp_path: Path) -> None:
    one, two = pack(ws, tmp_path / "1.tar.gz"), pack(ws, tmp_path / "2.tar.gz")
    assert one.path.read_bytes() == two.path.read_bytes()


def test_a_live_run_is_cut_at_its_newest_checkpoint(ws: Workspace, tmp_path: Path) -> None:
    stop = threading.Event()
    with WorkspaceLock.acquire(ws) as lock, Recorder.create_run(ws, lock, Redactor({})) as recorder:
        some_work(recorder, 0)
        report = pack(ws, tmp_path / "before.tar.gz")
        copy = unpack(report.path, tmp_path / "before")
        assert verify(copy, report.head).ok, verify(copy).problems
        assert copy.run("r002").events.read_bytes() == b""
        recorder.checkpoint({})

        def write() -> None:
            for number in range(1, 100_000):
                some_work(recorder, number)
                if number % 3 == 0:
                    recorder.checkpoint({})
                if stop.is_set():
                    return

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for name in ("a", "b", "c"):
                report = pack(ws, tmp_path / f"{name}.tar.gz")
                copy = unpack(report.path, tmp_path / name)
                assert verify(copy, report.head).ok, verify(copy).problems
        finally:
            stop.set()
            writer.join()


def test_what_cannot_be_packed_says_so(ws: Workspace, tmp_path: Path) -> None:
    (tmp_path / "there.tar.gz").write_text("")
    with pytest.raises(UserError, match="exists already"):
        pack(ws, tmp_path / "there.tar.gz")
    with pytest.raises(UserError, match="No such file"):
        pack(ws, tmp_path / "nowhere" / "x.tar.gz")
    fresh = Workspace(tmp_path / "fresh")
    fresh.root.mkdir()
    with WorkspaceLock.acquire(fresh) as lock, Recorder.create_run(fresh, lock, Redactor({})):
        with pytest.raises(UserError, match="no checkpoint yet"):
            pack(fresh, tmp_path / "fresh.tar.gz")
        assert not (tmp_path / "fresh.tar.gz").exists()


def test_a_target_inside_the_workspace_does_not_pack_itself(ws: Workspace) -> None:
    report = pack(ws, ws.root / "packed.tar.gz")
    with tarfile.open(report.path) as tar:
        assert "softmax/packed.tar.gz" not in tar.getnames()
