"""Whose code may run: the reference and baseline of a workspace, as they are, by this user's word.

Kept in the user's state folder, bound to a hash over the files: a change of any of them needs a new word.
Reading a workspace needs no trust and runs nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kda_tui.record.artifacts import files_below, sha256_bytes, sha256_tree
from kda_tui.record.clock import now
from kda_tui.record.paths import Workspace
from kda_tui.record.state_folder import state_folder, write_private
from kda_tui.text import UserError

How = Literal["made here", "trusted", ""]

_WRITTEN = {"candidates", "runs", "inbox", "profile", "outputs"}  # folders of what runs write
_CODE = (".py", ".pyc", ".so")
_LINKED = (*_CODE, ".cu", ".cuh", ".h", ".toml")


@dataclass(frozen=True, slots=True)
class TrustState:
    """Whether this user lets the workspace's code run, and which code: ``sha`` over ``files``."""

    trusted: bool
    how: How
    since: str
    sha: str
    files: tuple[str, ...]
    words: str


def code_files(ws: Workspace) -> list[Path]:
    """The files that would run or be compiled: every Python file of the task, and the baseline's folder.

    Raises UserError for a link or a baseline that leads out of the workspace: what it leads to is not
    part of what is trusted.
    """
    root = ws.root.resolve()
    found: set[Path] = set()
    for path in _task(root):
        if path.is_symlink() and (path.suffix in _LINKED or _holds_code(path)):
            raise UserError(f"{path}: a link to code; copy what it leads to into the workspace")
        if path.suffix in _CODE and path.is_file():
            found.add(path)
    baseline = _baseline(ws).get("candidate")
    if isinstance(baseline, str):
        folder = (root / baseline).resolve()
        if not folder.is_relative_to(root):
            raise UserError(f"{ws.contract}: baseline.candidate is outside the workspace; copy it into it")
        found.update(files_below(folder))
    return sorted(found)


def _task(root: Path) -> Iterator[Path]:
    """Everything in the task's own folders, without what runs write, hidden names and caches."""
    for parent, folders, names in os.walk(root):
        if Path(parent) == root:
            folders[:] = [name for name in folders if name not in _WRITTEN]
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        yield from (Path(parent, name) for name in (*folders, *names))


def _holds_code(folder: Path) -> bool:
    return any(Path(name).suffix in _CODE for _, _, names in os.walk(folder) for name in names)


def _baseline(ws: Workspace) -> dict[str, Any]:
    """The [baseline] table, read without checking the contract; a broken contract cannot run anyway."""
    try:
        table = tomllib.loads(ws.contract.read_text("utf-8")).get("baseline", {})
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}


def code_sha(ws: Workspace) -> str:
    """The hash that trust is bound to: over the files of :func:`code_files` and the [baseline] table."""
    try:
        tree = sha256_tree(ws.root.resolve(), code_files(ws))
    except OSError as error:
        raise UserError(f"{ws.root}: {error.filename}: cannot be read ({error.strerror})") from error
    table = json.dumps(_baseline(ws), sort_keys=True, default=str)
    return sha256_bytes(f"{tree}\n{table}".encode())


def state(ws: Workspace) -> TrustState:
    """Whether this user trusts the workspace's code as it is now. Writes nothing."""
    root = ws.root.resolve()
    files = tuple(path.relative_to(root).as_posix() for path in code_files(ws))
    sha = code_sha(ws)
    entry = _read_store().get(sha, {})
    how: How = "made here" if entry.get("how") == "made here" else "trusted" if entry else ""
    since = str(entry.get("t", ""))
    words = f"{how} since {since}" if how else "not trusted: read the code, then run `kda trust`"
    return TrustState(bool(how), how, since, sha, files, words)


def is_trusted(ws: Workspace) -> bool:
    """Whether the workspace's code may run."""
    return state(ws).trusted


def grant(ws: Workspace) -> TrustState:
    """Trust the workspace's code as it is now, by the user's word."""
    return _enter(ws, "trusted")


def mark_own(ws: Workspace) -> TrustState:
    """Note that this user made the workspace's code here, as it is now."""
    return _enter(ws, "made here")


def withdraw(ws: Workspace) -> None:
    """Trust the workspace's code, as it is now, no longer."""
    sha = code_sha(ws)
    _change_store(lambda store: store.pop(sha, None))


def _enter(ws: Workspace, how: How) -> TrustState:
    entry = {"how": how, "t": now(), "workspace": str(ws.root.resolve())}
    sha = code_sha(ws)
    _change_store(lambda store: store.update({sha: entry}))
    return state(ws)


def _store_path() -> Path:
    return state_folder() / "trust.json"


def _read_store() -> dict[str, dict[str, Any]]:
    path = _store_path()
    try:
        store = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise UserError(f"{path}: not JSON; remove it and run `kda trust` again where needed") from error
    entries = store.get("trusted") if isinstance(store, dict) else None
    if not isinstance(entries, dict):
        return {}
    return {sha: entry for sha, entry in entries.items() if isinstance(entry, dict)}


def _change_store(change: Callable[[dict[str, dict[str, Any]]], object]) -> None:
    """Read, change and write the store; two processes take turns."""
    with _turn():
        store = _read_store()
        change(store)
        write_private(_store_path(), json.dumps({"v": 1, "trusted": store}, indent=1).encode() + b"\n")


@contextmanager
def _turn() -> Iterator[None]:
    path = state_folder() / "trust.lock"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror}); XDG_STATE_HOME can name another place"
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
