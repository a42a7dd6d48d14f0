"""What can be read anywhere: profiles of Nsight Compute, and skills."""

from __future__ import annotations

from pathlib import Path

import click

from kda_tui.cli.entry import NO
from kda_tui.cli.folders import skill_folders
from kda_tui.cli.output import print_json, say, table
from kda_tui.cli.target import json_option
from kda_tui.text import UserError


@click.command("profile")
@click.option(
    "--read",
    "file",
    type=click.Path(path_type=Path),
    required=True,
    help="A .ncu-rep, or a CSV or text export.",
)
@click.option("--lines", type=click.IntRange(min=1), default=8, show_default=True, help="Hot lines a kernel.")
@json_option
def profile_command(file: Path, lines: int, as_json: bool) -> int:
    """Read a profile of Nsight Compute: header, diagnosis and hot lines of every kernel. Needs no GPU."""
    from kda_tui.profiling.digest import json_digest, text_digest
    from kda_tui.profiling.read import read_profile

    profile = read_profile(file)
    if as_json:
        print_json(json_digest(profile))
    else:
        say(text_digest(profile, lines=lines).rstrip())
    return 0


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
