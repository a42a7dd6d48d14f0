"""One writer a workspace; whoever looks sees the truth, also about the dead."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kda_tui.record import lock as lock_module
from kda_tui.record.lock import LockHeld, WorkspaceLock, boot_id, probe, start_ticks
from kda_tui.record.paths import Workspace
from kda_tui.text import UserError

HOLD = """
import sys, time
from pathlib import Path
from kda_tui.record.lock import WorkspaceLock
from kda_tui.record.paths import Workspace
lock = WorkspaceLock.acquire(Workspace(Path(sys.argv[1])), role="worker")
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def holder_process(ws: Workspace) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(ws.root)], stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_two_processes_contend_and_the_loser_learns_who_won(ws: Workspace) -> None:
    child = holder_process(ws)
    try:
        state, holder = probe(ws)
        assert state == "held"
        assert holder is not None
        assert (holder.pid, holder.role, holder.boot_id) == (child.pid, "worker", boot_id())
        assert holder.start_ticks == start_ticks(child.pid)
        with pytest.raises(LockHeld, match=f"worker {child.pid} on ") as caught:
            WorkspaceLock.acquire(ws, 0.1)
        assert caught.value.holder == holder
        assert "\n" not in str(caught.value)
    finally:
        child.kill()
        child.wait()


def test_a_killed_holder_that_nobody_has_reaped_holds_nothing(ws: Workspace) -> None:
    child = holder_process(ws)
    child.send_signal(signal.SIGKILL)
    until = time.monotonic() + 5
    stat = Path(f"/proc/{child.pid}/stat")
    while ") Z " not in stat.read_text() and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(child.pid, 0)  # a zombie: its pid still answers
    state, holder = probe(ws)
    assert state == "free"
    assert holder is not None and holder.pid == child.pid and not holder.released
    WorkspaceLock.acquire(ws, 0).release()
    child.wait()


def test_the_lock_waits_for_a_viewer_that_looks(ws: Workspace) -> None:
    first = WorkspaceLock.acquire(ws)
    threading.Timer(0.15, first.release).start()
    with WorkspaceLock.acquire(ws, 2.0) as second:
        assert second.held
    assert not second.held
    second.release()


def test_release_says_so_and_a_child_does_not_inherit(ws: Workspace) -> None:
    with WorkspaceLock.acquire(ws):
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    state, holder = probe(ws)
    child.kill()
    child.wait()
    assert state == "free"
    assert holder is not None and holder.released


def test_looking_creates_nothing(ws: Workspace) -> None:
    assert probe(ws) == ("none", None)
    assert list(ws.root.iterdir()) == []
    ws.lock.write_text("not json\n")
    before = ws.lock.stat()
    assert probe(ws) == ("free", None)
    after = ws.lock.stat()
    assert (after.st_mtime_ns, after.st_ino, after.st_size) == (
        before.st_mtime_ns,
        before.st_ino,
        before.st_size,
    )


def left_elsewhere(ws: Workspace, **more: object) -> None:
    holder = {"pid": 7, "start_ticks": 1, "boot_id": "another", "host": "gpu-box", "role": "worker", **more}
    ws.lock.write_text(json.dumps(holder))


def test_a_lock_left_on_another_host_of_a_shared_file_system_is_not_taken(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "file_system", lambda path: "nfs4")
    left_elsewhere(ws)
    state, holder = probe(ws)
    assert state == "foreign_host"
    assert holder is not None and holder.host == "gpu-box"
    with pytest.raises(LockHeld, match=r"worker 7 on gpu-box may still be writing.*remove the file"):
        WorkspaceLock.acquire(ws, 0)
    left_elsewhere(ws, released=True)
    assert probe(ws)[0] == "free"
    left_elsewhere(ws, boot_id=boot_id())  # another container on this machine: the same kernel locks for both
    assert probe(ws)[0] == "free"
    WorkspaceLock.acquire(ws, 0).release()


def test_a_local_file_system_tells_the_truth_about_a_copied_lock(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "file_system", lambda path: "ext4")
    left_elsewhere(ws)
    assert probe(ws)[0] == "free"


def test_the_file_system_is_found() -> None:
    assert lock_module.file_system(Path("/proc")) == "proc"


def test_a_lock_that_is_no_file_is_refused(ws: Workspace) -> None:
    os.mkfifo(ws.lock)
    assert probe(ws) == ("none", None)
    with pytest.raises(UserError, match=r"workspace\.lock"):
        WorkspaceLock.acquire(ws, 0)


def test_a_removed_lock_file_is_not_taken_for_the_one_that_others_see(ws: Workspace) -> None:
    first = WorkspaceLock.acquire(ws)
    ws.lock.unlink()
    with WorkspaceLock.acquire(ws, 0) as second:
        assert probe(ws)[0] == "held"
        first.release()
        assert probe(ws)[0] == "held"
        assert second.held


def test_start_ticks_of_nobody() -> None:
    assert start_ticks(2**22 + 5) is None
    assert start_ticks(os.getpid()) == start_ticks(os.getpid())
