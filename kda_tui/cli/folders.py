"""The user's folders, by the XDG base directory rules."""

from __future__ import annotations

import os
from pathlib import Path

from kda_tui.record.state_folder import state_folder

__all__ = ["cache_folder", "config_folder", "data_folder", "skill_folders", "state_folder"]


def _folder(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    return (Path(base) if base.startswith("/") else Path.home() / default) / "kda"


def data_folder() -> Path:
    """Where ``kda demo`` keeps its workspaces."""
    return _folder("XDG_DATA_HOME", ".local/share")


def cache_folder() -> Path:
    """Compiled kernels; may be deleted at any time."""
    return _folder("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """The user's kda.toml, themes and hooks."""
    return _folder("XDG_CONFIG_HOME", ".config")


def skill_folders() -> list[Path]:
    """Where skills are looked for: shipped ones, then the user's own."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_share" / "skills"
    return [shipped if shipped.is_dir() else package.parent / "skills", config_folder() / "skills"]
