"""The wheel carries what an installed kda needs, and nothing of the checkout around it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_it_carries_themes_skills_workspaces_and_settings(names: list[str]) -> None:
    for folder in ("themes", "skills", "workspaces"):
        expected = {
            f"kda_tui/_share/{path.relative_to(ROOT)}"
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert expected, f"{folder}/ is empty"
        assert expected - set(names) == set()
    assert "kda_tui/_share/kda.toml" in names


def test_it_carries_the_headers_of_the_cpu_device(names: list[str]) -> None:
    headers = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "kda_tui" / "evaluation").rglob("*")
        if path.suffix in {".h", ".hpp", ".cuh", ".cpp", ".c"}
    ]
    assert headers
    assert set(headers) - set(names) == set()


def test_it_carries_the_licences(names: list[str]) -> None:
    for name in ("LICENSE", "LICENSE-docs", "THIRD_PARTY_NOTICES.md"):
        assert any(n.endswith(f".dist-info/licenses/{name}") for n in names), name


def test_it_carries_no_tests_and_no_caches(names: list[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    assert tops == {"kda_tui", next(t for t in tops if t.endswith(".dist-info"))}
    assert [n for n in names if "__pycache__" in n or n.endswith(".pyc")] == []
