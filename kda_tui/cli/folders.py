"""The user's folders: XDG base directories, unless the user's own kda.toml names others."""

from __future__ import annotations

import os
from pathlib import Path

from kda_tui.record.state_folder import state_folder

__all__ = ["cache_folder", "demo_folder", "skill_folders", "state_folder"]


def _folder(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    return (Path(base) if base.startswith("/") else Path.home() / default) / "kda"


def demo_folder() -> Path:
    """Where ``kda demo`` keeps its workspaces."""
    from kda_tui.config import load_config

    named = load_config().demo.folder
    return Path(named).expanduser().absolute() if named else _folder("XDG_DATA_HOME", ".local/share") / "demo"


def cache_folder() -> Path:
    """Compiled kernels; may be deleted at any time."""
    from kda_tui.config import load_config

    named = load_config().evaluation.cache
    return Path(named).expanduser().absolute() if named else _folder("XDG_CACHE_HOME", ".cache")


def skill_folders() -> list[Path]:
    """Where skills are looked for: shipped ones, then the user's own."""
    from kda_tui.config import share_path, user_folder

    return [share_path("skills"), user_folder() / "skills"]
