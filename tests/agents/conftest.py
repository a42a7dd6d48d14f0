"""Every test gets its own state, cache and settings, a key that is no key, and short waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from kda_tui.agents.anthropic import talk
from kda_tui.record.paths import Workspace
from tests.worker.make import make_workspace

KEY = "sk-test-0a1b2c3d4e5f6a7b8c9d"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for name in ("KDA_CONFIG", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("KDA_USER", "kl")
    monkeypatch.setattr(talk, "QUICK_WAIT_S", 0.01)
    monkeypatch.setattr(talk, "HOLD_S", 0.2)


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "scale")
