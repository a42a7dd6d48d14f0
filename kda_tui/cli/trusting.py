"""Is the record what was written, and may this workspace's code run here?"""

from __future__ import annotations

from pathlib import Path

import click

from kda_tui.cli.entry import NO
from kda_tui.cli.output import print_json, say
from kda_tui.cli.target import find_workspace, json_option, workspace_argument


@click.command("verify")
@workspace_argument
@click.option(
    "--against", metavar="HEAD", help="The head that a report printed; finds a record written anew."
)
@json_option
def verify_command(workspace: Path | None, against: str | None, as_json: bool) -> int:
    """Check every line, source and measurement of WORKSPACE against its checkpoints.

    Exit code 1 if anything was changed since it was written.
    """
    from kda_tui.record.verify import verify

    ws = find_workspace(workspace)
    report = verify(ws, against)
    if as_json:
        print_json(report)
    else:
        for finding in report.problems:
            say(f"{finding.file}:{finding.line}: {finding.seen}; {finding.done}")
        words = f"{report.lines} lines" + (f", head {report.head}" if report.head else ", no checkpoint yet")
        say(f"{ws.root}: {'verified' if report.ok else 'NOT as it was written'}: {words}")
    return 0 if report.ok else NO


@click.command("trust")
@workspace_argument
@click.option("--withdraw", is_flag=True, help="Trust it no longer.")
@click.option("--show", is_flag=True, help="Only say whether it is trusted.")
@json_option
def trust_command(workspace: Path | None, withdraw: bool, show: bool, as_json: bool) -> int:
    """Allow the reference and baseline of WORKSPACE, as they are now, to run on this machine.

    A workspace that was made elsewhere brings Python code. It runs only after this, and only unchanged.
    Exit code 1 with --show if it is not trusted.
    """
    from kda_tui.record import trust

    ws = find_workspace(workspace)
    if withdraw:
        trust.withdraw(ws)
    elif not show:
        trust.grant(ws)
    state = trust.state(ws)
    if as_json:
        print_json(state)
    else:
        say(f"{ws.root}: {state.words}")
    return NO if show and not state.trusted else 0
