"""One GPU, one measurement: the lock needs no GPU to be tested."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kda_tui.evaluation.devices.cuda.gpu_lock import gpu_lock, lock_file
from kda_tui.text import UserError

HOLD = """
import sys
from kda_tui.evaluation.devices.cuda.gpu_lock import gpu_lock
with gpu_lock("GPU-1", print):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDA_LOCKS", str(tmp_path))


def test_a_second_process_waits_and_is_told_for_whom() -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin is not None and holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    said: list[str] = []

    def waiting(reason: str) -> None:
        said.append(reason)
        holder.kill()

    with gpu_lock("GPU-1", waiting, patience_s=30):
        assert said[0] == f"waits for the GPU, which process {holder.pid} of user {os.getuid()} uses"
    holder.wait()
    holder.stdin.close()
    holder.stdout.close()


def test_patience_ends_with_one_line() -> None:
    with (
        gpu_lock("GPU-2", lambda reason: None),
        pytest.raises(UserError, match="is held by process"),
        gpu_lock("GPU-2", lambda reason: None, patience_s=0),
    ):
        pass


def test_other_users_may_lock_it_too_and_a_link_is_not_followed(tmp_path: Path) -> None:
    with gpu_lock("GPU-3", lambda reason: None):
        assert stat.S_IMODE(lock_file("GPU-3").stat().st_mode) == 0o666
    lock_file("GPU-4").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="KDA_LOCKS"), gpu_lock("GPU-4", lambda reason: None):
        pass
    assert not (tmp_path / "elsewhere").exists()
