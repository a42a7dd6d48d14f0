"""Starting up: what is imported, and that the table of commands and the commands agree."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from kda_tui.cli.commands import ENTRIES, kda

HEAVY = ("anthropic", "pycuda", "numpy", "pydantic", "textual", "rich", "plotext", "watchfiles")


def imported_by(code: str, names: tuple[str, ...]) -> list[str]:
    """Which of ``names`` are loaded in a fresh interpreter after ``code``."""
    probe = f"import sys\n{code}\nprint(*[n for n in {names!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


def test_help_imports_nothing_heavy() -> None:
    code = "from kda_tui.cli.entry import run\nassert run(['--help']) == 0"
    assert imported_by(code, HEAVY) == []


def test_the_screen_imports_neither_agents_nor_devices() -> None:
    assert imported_by("import kda_tui.tui.app", ("anthropic", "pycuda", "numpy", "cuda")) == []


@pytest.mark.parametrize("name", list(ENTRIES))
def test_every_listed_command_exists_and_explains_itself(name: str) -> None:
    with click.Context(kda) as ctx:
        command = kda.get_command(ctx, name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").strip(), f"kda {name} --help says nothing"
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, f"kda {name} {option.opts[0]} says nothing"


def test_help_lists_every_command() -> None:
    done = subprocess.run([sys.executable, "-m", "kda_tui", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line.strip()}
    assert set(ENTRIES) - listed == set()


def test_version() -> None:
    from kda_tui import __version__

    done = subprocess.run([sys.executable, "-m", "kda_tui", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"kda {__version__}\n")
