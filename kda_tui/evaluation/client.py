"""The judge as the worker sees it: a process that is asked, watched, and killed as a group."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.verdict import Progress, Verdict
from kda_tui.evaluation.wire import progress_from, verdict_from
from kda_tui.record.lock import start_ticks

__all__ = ["JudgeProcess", "JudgeRequest"]

LINE_LIMIT = 64 << 20
_KEPT = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
_KEPT_FAMILIES = ("LC_", "XDG_", "CUDA_", "NVIDIA_", "NVRTC_", "PYTHON", "KDA_", "OMP_", "CXX")


def judge_environment(env: Mapping[str, str]) -> dict[str, str]:
    """What the judge and its compilers get of the environment: no keys, no tokens; this very package."""
    kept = {k: v for k, v in env.items() if k in _KEPT or k.startswith(_KEPT_FAMILIES)}
    package = str(Path(__file__).resolve().parents[2])
    path = [package, *(p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p and p != package)]
    return {**kept, "PYTHONPATH": os.pathsep.join(path)}


class JudgeProcess:
    """One judge; answers one request at a time. Start it with :meth:`start`."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        results: asyncio.StreamReader,
        pipe: asyncio.ReadTransport,
        log: Path,
    ) -> None:
        self._process = process
        self._results = results
        self._pipe = pipe
        self._log = log
        self._asking = asyncio.Lock()
        self.pid = process.pid
        self.pgid = process.pid  # it leads its own session
        self.start_ticks = start_ticks(process.pid)

    @classmethod
    async def start(cls, cache_dir: Path, log: Path) -> JudgeProcess:
        """Start a judge in a session of its own; raises OSError if it cannot be started."""
        cache_dir.mkdir(parents=True, exist_ok=True)
        log.parent.mkdir(parents=True, exist_ok=True)
        reading, writing = os.pipe()
        try:
            with log.open("ab") as sink:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "kda_tui.evaluation.judge",
                    str(writing),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=sink,
                    stderr=sink,
                    pass_fds=(writing,),
                    env=judge_environment(os.environ),
                    start_new_session=True,
                )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        results = asyncio.StreamReader(limit=LINE_LIMIT)
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(results), os.fdopen(reading, "rb", buffering=0)
        )
        return cls(process, results, pipe, log)

    async def run(self, request: JudgeRequest, on_progress: Callable[[Progress], None]) -> Verdict:
        """Have one request judged. A judge that dies gives an infrastructure_error, never an exception."""
        async with self._asking:
            try:
                stdin = self._process.stdin
                assert stdin is not None
                stdin.write(json.dumps(request.line()).encode() + b"\n")
                await stdin.drain()
                while True:
                    line = await self._results.readline()
                    if not line.endswith(b"\n"):
                        return await self._dead()
                    message = json.loads(line)
                    if "verdict" in message:
                        return verdict_from(message["verdict"])
                    on_progress(progress_from(message["progress"]))
            except (ConnectionError, ValueError, KeyError, TypeError) as error:
                self.kill()
                return Verdict(
                    "infrastructure_error",
                    reason=f"the judge cannot be understood: {type(error).__name__}: {error}",
                )
            except asyncio.CancelledError:
                self.kill()
                raise

    async def _dead(self) -> Verdict:
        code = await self._process.wait()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return Verdict(
            "infrastructure_error", reason=f"the judge {how}{self._last_words()}", extra={"died": True}
        )

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            if lines:
                return f": {lines[-1][:200]}"
        return ""

    def kill(self) -> None:
        """Kill the judge and everything it started; safe to call twice."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process.returncode is None:
                os.killpg(self.pgid, signal.SIGKILL)

    async def close(self) -> None:
        """Kill the judge, wait until it is gone, and let go of its pipes."""
        self.kill()
        await self._process.wait()
        self._pipe.close()
