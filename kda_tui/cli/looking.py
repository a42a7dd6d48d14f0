"""Facts about workspaces: one, many, and as they change."""

from __future__ import annotations

import time
from pathlib import Path

import click

from kda_tui.cli.news import gate_name, news, ratio
from kda_tui.cli.output import print_json, say, table
from kda_tui.cli.target import find_workspace, json_option, read, workspace_argument
from kda_tui.record.paths import Workspace, check_folder
from kda_tui.record.snapshot import Snapshot

FOLDERS_BELOW = 2


@click.command("status")
@workspace_argument
@json_option
def status_command(workspace: Path | None, as_json: bool) -> int:
    """Phase, hold, what waits for you, and the best candidate of WORKSPACE."""
    from kda_tui.worker.status import facts

    ws = find_workspace(workspace)
    snap = read(ws)
    if as_json:
        print_json(facts(snap))
    else:
        say("\n".join(_status_lines(snap)))
    return 0


def _status_lines(snap: Snapshot) -> list[str]:
    run = snap.run.name if snap.run else "no run yet"
    state = snap.phase or "-"
    if snap.hold:
        state += f" HELD ({snap.hold})"
    lines = [f"{snap.name or snap.workspace.name}  {run}  {state}  worker {_worker(snap)}"]
    if snap.hold and snap.hold_why:
        lines.append(f"held       {snap.hold_why}")
    if snap.contract_error:
        lines.append(f"contract   {snap.contract_error}")
    if snap.live is not None and snap.live.stage and snap.liveness == "alive":
        share = f" {snap.live.fraction:.0%}" if snap.live.fraction is not None else ""
        lines.append(f"running    {snap.live.op} {snap.live.cand} {snap.live.stage}{share}")
    for gate in snap.gates:
        lines.append(f"waits      {gate_name(gate)}, since {gate.opened}")
        if (review := snap.review_of(gate)) is not None:
            lines.append(f"           {review.words}")
    lines += [f"pending    {d.kind} by {d.who}, sent {d.t}" for d in snap.pending]
    lines.append(f"incumbent  {_incumbent(snap)}")
    counts = ", ".join(f"{count} {word}" for word, count in snap.counts.items() if count)
    lines.append(f"candidates {counts or 'none'}")
    lines += [
        f"budget     {b.axis} {b.used:g}" + (f" of {b.limit:g}" if b.limit is not None else "")
        for b in snap.budget.values()
    ]
    lines += [f"finding    {f.file}:{f.line}: {f.seen}; {f.done}" for f in snap.findings[-5:]]
    return lines


def _worker(snap: Snapshot) -> str:
    if snap.liveness == "gone" and snap.phase == "ended":
        return "finished"
    return snap.liveness


def _incumbent(snap: Snapshot) -> str:
    best = snap.candidates.get(snap.incumbent.cand)
    return f"{snap.incumbent.cand}{ratio(best)}" if best is not None else snap.incumbent.cand


@click.command("list")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
@json_option
def list_command(folders: tuple[Path, ...], as_json: bool) -> int:
    """The workspaces in FOLDERS (default: the configured ones, else here), those that wait for you first."""
    found = [read(ws) for ws in _workspaces(folders or _configured())]
    found.sort(key=lambda snap: (not snap.gates, snap.name))
    if as_json:
        print_json([_summary(snap) for snap in found])
        return 0
    if not found:
        say("no workspace here; kda new makes one")
        return 0
    head = ("waits", "workspace", "run", "phase", "incumbent", "candidates", "worker", "last")
    rows = [tuple(_cell(_summary(snap)[name]) for name in head) for snap in found]
    say(table([head, *rows], right=(5,)))
    return 0


def _cell(value: object) -> str:
    return "-" if value == "" else str(value)


def _summary(snap: Snapshot) -> dict[str, object]:
    return {
        "waits": ", ".join(gate_name(gate) for gate in snap.gates),
        "workspace": str(snap.workspace),
        "run": snap.run.name if snap.run else "",
        "phase": f"{snap.phase} HELD" if snap.hold else snap.phase,
        "incumbent": _incumbent(snap),
        "candidates": len(snap.candidates),
        "worker": _worker(snap),
        "last": snap.last_activity,
    }


def _configured() -> tuple[Path, ...]:
    from kda_tui.config import load_config

    return tuple(Path(f).expanduser() for f in load_config().workspaces.folders) or (Path(),)


def _workspaces(folders: tuple[Path, ...]) -> list[Workspace]:
    """Workspaces that are one of the folders or lie up to two levels below."""
    found: dict[Path, Workspace] = {}
    for folder in folders:
        check_folder(folder)
        for depth in range(FOLDERS_BELOW + 1):
            for contract in sorted(folder.absolute().glob("*/" * depth + "contract.toml")):
                found.setdefault(contract.parent, Workspace(contract.parent))
    return list(found.values())


@click.command("watch")
@workspace_argument
@click.option(
    "--every", type=click.FloatRange(min=0.05), default=0.5, show_default=True, help="Seconds between looks."
)
@click.option("--until-end", is_flag=True, help="Return when the run has ended.")
def watch_command(workspace: Path | None, every: float, until_end: bool) -> int:
    """What happens in WORKSPACE, as plain lines; for dumb terminals and logs. Ctrl+C leaves."""
    from kda_tui.record.reader import Reader

    ws = find_workspace(workspace)
    reader = Reader(ws.root, read_only=True)
    before: Snapshot | None = None
    after = reader.settle()
    while True:
        for line in news(before, after):
            say(f"{time.strftime('%H:%M:%SZ', time.gmtime())}  {line}")
        if until_end and after.phase == "ended":
            return 0
        before = after
        while (changed := reader.poll()) is None:
            time.sleep(every)
        after = changed
