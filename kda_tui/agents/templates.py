"""Prompt templates: files under agents/prompts with ``{{name}}`` in them; hashed into run_started."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "prompts"
_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")


def templates() -> dict[str, str]:
    """Every template's text by name."""
    return {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.md"))}


def fill(name: str, values: Mapping[str, str]) -> str:
    """A template with its slots filled, once: what a value holds is not filled again. KeyError for a missing one."""
    text = (FOLDER / f"{name}.md").read_text("utf-8")
    return _SLOT.sub(lambda match: values[match[1]], text).strip() + "\n"
