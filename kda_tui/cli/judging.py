"""Evaluations for a person, here and now. They go through the same judge and leave the record alone."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kda_tui.cli.entry import NO, Unavailable
from kda_tui.cli.folders import cache_folder
from kda_tui.cli.output import print_json, say
from kda_tui.cli.target import (
    candidate_folder,
    find_workspace,
    json_option,
    read,
    require_trust,
    workspace_option,
)
from kda_tui.record.paths import Workspace
from kda_tui.record.snapshot import Snapshot
from kda_tui.text import UserError

if TYPE_CHECKING:
    from kda_tui.evaluation.client import JudgeRequest
    from kda_tui.evaluation.verdict import Progress, Verdict

LEVELS = ("build", "smoke", "screen", "correct", "time", "confirm")


def workload_option(command: Any) -> Any:
    return click.option(
        "-w", "--workload", "workloads", multiple=True, help="Only this workload; may be given several times."
    )(command)


@click.command("eval")
@click.argument("what")
@click.option(
    "--level", type=click.Choice(LEVELS), default="time", show_default=True, help="The last stage to run."
)
@workload_option
@workspace_option
@json_option
def eval_command(
    what: str, level: str, workloads: tuple[str, ...], workspace: Path | None, as_json: bool
) -> int:
    """Evaluate WHAT, a candidate or a folder with kernel.cu and launch.toml, against the incumbent.

    Nothing is recorded: kda measure has the worker do it for the record. Exit code 1 unless it passed.
    """
    ws = find_workspace(workspace)
    snap = read(ws)
    if level in ("screen", "time", "confirm") and snap.liveness == "alive" and not snap.hold:
        raise Unavailable(
            f"a worker measures in {ws.root}; kda pause first, or have it done with kda measure"
        )
    request = _request(
        ws, snap, what, workloads, op="confirm" if level == "confirm" else "evaluate", level=level
    )
    verdict = _judge(request, quiet=as_json)
    if as_json:
        print_json(verdict)
    else:
        from kda_tui.cli.verdicts import lines

        say("\n".join(lines(verdict)))
    return 0 if verdict.validity == "passed" else NO


@click.command("debug")
@click.argument("what")
@workload_option
@workspace_option
@json_option
def debug_command(what: str, workloads: tuple[str, ...], workspace: Path | None, as_json: bool) -> int:
    """Launch WHAT, a candidate or a folder, once, with printf and assert, and look where it differs; no verdict."""
    ws = find_workspace(workspace)
    verdict = _judge(_request(ws, read(ws), what, workloads, op="debug", level="correct"), quiet=as_json)
    if as_json:
        print_json(verdict)
    else:
        from kda_tui.cli.verdicts import look

        say("\n".join(look(verdict)))
    return 0


@click.command("explain")
@click.argument("what")
@workload_option
@workspace_option
@json_option
def explain_command(what: str, workloads: tuple[str, ...], workspace: Path | None, as_json: bool) -> int:
    """Time WHAT, a candidate or a folder, cold, warm, as a graph, in a batch and in a loop; say why they differ."""
    ws = find_workspace(workspace)
    snap = read(ws)
    if snap.liveness == "alive" and not snap.hold:
        raise Unavailable(f"a worker measures in {ws.root}; kda pause first")
    verdict = _judge(_request(ws, snap, what, workloads, op="explain", level="time"), quiet=as_json)
    if as_json:
        print_json(verdict)
        return 0
    if verdict.validity != "passed":
        raise UserError(f"{what}: cannot be timed: {verdict.validity}: {verdict.reason}")
    for row in verdict.extra["rows"]:
        say(f"{row['workload']:16} {row['way']:13} {row['us']:>10.2f} us  {row['why']}")
    return 0


def _request(
    ws: Workspace, snap: Snapshot, what: str, workloads: Sequence[str], op: str, level: str
) -> JudgeRequest:
    from kda_tui.evaluation.client import JudgeRequest

    require_trust(ws)
    contract = snap.contract
    if contract is None:
        raise UserError(snap.contract_error or f"{ws.contract}: there is no contract")
    known = [w.id for w in contract.workloads]
    for name in workloads:
        if name not in known:
            raise UserError(f"there is no workload {name}; the contract has {', '.join(known)}")
    name, folder = candidate_folder(ws, snap, what)
    incumbent = snap.incumbent.cand
    return JudgeRequest(
        op=op,
        workspace=str(ws.root),
        candidate=str(folder),
        incumbent="" if incumbent == "baseline" else str(ws.candidate(incumbent)),
        cand_id=name,
        incumbent_id=incumbent,
        level=level,
        k=snap.confirmations + 1,
        attempt=1,
        samples_dir="",
        cache_dir=str(cache_folder()),
        seeds=tuple(secrets.token_hex(8) for _ in range(contract.correctness.seeds)),
        options={"workloads": list(workloads)} if workloads else {},
    )


def _judge(request: JudgeRequest, quiet: bool) -> Verdict:
    """Run one request in a judge process of its own, and show its progress on a terminal."""
    from dataclasses import replace

    from kda_tui.evaluation.client import JudgeProcess

    async def run(folder: Path) -> Verdict:
        judge = await JudgeProcess.start(cache_folder(), folder / "judge.log")
        try:
            return await judge.run(replace(request, samples_dir=str(folder / "samples")), _progress(quiet))
        finally:
            await judge.close()

    with tempfile.TemporaryDirectory(prefix="kda-eval-") as folder:
        (Path(folder) / "samples").mkdir()
        verdict = asyncio.run(run(Path(folder)))
    if not quiet and sys.stderr.isatty():
        click.echo("\r\033[K", err=True, nl=False)
    if verdict.validity == "infrastructure_error":
        raise Unavailable(f"{request.workspace}: not judged: {verdict.reason}")
    return verdict


def _progress(quiet: bool) -> Any:
    def show(progress: Progress) -> None:
        with contextlib.suppress(OSError):
            click.echo(
                f"\r\033[K{progress.stage} {progress.fraction:4.0%} {progress.workload}", err=True, nl=False
            )

    return (lambda progress: None) if quiet or not sys.stderr.isatty() else show
