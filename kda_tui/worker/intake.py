"""Admitting a candidate: what may be submitted, its content hash, its id. The same for agents and people."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kda_tui.record.contract import Contract
from kda_tui.record.launch_plan import LaunchPlan, parse_launch_plan
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Snapshot
from kda_tui.text import UserError

MAX_BYTES = 2 << 20
FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".ptx", ".toml", ".md")
NOT_CODE = ("hypothesis", "parents", "family", "tune")  # keys of launch.toml that change no launch


@dataclass(frozen=True, slots=True)
class Admitted:
    """A candidate that may be recorded: its first ledger line, the bytes of its files, and their hashes."""

    candidate: Candidate
    files: Mapping[str, bytes]
    hashes: Mapping[str, str]  # path in the workspace -> sha256


def source_sha(files: Mapping[str, str]) -> str:
    """sha256 over what is compiled and launched: notes and the prose keys of launch.toml do not count."""
    digest = hashlib.sha256()
    for name in sorted(files):
        if name.endswith(".md"):
            continue
        text = files[name]
        if name == "launch.toml":
            plan = tomllib.loads(text)
            kept = {k: v for k, v in plan.items() if k not in NOT_CODE}
            text = json.dumps(kept, sort_keys=True, default=str)
        digest.update(f"{name}\0{hashlib.sha256(text.encode()).hexdigest()}\n".encode())
    return digest.hexdigest()


def next_id(taken: Iterable[str]) -> str:
    """``c0001``, ``c0002``, ...: unique in a workspace."""
    numbers = [int(m[1]) for c in taken if (m := re.fullmatch(r"c(\d+)", c))]
    return f"c{max(numbers, default=0) + 1:04d}"


def _file_problem(files: Mapping[str, str]) -> str:
    if "launch.toml" not in files:
        return "launch.toml is missing: a candidate is kernel source plus a launch plan"
    if not any(n.endswith((".cu", ".ptx")) for n in files):
        return "no kernel source: give a .cu or .ptx file"
    for name in files:
        if not FILE_NAME.fullmatch(name) or not name.endswith(SUFFIXES):
            return f"{name!r} is not a file of a candidate; use plain names ending in {' '.join(SUFFIXES)}"
    size = sum(len(t.encode()) for t in files.values())
    return f"{size} bytes of source; the limit is {MAX_BYTES}" if size > MAX_BYTES else ""


def _defines(plan: LaunchPlan) -> dict[str, Any]:
    return {k: v for unit in plan.units for k, v in unit.defines.items()}


def admit(
    snap: Snapshot,
    files: Mapping[str, str],
    contract: Contract | None,
    holds_secret: Callable[[str], str | None],
    *,
    author: str,
    run: str,
    hypothesis: str = "",
    parents: tuple[str, ...] = (),
    item: str = "",
    family: str = "",
    defines: Mapping[str, Any] | None = None,
) -> Admitted | str:
    """The candidate's first state, or one line that says why it is not admitted."""
    if problem := _file_problem(files):
        return problem
    for name, text in files.items():
        if secret := holds_secret(text):
            return f"{name} holds the value of {secret}; a source with a secret is never recorded"
    try:
        plan = parse_launch_plan(files["launch.toml"].encode(), "launch.toml", contract)
        sha = source_sha(files)
    except UserError as error:
        return str(error)
    twin = next((c for c in snap.candidates.values() if c.sha256 == sha), None)
    if twin is not None:
        verdict = f", {twin.validity} {twin.speed}".rstrip() if twin.validity else ""
        return f"the same source is {twin.id} already ({twin.stage}{verdict}); nothing was submitted"
    unknown = [p for p in parents if p not in snap.candidates and p != "baseline"]
    if unknown:
        return f"unknown parent {unknown[0]}"
    encoded = {name: text.encode() for name, text in files.items()}
    cand = next_id(snap.candidates)
    return Admitted(
        Candidate(
            id=cand,
            author=author,
            sha256=sha,
            parents=tuple(parents) or plan.parents,
            item=item,
            family=family or plan.family,
            hypothesis=hypothesis or plan.hypothesis,
            defines=dict(defines) if defines else _defines(plan),
            extra={"born": run},
        ),
        encoded,
        {f"candidates/{cand}/{name}": hashlib.sha256(data).hexdigest() for name, data in encoded.items()},
    )
