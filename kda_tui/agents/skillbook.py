"""The skills that an agent is given: the shipped ones, then the user's own, each as it is pinned."""

from __future__ import annotations

from kda_tui.config import Config, share_path, user_folder
from kda_tui.skills.pins import Pin, tree_sha256, usable
from kda_tui.skills.skill import Skill, find_skills


def agent_skills(config: Config) -> tuple[Skill, ...]:
    """Raises UserError where a skill is not what was pinned."""
    pins = {p.name: Pin(p.name, p.sha256, p.source, p.commit) for p in config.skills.pins}
    return tuple(usable(s, pins) for s in find_skills([share_path("skills"), user_folder() / "skills"]))


def recorded(skills: tuple[Skill, ...]) -> list[dict[str, str]]:
    """Name and hash of each, for run_started."""
    return [{"name": s.name, "sha256": tree_sha256(s.path)} for s in skills]
