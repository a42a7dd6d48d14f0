"""Reading an Agent Skill: a folder with SKILL.md, front matter first.

Fields and limits follow the Agent Skills specification (agentskills.io): ``name`` equals the folder,
``description`` says what and when, references lie one level deep. Unknown fields are reported, never
fatal. ``allowed-tools`` and hooks of a skill are shown, and never honoured by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.text import UserError

MAX_SKILL_BYTES = 1 << 20
_NAME = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")
_KNOWN = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill on disk. ``problems`` are one line each; a skill with problems is still shown."""

    name: str
    description: str
    path: Path
    body: str
    license: str = ""
    compatibility: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def pages(self) -> list[Path]:
        """SKILL.md and the Markdown files one level below it, in order of name."""
        found = [p for p in self.path.glob("*/*.md") if p.is_file() and not p.is_symlink()]
        return [self.path / "SKILL.md", *sorted(found)]


def read_skill(path: Path) -> Skill:
    """The skill in a folder. Raises UserError when SKILL.md is absent or has no front matter."""
    file = path / "SKILL.md"
    try:
        data = file.read_bytes()[: MAX_SKILL_BYTES + 1]
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror}); a skill is a folder with a SKILL.md"
        ) from error
    if len(data) > MAX_SKILL_BYTES:
        raise UserError(f"{file}: larger than {MAX_SKILL_BYTES >> 10} KB; move text to references/")
    front, body = _split(data.decode("utf-8-sig", errors="replace"), file)
    fields = _yaml(front, file)
    name = str(fields.get("name") or "")
    description = " ".join(str(fields.get("description") or "").split())
    metadata = fields.get("metadata")
    return Skill(
        name=name or path.name,
        description=description,
        path=path,
        body=body,
        license=str(fields.get("license") or ""),
        compatibility=str(fields.get("compatibility") or ""),
        metadata={str(k): str(v) for k, v in metadata.items()} if isinstance(metadata, dict) else {},
        allowed_tools=_tools(fields.get("allowed-tools")),
        unknown=tuple(sorted(str(k) for k in fields if k not in _KNOWN)),
        problems=tuple(_problems(path, name, description, fields, body)),
    )


def find_skills(folders: Iterable[Path]) -> list[Skill]:
    """Every readable skill under the folders; the first of a name wins."""
    found: dict[str, Skill] = {}
    for folder in folders:
        if not folder.is_dir():
            continue
        for path in sorted(p for p in folder.iterdir() if (p / "SKILL.md").is_file() and not p.is_symlink()):
            skill = read_skill(path)
            found.setdefault(skill.name, skill)
    return list(found.values())


def _split(text: str, file: Path) -> tuple[str, str]:
    """Front matter stands between the first two lines that are exactly ``---``."""
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---":
        raise UserError(f"{file}, line 1: no front matter; start with a line '---'")
    for i, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:i]), "\n".join(lines[i + 1 :])
    raise UserError(f"{file}, line 1: the front matter is not closed; end it with a line '---'")


def _yaml(front: str, file: Path) -> dict[str, Any]:
    import yaml

    try:
        fields = yaml.safe_load(front)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark is not None else 1
        what = getattr(error, "problem", None) or "not YAML"
        raise UserError(f"{file}, line {line}: {what}; quote a value that holds ': '") from error
    if not isinstance(fields, dict):
        raise UserError(f"{file}, line 2: the front matter must be a mapping with name and description")
    return fields


def _tools(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split())
    return tuple(str(v) for v in value) if isinstance(value, list) else ()


def _problems(path: Path, name: str, description: str, fields: Mapping[Any, Any], body: str) -> Iterable[str]:
    if not _NAME.match(name) or len(name) > 64:
        yield f"name '{name}': 1 to 64 lower-case letters, digits and single hyphens"
    elif name != path.name:
        yield f"name '{name}' differs from the folder '{path.name}'"
    if not 1 <= len(description) <= 1024:
        yield f"description has {len(description)} characters, 1 to 1024 are allowed"
    if len(str(fields.get("compatibility") or "")) > 500:
        yield "compatibility is longer than 500 characters"
    if len(body.splitlines()) > 500:
        yield f"the body has {len(body.splitlines())} lines; keep it under 500 and use references/"
