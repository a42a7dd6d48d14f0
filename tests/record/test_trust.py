"""Whose code may run: by the user's word, bound to what the code is, kept outside the workspace."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kda_tui.record import trust
from kda_tui.record.paths import Workspace
from kda_tui.record.state_folder import (
    commitment,
    forget_run_secret,
    load_run_secret,
    new_run_secret,
    state_folder,
)
from kda_tui.text import UserError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "kda"


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    ws = Workspace(tmp_path / "w")
    (ws.root / "baseline").mkdir(parents=True)
    ws.contract.write_text('[baseline]\ncandidate = "baseline"\n')
    ws.reference.write_text("def reference(): ...\n")
    (ws.root / "shapes.py").write_text("x = 1\n")
    (ws.root / "baseline" / "kernel.cu").write_text("k")
    (ws.root / "baseline" / "launch.toml").write_text("l")
    return ws


def test_nothing_is_trusted_until_somebody_says_so(ws: Workspace, state: Path) -> None:
    assert not trust.is_trusted(ws)
    assert "kda trust" in trust.state(ws).words
    assert not state.exists(), "asking writes nothing"
    assert trust.grant(ws).how == "trusted"
    assert trust.is_trusted(ws)
    trust.withdraw(ws)
    assert not trust.is_trusted(ws)


def test_own_workspaces_are_marked(ws: Workspace) -> None:
    trust.mark_own(ws)
    assert trust.state(ws).how == "made here"
    assert trust.is_trusted(ws)


def test_the_word_is_private_and_outside_the_workspace(ws: Workspace, state: Path) -> None:
    before = sorted(ws.root.rglob("*"))
    trust.grant(ws)
    assert sorted(ws.root.rglob("*")) == before
    assert stat.S_IMODE((state / "trust.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "file",
    [
        "reference.py",
        "shapes.py",
        "baseline/kernel.cu",
        "baseline/launch.toml",
        "baseline/new.cuh",
        "lib/a.py",
    ],
)
def test_any_change_of_code_needs_a_new_word(ws: Workspace, file: str) -> None:
    trust.grant(ws)
    path = ws.root / file
    path.parent.mkdir(exist_ok=True)
    before = path.read_bytes() if path.exists() else None
    path.write_text("import os\n")
    assert not trust.is_trusted(ws)
    assert file in trust.state(ws).files
    if before is None:
        path.unlink()
    else:
        path.write_bytes(before)
    assert trust.is_trusted(ws), "the same code again is the code that was trusted"


def test_another_baseline_needs_a_new_word(ws: Workspace) -> None:
    trust.grant(ws)
    ws.contract.write_text('[baseline]\npython = "shapes:run"\n')
    assert not trust.is_trusted(ws)


def test_what_runs_write_does_not_matter(ws: Workspace) -> None:
    trust.grant(ws)
    for file in (
        "runs/r001/reference.py",
        "candidates/c1/kernel.cu",
        "seeds/a/kernel.cu",
        "docs/plan.md",
        "notes.md",
    ):
        path = ws.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("anything")
    assert trust.is_trusted(ws)


def test_code_through_a_link_is_refused(ws: Workspace, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "evil.py").write_text("")
    (ws.root / "package").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="package"):
        trust.grant(ws)
    (ws.root / "package").unlink()
    (ws.root / "helper.py").symlink_to(tmp_path / "elsewhere" / "evil.py")
    with pytest.raises(UserError, match=r"helper\.py"):
        trust.is_trusted(ws)


def test_a_baseline_outside_the_workspace_is_refused(ws: Workspace) -> None:
    ws.contract.write_text('[baseline]\ncandidate = "../other"\n')
    with pytest.raises(UserError, match="outside"):
        trust.grant(ws)


def test_a_broken_store_says_what_to_do(ws: Workspace, state: Path) -> None:
    trust.grant(ws)
    (state / "trust.json").write_text("{")
    with pytest.raises(UserError, match=r"trust\.json.*remove it"):
        trust.is_trusted(ws)


def test_two_processes_trusting_at_once_lose_nothing(ws: Workspace, tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from kda_tui.record import trust
from kda_tui.record.paths import Workspace
ws = Workspace(Path(sys.argv[1]))
for i in range(20):
    ws.reference.write_text(f"{sys.argv[1]} {i}")
    trust.grant(ws)
"""
    roots = [tmp_path / name for name in ("a", "b")]
    for root in roots:
        root.mkdir()
    repository = Path(__file__).parents[2]
    children = [subprocess.Popen([sys.executable, "-c", code, str(root)], cwd=repository) for root in roots]
    assert [child.wait() for child in children] == [0, 0]
    for root in roots:
        for i in (0, 19):
            (root / "reference.py").write_text(f"{root} {i}")
            assert trust.is_trusted(Workspace(root))


def test_a_runs_secret_is_private_and_found_by_its_commitment(state: Path) -> None:
    secret = new_run_secret()
    assert secret.commit == commitment(secret.value)
    assert secret.value not in secret.commit
    path = state / "secrets" / secret.commit
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_run_secret(secret.commit) == secret
    assert new_run_secret() != secret
    path.write_text("another")
    with pytest.raises(UserError, match="start a new run"):
        load_run_secret(secret.commit)
    forget_run_secret(secret.commit)
    forget_run_secret(secret.commit)
    assert not path.exists()


@pytest.mark.parametrize("commit", ["", "../../etc/passwd", "ab" * 31, "AB" * 32])
def test_a_commitment_that_is_none_is_never_a_path(commit: str) -> None:
    with pytest.raises(UserError, match="not a SHA-256"):
        load_run_secret(commit)


def test_a_relative_state_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert state_folder() == tmp_path / ".local" / "state" / "kda"
