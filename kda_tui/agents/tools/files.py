"""Reading: the files of the workspace that a player may see, and those of the skills. Links lead nowhere."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from kda_tui.agents.tools.tool import Answer, Tool, ToolError, facts, inputs, text, whole
from kda_tui.record.plain_file import Refused, read_plain
from kda_tui.skills.skill import Skill

SKILLS = "skills"
FOLDERS = ("baseline", "candidates", "docs", "outputs", "profile", "seeds")
FILES = ("README.md", "contract.toml", "reference.py")
NOT_FOR_READING = (
    "is not for reading: the record itself and the inbox are closed to agents; "
    "results come from evaluate, compare and profile"
)
MAX_FILE = 512 << 10
MAX_LINES = 600  # of one answer
MAX_NAMES = 400
MAX_HITS = 60
MAX_SEARCHED = 2000  # files


@dataclass(frozen=True, slots=True)
class Shelf:
    """The folders that can be read: ``root`` by its fixed names, skills as ``skills/NAME/...``."""

    root: Path
    skills: Sequence[Skill] = ()
    baseline: str = "baseline"

    def locate(self, name: str) -> tuple[Path, Path]:
        """A path and the folder that it must stay below. Raises ToolError for what is not for reading."""
        pure = PurePosixPath(name.strip() or ".")
        parts = [p for p in pure.parts if p != "."]
        if pure.is_absolute() or ".." in parts or any(p.startswith(".") for p in parts):
            raise ToolError(f"{name}: give a path inside the workspace, without .. and hidden names")
        if parts and parts[0] == SKILLS:
            return self._in_skill(name, parts[1:])
        if parts and parts[0] not in (*FOLDERS, *FILES, self.baseline.split("/")[0]):
            raise ToolError(f"{name} {NOT_FOR_READING}")
        return self.root.joinpath(*parts), self.root

    def _in_skill(self, name: str, parts: list[str]) -> tuple[Path, Path]:
        skill = next((s for s in self.skills if parts and s.name == parts[0]), None)
        if skill is None:
            known = ", ".join(s.name for s in self.skills) or "none"
            raise ToolError(f"{name}: there is no such skill; there are {known}")
        return skill.path.joinpath(*parts[1:]), skill.path

    def read(self, name: str) -> str:
        """The text of a plain file. Raises ToolError."""
        path, below = self.locate(name)
        inside = path.relative_to(below)
        if Path(os.path.realpath(path)) != Path(os.path.realpath(below)) / inside:
            raise ToolError(f"{name}: there is a link on the way; links are not followed")
        try:
            data = read_plain(path, below, MAX_FILE)
        except Refused as error:
            raise ToolError(f"{name}: {error}") from None
        if b"\0" in data:
            raise ToolError(f"{name}: is not text")
        return data.decode("utf-8", "replace")

    def names(self, name: str) -> Iterator[str]:
        """The files below a folder, by path, as :meth:`read` takes them; links are not followed."""
        if name.strip("/. ") == "":
            for top in (*FILES, *dict.fromkeys((*FOLDERS, self.baseline))):
                yield from self._walk(top, self.root / top)
            for skill in self.skills:
                yield from self._walk(f"{SKILLS}/{skill.name}", skill.path)
        elif name.strip("/ ") == SKILLS:
            for skill in self.skills:
                yield from self._walk(f"{SKILLS}/{skill.name}", skill.path)
        else:
            path, _ = self.locate(name)
            yield from self._walk(PurePosixPath(name).as_posix().rstrip("/"), path)

    def _walk(self, name: str, path: Path) -> Iterator[str]:
        if path.is_symlink():
            return
        if path.is_file():
            yield name
            return
        try:
            entries = sorted(os.scandir(path), key=lambda e: e.name)
        except OSError:
            return
        for entry in entries:
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir():
                yield from self._walk(f"{name}/{entry.name}", Path(entry.path))
            elif entry.is_file():
                yield f"{name}/{entry.name}"


def reading_tools(shelf: Shelf) -> list[Tool]:
    async def list_files(args: Mapping[str, Any]) -> Answer:
        found: list[str] = []
        for name in shelf.names(str(args.get("folder", ""))):
            if len(found) == MAX_NAMES:
                found.append(f"[more than {MAX_NAMES}; name a folder]")
                break
            found.append(name)
        return Answer("\n".join(found) or "no files there")

    async def read_file(args: Mapping[str, Any]) -> Answer:
        lines = shelf.read(args["path"]).splitlines()
        first = max(1, args.get("first_line", 1))
        last = min(len(lines), args.get("last_line", len(lines)), first + MAX_LINES - 1)
        shown = [f"{n}\t{lines[n - 1]}" for n in range(first, last + 1)]
        if last < len(lines):
            shown.append(f"[lines {first} to {last} of {len(lines)}; ask for the rest with first_line]")
        return Answer("\n".join(shown) or f"[no such lines; the file has {len(lines)}]")

    async def search_files(args: Mapping[str, Any]) -> Answer:
        needle = args["text"].lower()
        if not needle.strip():
            raise ToolError("text is empty")
        hits: list[str] = []
        for n, name in enumerate(shelf.names(args.get("folder", ""))):
            hits += _hits(shelf, name, needle)
            if len(hits) > MAX_HITS or n >= MAX_SEARCHED:
                hits = [*hits[:MAX_HITS], "[there may be more; name a folder or a longer text]"]
                break
        return Answer("\n".join(hits) or "nothing found")

    return [
        Tool(
            "list_files",
            "List the files that can be read: contract, reference, docs, baseline, seeds, candidates, profiles, "
            "and the skills (skills/NAME/...).",
            inputs(folder=text("Only below this folder, for example candidates/c0003. Default: everything.")),
            list_files,
        ),
        Tool(
            "read_file",
            f"Read a text file with line numbers, at most {MAX_LINES} lines at a time.",
            inputs(
                {"path": text("A path as list_files shows it.")},
                first_line=whole("First line, from 1."),
                last_line=whole("Last line."),
            ),
            read_file,
        ),
        Tool(
            "search_files",
            "Find a text (no pattern, any case) in the files that can be read.",
            inputs(
                {"text": text("What to look for.")},
                folder=text("Only below this folder. Default: everything."),
            ),
            search_files,
        ),
    ]


def _hits(shelf: Shelf, name: str, needle: str) -> list[str]:
    """The lines of a file that hold a text; none if it is not for reading."""
    try:
        lines = shelf.read(name).splitlines()
    except ToolError:
        return []
    found = (f"{name}:{n}: {line.strip()[:200]}" for n, line in enumerate(lines, 1) if needle in line.lower())
    return [line for line, _ in zip(found, range(MAX_HITS + 1), strict=False)]


def wiki_tool(skills: Sequence[Skill]) -> Tool:
    """Search over the pages of the skills; the index is built at the first question."""
    index: list[Any] = []

    async def search_wiki(args: Mapping[str, Any]) -> Answer:
        from kda_tui.skills.search import SkillIndex

        if not index:
            index.append(SkillIndex(skills))
        paths = {s.name: s.path for s in skills}
        hits = [
            {
                "page": f"{SKILLS}/{h.section.skill}/{h.section.path.relative_to(paths[h.section.skill]).as_posix()}",
                "line": h.section.line,
                "heading": h.section.heading,
                "excerpt": h.snippet[:400],
            }
            for h in index[0].search(args["words"], 8)
        ]
        return facts({"hits": hits}) if hits else Answer("nothing found")

    return Tool(
        "search_wiki",
        "Search the kernel wiki and the other skills by words: techniques, when each applies, expected gain, "
        "how to see it in a profile, pitfalls. Read the page with read_file.",
        inputs({"words": text("A few words, for example: bank conflicts shared memory tile")}),
        search_wiki,
    )
