"""Source to verdict on a GPU: the softmax task, baseline against itself and against the tunable seed."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from kda_tui.evaluation.evaluator import evaluate
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.verdict import Verdict
from kda_tui.evaluation.workbench import Workbench

TASK = Path(__file__).parents[2] / "workspaces" / "softmax_rows"


def workspace(folder: Path) -> Path:
    root = folder / "softmax_rows"
    shutil.copytree(TASK, root)
    text = (root / "contract.cuda.toml").read_text()
    (root / "contract.toml").write_text(text)
    return root


def show(name: str, verdict: Verdict, seconds: float) -> None:
    compiled = verdict.compile
    print(f"\n{name}: {verdict.validity}, {verdict.speed}, {seconds:.2f} s  {verdict.reason}")
    if compiled is not None:
        print(
            f"  compile {compiled.seconds:.3f} s ({compiled.compiler}, cached {compiled.cached}), {compiled.registers} registers, {compiled.spills} spills"
        )
    print("  stages", {k: round(v, 2) for k, v in verdict.stage_seconds.items()}, "aa", verdict.aa)
    for w in verdict.workloads:
        print(
            f"  {w.workload:16} {w.time_us} us, incumbent {w.incumbent_us}, ratio {w.ratio} [{w.lo} {w.hi}], floor {w.floor_us} share {w.floor_share}, error {w.error}"
        )


def main() -> int:
    level = sys.argv[1] if len(sys.argv) > 1 else "time"
    with tempfile.TemporaryDirectory() as folder:
        root = workspace(Path(folder))
        bench = Workbench(Path(folder) / "cache")
        for name in ("baseline", "seeds/tunable"):
            request = JudgeRequest(
                op="evaluate", workspace=str(root), candidate=str(root / name), cand_id=name, level=level,
                seeds=("5eed", "5eee", "5eef"),
            )  # fmt: skip
            start = time.perf_counter()
            show(name, evaluate(request, bench, lambda progress: None), time.perf_counter() - start)
        bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
