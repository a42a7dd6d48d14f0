"""When a person last left a workspace, kept in the user's state folder, never in the workspace."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from kda_tui.record.snapshot import Snapshot
from kda_tui.record.state_folder import state_folder, write_private
from kda_tui.text import UserError
from kda_tui.tui.summary import since


def _path(root: Path) -> Path:
    name = hashlib.sha256(str(root.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return state_folder() / "left" / name


def remember(root: Path, now: float) -> None:
    """The person leaves now; a state folder that cannot be written is no reason to stay."""
    with contextlib.suppress(UserError):
        write_private(_path(root), f"{now:.0f}\n".encode())


def left_at(root: Path) -> float | None:
    try:
        return float(_path(root).read_text("ascii"))
    except (OSError, ValueError):
        return None


def since_left(snapshot: Snapshot, now: float) -> str:
    """What happened since the person left, in one line, or ""."""
    left = left_at(snapshot.workspace)
    return since(snapshot, left, now) if left is not None else ""
