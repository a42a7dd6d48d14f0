"""The bench: submit, evaluate, profile, compare, autotune. Results are words, gate names and times."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from kda_tui.agents.interface import Desk, Proposal
from kda_tui.agents.tools.files import Shelf
from kda_tui.agents.tools.tool import Answer, Tool, ToolError, facts, inputs, objects, text, texts, whole
from kda_tui.record.records import Candidate
from kda_tui.record.snapshot import Evaluation, Snapshot

MAX_LOG = 6000
MAX_DIFF = 200  # lines
MAX_TUNED = 200
LEVELS = ("smoke", "correct", "time")


def bench_tools(desk: Desk, shelf: Shelf) -> list[Tool]:
    async def submit_candidate(args: Mapping[str, Any]) -> Answer:
        submitted = await desk.submit(_proposal(args, shelf))
        body = {
            "candidate": submitted.cand,
            "compiled": submitted.ok,
            "wrong": submitted.text[:MAX_LOG],
            "registers": submitted.registers,
            "spills": submitted.spills,
            "warnings": list(submitted.warnings),
        }
        return facts(body, submitted.cand, is_error=not submitted.ok)

    async def evaluate(args: Mapping[str, Any]) -> Answer:
        found = await desk.evaluate(args["candidate"], args.get("level", "time"))
        c = desk.snapshot.candidates.get(found.cand)
        body = {
            "candidate": found.cand,
            "outcome": found.outcome if found.outcome != "ok" else "",
            "validity": found.validity,
            "speed": found.speed,
            "stage_reached": found.stage_reached,
            "gates": {k: v for k, v in found.gates.items() if v != "passed"},
            "reason": found.reason,
            "against": c.opponent if c is not None else "",
            "ratio": _rounded(found.ratio),
            "interval": [_rounded(found.lo), _rounded(found.hi)] if found.lo is not None else None,
            "time_us": _rounded(found.time_us),
            "share_of_floor": _rounded(found.floor_share),
        }
        return facts(body, found.cand, is_error=found.outcome != "ok")

    async def profile(args: Mapping[str, Any]) -> Answer:
        contract, workload = desk.snapshot.contract, args.get("workload")
        known = [w.id for w in contract.workloads] if contract is not None else []
        if workload and workload not in known:
            raise ToolError(f"there is no workload {workload}; there are {', '.join(known)}")
        said = await desk.profile(args["candidate"], workload)
        return Answer(said, cand=args["candidate"])

    async def autotune(args: Mapping[str, Any]) -> Answer:
        limit = args["max_candidates"]
        if not 1 <= limit <= MAX_TUNED:
            raise ToolError(f"max_candidates must be 1 to {MAX_TUNED}")
        return Answer(await desk.autotune(args["candidate"], limit), cand=args["candidate"])

    return [
        Tool(
            "submit_candidate",
            "Submit a candidate: it is linted and compiled at once, and what is wrong comes back. It is recorded "
            "whatever becomes of it. Files that are not given are taken from copy_from.",
            inputs(
                {
                    "hypothesis": text(
                        "One sentence: what changes, why it should be faster, by how much at most."
                    ),
                    "family": text("A short name of the idea; candidates of one idea share it."),
                    "parents": texts("Ids of the candidates it comes from, or baseline."),
                    "item": text("Id of the plan item it belongs to, or an empty text."),
                },
                kernel=text("kernel.cu, the whole source."),
                launch=text("launch.toml, the whole launch plan. See the skill write-a-candidate."),
                files=objects(
                    "Further files, for example a header or notes.md.",
                    {"name": text("File name."), "text": text("The whole text.")},
                ),
                copy_from=text("Take files that are not given here from this candidate, or from baseline."),
            ),
            submit_candidate,
        ),
        Tool(
            "evaluate",
            "Have the judge evaluate a candidate against the incumbent: correctness first, then paired times. "
            "Levels stop early; only `time` can open the way to a promotion.",
            inputs({"candidate": text("Its id.")}, level=text("How far to go. Default: time.", LEVELS)),
            evaluate,
        ),
        Tool(
            "profile",
            "Profile a candidate with Nsight Compute: shares of peak, a diagnosis with evidence, hotspots by line. "
            "Says why where it cannot be done.",
            inputs({"candidate": text("Its id.")}, workload=text("Default: the one with most to gain.")),
            profile,
        ),
        Tool(
            "compare",
            "Compare two candidates as they are in the record: verdicts, times by workload, difference of the sources.",
            inputs(
                {"first": text("Candidate id, or baseline."), "second": text("Candidate id, or baseline.")}
            ),
            _compare(desk, shelf),
        ),
        Tool(
            "autotune",
            "Search the [tune] table of a candidate's launch plan, measuring each point. Costs evaluations, no tokens.",
            inputs(
                {
                    "candidate": text("Its id; its launch.toml has a [tune] table."),
                    "max_candidates": whole(f"How many points at most, 1 to {MAX_TUNED}."),
                }
            ),
            autotune,
        ),
    ]


def _proposal(args: Mapping[str, Any], shelf: Shelf) -> Proposal:
    files: dict[str, str] = {}
    if origin := args.get("copy_from"):
        files = folder_files(shelf, origin)
    if "kernel" in args:
        files["kernel.cu"] = args["kernel"]
    if "launch" in args:
        files["launch.toml"] = args["launch"]
    for extra in args.get("files", ()):
        files[extra["name"]] = extra["text"]
    if not args["hypothesis"].strip():
        raise ToolError("a candidate needs a hypothesis: what changes and why it should be faster")
    return Proposal(
        files=files,
        hypothesis=args["hypothesis"],
        parents=tuple(args["parents"]),
        item=args["item"],
        family=args["family"],
        author="agent",
    )


def folder_files(shelf: Shelf, cand: str) -> dict[str, str]:
    """The text files of a candidate, or of the baseline. Raises ToolError."""
    folder = shelf.baseline if cand == "baseline" else f"candidates/{cand}"
    names = [name for name in shelf.names(folder) if not name.endswith("notes.md")]
    if not names:
        raise ToolError(f"there are no files of {cand}")
    return {name.rpartition("/")[2]: shelf.read(name) for name in names}


def _compare(desk: Desk, shelf: Shelf) -> Any:
    async def compare(args: Mapping[str, Any]) -> Answer:
        snap = desk.snapshot
        first, second = args["first"], args["second"]
        for cand in (first, second):
            if cand != "baseline" and cand not in snap.candidates:
                raise ToolError(f"there is no candidate {cand}")
        body = {
            "first": _verdict(snap, first),
            "second": _verdict(snap, second),
            "workloads": _by_workload(snap, first, second),
            "note": "ratios hold against the opponent that is named; times of different evaluations are no comparison",
        }
        return Answer(f"{facts(body).text}\n\n{source_diff(shelf, first, second)}")

    return compare


def _verdict(snap: Snapshot, cand: str) -> dict[str, Any]:
    c = snap.candidates.get(cand) or Candidate(cand)
    body = {
        "id": cand,
        "incumbent": snap.incumbent.cand == cand or None,
        "hypothesis": c.hypothesis,
        "validity": c.validity,
        "speed": c.speed,
        "against": c.opponent,
        "ratio": _rounded(c.ratio),
        "interval": [_rounded(c.lo), _rounded(c.hi)] if c.lo is not None else None,
        "registers": c.registers,
        "spills": c.spills,
        "shared_bytes": c.shared_bytes,
        "share_of_floor": _rounded(c.floor_share),
        "reason": c.reason,
        "defines": dict(c.defines),
    }
    return {k: v for k, v in body.items() if v is not None and v != "" and v != {}}


def newest_timed(snap: Snapshot, cand: str) -> Evaluation | None:
    """The newest evaluation of a candidate with times by workload."""
    found = [
        e
        for e in snap.evaluations.values()
        if e.cand == cand
        and e.op in ("evaluate", "confirm")
        and e.outcome == "ok"
        and e.extra.get("workloads")
    ]
    return max(found, key=lambda e: (e.run, e.seq), default=None)


def workload_times(snap: Snapshot, cand: str) -> dict[str, Mapping[str, Any]]:
    """The rows {time_us, ratio, lo, hi, floor_share, ...} by workload of a candidate's newest evaluation."""
    found = newest_timed(snap, cand)
    rows = found.extra.get("workloads") if found is not None else ()
    return {str(r["workload"]): r for r in rows or () if isinstance(r, Mapping) and "workload" in r}


def _by_workload(snap: Snapshot, first: str, second: str) -> list[dict[str, Any]]:
    mine, other = workload_times(snap, first), workload_times(snap, second)
    return [
        {
            "workload": name,
            **{
                f"{label}_{key}": _rounded(rows.get(name, {}).get(key))
                for label, rows in (("first", mine), ("second", other))
                for key in ("time_us", "ratio")
                if rows.get(name, {}).get(key) is not None
            },
        }
        for name in dict.fromkeys((*mine, *other))
    ]


def source_diff(shelf: Shelf, first: str, second: str) -> str:
    """The difference of all files of two candidates, as a unified diff, cut."""
    before, after = folder_files(shelf, first), folder_files(shelf, second)
    lines: list[str] = []
    for name in sorted({*before, *after}):
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        lines += difflib.unified_diff(old, new, f"{first}/{name}", f"{second}/{name}", lineterm="")
    if len(lines) > MAX_DIFF:
        lines = [*lines[:MAX_DIFF], f"[{len(lines) - MAX_DIFF} more lines]"]
    return "\n".join(lines) or "the sources are the same"


def _rounded(value: Any) -> float | None:
    return round(float(value), 4) if isinstance(value, int | float) else None
