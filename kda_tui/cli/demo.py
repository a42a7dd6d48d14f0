"""``kda demo``: a scratch workspace, a detached worker with the tuner on the cpu device, and the screen on it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from kda_tui.cli.entry import NO, Unavailable
from kda_tui.cli.folders import demo_folder
from kda_tui.cli.news import news
from kda_tui.cli.output import number, plain, print_json, say
from kda_tui.cli.running import open_screen, require_terminal
from kda_tui.cli.target import read
from kda_tui.record.paths import Workspace
from kda_tui.record.snapshot import Snapshot

TEMPLATE = "softmax_rows"
LOOK_S = 0.25
SILENT_S = 120.0
OPENED_BY_FLAG = ("plan", "promotion", "end")


@click.command("demo")
@click.option(
    "--headless", is_flag=True, help="Without the screen: gates opened by flags, a table at the end."
)
@click.option("--fresh", is_flag=True, help="Make a new workspace instead of attaching to the last one.")
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Where the demo's workspaces go.")
@click.option("--json", "as_json", is_flag=True, help="With --headless: print the summary as JSON.")
def demo_command(headless: bool, fresh: bool, folder: Path | None, as_json: bool) -> int:
    """A whole run on this machine, without a GPU or an API key.

    The tuner searches the knobs of a softmax kernel. You approve its plan (A), watch candidates being judged, and
    approve the promotion of the best (A). Leave with q: the worker goes on, and kda demo attaches again.
    """
    headless = headless or as_json
    if not headless and not (sys.stdin.isatty() and sys.stdout.isatty()):
        say("no terminal here: running as kda demo --headless")
        headless = True
    folder = (folder or demo_folder()).absolute()
    if headless:
        return _headless(_make(folder), as_json)
    require_terminal("kda demo --headless needs none")
    ws = (None if fresh else _newest(folder)) or _make(folder)
    _ensure_worker(ws)
    open_screen(ws.root)
    if read(ws).liveness == "alive":
        say(f"the worker goes on in {ws.root}; kda demo attaches again, kda end {ws.root} ends it")
    return 0


def _newest(folder: Path) -> Workspace | None:
    """The demo workspace that was made last."""
    made = sorted(folder.glob(f"{TEMPLATE}_*/contract.toml"), key=lambda path: path.stat().st_mtime)
    return Workspace(made[-1].parent) if made else None


def _make(folder: Path) -> Workspace:
    from kda_tui.record.scaffold import new_from_template

    folder.mkdir(parents=True, exist_ok=True)
    count = 1
    while (folder / f"{TEMPLATE}_{count}").exists():
        count += 1
    root = new_from_template(TEMPLATE, folder / f"{TEMPLATE}_{count}")
    say(f"made {root} from the template {TEMPLATE}")
    return Workspace(root)


def _ensure_worker(ws: Workspace) -> None:
    """A worker on a workspace whose run has not ended; one that has ended is only shown."""
    from kda_tui.worker.start import RunOptions, start_detached

    snap = read(ws)
    if snap.liveness == "alive":
        say(f"attaching to {ws.root}")
    elif snap.phase == "ended":
        say(f"the run in {ws.root} has ended; kda demo --fresh makes another")
    else:
        start_detached(ws, RunOptions(agent="tuner", device="cpu", resume=snap.run is not None))


def _headless(ws: Workspace, as_json: bool) -> int:
    from kda_tui.record.verify import verify
    from kda_tui.worker.start import RunOptions, start_detached

    begin = time.monotonic()
    start_detached(ws, RunOptions(agent="tuner", device="cpu", yes=OPENED_BY_FLAG))
    snap = read(ws)
    for before, snap in _changes(ws):
        for line in news(before, snap):
            click.echo(f"{time.monotonic() - begin:6.1f} s  {line}", err=as_json)
    report = verify(ws, None)
    if as_json:
        print_json({**_summary(snap), "verified": report.ok, "seconds": round(time.monotonic() - begin, 1)})
    else:
        _print_table(snap)
        say(_promoted_by(snap))
        found = "verified" if report.ok else "NOT as it was written"
        say(f"kda verify: {found}, {report.lines} lines, head {report.head}")
        say(f"{time.monotonic() - begin:.0f} s; everything is in {ws.root} (kda open {ws.root})")
    return 0 if report.ok and snap.incumbent.cand != "baseline" else NO


def _changes(ws: Workspace) -> Iterator[tuple[Snapshot | None, Snapshot]]:
    """Snapshots before and after each change, until the run has ended. Raises Unavailable when it stops."""
    from kda_tui.record.reader import Reader

    reader = Reader(ws.root, read_only=True)
    before: Snapshot | None = None
    snap = reader.settle()
    last = time.monotonic()
    while True:
        yield before, snap
        before = snap
        if snap.phase == "ended" and snap.liveness != "alive":
            return
        while (changed := reader.poll()) is None:
            if time.monotonic() - last > SILENT_S:
                raise Unavailable(
                    f"the worker has said nothing for {SILENT_S:g} s; its log: {ws.runs}/*/worker.log"
                )
            time.sleep(LOOK_S)
        snap, last = changed, time.monotonic()


def _summary(snap: Snapshot) -> dict[str, object]:
    return {
        "workspace": snap.workspace,
        "incumbent": plain(snap.incumbent),
        "promoted_by": _promoted_by(snap),
        "candidates": [plain(c) for c in snap.candidates.values()],
    }


def _promoted_by(snap: Snapshot) -> str:
    best = snap.candidates.get(snap.incumbent.cand)
    decision = next((d for d in snap.decisions if d.id == snap.incumbent.decision), None)
    if best is None:
        return "nothing was promoted: no candidate was confirmed to be faster than the baseline"
    if decision is None:
        who = "an unknown decision"
    elif decision.by == "rule":
        who = f"the rule {(decision.rule or {}).get('contract_key', 'of the contract')}"
    else:
        who = decision.who or "a person"
    confirm = snap.evaluations.get(snap.incumbent.eval)
    numbers = ""
    if confirm is not None and confirm.ratio is not None:
        numbers = f": confirmed {confirm.ratio:.2f} times as fast as {confirm.opponent or 'the baseline'}"
        if confirm.lo is not None:
            numbers += f", at least {confirm.lo:.2f} times"
    return f"{best.id} was promoted by {who}{numbers}"


def _print_table(snap: Snapshot) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=f"{snap.name}: candidates (times of the cpu device)")
    for name in ("id", "defines", "verdict"):
        grid.add_column(name)
    for name in ("us", "ratio", "interval"):
        grid.add_column(name, justify="right")
    grid.add_column("against")
    grid.add_column("decision")
    for cand in snap.candidates.values():
        interval = f"{cand.lo:.2f} {cand.hi:.2f}" if cand.lo is not None and cand.hi is not None else "-"
        words = cand.speed if cand.validity == "passed" else cand.validity or cand.stage
        cells = (
            cand.id,
            " ".join(f"{name}={value}" for name, value in cand.defines.items()),
            words,
            number(cand.time_us),
            number(cand.ratio, "{:.2f}"),
            interval,
            cand.opponent or "-",
            cand.decision or "-",
        )
        grid.add_row(*(Text(cell) for cell in cells), style="bold" if cand.id == snap.incumbent.cand else "")
    Console(width=None if sys.stdout.isatty() else 120).print(grid)
