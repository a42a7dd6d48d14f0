"""From the command line to an exit code, whatever happens in between.

0 done or yes; 1 the answer is no (refused, not verified, not passed); 2 the user's mistake; 3 something that
the command needs is not there; 4 an error of kda itself; 130 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Sequence

import click

from kda_tui.text import UserError

NO = 1
MISTAKE = 2
UNAVAILABLE = 3
INTERNAL = 4
INTERRUPTED = 130


class Unavailable(UserError):
    """Something outside kda is missing: a device, a compiler, a terminal. Exit code 3."""

    exit_code = UNAVAILABLE


def run(argv: Sequence[str]) -> int:
    """Run ``kda`` with these arguments; returns the exit code and never raises."""
    _tolerate_any_locale()
    try:
        return _invoke(argv)
    except UserError as error:
        _complain(str(error))
        return int(getattr(error, "exit_code", MISTAKE))
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe has seen enough. Nothing may be written any more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        _complain(f"{type(error).__name__}: {_first_line(error)}; {_keep_traceback()}")
        return INTERNAL


def _invoke(argv: Sequence[str]) -> int:
    from kda_tui.cli.commands import kda

    try:
        result = kda.main(args=list(argv), prog_name="kda", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        hint = f" ({_help_for(error)})"
        _complain(_first_line(error.format_message()).rstrip(".") + hint)
        return error.exit_code
    return result if isinstance(result, int) else 0


def _help_for(error: click.ClickException) -> str:
    """``kda veto --help`` for a mistake in the words of ``kda veto``."""
    context: click.Context | None = getattr(error, "ctx", None)
    return f"{context.command_path if context is not None else 'kda'} --help"


def _tolerate_any_locale() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(f"kda: {text}", err=True)


def _first_line(error: object) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]


def _keep_traceback() -> str:
    """Writes the traceback of the current exception away; says where, or why that failed."""
    from kda_tui.cli.folders import state_folder
    from kda_tui.text import Redactor

    text = Redactor.from_environment(os.environ).redact_text(traceback.format_exc())
    try:
        folder = state_folder() / "errors"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.txt"
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        return f"the traceback could not be written: {error}"
    return f"the traceback is in {path}"
