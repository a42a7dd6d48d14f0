"""One run of ncu over one candidate and workload, and the check that it saw what was judged."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kda_tui.evaluation.devices.cuda.build import kernels_of
from kda_tui.profiling.collect.states import REMEDIES, state_of
from kda_tui.profiling.diagnosis import Known
from kda_tui.profiling.digest import Collection, json_digest, text_digest
from kda_tui.profiling.metrics import find
from kda_tui.profiling.model import Profile
from kda_tui.profiling.read import read_profile
from kda_tui.record.launch_plan import load_launch_plan
from kda_tui.text import UserError, clean_line

RATIO = (0.5, 2.5)  # ncu's duration over the evaluator's: outside, another launch was profiled


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to profile. ``event_us`` and ``registers`` are the evaluator's, for the check; None: not known."""

    workspace: Path
    folder: Path
    cand: str
    workload: str
    cache: Path
    target: Path  # profile/<candidate>/
    ncu: str = ""
    timeout_s: float = 300.0
    event_us: float | None = None
    registers: int | None = None
    bytes_min: float | None = None


@dataclass(frozen=True, slots=True)
class Collected:
    """``state`` is ok or a key of REMEDIES; ``text`` is the digest, or one line that says what happened."""

    state: str
    text: str
    report: Path | None = None
    summary: Mapping[str, Any] | None = None


def find_ncu(configured: str = "") -> str:
    """An absolute ncu, or "": sudo and services lose PATH, so the usual places are looked at too."""
    places = [configured] if configured else [shutil.which("ncu") or "", "/usr/local/cuda/bin/ncu"]
    return next((p for p in places if p and Path(p).is_file() and os.access(p, os.X_OK)), "")


async def collect(wanted: Wanted) -> Collected:
    """Run ncu once (some 40 passes). Cancelling kills the whole process group. Never raises for its faults."""
    ncu = find_ncu(wanted.ncu)
    if not ncu:
        return _failed(wanted, "no_ncu", f"ncu is not installed{f' at {wanted.ncu}' if wanted.ncu else ''}")
    wanted.target.mkdir(parents=True, exist_ok=True)
    report = wanted.target / f"{wanted.workload}.ncu-rep"
    part = wanted.target / f".{wanted.workload}.part.ncu-rep"
    command = _command(ncu, wanted, part)
    try:
        log, code = await _run(command, wanted.timeout_s)
    except TimeoutError:
        return _failed(wanted, "timeout", f"ncu took more than {wanted.timeout_s:.0f} s", command)
    except OSError as error:
        return _failed(wanted, "no_ncu", f"{ncu} does not start ({error.strerror})", command)
    (wanted.target / f"{wanted.workload}.log").write_text(log)
    if not part.is_file():
        state = state_of(log) or (
            "launch_failed" if "launch failed" in log else "no_gpu" if "cannot launch" in log else "no_kernel"
        )
        return _failed(wanted, state, _last_words(log) or f"ncu ended with {code} and no report", command)
    part.replace(report)
    return _read(wanted, report, command, log)


def _command(ncu: str, wanted: Wanted, report: Path) -> list[str]:
    plan = load_launch_plan(wanted.folder / "launch.toml")
    names = {_base(kernel) for unit in plan.units for kernel in kernels_of(plan, unit)}
    return [
        ncu, "--set", "full", "--import-source", "yes", "--target-processes", "all",
        "--kernel-name-base", "function", "-k", f"regex:^({'|'.join(sorted(map(re.escape, names)))})$",
        "--clock-control", "none", "--cache-control", "all", "-f", "-o", str(report),
        sys.executable, "-m", "kda_tui.profiling.collect.launcher",
        str(wanted.workspace), str(wanted.folder), wanted.workload, str(wanted.cache),
    ]  # fmt: skip


def _base(kernel: str) -> str:
    """The function's name as ncu matches it: no template arguments, no namespace."""
    return kernel.split("<", 1)[0].rsplit("::", 1)[-1].strip()


async def _run(command: list[str], timeout_s: float) -> tuple[str, int]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "KDA_PROFILED": "1"},
        start_new_session=True,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), timeout_s)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    return output.decode("utf-8", "replace")[-200_000:], process.returncode or 0


def _last_words(log: str) -> str:
    lines = [line for line in log.splitlines() if line.strip() and not line.startswith("==PROF==")]
    return clean_line(lines[-1])[:300] if lines else ""


def _read(wanted: Wanted, report: Path, command: list[str], log: str) -> Collected:
    try:
        profile = read_profile(report)
    except UserError as error:
        return Collected(
            "ok", f"profiled; {error}", report, _summary(wanted, "ok", str(error), command, None)
        )
    if not profile.kernels:
        return _failed(wanted, state_of(log) or "no_kernel", "the report holds no kernel", command)
    wrong = _is_another(wanted, profile)
    if wrong:
        return _failed(wanted, "wrong_kernel", wrong, command)
    known = Known(bytes_min=wanted.bytes_min, launch_gaps_us=_gaps(wanted, profile))
    taken = _taken(wanted, command)
    summary = _summary(wanted, "ok", "", command, json_digest(profile, known, taken))
    return Collected("ok", text_digest(profile, known, taken), report, summary)


def _taken(wanted: Wanted, command: list[str]) -> Collection:
    return Collection("all", "none", wanted.event_us, " ".join(command))


def _is_another(wanted: Wanted, profile: Profile) -> str:
    """Why this is not the launch that was judged; "" when it is (or nothing is known to compare)."""
    if wanted.registers is not None:
        most = max((find(k, "registers") or 0.0 for k in profile.kernels), default=0.0)
        if most and most != wanted.registers:
            return f"{most:.0f} registers were profiled, {wanted.registers} were judged"
    total = sum(find(k, "duration") or 0.0 for k in profile.kernels)
    if wanted.event_us and total and not RATIO[0] <= total / wanted.event_us <= RATIO[1]:
        return f"{total:.1f} us were profiled, {wanted.event_us:.1f} us were judged"
    return ""


def _gaps(wanted: Wanted, profile: Profile) -> float | None:
    """Time between the steps of one call: the evaluator's time less the steps' own, where there are several."""
    if wanted.event_us is None or len(profile.kernels) < 2:
        return None
    return max(0.0, wanted.event_us - sum(find(k, "duration") or 0.0 for k in profile.kernels))


def _summary(
    wanted: Wanted, state: str, why: str, command: list[str], digest: Mapping[str, Any] | None
) -> dict[str, Any]:
    return {
        "state": state,
        "unavailable": "" if state == "ok" else f"{why}; {REMEDIES[state]}",
        "candidate": wanted.cand,
        "workload": wanted.workload,
        "command": command,
        **(digest or {}),
    }


def _failed(wanted: Wanted, state: str, why: str, command: list[str] | None = None) -> Collected:
    text = f"nothing was profiled ({state.replace('_', ' ')}): {why}; {REMEDIES[state]}"
    return Collected(state, text, None, _summary(wanted, state, why, command or [], None))


def dump(summary: Mapping[str, Any]) -> bytes:
    """summary.json's bytes."""
    return json.dumps(summary, ensure_ascii=False, indent=1, allow_nan=False).encode()
