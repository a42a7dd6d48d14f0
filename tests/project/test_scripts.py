"""The shell scripts: plain POSIX sh, and what they do where something is missing."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted([*(ROOT / "bin").iterdir(), ROOT / ".ci" / "run"])
SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]
TOOLS = ["sh", "dirname", "cksum", "grep", "mkdir", "rm", "chmod", "ls", "cat", "sed", "uname", "env"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_shell_can_parse_every_script(script: Path, shell: str) -> None:
    command = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]
    done = subprocess.run([*command, str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_plain_sh(script: Path) -> None:
    text = script.read_text()
    for word in ("[[", "local ", "function ", "source ", "<(", "pipefail", "$'", "${!", "&>"):
        assert word not in text.replace("# Sourced", ""), f"{word!r} is not in POSIX sh"


@pytest.mark.parametrize("name", ["demo", "test", "lint", "bench"])
def test_scripts_can_be_run_as_they_are(name: str) -> None:
    assert (ROOT / "bin" / name).stat().st_mode & stat.S_IXUSR
    assert (ROOT / "bin" / name).read_text().startswith("#!/bin/sh\n")


def test_ci_runs_what_the_readme_tells_people_to_run() -> None:
    first_lines = (ROOT / "README.md").read_text().splitlines()[:8]
    assert any(line.strip().startswith("make demo") for line in first_lines)
    assert any(line.strip().startswith("make test") for line in first_lines)
    ci = (ROOT / ".ci" / "run").read_text()
    assert "make test" in ci
    assert "bin/test" in ci


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH with a few tools and nothing else: no Python, no uv, no compiler."""
    folder = tmp_path / "path"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, tool
        (folder / tool).symlink_to(found)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout as far as the scripts look at it."""
    folder = tmp_path / "check out"
    (folder / "bin").mkdir(parents=True)
    for script in (ROOT / "bin").iterdir():
        shutil.copy(script, folder / "bin")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def prepare(checkout: Path, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `prepare ""` and print where the interpreter is."""
    line = 'set -eu; root=$1; . "$root/bin/prepare.sh"; prepare ""; printf "%s" "$python"'
    home = checkout.parent / "home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [shutil.which("sh") or "/bin/sh", "-c", line, "sh", str(checkout)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={"PATH": str(path), "HOME": str(home), **environment},
    )


def script(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_without_python_and_uv_one_line_says_what_to_install(checkout: Path, bare: Path) -> None:
    done = prepare(checkout, bare)
    assert done.returncode == 3
    assert "install python3.11" in done.stderr
    assert "uv" in done.stderr.splitlines()[-1]
    assert not (checkout / ".venv").exists()


def test_a_python_that_is_too_old_or_does_not_run_is_passed_over(checkout: Path, bare: Path) -> None:
    script(bare, "python3.14", "echo 'python3.14: command not found' >&2; exit 127")
    script(bare, "python3", "exit 1")
    done = prepare(checkout, bare)
    assert done.returncode == 3
    assert "no Python 3.11 or newer" in done.stderr


def test_a_folder_that_is_no_virtual_environment_is_left_alone(
    checkout: Path, bare: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    done = prepare(checkout, bare, KDA_VENV=str(precious))
    assert done.returncode == 3
    assert "is not a virtual environment" in done.stderr
    assert (precious / "thesis.tex").read_text() == "years of work"


def fake_environment(checkout: Path, log: Path) -> None:
    """An environment whose interpreter is recent, has pip, and writes down what it is asked."""
    bindir = checkout / ".venv" / "bin"
    bindir.mkdir(parents=True)
    (checkout / ".venv" / "pyvenv.cfg").write_text("home = /\n")
    script(bindir, "python", f'printf "%s\\n" "$*" >>"{log}"')


def test_the_second_time_nothing_is_installed(checkout: Path, bare: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    fake_environment(checkout, log)
    script(bare, "g++", "cat >/dev/null")
    first = prepare(checkout, bare)
    assert first.returncode == 0, first.stderr
    assert "-m pip install" in log.read_text()
    assert str(checkout) in log.read_text()
    log.write_text("")
    second = prepare(checkout, bare)
    assert (second.returncode, second.stderr) == (0, "")
    assert "pip" not in log.read_text()
    (checkout / "pyproject.toml").write_text("[project]\n")
    prepare(checkout, bare)
    assert "-m pip install" in log.read_text()


def test_without_a_compiler_zig_is_installed_and_announced(
    checkout: Path, bare: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    fake_environment(checkout, log)
    done = prepare(checkout, bare)
    assert done.returncode == 0, done.stderr
    assert "ziglang" in done.stderr
    assert "[compiler]" in log.read_text()


def test_a_compiler_that_cannot_compile_does_not_count(checkout: Path, bare: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    fake_environment(checkout, log)
    script(bare, "g++", "cat >/dev/null; echo 'fatal error: cmath: No such file' >&2; exit 1")
    prepare(checkout, bare)
    assert "[compiler]" in log.read_text()


def test_a_failed_installation_is_not_remembered(checkout: Path, bare: Path, tmp_path: Path) -> None:
    fake_environment(checkout, tmp_path / "log")
    script(checkout / ".venv" / "bin", "python", 'case "$*" in *install*) exit 1 ;; esac')
    script(bare, "g++", "cat >/dev/null")
    for _ in range(2):
        done = prepare(checkout, bare)
        assert done.returncode == 3
        assert "the installation failed" in done.stderr


def test_what_cannot_be_written_goes_to_the_checkout(checkout: Path, bare: Path, tmp_path: Path) -> None:
    fake_environment(checkout, tmp_path / "log")
    script(bare, "g++", "cat >/dev/null")
    absent = tmp_path / "absent" / "tmp"
    file = tmp_path / "file"
    file.write_text("")
    done = prepare(checkout, bare, TMPDIR=str(absent), HOME=str(file))
    assert done.returncode == 0, done.stderr
    assert "temporary files go to" in done.stderr
    assert "caches and state go to" in done.stderr
    assert (checkout / ".local" / "tmp").is_dir()
    assert (checkout / ".local" / "state").is_dir()


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize(
    ("target", "line"),
    [("demo", "sh bin/demo"), ("test", "sh bin/test"), ("lint", "sh bin/lint"), ("bench", "sh bin/bench")],
)
def test_make_targets_call_the_scripts(target: str, line: str) -> None:
    done = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
    assert line in done.stdout


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_make_demo_passes_headless_on() -> None:
    done = subprocess.run(["make", "-n", "demo", "HEADLESS=1"], cwd=ROOT, capture_output=True, text=True)
    assert "HEADLESS='1' sh bin/demo" in done.stdout
