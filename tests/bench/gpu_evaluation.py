"""Source to verdict on a GPU: gpu_evaluation.py [level] [--profile]: the softmax task, three workloads and one.

A first evaluation of a judge starts processes and fills caches; the later ones are what a campaign sees.
"""

from __future__ import annotations

import cProfile
import pstats
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kda_tui.evaluation.evaluator import evaluate
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.verdict import Verdict
from kda_tui.evaluation.workbench import Workbench

TASK = Path(__file__).parents[2] / "workspaces" / "softmax_rows"


def workspace(folder: Path) -> Path:
    """A copy of the task with its contract for a GPU."""
    root = folder / "softmax_rows"
    shutil.copytree(TASK, root)
    (root / "contract.toml").write_text((root / "contract.cuda.toml").read_text())
    return root


def touched(root: Path, name: str, number: int) -> Path:
    """A candidate that no cache has seen: the same source with another first line."""
    folder = root / f"candidate{number}"
    shutil.copytree(root / name, folder)
    source = folder / "kernel.cu"
    source.write_text(f"// candidate {number}\n{source.read_text()}")
    return folder


def show(name: str, verdict: Verdict, seconds: float) -> None:
    compiled = verdict.compile
    print(f"\n{name}: {verdict.validity}, {verdict.speed}, {seconds:.2f} s  {verdict.reason}", flush=True)
    if compiled is not None:
        print(
            f"  compile {compiled.seconds:.3f} s ({compiled.compiler}, cached {compiled.cached}), {compiled.registers} registers, {compiled.spills} spills"
        )
    print(
        "  stages",
        {k: round(v, 2) for k, v in verdict.stage_seconds.items()},
        "aa",
        verdict.aa,
        dict(verdict.extra),
    )
    for w in verdict.workloads:
        print(
            f"  {w.workload:16} {w.time_us} us, incumbent {w.incumbent_us}, ratio {w.ratio} [{w.lo} {w.hi}], floor {w.floor_us} share {w.floor_share}, error {w.error}"
        )


def main() -> int:
    level = next((a for a in sys.argv[1:] if not a.startswith("-")), "time")
    with tempfile.TemporaryDirectory() as folder:
        root = workspace(Path(folder))
        bench = Workbench(Path(folder) / "cache")
        one: dict[str, Any] = {"workloads": ["r4096_c4096"]}
        runs: list[tuple[str, str, dict[str, Any]]] = [
            ("first, 4 workloads", "baseline", {}), ("again, 4 workloads", "baseline", {}),
            ("tunable, 4 workloads", "seeds/tunable", {}), ("baseline, one workload", "baseline", one),
            ("tunable, one workload", "seeds/tunable", one),
        ]  # fmt: skip
        for number, (title, name, options) in enumerate(runs):
            start = time.perf_counter()
            candidate = touched(root, name, number)
            request = JudgeRequest(
                op="evaluate", workspace=str(root), candidate=str(candidate), cand_id=f"c{number}", level=level,
                seeds=("5eed", "5eee", "5eef"), options=options,
            )  # fmt: skip
            profile = cProfile.Profile() if "--profile" in sys.argv and number in (1, 4) else None
            if profile:
                profile.enable()
            verdict = evaluate(request, bench, lambda progress: None)
            if profile:
                profile.disable()
            show(title, verdict, time.perf_counter() - start)
            if profile:
                pstats.Stats(profile).sort_stats("cumulative").print_stats(28)
                pstats.Stats(profile).sort_stats("tottime").print_stats(22)
        bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
