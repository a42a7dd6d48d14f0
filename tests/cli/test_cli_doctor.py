"""What ``kda doctor`` finds, and what it never shows."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kda_tui.cli import machine

SECRET = "sk-ant-not-a-real-key-0123456789"


def test_every_fact_says_how_it_stands_and_what_is_missing_how_to_mend_it(kda: Callable[..., Any]) -> None:
    facts = kda("doctor", "--json").json["facts"]
    names = {fact["name"] for fact in facts}
    wanted = "kda compiler gpu driver pycuda nvrtc ncu terminal skills state cache settings"
    assert set(wanted.split()) | {"ncu counters", "api key"} <= names
    for fact in facts:
        assert fact["state"] in ("ok", "missing", "unknown"), fact
        assert fact["detail"], fact
        assert fact["mend"] or fact["state"] != "missing", fact


def test_the_key_is_never_shown(kda: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    for answer in (kda("doctor"), kda("doctor", "--json")):
        assert "ANTHROPIC_API_KEY is set" in answer.out
        assert SECRET not in answer.out + answer.err


@pytest.mark.parametrize(
    ("text", "root", "state"),
    [
        ("RmProfilingAdminOnly: 0\n", False, "ok"),
        ("RmProfilingAdminOnly: 1\n", False, "missing"),
        ("RmProfilingAdminOnly: 1\n", True, "ok"),
        ("SomethingElse: 1\n", False, "unknown"),
    ],
)
def test_the_permission_of_ncu(
    text: str, root: bool, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "params").write_text(f"Mobile: 4294967295\n{text}")
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    assert machine.ncu_permission(tmp_path / "params").state == state


def test_without_a_driver_the_permission_is_unknown(tmp_path: Path) -> None:
    assert machine.ncu_permission(tmp_path / "absent").state == "unknown"


def test_a_missing_compiler_is_exit_code_3(kda: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from kda_tui.evaluation.devices.cpu.compiler import find_compiler

    monkeypatch.setenv("KDA_CXX", "no-such-compiler")
    find_compiler.cache_clear()
    try:
        answer = kda("doctor")
    finally:
        find_compiler.cache_clear()
    assert answer.code == 3
    assert "missing  compiler" in answer.out


def test_a_folder_that_cannot_be_written_is_named(kda: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    fact = machine.writable("state", tmp_path / "file" / "kda", "set XDG_STATE_HOME")
    assert (fact.state, fact.mend) == ("missing", "set XDG_STATE_HOME")
    assert str(tmp_path) in fact.detail
