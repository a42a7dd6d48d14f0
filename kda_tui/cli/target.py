"""Which workspace and which candidate the words on the command line mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kda_tui.record.open import is_workspace
from kda_tui.record.paths import Workspace, check_folder
from kda_tui.record.snapshot import Snapshot
from kda_tui.text import UserError

Command = TypeVar("Command", bound=Callable[..., Any])


def workspace_argument(command: Command) -> Command:
    """Adds the optional argument WORKSPACE; pass it to :func:`find_workspace`."""
    return click.argument("workspace", required=False, type=click.Path(path_type=Path))(command)


def workspace_option(command: Command) -> Command:
    """Adds ``-C WORKSPACE`` for commands whose arguments are taken; pass it to :func:`find_workspace`."""
    return click.option(
        "-C",
        "--workspace",
        type=click.Path(path_type=Path),
        help="The workspace. Default: the current folder.",
    )(command)


def json_option(command: Command) -> Command:
    """Adds ``--json``: the same facts for a program."""
    return click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")(command)


def find_folder(given: Path | None) -> Path:
    """The folder named by the command, else by ``kda -C``, else the current one; it exists."""
    context = click.get_current_context(silent=True)
    root = (given or (context.obj if context is not None else None) or Path()).expanduser().absolute()
    check_folder(root)
    return root.resolve()


def find_workspace(given: Path | None) -> Workspace:
    """The workspace in :func:`find_folder`."""
    ws = Workspace(find_folder(given))
    if not ws.contract.is_file() and not ws.run_names():
        if is_workspace(ws.root):
            raise UserError(
                f"{ws.root}: no kda wrote this workspace; kda open shows it, kda open --check prints it"
            )
        raise UserError(f"{ws.root}: no workspace (no contract.toml); name one, or make one with kda new")
    return ws


def read(ws: Workspace) -> Snapshot:
    """Everything the record says, read to its end."""
    from kda_tui.record.reader import Reader

    return Reader(ws.root, read_only=True).settle()


def find_candidate(snap: Snapshot, word: str) -> str:
    """The candidate that a word means: its id, or its number without zeros (``3`` or ``c3``)."""
    if word in snap.candidates:
        return word
    digits = word.removeprefix("c")
    if digits.isdecimal() and (full := f"c{int(digits):04d}") in snap.candidates:
        return full
    known = list(snap.candidates)
    shown = ", ".join(known[-5:]) if known else "none yet"
    raise UserError(f"there is no candidate {word} in {snap.workspace}; the newest are {shown}")


def require_trust(ws: Workspace) -> None:
    from kda_tui.record.trust import state

    if not (found := state(ws)).trusted:
        raise UserError(f"{ws.root}: its Python code may not run here: {found.words}")


def candidate_folder(ws: Workspace, snap: Snapshot, what: str) -> tuple[str, Path]:
    """A candidate of the workspace by its id, or any folder that holds a launch plan."""
    for folder in (ws.root / what, Path(what).expanduser()):
        if (folder / "launch.toml").is_file():
            return folder.name, folder.resolve()
    cand = find_candidate(snap, what)
    return cand, ws.candidate(cand)
