"""A/A on a GPU: the same kernel under another name, many times; none may come out faster. gpu_aa.py [n]"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from gpu_evaluation import touched, workspace

from kda_tui.evaluation.evaluator import evaluate
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.workbench import Workbench


def main() -> int:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    words: Counter[str] = Counter()
    ratios: list[float] = []
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        root = workspace(Path(folder))
        bench = Workbench(Path(folder) / "cache")
        for number in range(wanted):
            request = JudgeRequest(
                op="evaluate", workspace=str(root), candidate=str(touched(root, "baseline", number)), cand_id=f"c{number}",
                seeds=(f"{number}a", f"{number}b", f"{number}c"), options={"workloads": ["r4096_c1023"]},
            )  # fmt: skip
            found = evaluate(request, bench, lambda progress: None)
            words[f"{found.validity} {found.speed}"] += 1
            if found.ratio:
                ratios.append(found.ratio)
            if found.reason:
                print(number, found.validity, found.speed, found.reason, flush=True)
        bench.close()
    spent = time.perf_counter() - start
    print(dict(words), f"ratios {min(ratios):.4f} to {max(ratios):.4f}, {spent / wanted:.2f} s an evaluation")
    return int(any("faster" in word for word in words))


if __name__ == "__main__":
    sys.exit(main())
