"""Which reader a folder needs: our own record, or a workspace that somebody else wrote."""

from __future__ import annotations

from pathlib import Path

from kda_tui.record.foreign.found import LEDGERS, layout_of_top
from kda_tui.record.foreign.reader import ForeignReader
from kda_tui.record.paths import Workspace
from kda_tui.record.plain_file import Refused, read_beginning
from kda_tui.record.reader import Reader
from kda_tui.record.rough_json import read_object

AnyReader = Reader | ForeignReader


def open_reader(root: Path, read_only: bool = False) -> AnyReader:
    """A reader for a workspace; a foreign one is always read-only. Raises nothing: what is wrong is in the snapshot."""
    return Reader(root, read_only) if is_own(root) else ForeignReader(root)


def is_workspace(root: Path) -> bool:
    """Whether a folder looks like a workspace, ours or somebody's."""
    return layout_of_top(root).is_workspace or bool(Workspace(root).run_names())


def is_own(root: Path) -> bool:
    """Whether our worker wrote this workspace, or could start in it: a journal, or a contract and no foreign ledger."""
    ws = Workspace(root)
    if any(ws.run(name).events.is_file() for name in ws.run_names()):
        return True
    if not ws.contract.is_file():
        return not layout_of_top(root).is_workspace
    ledgers = [root / name for name in layout_of_top(root).ledgers if LEDGERS.fullmatch(name)]
    return all(_is_ours(path, root) for path in ledgers)


def _is_ours(path: Path, root: Path) -> bool:
    """Whether a ledger is empty or begins with a line of a recorder."""
    try:
        head = read_beginning(path, root, 1 << 16)
    except Refused:
        return True
    line, _ = read_object(head.partition(b"\n")[0])
    return not head.strip() or (line is not None and {"v", "seq", "run"} <= line.keys())
