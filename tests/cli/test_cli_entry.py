"""From words to an exit code: one line for every way in which a command can end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from kda_tui.cli import commands, entry
from kda_tui.text import UserError

SECRET = "s3cr3t-0f-th3-t3st-4711"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Exception | int]:
    """``kda status`` replaced by a command that raises or returns what the list holds."""
    outcomes: list[Exception | int] = []

    @click.command("status")
    def command() -> int:
        outcome = outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(commands.LazyGroup, "get_command", lambda self, ctx, name: command)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return outcomes


@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_commands_answer_is_the_exit_code(calls: list[Exception | int], code: int) -> None:
    calls.append(code)
    assert entry.run(["status"]) == code


def test_a_users_mistake_is_one_line_and_2(
    calls: list[Exception | int], capsys: pytest.CaptureFixture[str]
) -> None:
    calls.append(UserError("contract.toml:3: task.device: cpu or cuda, not 'gpu'"))
    assert entry.run(["status"]) == 2
    assert capsys.readouterr().err == "kda: contract.toml:3: task.device: cpu or cuda, not 'gpu'\n"


def test_what_is_not_there_is_3(calls: list[Exception | int]) -> None:
    calls.append(entry.Unavailable("no GPU here"))
    assert entry.run(["status"]) == 3


def test_an_error_of_kda_is_4_and_keeps_the_traceback_without_secrets(
    calls: list[Exception | int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    calls.append(RuntimeError(f"broken\nby {SECRET}"))
    assert entry.run(["status"]) == 4
    err = capsys.readouterr().err
    assert err.startswith("kda: RuntimeError: broken; the traceback is in ")
    assert err.count("\n") == 1
    (report,) = (tmp_path / "state" / "kda" / "errors").iterdir()
    text = report.read_text()
    assert "Traceback" in text
    assert SECRET not in text


def test_a_state_folder_that_cannot_be_written_does_not_hide_the_error(
    calls: list[Exception | int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    calls.append(ZeroDivisionError("division by zero"))
    assert entry.run(["status"]) == 4
    assert (
        "ZeroDivisionError: division by zero; the traceback could not be written" in capsys.readouterr().err
    )


def test_ctrl_c_is_130(calls: list[Exception | int], capsys: pytest.CaptureFixture[str]) -> None:
    calls.append(click.Abort())
    assert entry.run(["status"]) == 130
    assert capsys.readouterr().err == "kda: interrupted\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["stauts"], "did you mean status?"),
        (["veto"], "kda veto --help"),
        (["--frob"], "No such option"),
        (["budget", "money", "3"], "candidates"),
        (["budget", "usd", "-3"], "-3"),
        (["steer"], "Missing argument"),
    ],
)
def test_wrong_words_are_one_line_and_2(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(argv) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.startswith("kda: ")
    assert err.count("\n") == 1


def kda(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kda_tui", *argv],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_no_folder_and_no_workspace(tmp_path: Path) -> None:
    assert "there is no such folder" in kda("status", str(tmp_path / "absent")).stderr
    (tmp_path / "file").write_text("")
    assert "a file, not a folder" in kda("status", str(tmp_path / "file")).stderr
    done = kda("status", str(tmp_path))
    assert done.returncode == 2
    assert "no contract.toml" in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    line = f"{sys.executable} -m kda_tui --help | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage:")


@pytest.mark.parametrize(
    "locale", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}]
)
def test_any_locale_will_do(locale: dict[str, str]) -> None:
    done = kda("doctor", **locale)
    assert done.returncode in (0, 3), done.stderr
    assert done.stderr == ""


def test_a_signal_ends_a_watching_command(workspace: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kda_tui", "watch", str(workspace)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # where the tests run in the background, SIGINT is ignored and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (130, "", "\nkda: interrupted\n")


def test_without_a_terminal_there_is_no_screen_but_a_way(workspace: Path) -> None:
    done = kda("open", str(workspace))
    assert done.returncode == 3
    assert "kda watch" in done.stderr
    assert done.stderr.count("\n") == 1
