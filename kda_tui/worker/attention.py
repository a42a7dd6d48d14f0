"""The attention hook: a command of the user's own configuration, run when people are waited for.

The worker runs it, not the screen: the laptop may be shut.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 20.0
OUTPUT_BYTES = 4096
PASSED_ENV = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "SHELL",
    "TMPDIR",
    "DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
)


@dataclass(frozen=True, slots=True)
class Called:
    """How a hook ended: exit code (None = killed after the timeout, or not started) and its first words."""

    code: int | None
    output: str


async def call(command: Sequence[str], facts: Mapping[str, Any], timeout_s: float = TIMEOUT_S) -> Called:
    """Run ``command`` with the facts as JSON on stdin and as KDA_* variables; never raises for its faults."""
    env = {name: os.environ[name] for name in PASSED_ENV if name in os.environ}
    env |= {f"KDA_{k.upper()}": str(v) for k, v in facts.items() if isinstance(v, str | int | float)}
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=env,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        return Called(None, f"{command[0]}: {error.strerror or error}")
    body = json.dumps(dict(facts), ensure_ascii=False, default=str).encode() + b"\n"
    try:
        async with asyncio.timeout(timeout_s):
            output = await _talk(process, body)
    except TimeoutError:
        _kill(process)
        await process.wait()
        return Called(None, f"no end after {timeout_s:g} s; killed")
    return Called(process.returncode, output)


async def _talk(process: asyncio.subprocess.Process, body: bytes) -> str:
    """Feed stdin, keep the first bytes of the output, read the rest away."""
    stdin, stdout = process.stdin, process.stdout
    if stdin is not None:
        try:
            stdin.write(body)
            await stdin.drain()
            stdin.close()
        except (BrokenPipeError, ConnectionResetError):
            pass
    kept = b""
    while stdout is not None and (chunk := await stdout.read(65536)):
        kept += chunk[: OUTPUT_BYTES - len(kept)]
    await process.wait()
    return kept.decode("utf-8", "replace").strip()


def _kill(process: asyncio.subprocess.Process) -> None:
    try:
        os.killpg(process.pid, 9)
    except (ProcessLookupError, PermissionError):
        process.kill()
