"""``kda contract check`` and ``kda contract amend``."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kda_tui.cli.entry import NO, Unavailable
from kda_tui.cli.folders import cache_folder
from kda_tui.cli.output import print_json, say
from kda_tui.cli.target import find_workspace, json_option, workspace_argument
from kda_tui.record.paths import Workspace
from kda_tui.text import UserError

if TYPE_CHECKING:
    from kda_tui.evaluation.selftest import SelfTestRow


@click.group("contract")
def contract_command() -> None:
    """The task's contract: check it, change it."""


@contract_command.command("check")
@workspace_argument
@click.option("--read-only", is_flag=True, help="Only read the contract; leave out the self-test.")
@json_option
def check_command(workspace: Path | None, read_only: bool, as_json: bool) -> int:
    """Read the contract of WORKSPACE and run its self-test: wrong outputs must be rejected, honest ones accepted.

    Exit code 1 if the contract cannot tell right from wrong.
    """
    from kda_tui.record.contract import load_contract
    from kda_tui.record.trust import state

    ws = find_workspace(workspace)
    contract = load_contract(ws.contract)
    if read_only:
        facts = {
            "contract": ws.contract,
            "sha256": contract.sha256,
            "workloads": [w.id for w in contract.workloads],
        }
        print_json(facts) if as_json else say(f"{ws.contract}: well formed, {contract.sha256[:12]}")
        return 0
    if not (found := state(ws)).trusted:
        raise UserError(f"{ws.root}: its Python code may not run here: {found.words}")
    from kda_tui.evaluation.selftest import run_selftest

    report = run_selftest(ws.root, cache_folder(), on_row=None if as_json else _print_row)
    if as_json:
        print_json({"contract": ws.contract, "sha256": contract.sha256, "ok": report.ok, "rows": report.rows})
    else:
        wrong = sum(not row.ok for row in report.rows)
        words = (
            f"{wrong} of {len(report.rows)} WRONG: not fit for use"
            if wrong
            else f"all {len(report.rows)} as expected"
        )
        say(f"{ws.contract} ({contract.sha256[:12]}): {words}")
    return 0 if report.ok else NO


def _print_row(row: SelfTestRow, fraction: float) -> None:
    mark = "ok" if row.ok else f"WRONG, expected {row.expected}"
    say(f"{row.mutant:<24} {row.got:<20} {mark:<6}  {row.what}")


@contract_command.command("amend")
@click.argument("new", type=click.Path(path_type=Path))
@workspace_argument
@json_option
def amend_command(new: Path, workspace: Path | None, as_json: bool) -> int:
    """Put the changed contract NEW in force in WORKSPACE.

    The next run starts under it; verdicts under the old one no longer count. The old file is kept with its run.
    """
    from kda_tui.record.contract import parse_contract
    from kda_tui.record.lock import WorkspaceLock, probe

    ws = find_workspace(workspace)
    if probe(ws)[0] == "held":
        raise Unavailable(f"a worker runs in {ws.root}; end the run first: kda end {ws.root}")
    data = _read(new)
    before = _read(ws.contract)
    contract = parse_contract(data, str(new))
    old, fresh = hashlib.sha256(before).hexdigest(), contract.sha256
    if old == fresh:
        raise UserError(f"{new}: is the contract in force already; nothing was changed")
    with WorkspaceLock.acquire(ws):
        _replace(ws, data)
    if as_json:
        print_json({"contract": ws.contract, "old": old, "new": fresh})
    else:
        say("".join(_difference(before, data)).rstrip())
        say(
            f"{ws.contract}: {old[:12]} -> {fresh[:12]}; next: kda contract check {ws.root}, then kda run {ws.root}"
        )
    return 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def _replace(ws: Workspace, data: bytes) -> None:
    fresh = ws.contract.with_name(".contract.toml.new")
    fresh.write_bytes(data)
    fresh.replace(ws.contract)


def _difference(before: bytes, after: bytes) -> list[str]:
    old, new = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (before, after))
    return list(difflib.unified_diff(old, new, "in force", "amended", n=1))
