"""The evaluator's median beside ncu's gpu__time_duration, cold, same clocks: gpu_ncu.py"""

from __future__ import annotations

import csv
import io
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from gpu_evaluation import workspace

from kda_tui.evaluation.evaluator import evaluate
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.workbench import Workbench
from kda_tui.profiling.collect.ncu import find_ncu

LAUNCHES = 1


def by_ncu(root: Path, folder: str, workload: str, cache: Path) -> float:
    """Median of some profiled launches in microseconds."""
    found = []
    for _ in range(LAUNCHES):
        done = subprocess.run(
            [find_ncu(), "--csv", "--page", "raw", "--metrics", "gpu__time_duration.sum", "--print-units", "base",
             "--target-processes", "all", "-k", "regex:softmax", "--clock-control", "none", "--cache-control", "all",
             sys.executable, "-m", "kda_tui.profiling.collect.launcher", str(root), str(root / folder), workload, str(cache)],
            capture_output=True, text=True, env={**os.environ, "KDA_PROFILED": "1"}, timeout=120, check=False,
        )  # fmt: skip
        text = done.stdout[done.stdout.index('"ID"') :] if '"ID"' in done.stdout else ""
        rows = list(csv.reader(io.StringIO(text)))
        if len(rows) < 3:
            raise SystemExit(f"ncu gave nothing: {done.stdout[-500:]} {done.stderr[-500:]}")
        found.append(float(rows[2][rows[0].index("gpu__time_duration.sum")].replace(",", "")) / 1e3)
    return statistics.median(found)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = workspace(Path(folder))
        cache = Path(folder) / "cache"
        bench = Workbench(cache)
        request = JudgeRequest(
            op="evaluate", workspace=str(root), candidate=str(root / "seeds/tunable"), cand_id="tunable",
            seeds=("5eed", "5eee", "5eef"),
        )  # fmt: skip
        found = evaluate(request, bench, lambda progress: None)
        bench.close()
        for w in found.workloads:
            if w.time_us is not None and w.incumbent_us is not None:
                for name, us in (("seeds/tunable", w.time_us), ("baseline", w.incumbent_us)):
                    theirs = by_ncu(root, name, w.workload, cache)
                    print(
                        f"{w.workload:14} {name:14} events {us:7.2f} us, ncu {theirs:7.2f} us, {us / theirs - 1:+.1%}",
                        flush=True,
                    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
