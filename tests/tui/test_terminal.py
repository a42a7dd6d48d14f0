"""On a real terminal: it is given back after every end, nothing is written while idle, editors may fail."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.record.make_workspace import make_workspace
from tests.tui.pty_app import PtyApp

COUNT = itertools.count()
ROOT = Path(__file__).parents[2]
COMMAND = "from pathlib import Path; import sys; from kda_tui.tui.app import run_app; sys.exit(run_app(Path(sys.argv[1])))"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("pty") / "softmax_rows", 6)


def start(workspace: Path, cols: int = 80, rows: int = 24, **env: str) -> PtyApp:
    state = str(workspace.parent / f"state{next(COUNT)}")  # nobody left before: no note about that
    found = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": state, "XDG_CONFIG_HOME": state, "TMUX": "", **env}
    return PtyApp([sys.executable, "-c", COMMAND, str(workspace)], cols, rows, found)


def given_back(output: bytes) -> bool:
    """Alternate screen left, mouse and paste modes off, cursor shown."""
    tail = output[output.rfind(b"\x1b[?1049h") :]
    return all(tail.rfind(off) > tail.rfind(on) for on, off in (
        (b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?1003h", b"\x1b[?1003l"), (b"\x1b[?25l", b"\x1b[?25h"),
    ))  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_give_the_terminal_back(workspace: Path, number: signal.Signals) -> None:
    with start(workspace) as app:
        app.wait_for(b"c0006")
        app.signal(number)
        assert app.wait(20) == 128 + number
        time.sleep(0.1)
        assert given_back(app.output)


def test_a_lost_connection_leaves_no_process(workspace: Path) -> None:
    with start(workspace) as app:
        app.wait_for(b"c0006")
        app.hang_up()
        assert app.wait(8) is not None


def test_a_terminal_that_stops_reading_does_not_keep_the_process(workspace: Path) -> None:
    with start(workspace, 200, 50) as app:
        app.wait_for(b"c0006")
        app.stop_reading()
        for _ in range(300):
            os.write(app.fd, b"z")
            time.sleep(0.001)
        app.signal(signal.SIGTERM)
        assert app.wait(8) is not None


def test_idle_writes_nothing(workspace: Path) -> None:
    with start(workspace) as app:
        app.wait_for(b"c0006")
        time.sleep(1.5)
        while not 2 < time.time() % 60 < 55:  # ages and the clock move once a minute
            time.sleep(0.5)
        begin = time.monotonic()
        time.sleep(3)
        assert app.written(begin) == 0


@pytest.mark.parametrize(
    "editor",
    [
        "false",
        pytest.param("/no/such/editor", marks=pytest.mark.slow),
        pytest.param("true", marks=pytest.mark.slow),
    ],
)
def test_an_editor_may_fail_and_the_screen_comes_back(workspace: Path, editor: str) -> None:
    with start(workspace, VISUAL=editor, EDITOR=editor) as app:
        app.wait_for(b"c0006")
        time.sleep(0.3)
        app.press("2")
        time.sleep(0.5)
        app.press("e")
        time.sleep(1.0)
        count = app.output.count(b"\x1b[?1049h")
        assert count >= 2
        begin = time.monotonic()
        app.press("4")
        time.sleep(0.7)
        assert app.written(begin) > 0
        app.press("q")
        assert app.wait(6) == 0
        assert given_back(app.output)


def test_the_title_says_what_waits(workspace: Path) -> None:
    with start(workspace) as app:
        app.wait_for(b"\x1b]2;(1) softmax_rows iterate")


@pytest.mark.slow
def test_ctrl_z_goes_to_the_shell_and_comes_back(workspace: Path) -> None:
    with start(workspace) as app:
        app.wait_for(b"c0006")
        time.sleep(0.3)
        app.press("\x1a")
        time.sleep(1)
        assert app.process.status() == "stopped" and given_back(app.output)
        app.signal(signal.SIGCONT)
        time.sleep(1)
        begin = time.monotonic()
        app.press("1")
        time.sleep(0.7)
        assert app.written(begin) > 0
        app.press("q")
        assert app.wait(6) == 0 and given_back(app.output)
