"""One line a workspace for the runs screen, and what happened since a person left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kda_tui.record.foreign.found import find_workspaces as find_below
from kda_tui.record.foreign.found import layout_of_top
from kda_tui.record.open import is_workspace, open_reader
from kda_tui.record.paths import Workspace
from kda_tui.record.snapshot import Gate, Snapshot
from kda_tui.record.surroundings import stamp_of
from kda_tui.tui import words


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


def is_one_workspace(root: Path) -> bool:
    """Whether a folder is a workspace and holds no others where repositories keep them."""
    return is_workspace(root) and find_below(root) in ([root], [])


def find_workspaces(folders: Sequence[Path]) -> list[Path]:
    """Workspaces at or below the folders, ours and others; a folder that is one itself counts."""
    return list(dict.fromkeys(root for folder in folders for root in find_below(folder)))


def stamp(root: Path) -> tuple[int, ...]:
    """What changes when a workspace does: sizes and times of its newest run's files and of its inbox."""
    workspace = Workspace(root)
    names = workspace.run_names()
    if not names:
        top = layout_of_top(root)
        files = [root / name for name in (*top.ledgers, *top.tables, *top.results, *top.contracts)]
        return tuple(size for file in files for size in stamp_of(file) or (-1,))
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
        return of_snapshot(open_reader(root, read_only=True).settle())
    except Exception as error:  # one bad workspace must not empty the list
        return RunSummary(root, root.name, error=f"{type(error).__name__}: {error}")


def of_snapshot(snapshot: Snapshot) -> RunSummary:
    best = snapshot.candidates.get(snapshot.incumbent.cand)
    result = snapshot.extra.get("best")  # of a workspace that no kda wrote
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
        result.ratio if result is not None else best.ratio if best is not None else None,
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
