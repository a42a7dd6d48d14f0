"""Pins: a skill is used only as it was reviewed, by commit and by a hash over its files."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kda_tui.skills.skill import Skill, read_skill
from kda_tui.text import UserError

MAX_FILES = 2000
MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Pin:
    """What kda.toml says of a skill: where it came from and the hash of its tree."""

    name: str
    sha256: str
    source: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class PinState:
    """``state``: ok | differs | missing | unpinned."""

    name: str
    state: str
    found_sha256: str = ""
    pin: Pin | None = None


def file_hashes(folder: Path) -> dict[str, str]:
    """sha256 of every file below a skill by relative path, ``*`` appended to executables.

    Raises UserError on symlinks, special files and oversized trees: a skill is plain files.
    """
    found: dict[str, str] = {}
    size = 0
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in (".git", "__pycache__"))
        for name in [*folders, *files]:
            path = Path(root) / name
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise UserError(f"{path}: a skill may hold plain files and folders only; remove it")
        for name in sorted(files):
            path = Path(root) / name
            size += path.stat().st_size
            if len(found) >= MAX_FILES or size > MAX_BYTES:
                raise UserError(f"{folder}: more than {MAX_FILES} files or {MAX_BYTES >> 20} MB; not a skill")
            mark = "*" if path.stat().st_mode & 0o111 else ""
            found[path.relative_to(folder).as_posix() + mark] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def tree_sha256(folder: Path) -> str:
    """One hash over the sorted (path, executable bit, content hash) of a skill."""
    digest = hashlib.sha256()
    for name, content in sorted(file_hashes(folder).items()):
        digest.update(f"{len(name)}:{name}:{content}\n".encode())
    return digest.hexdigest()


def check(skill: Skill, pins: Mapping[str, Pin]) -> PinState:
    """How a skill on disk stands to its pin."""
    pin = pins.get(skill.name)
    found = tree_sha256(skill.path)
    if pin is None:
        return PinState(skill.name, "unpinned", found)
    return PinState(skill.name, "ok" if found == pin.sha256 else "differs", found, pin)


def missing(skills: Iterable[Skill], pins: Mapping[str, Pin]) -> list[PinState]:
    """Pins whose skill is not on disk."""
    there = {skill.name for skill in skills}
    return [PinState(name, "missing", "", pin) for name, pin in pins.items() if name not in there]


def difference(skill: Skill, pin: Pin) -> list[str]:
    """File by file, how a skill on disk differs from its pinned source; fetches the source when it is known."""
    if tree_sha256(skill.path) == pin.sha256:
        return []
    if not pin.source or not pin.commit:
        return [
            f"~ sha256 {tree_sha256(skill.path)}, pinned {pin.sha256} (no source in the pin: which files is not known)"
        ]
    with tempfile.TemporaryDirectory(prefix="kda-skill-") as scratch:
        pinned, _ = add(pin.source, pin.commit, Path(scratch))
        return differences(file_hashes(pinned.path), file_hashes(skill.path))


def usable(skill: Skill, pins: Mapping[str, Pin]) -> Skill:
    """The skill, if it matches its pin; UserError with both hashes if it does not."""
    state = check(skill, pins)
    if state.state == "differs" and state.pin is not None:
        raise UserError(
            f"skill {skill.name} in {skill.path} has sha256 {state.found_sha256[:12]}, pinned is "
            f"{state.pin.sha256[:12]}: see 'kda skills diff {skill.name}', then pin it anew or restore it"
        )
    return skill


def add(url: str, commit: str, folder: Path) -> tuple[Skill, Pin]:
    """Copy a skill at a commit of a git repository into ``folder``, read-only, and return its pin.

    ``url`` may end in ``#sub/folder``. Nothing of the skill is run; its hooks and allowed tools are not
    honoured. Raises UserError when git fails or the skill is malformed.
    """
    source, _, inside = url.partition("#")
    if not commit or not all(c in "0123456789abcdef" for c in commit) or len(commit) < 40:
        raise UserError(f"--commit {commit or '(none)'}: give the full 40-digit commit, a branch can move")
    if ".." in Path(inside).parts or inside.startswith("/"):
        raise UserError(f"{url}: the part after # must be a folder inside the repository")
    with tempfile.TemporaryDirectory(prefix="kda-skill-") as scratch:
        _git("clone", "--quiet", "--no-checkout", "--", source, scratch)
        _git("-C", scratch, "-c", "core.hooksPath=/dev/null", "checkout", "--quiet", "--detach", commit)
        skill = read_skill(Path(scratch) / inside if inside else Path(scratch))
        if skill.problems:
            raise UserError(f"{url}: {skill.problems[0]}")
        digest = tree_sha256(skill.path)
        target = folder / skill.name
        if target.exists():
            raise UserError(
                f"{target}: already there; remove it first, or compare with 'kda skills diff {skill.name}'"
            )
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(skill.path, target, ignore=shutil.ignore_patterns(".git", "__pycache__"))
    _make_read_only(target)
    return read_skill(target), Pin(skill.name, digest, url, commit)


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """File by file: ``+`` added, ``-`` removed, ``~`` changed."""
    out = [f"- {name}" for name in sorted(set(before) - set(after))]
    out += [f"+ {name}" for name in sorted(set(after) - set(before))]
    out += [f"~ {name}" for name in sorted(set(before) & set(after)) if before[name] != after[name]]
    return out


def _make_read_only(folder: Path) -> None:
    for root, _, files in os.walk(folder):
        for name in files:
            path = Path(root) / name
            path.chmod(path.stat().st_mode & ~0o222)


def _git(*words: str) -> None:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run(
            ["git", *words], capture_output=True, text=True, timeout=300, check=False, env=environment
        )
    except FileNotFoundError as error:
        raise UserError("git is not installed; install it, or copy the skill by hand and pin it") from error
    except subprocess.TimeoutExpired as error:
        raise UserError(f"git {words[0]} took more than 300 s; try again when the network answers") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UserError(f"git {words[0]} failed: {last}")
