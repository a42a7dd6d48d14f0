"""Starting a worker, and the screen."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import click

from kda_tui.cli.entry import Unavailable
from kda_tui.cli.output import print_json, say
from kda_tui.cli.target import find_folder, find_workspace, json_option, workspace_argument
from kda_tui.text import UserError


@click.command("run")
@workspace_argument
@click.option(
    "--agent",
    help="Who proposes candidates: tuner, anthropic, replay:FILE. Default: agent.default of kda.toml.",
)
@click.option("--model", help="The agent's model, where it has one. Default: agent.model of kda.toml.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Default: the contract's device.")
@click.option(
    "--yes",
    type=click.Choice(["plan", "promotion", "end"]),
    multiple=True,
    help="Open these gates by rule, without a person; recorded as such. May be given several times.",
)
@click.option("--resume", is_flag=True, help="Go on with the last run, whose worker is gone.")
@click.option("--max-candidates", type=click.IntRange(min=1), help="Stop after this many candidates.")
@click.option("--foreground", is_flag=True, help="Stay in the foreground until the run ends.")
@json_option
def run_command(
    workspace: Path | None,
    agent: str | None,
    model: str | None,
    device: str | None,
    yes: tuple[str, ...],
    resume: bool,
    max_candidates: int | None,
    foreground: bool,
    as_json: bool,
) -> int:
    """Start a worker on WORKSPACE. It runs on its own: closing the terminal or the screen changes nothing."""
    from kda_tui.config import load_config
    from kda_tui.worker.start import RunOptions, run_foreground, start_detached

    ws = find_workspace(workspace)
    settings = load_config(ws.root).agent
    options = RunOptions(
        agent=agent or settings.default,
        device=device,
        yes=yes,
        resume=resume,
        model=model or settings.model,
        max_candidates=max_candidates,
    )
    if foreground:
        run_foreground(ws, options)
        return 0
    pid = start_detached(ws, options)
    if as_json:
        print_json({"workspace": ws.root, "pid": pid, "run": (ws.run_names() or [""])[-1]})
    else:
        say(f"a worker runs on {ws.root} (pid {pid}); kda open {ws.root} shows it")
    return 0


@click.command("open")
@workspace_argument
@click.option("--read-only", is_flag=True, help="Look only: no decision can be sent, nothing is written.")
@click.option(
    "--check", is_flag=True, help="Open no screen: print what is there and what could not be understood."
)
@json_option
def open_command(workspace: Path | None, read_only: bool, check: bool, as_json: bool) -> int:
    """Open the screen on WORKSPACE, or on a folder of workspaces. Leaving it (q) changes nothing for the run.

    A workspace that no kda wrote is opened, too, read-only: ledgers, tables, plans, transcripts and profiles as they are.
    """
    root = find_folder(workspace)
    if check:
        from kda_tui.cli.checking import print_check

        return print_check(root, as_json)
    if as_json:
        raise UserError("kda open --json prints what --check finds; give both")
    require_terminal(f"kda status {root}, kda watch {root} and kda open --check {root} print the same facts")
    return open_screen(root, read_only)


def require_terminal(instead: str) -> None:
    """Raises :class:`Unavailable` where no screen can be shown; ``instead`` says what to do."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Unavailable(f"the screen needs a terminal; {instead}")
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise Unavailable(f"TERM={os.environ.get('TERM') or 'unset'} cannot show the screen; {instead}")


def open_screen(root: Path, read_only: bool = False) -> int:
    """Show the screen until the person leaves it; its exit code."""
    # What importing makes stays: looking through it for garbage would cost a sixth of the start, and later again.
    gc.disable()
    from kda_tui.tui.app import run_app

    gc.freeze()
    gc.enable()
    return run_app(root, read_only=read_only)
