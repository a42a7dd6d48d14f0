"""What every file of the project keeps to."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "kda_tui").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TEXT_SUFFIXES = {".py", ".md", ".toml", ".sh", ".cu", ".cuh", ".hpp", ".h", ".cpp", ".json", ".svg", ""}
SKIPPED = {".git", ".venv", ".local", ".demo", ".gpu", "dist", "__pycache__"}


def texts() -> list[Path]:
    """Every text file of the checkout that git would keep, without caches and environments."""
    found = []
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        hidden_cache = parts[0].startswith(".") and parts[0] not in (".ci", ".gitignore")
        if not path.is_file() or hidden_cache or SKIPPED & set(parts) or path.suffix not in TEXT_SUFFIXES:
            continue
        found.append(path)
    return found


def test_no_source_file_is_too_long() -> None:
    long = {str(p.relative_to(ROOT)): n for p in SOURCES if (n := len(p.read_text().splitlines())) > 450}
    assert long == {}


@pytest.mark.parametrize("word", ["TODO", "FIXME", "XXX", "raise NotImplementedError", "breakpoint("])
def test_nothing_is_left_unfinished(word: str) -> None:
    assert [str(p.relative_to(ROOT)) for p in SOURCES if word in p.read_text()] == []


def test_no_path_of_a_developers_machine() -> None:
    everywhere = re.compile(r"(?<![\w.~])/(work|root)/[A-Za-z]")
    outside_tests = re.compile(r"(?<![\w.~])/(work|root|home|Users)/[A-Za-z]")
    found = []
    for path in texts():
        name = path.relative_to(ROOT)
        if name.parts[-2:] == ("project", "test_hygiene.py"):
            continue
        pattern = everywhere if name.parts[0] == "tests" else outside_tests
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{name}:{number}: {line.strip()[:80]}")
    assert found == []


def test_every_room_says_what_it_is() -> None:
    rooms = list((ROOT / "kda_tui").rglob("__init__.py"))
    assert [str(p) for p in rooms if '"""' not in p.read_text()] == []


def test_every_dependency_is_in_the_notices() -> None:
    notices = (ROOT / "THIRD_PARTY_NOTICES.md").read_text()
    extras = PROJECT["project"]["optional-dependencies"]
    asked = [
        *PROJECT["project"]["dependencies"],
        *(d for extra in extras.values() for d in extra),
        *PROJECT["build-system"]["requires"],
    ]
    names = {re.split(r"[<>=!~ \[;]", requirement)[0] for requirement in asked}
    assert {name for name in names if f"| {name} |" not in notices} == set()


def test_every_link_in_the_documentation_leads_somewhere() -> None:
    broken = []
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "workspaces").glob("*/README.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_licences_are_there_in_full() -> None:
    assert "END OF TERMS AND CONDITIONS" in (ROOT / "LICENSE").read_text()
    assert "CC-BY-4.0" in (ROOT / "LICENSE-docs").read_text()
