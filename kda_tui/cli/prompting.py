"""The filled-in starter prompt, for people who keep using their own coding agent."""

from __future__ import annotations

from pathlib import Path

import click

from kda_tui.cli.target import find_workspace, read, workspace_argument
from kda_tui.text import UserError, clean


@click.command("prompt")
@workspace_argument
def prompt_command(workspace: Path | None) -> int:
    """Print a starter prompt for your own coding agent: contract, rules, commands, where evidence goes."""
    from kda_tui.agents.context import Context, shelf_of
    from kda_tui.agents.templates import fill

    ws = find_workspace(workspace)
    snap = read(ws)
    if snap.contract is None:
        raise UserError(snap.contract_error or f"{ws.contract}: missing")
    context = Context(snap, shelf_of(ws.root, snap, ()))
    values = {"root": str(ws.root), "state": context.state(), "results": context.results()}
    click.echo(clean(fill("starter", {**values, **context.fixed()})), nl=False)
    return 0
