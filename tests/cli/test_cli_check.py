"""kda open --check: what scripts get of workspaces that no kda wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    one = tmp_path / "repo" / "workspaces" / "k"
    (one / "profile").mkdir(parents=True)
    (one / "candidates.jsonl").write_text(
        json.dumps({"id": "v1\x1b[31m", "status": "promoted", "speedup": 1.5}) + "\n{torn\n"
    )
    (one / "benchmark.csv").write_text("candidate,case,candidate_us\nv2,a,5\nv2,b,bad\n")
    (one / "profile" / "notes.txt").write_text("hello\n")
    return tmp_path / "repo"


def test_the_facts_of_every_workspace_as_json(kda: Callable[..., Answer], folder: Path) -> None:
    answer = kda("open", "--check", str(folder), "--json")
    assert answer.code == 0
    (entry,) = answer.json
    assert entry["kind"] == "foreign"
    assert entry["rows"] == {"ledger": 1, "table": 2}
    assert entry["shown"] == {"candidates": 1, "events": 0, "numbers": 1, "text": 1}
    assert (entry["best"]["ratio"], entry["best"]["stated"]) == (1.5, "candidates.jsonl:1")
    assert entry["profiles"] == [
        {
            "file": "profile/notes.txt", "form": "", "version": "", "kernels": [], "hotspots": 0,
            "why_no_hotspots": "neither an ncu report, nor an ncu CSV, nor ncu's text",
        }
    ]  # fmt: skip
    assert [(f["file"], f["line"]) for f in entry["findings"]] == [
        ("benchmark.csv", 0),
        ("candidates.jsonl", 2),
    ]


def test_in_words_and_nothing_a_terminal_would_obey(kda: Callable[..., Answer], folder: Path) -> None:
    answer = kda("open", "--check", str(folder))
    assert (
        "1 in ledgers (1 of candidates, 0 of events), 2 in tables (1 with numbers, 1 as text)" in answer.out
    )
    assert "1.500x, candidates.jsonl:1" in answer.out
    assert "\x1b" not in answer.out


def test_other_commands_say_what_shows_it(kda: Callable[..., Answer], folder: Path) -> None:
    answer = kda("status", str(folder / "workspaces" / "k"))
    assert answer.code == 2
    assert "kda open shows it" in answer.err


def test_mistakes_are_told(kda: Callable[..., Answer], tmp_path: Path, folder: Path) -> None:
    (tmp_path / "none").mkdir()
    assert "no workspace here" in kda("open", "--check", str(tmp_path / "none")).err
    assert "--check" in kda("open", str(folder), "--json").err
