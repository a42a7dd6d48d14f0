"""A workspace, and ``kda`` called in this process."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kda_tui.cli.entry import run


@dataclass(frozen=True)
class Answer:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's own folders, name and workspace out of the tests."""
    for name in ("STATE", "DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("KDA_USER", "tester")
    monkeypatch.delenv("KDA_WORKSPACE", raising=False)


@pytest.fixture
def kda(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Call ``kda`` with words, in this process."""

    def call(*words: str | Path) -> Answer:
        capsys.readouterr()
        code = run([str(word) for word in words])
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return call


@pytest.fixture
def workspace(tmp_path: Path, kda: Callable[..., Answer]) -> Path:
    """A workspace from the template softmax_rows, without a run."""
    root = tmp_path / "task"
    made = kda("new", "softmax_rows", root)
    assert made.code == 0, made.err
    return root


@pytest.fixture
def small(workspace: Path) -> Path:
    """The same with one small workload: for tests that are not about times."""
    contract = workspace / "contract.toml"
    text = re.sub(r"(?s)\[\[workload\]\].*?(?=\n\[correctness\])", "", contract.read_text())
    workload = '[[workload]]\nid = "r4_c33"\naxes = {rows = 4, cols = 33}\n\n[correctness]'
    contract.write_text(text.replace("[correctness]", workload))
    return workspace
