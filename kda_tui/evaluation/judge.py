"""The judge's own process: ``python -m kda_tui.evaluation.judge RESULT_FD``.

Requests come as JSON lines on stdin; progress and verdicts leave as JSON lines on a private descriptor
that no child inherits. Stdout and stderr are a log. The process ends with its parent, or on end of input.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.verdict import Progress, Verdict
from kda_tui.evaluation.wire import progress_line, verdict_line
from kda_tui.evaluation.workbench import Workbench

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel for a SIGKILL when the parent dies; elsewhere the end of stdin does it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def answer(request: JudgeRequest, bench: Workbench, out: BinaryIO) -> Verdict:
    """Do what is asked; an error of the judge itself is an infrastructure error with the log's last line."""

    def on_progress(progress: Progress) -> None:
        _send(out, "progress", progress_line(progress))

    try:
        if request.op == "debug":
            from kda_tui.evaluation.debug import debug

            return debug(request, bench)
        if request.op == "explain":
            from kda_tui.evaluation.explain import explain

            return explain(request, bench)
        if request.op == "selftest":
            from kda_tui.evaluation.selftest import selftest_verdict

            return selftest_verdict(request, bench, on_progress)
        from kda_tui.evaluation.evaluator import evaluate

        return evaluate(request, bench, on_progress)
    except Exception as error:
        traceback.print_exc()
        return Verdict("infrastructure_error", reason=f"the judge failed: {type(error).__name__}: {error}")


def serve(requests: BinaryIO, out: BinaryIO) -> None:
    """Answer requests until the end of input."""
    benches: dict[str, Workbench] = {}
    for line in requests:
        try:
            request = JudgeRequest.from_line(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            verdict = Verdict("infrastructure_error", reason=f"the judge was sent a bad request: {error}")
            _send(out, "verdict", verdict_line(verdict))
            continue
        cache = request.cache_dir or str(Path.home() / ".cache" / "kda")
        if cache not in benches:
            Path(cache).mkdir(parents=True, exist_ok=True)
            benches[cache] = Workbench(Path(cache))
        verdict = answer(request, benches[cache], out)
        _send(out, "verdict", verdict_line(verdict))
    for bench in benches.values():
        bench.close()


def _send(out: BinaryIO, kind: str, body: Mapping[str, Any]) -> None:
    out.write(json.dumps({kind: body}, ensure_ascii=False, allow_nan=False).encode() + b"\n")
    out.flush()


def main() -> None:
    die_with_parent()
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    with os.fdopen(descriptor, "wb") as out:
        serve(sys.stdin.buffer, out)


if __name__ == "__main__":
    main()
