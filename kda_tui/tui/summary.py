"""One line a workspace for the runs screen, and what happened since a person left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kda_tui.record.paths import Workspace
from kda_tui.record.reader import Reader
from kda_tui.record.snapshot import Gate, Snapshot
from kda_tui.tui import words

MARKS = ("contract.toml", "candidates.jsonl", "solutions.jsonl", "runs", "benchmark.csv")
DEEP = 2  # levels below a configured folder at which workspaces are looked for
MANY = 2000  # folders looked at in one go


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What the runs screen says about one workspace."""

    root: Path
    name: str
    run: str = ""
    phase: str = ""
    hold: str = ""
    liveness: str = ""
    foreign: bool = False
    gates: tuple[Gate, ...] = ()
    best: float | None = None
    floor: float | None = None
    budget: float | None = None
    last: str = ""
    candidates: int = 0
    error: str = ""

    @property
    def needs(self) -> bool:
        """Whether a person is waited for."""
        return bool(self.gates) or (self.liveness == "gone" and self.phase not in ("", "ended"))


def is_workspace(path: Path) -> bool:
    """Whether a folder looks like a workspace: one of ours, or a foreign one."""
    try:
        return any((path / name).exists() for name in MARKS)
    except OSError:
        return False


def find_workspaces(folders: Sequence[Path]) -> list[Path]:
    """Workspaces in the folders, by name; a folder that is one itself counts."""
    found: list[Path] = []
    looked = 0
    level = list(folders)
    for depth in range(DEEP + 1):
        below: list[Path] = []
        for path in level:
            looked += 1
            if looked > MANY:
                return found
            if is_workspace(path):
                found.append(path)
            elif depth < DEEP:
                below += _folders(path)
        level = below
    return list(dict.fromkeys(found))


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(
            p for p in path.iterdir() if p.is_dir() and not p.name.startswith(".") and not p.is_symlink()
        )
    except OSError:
        return []


def stamp(root: Path) -> tuple[int, ...]:
    """What changes when a workspace does: sizes and times of its newest run's files and of its inbox."""
    workspace = Workspace(root)
    names = workspace.run_names()
    files = [workspace.contract, workspace.candidates_ledger, workspace.inbox]
    files += [workspace.run(names[-1]).events] if names else []
    out: list[int] = [len(names)]
    for file in files:
        try:
            info = file.stat()
            out += [info.st_size, info.st_mtime_ns]
        except OSError:
            out.append(-1)
    return tuple(out)


def summarise(root: Path) -> RunSummary:
    """Read a workspace to its end and say it in one line; what cannot be read is said."""
    try:
        return of_snapshot(Reader(root, read_only=True).settle())
    except Exception as error:  # one bad workspace must not empty the list
        return RunSummary(root, root.name, error=f"{type(error).__name__}: {error}")


def of_snapshot(snapshot: Snapshot) -> RunSummary:
    best = snapshot.candidates.get(snapshot.incumbent.cand)
    shares = [line.used / line.limit for line in snapshot.budget.values() if line.limit]
    return RunSummary(
        snapshot.workspace,
        snapshot.name or snapshot.workspace.name,
        snapshot.run.name if snapshot.run else "",
        snapshot.phase,
        snapshot.hold,
        snapshot.liveness,
        snapshot.foreign,
        snapshot.gates if snapshot.phase != "ended" else (),
        best.ratio if best is not None else None,
        best.floor_share if best is not None else None,
        max(shares, default=None),
        snapshot.last_activity,
        len(snapshot.candidates),
    )


def since(snapshot: Snapshot, left: float, now: float) -> str:
    """What happened since a moment, in one line; "" when nothing did."""
    if now - left < 60:
        return ""

    def later(t: str) -> bool:
        at = words.epoch(t)
        return at is not None and at > left

    judged = [e for e in snapshot.evaluations.values() if later(e.t) and e.validity]
    passed = sum(1 for e in judged if e.validity == "passed")
    promoted = [i.cand for i in snapshot.incumbents if later(i.t)]
    decided = [d for d in snapshot.decisions if later(d.t)]
    ended = [r.name for r in snapshot.runs if r.ended and later(r.ended)]
    parts = []
    if judged:
        parts.append(f"{len(judged)} evaluations ({passed} passed)")
    if promoted:
        parts.append(f"incumbent now {promoted[-1]}")
    if decided:
        parts.append(f"{len(decided)} decision{'s' if len(decided) > 1 else ''} (a lists them)")
    if ended:
        parts.append(f"{', '.join(ended)} ended")
    if snapshot.gates:
        parts.append(f"{len(snapshot.gates)} wait for you")
    return (
        f"since you left {words.span_of(now - left)} ago: {', '.join(parts)}"
        if parts and len(parts) > bool(snapshot.gates)
        else ""
    )
