"""Every test gets its own state, cache and settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from kda_tui.record.paths import Workspace
from tests.worker.make import make_workspace


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.delenv("KDA_CONFIG", raising=False)
    monkeypatch.setenv("KDA_USER", "kl")


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "scale")
