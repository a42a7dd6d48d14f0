"""What a turn costs beside the model: record, tool dispatch, request. ``python -m tests.bench.turn_overhead [TURNS]``.

From the end of an answer of the stand-in API to the next request's arrival: the SDK's part is in it too.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
from pathlib import Path

from tests.agents.fake_api import FakeApi, Request, Say, say, text, thinking, tool
from tests.agents.rig import agent_of, planner
from tests.worker.make import KERNEL, make_workspace
from tests.worker.stage import stage

TARGET_MS = 20.0


def script(request: Request) -> Say:
    planned = planner(request)
    if planned is not None:
        return planned
    return say(thinking(KERNEL), text(KERNEL), tool("read_file", path="baseline/kernel.cu"))


async def measure(root: Path, turns: int) -> list[float]:
    """Milliseconds from the end of each answer to the next request."""
    with FakeApi(script) as api:
        async with stage(make_workspace(root), agent=agent_of(api), yes=("plan",)):
            while len(api.answered) < turns + 3:
                await asyncio.sleep(0.05)
            ends, starts = api.answered[3 : turns + 2], api.arrived[4 : turns + 3]
    return [1000 * (start - end) for end, start in zip(ends, starts, strict=True)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for name in ("STATE", "CONFIG", "CACHE"):
            os.environ[f"XDG_{name}_HOME"] = f"{folder}/{name.lower()}"
        os.environ["ANTHROPIC_API_KEY"] = "sk-test-0a1b2c3d4e5f6a7b8c9d"
        found = asyncio.run(measure(Path(folder) / "scale", int(sys.argv[1]) if len(sys.argv) > 1 else 200))
    median, high = statistics.median(found), statistics.quantiles(found, n=20)[-1]
    print(
        f"turns {len(found)}: median {median:.1f} ms, 95th percentile {high:.1f} ms, target {TARGET_MS:g} ms"
    )
