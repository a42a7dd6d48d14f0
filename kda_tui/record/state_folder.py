"""The user's state folder: what must never be in a workspace, such as a run's secret."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kda_tui.text import UserError


@dataclass(frozen=True, slots=True)
class RunSecret:
    """The seed of hidden shapes and inputs: 64 hex digits, and the SHA-256 of them that is published first."""

    value: str
    commit: str


def state_folder() -> Path:
    """$XDG_STATE_HOME/kda, else ~/.local/state/kda. Not created."""
    base = os.environ.get("XDG_STATE_HOME", "")
    # A relative XDG path is to be ignored, says its specification.
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return root / "kda"


def write_private(path: Path, data: bytes) -> None:
    """Put a file of the state folder in place whole, readable by this user only. Raises UserError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)  # created with mode 0600
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).rename(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror}); XDG_STATE_HOME can name another place"
        ) from error


def _secret_path(commit: str) -> Path:
    return state_folder() / "secrets" / commit


def new_run_secret() -> RunSecret:
    """Draw a run's secret and keep it outside the workspace; ``commit`` goes into ``run_started``."""
    value = secrets.token_hex(32)
    drawn = RunSecret(value, commitment(value))
    write_private(_secret_path(drawn.commit), value.encode() + b"\n")
    return drawn


def commitment(value: str) -> str:
    """What is published of a secret before it is used: the SHA-256 of its text."""
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()


def load_run_secret(commit: str) -> RunSecret:
    """The secret of a run that is to go on. Raises UserError where this user does not have it."""
    if len(commit) != 64 or not set(commit) <= set("0123456789abcdef"):
        raise UserError(f"seed_commit {commit[:20]!r} is not a SHA-256; start a new run")
    try:
        value = _secret_path(commit).read_text("ascii").strip()
    except (OSError, ValueError):
        value = ""
    if commitment(value) != commit:
        raise UserError(
            f"{_secret_path(commit)}: the secret of this run is not here; "
            "go on as the user and on the machine that started it, or start a new run"
        )
    return RunSecret(value, commit)


def forget_run_secret(commit: str) -> None:
    """Remove a secret that ``run_ended`` has revealed."""
    with contextlib.suppress(OSError):
        _secret_path(commit).unlink()
