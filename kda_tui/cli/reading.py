"""Profiles of Nsight Compute: collect one of a candidate, or read any file anywhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from kda_tui.cli.entry import NO, Unavailable
from kda_tui.cli.folders import cache_folder
from kda_tui.cli.output import print_json, say, table
from kda_tui.cli.target import (
    candidate_folder,
    find_workspace,
    json_option,
    read,
    require_trust,
    workspace_option,
)
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Candidate
from kda_tui.text import UserError


@click.command("profile")
@click.argument("candidate", required=False)
@click.option(
    "--read",
    "file",
    type=click.Path(path_type=Path),
    help="Read this file instead: a .ncu-rep, or a CSV or text export. Needs no GPU.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    help="With --read: what changed since this profile, metric by metric, kernel by kernel.",
)
@click.option("-w", "--workload", help="Default: the one with the most time above its floor, by weight.")
@click.option("--lines", type=click.IntRange(min=1), default=8, show_default=True, help="Hot lines a kernel.")
@workspace_option
@json_option
def profile_command(
    candidate: str | None,
    file: Path | None,
    against: Path | None,
    workload: str | None,
    lines: int,
    workspace: Path | None,
    as_json: bool,
) -> int:
    """Profile CANDIDATE (or a folder with kernel.cu and launch.toml) with Nsight Compute, or read a profile: header, diagnosis and hot lines of every kernel.

    The report and its digest go to profile/<candidate>/ of the workspace. While a worker runs, it does
    the profiling (key I on the screen). Exit code 1 if nothing could be profiled.
    """
    if (candidate is None) == (file is None):
        raise UserError("name a candidate to profile, or a file to read with --read FILE")
    if file is not None:
        return _read(file, lines, as_json) if against is None else _compare(against, file, as_json)
    return _collect(find_workspace(workspace), candidate or "", workload or "", as_json)


def _read(file: Path, lines: int, as_json: bool) -> int:
    from kda_tui.profiling.digest import json_digest, text_digest
    from kda_tui.profiling.read import read_profile

    profile = read_profile(file)
    if as_json:
        print_json(json_digest(profile))
    else:
        say(text_digest(profile, lines=lines).rstrip())
    return 0


def _compare(before: Path, after: Path, as_json: bool) -> int:
    from kda_tui.profiling.compare import compare
    from kda_tui.profiling.read import read_profile

    pairs = list(zip(read_profile(before).kernels, read_profile(after).kernels, strict=False))
    changes = [(a, b, compare(a, b)) for a, b in pairs]
    if as_json:
        print_json([{"before": a.name, "after": b.name, "changes": found} for a, b, found in changes])
        return 0
    for a, b, found in changes:
        say(a.name if a.name == b.name else f"{a.name} -> {b.name}")
        rows = [
            (c.metric.label, _shown(c.before), _shown(c.after), c.metric.unit,
             f"{c.relative:+.0%}" if c.relative is not None else "", c.direction)
            for c in found
        ]  # fmt: skip
        say(table(rows) if rows else "  nothing differs by more than 2 %")
    return 0


def _shown(value: float | None) -> str:
    return "n/a" if value is None else f"{value:,.4g}"


def _collect(ws: Workspace, word: str, workload: str, as_json: bool) -> int:
    from kda_tui.config import load_config
    from kda_tui.profiling.collect import collect, dump
    from kda_tui.record.lock import WorkspaceLock
    from kda_tui.worker.profiler import wanted

    snap = read(ws)
    if snap.liveness == "alive":
        raise Unavailable(f"a worker runs in {ws.root}: order the profile there (key I), or kda end it first")
    require_trust(ws)
    cand, folder = candidate_folder(ws, snap, word)
    c = snap.candidates.get(cand) or Candidate(id=cand)
    if snap.contract is None:
        raise UserError(snap.contract_error or f"{ws.contract}: cannot be read")
    if snap.contract.task.device != "cuda":
        raise Unavailable(
            f"{ws.contract}: the device is {snap.contract.task.device}; ncu profiles NVIDIA GPUs only"
        )
    known = [w.id for w in snap.contract.workloads]
    if workload and workload not in known:
        raise UserError(f"there is no workload {workload}; there are {', '.join(known)}")
    with WorkspaceLock.acquire(ws, role="profile"):
        order = wanted(ws, snap, c, cache_folder(), load_config(ws.root).profile, workload, folder)
        found = asyncio.run(collect(order))
        order.target.mkdir(parents=True, exist_ok=True)
        (order.target / "summary.json").write_bytes(dump(found.summary or {}))
    if as_json:
        print_json(found.summary or {})
    else:
        say(found.text.rstrip())
    return 0 if found.state == "ok" else NO
