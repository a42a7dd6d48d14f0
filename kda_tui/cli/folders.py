"""The user's folders, by the XDG base directory rules."""

from __future__ import annotations

import os
from pathlib import Path


def _folder(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    return (Path(base) if os.path.isabs(base) else Path.home() / default) / "kda"  # noqa: PTH117


def state_folder() -> Path:
    """Error reports and what a run keeps outside its workspace."""
    return _folder("XDG_STATE_HOME", ".local/state")


def data_folder() -> Path:
    """Where ``kda demo`` keeps its workspaces."""
    return _folder("XDG_DATA_HOME", ".local/share")


def cache_folder() -> Path:
    """Compiled kernels; may be deleted at any time."""
    return _folder("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """The user's kda.toml, themes and hooks."""
    return _folder("XDG_CONFIG_HOME", ".config")
