"""Fourteen workloads of 3.7 GB in all: gpu_many.py [levels]; what a screen and a full evaluation take."""

from __future__ import annotations

import cProfile
import pstats
import sys
import tempfile
import time
from pathlib import Path

from gpu_evaluation import show, touched, workspace

from kda_tui.evaluation.evaluator import evaluate
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.workbench import Workbench

MB = (64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 400, 416, 420)


def main() -> int:
    levels = [a for a in sys.argv[1:] if not a.startswith("-")] or ["screen", "time"]
    with tempfile.TemporaryDirectory() as folder:
        root = workspace(Path(folder))
        text = (root / "contract.toml").read_text()
        head, rest = text.split("[[workload]]", 1)
        tail = rest[rest.index("[benchmark]") :]
        loads = "".join(
            f'[[workload]]\nid = "w{i}"\naxes = {{rows = {m * 61}, cols = 2048}}\n\n'
            for i, m in enumerate(MB)
        )
        (root / "contract.toml").write_text(head + loads + tail)
        print(f"{sum(m * 61 * 2048 * 8 for m in MB) / 1e9:.2f} GB in {len(MB)} workloads")
        bench = Workbench(Path(folder) / "cache")
        for number, level in enumerate(["screen", *levels]):
            candidate = touched(root, "seeds/tunable", number)
            request = JudgeRequest(
                op="confirm" if level == "confirm" else "evaluate", workspace=str(root), candidate=str(candidate),
                cand_id=f"c{number}", level=level, seeds=("5eed", "5eee", "5eef"),
            )  # fmt: skip
            start = time.perf_counter()
            with cProfile.Profile() as profile:
                verdict = evaluate(request, bench, lambda progress: None)
            show(level, verdict, time.perf_counter() - start)
            if "--profile" in sys.argv:
                pstats.Stats(profile).sort_stats("tottime").print_stats(30)
        bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
