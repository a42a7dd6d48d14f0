"""Skills that agents and people may use: list, search, show, pin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kda_tui.cli.entry import NO
from kda_tui.cli.folders import skill_folders
from kda_tui.cli.output import print_json, say, table
from kda_tui.cli.target import json_option
from kda_tui.text import UserError

if TYPE_CHECKING:
    from kda_tui.skills.pins import Pin


@click.group("skills")
def skills_command() -> None:
    """Skills that agents and people may use: list them, search them, check them."""


@skills_command.command("list")
@json_option
def list_skills_command(as_json: bool) -> int:
    """Every skill found, with its hash. Exit code 1 if one is malformed."""
    from kda_tui.skills.pins import tree_sha256
    from kda_tui.skills.skill import find_skills

    found = find_skills(skill_folders())
    if as_json:
        print_json([{"skill": skill, "sha256": tree_sha256(skill.path)} for skill in found])
    else:
        say(
            table(
                [(s.name, tree_sha256(s.path)[:12], f"{len(s.pages())} pages", s.description) for s in found]
            )
        )
        for skill in found:
            for problem in skill.problems:
                say(f"{skill.path}: {problem}")
    return NO if any(skill.problems for skill in found) else 0


@skills_command.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--limit", type=click.IntRange(min=1), default=10, show_default=True, help="At most so many hits."
)
@json_option
def search_skills_command(words: tuple[str, ...], limit: int, as_json: bool) -> int:
    """Search the pages of all skills for WORDS. Exit code 1 if nothing is found."""
    from kda_tui.skills.search import SkillIndex
    from kda_tui.skills.skill import find_skills

    hits = SkillIndex(find_skills(skill_folders())).search(" ".join(words), limit)
    if as_json:
        print_json(hits)
    else:
        for hit in hits:
            say(f"{hit.section.path}:{hit.section.line}: {hit.section.heading}\n    {hit.snippet}")
    return 0 if hits else NO


@skills_command.command("show")
@click.argument("name")
def show_skill_command(name: str) -> int:
    """Print the first page of the skill NAME."""
    from kda_tui.skills.skill import find_skills

    found = {skill.name: skill for skill in find_skills(skill_folders())}
    if name not in found:
        raise UserError(f"there is no skill {name}; there are {', '.join(found) or 'none'}")
    say(found[name].body)
    return 0


@skills_command.command("verify")
@json_option
def verify_skills_command(as_json: bool) -> int:
    """Does every pinned skill hold exactly the pinned files? Exit code 1 if one differs or is missing."""
    from kda_tui.skills.pins import check, missing
    from kda_tui.skills.skill import find_skills

    pins = _pins()
    skills = find_skills(skill_folders())
    states = [*[check(skill, pins) for skill in skills], *missing(skills, pins)]
    if as_json:
        print_json(states)
    else:
        say(
            table(
                [(s.name, s.state, s.found_sha256[:12], s.pin.sha256[:12] if s.pin else "-") for s in states]
            )
        )
    return NO if any(s.state in ("differs", "missing") for s in states) else 0


@skills_command.command("diff")
@click.argument("name")
def diff_skill_command(name: str) -> int:
    """What differs between the skill NAME on disk and its pinned source. Exit code 1 if anything does."""
    from kda_tui.skills.pins import difference
    from kda_tui.skills.skill import find_skills

    found = {skill.name: skill for skill in find_skills(skill_folders())}
    pin = _pins().get(name)
    if name not in found or pin is None:
        raise UserError(
            f"skill {name} is {'not pinned in kda.toml' if name in found else 'not installed'}; see kda skills verify"
        )
    lines = difference(found[name], pin)
    say("\n".join(lines) or "no difference")
    return NO if lines else 0


@skills_command.command("add")
@click.argument("url")
@click.option("--commit", required=True, help="The full 40-digit commit; a branch could move.")
def add_skill_command(url: str, commit: str) -> int:
    """Copy a skill from a git repository (URL, or URL#folder) at a commit, read-only, and print its pin.

    Nothing of it is run; its hooks and allowed tools are shown and never honoured by themselves.
    """
    from kda_tui.skills.pins import add

    skill, pin = add(url, commit, skill_folders()[0])
    say(f"added {skill.name} in {skill.path}, licence: {skill.license or 'none stated'}")
    if skill.allowed_tools or skill.unknown:
        say(
            f"it asks for tools {' '.join(skill.allowed_tools) or '-'} and has fields {', '.join(skill.unknown) or '-'}: not honoured"
        )
    say(
        f'add to [skills] pins in kda.toml:\n  {{name = "{pin.name}", source = "{pin.source}", commit = "{pin.commit}", sha256 = "{pin.sha256}"}}'
    )
    return 0


def _pins() -> dict[str, Pin]:
    from kda_tui.config import load_config
    from kda_tui.skills.pins import Pin

    return {p.name: Pin(p.name, p.sha256, p.source, p.commit) for p in load_config().skills.pins}
