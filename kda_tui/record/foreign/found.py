"""Where the parts of somebody's workspace are, and where the workspaces are in a folder. Names are looked at, nothing is read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LEDGERS = re.compile(r"(candidates|solutions)(\..+)?\.jsonl")
TABLES = re.compile(r"benchmark([_.].*)?\.csv")
RESULTS = re.compile(r"results.*\.jsonl")
PLANS = re.compile(r"(plan|.*-plan|plan-.*)\.md")
DRAFTS = re.compile(r"(draft|.*-draft|draft-.*)\.md")
CONTRACTS = (
    "contract.toml", "config.toml", "prompt.md", "interface.md", "docs/TASK.md", "docs/task-contract.md", "prompt.txt",
    "bench/workloads.json", "docs/WORKLOADS.md", "definition.json", "workloads.jsonl",
)  # fmt: skip
PROMPTS = re.compile(r"(prompt|.*-prompt|prompt-.*)\.md")
PROFILES = (".ncu-rep", ".csv", ".txt")
INNER = ("workspace", "workspaces", "kernels", "tasks")  # where repositories keep them

_REQUEST = frozenset({"definition.json", "workloads.jsonl"})
_MOST = 4000  # entries looked at below one workspace
_DEPTH = 6
_FOLDERS_DOWN = 4
_SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__", "site-packages"})


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a workspace by what they are for, relative to it, in the order they are shown."""

    root: Path
    ledgers: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    contracts: tuple[str, ...] = ()
    plans: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()
    rounds: tuple[str, ...] = ()  # files below .humanize/rlcr
    transcripts: tuple[str, ...] = ()  # .jsonl files that may be one
    profiles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # other documents: results, reports, run logs
    cut: bool = False  # there are more files than were looked at

    @property
    def is_workspace(self) -> bool:
        strong = self.ledgers or self.tables or self.results or self.rounds
        return bool(strong or self._says_a_task or (self.plans and self.drafts))

    @property
    def _says_a_task(self) -> bool:
        """Many projects have a config.toml, or workloads; only together, or with words, they are a task."""
        named = frozenset(self.contracts)
        alone = named - {"config.toml", "bench/workloads.json", "definition.json", "workloads.jsonl"}
        return bool(alone) or {"config.toml", "bench/workloads.json"} <= named or named >= _REQUEST

    @property
    def watched(self) -> tuple[str, ...]:
        return (
            *self.ledgers,
            *self.tables,
            *self.results,
            *self.contracts,
            *self.plans,
            *self.drafts,
            *self.rounds,
        )


def layout_of(root: Path) -> Layout:
    """What a folder holds. Links are never followed."""
    names: list[str] = []
    for name in _walk(root, "", 0):
        names.append(name)
        if len(names) > _MOST:
            break
    names.sort(key=lambda name: (name.count("/"), name))
    near = [name for name in names if _folder(name) in ("", "runs", "outputs", "bench")]
    docs = [name for name in names if _folder(name) in ("", "docs", "docs/plans", ".humanize/plans", "plans")]
    contracts, drafts = _contracts(names), _named(DRAFTS, docs)
    plans = (
        *_named(PLANS, docs),
        *(n for n in names if n.startswith(".humanize/rlcr/") and n.endswith("/plan.md")),
    )
    return Layout(
        root=root,
        ledgers=_named(LEDGERS, near),
        tables=_named(TABLES, near),
        results=_named(RESULTS, [name for name in near if _folder(name) == "bench"]),
        contracts=contracts,
        plans=plans,
        drafts=drafts,
        notes=_notes(names, frozenset((*contracts, *plans, *drafts))),
        rounds=tuple(n for n in names if n.startswith(".humanize/rlcr/") and n.endswith(".md")),
        transcripts=tuple(n for n in names if _may_be_transcript(n)),
        profiles=tuple(
            n
            for n in names
            if n.endswith(".ncu-rep") or (n.startswith(("profile/", "ncu/")) and n.endswith(PROFILES))
        ),
        cut=len(names) > _MOST,
    )


def _notes(names: list[str], others: frozenset[str]) -> tuple[str, ...]:
    """Results first, then other documents, then the reports of profiles."""
    found = [
        name
        for name in names
        if name.endswith(".md")
        and name not in others
        and name.startswith(("docs/", "outputs/", "profile/", "ncu/"))
    ]
    found += [name for name in names if name == "README.md"]
    return tuple(
        sorted(found, key=lambda name: (name.startswith(("profile/", "ncu/")), "result" not in name))
    )


def find_workspaces(folder: Path) -> list[Path]:
    """The workspaces at or below a folder: itself, or those up to four levels down, as repositories keep them.

    Below a workspace only the folders are looked into where a repository keeps others (``workspaces/``, ...).
    """
    found: list[Path] = []
    waiting = [(folder, 0)]
    for here, depth in waiting:  # grows while it is walked: the near ones come first
        is_one = layout_of_top(here).is_workspace
        if is_one:
            found.append(here)
        if depth >= _FOLDERS_DOWN or len(waiting) > _MOST:
            continue
        inner = [here / name for name in INNER] if is_one else [here]
        waiting += [
            (child, depth + 1)
            for place in inner
            for child in _children(place)
            if not child.name.startswith(".")
        ]
    return sorted(found)


def layout_of_top(folder: Path) -> Layout:
    """The layout by the files that say whether a folder is a workspace at all; much quicker than the whole."""
    names, folders = _entries(folder, "")
    for part in ("docs", "runs", "outputs", "bench"):
        if part in folders:
            names += _entries(folder, part)[0]
    rlcr = folder / ".humanize" / "rlcr"
    near = [name for name in names if not name.startswith("docs/")]
    return Layout(
        root=folder,
        ledgers=_named(LEDGERS, near),
        tables=_named(TABLES, near),
        results=_named(RESULTS, [name for name in near if name.startswith("bench/")]),
        contracts=_contracts(names),
        plans=_named(PLANS, names),
        drafts=_named(DRAFTS, names),
        rounds=tuple(child.name for child in _children(rlcr)) if ".humanize" in folders else (),
    )


def _contracts(names: list[str]) -> tuple[str, ...]:
    """The files that say the task, those of fixed names first, then prompts in docs and prompts."""
    known = frozenset(names)
    prompts = _named(PROMPTS, [name for name in names if _folder(name) in ("docs", "prompts")])
    return (*(name for name in CONTRACTS if name in known), *prompts)


def _named(pattern: re.Pattern[str], names: list[str]) -> tuple[str, ...]:
    return tuple(name for name in names if pattern.fullmatch(name.rpartition("/")[2]))


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _may_be_transcript(name: str) -> bool:
    base = name.rpartition("/")[2]
    if not base.endswith(".jsonl") or LEDGERS.fullmatch(base) or RESULTS.fullmatch(base):
        return False
    return bool(
        re.search(
            r"transcript|session|conversation|claude|codex|agent|stream|rollout|trajectory", name.lower()
        )
    )


def _walk(root: Path, below: str, depth: int) -> Iterator[str]:
    inner: list[str] = []
    try:
        with os.scandir(root / below) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                name = f"{below}/{entry.name}" if below else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED and depth < _DEPTH:
                        inner.append(name)
                else:
                    yield name
    except OSError:
        return
    for name in inner:
        yield from _walk(root, name, depth + 1)


def _entries(folder: Path, part: str) -> tuple[list[str], list[str]]:
    """Files (by path from ``folder``) and folders (by name) in a part of a folder."""
    files, folders = [], []
    try:
        with os.scandir(folder / part) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                else:
                    files.append(f"{part}/{entry.name}" if part else entry.name)
    except OSError:
        return [], []
    return sorted(files), folders


def _children(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [
                Path(e.path) for e in entries if e.is_dir(follow_symlinks=False) and e.name not in _SKIPPED
            ]
    except OSError:
        return []
    return sorted(found)
