"""Twenty candidates equal to the incumbent, really measured on the cpu device: none may be promoted.

Each is evaluated in full; one whose lower bound is above 1 is confirmed, as a worker would.

    python tests/bench/aa_campaign.py [--candidates 20] [--workspace workspaces/softmax_rows]
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kda_tui.evaluation.evaluator import evaluate
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.workbench import Workbench


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--candidates", type=int, default=20)
    parser.add_argument("--workspace", type=Path, default=ROOT / "workspaces" / "softmax_rows")
    chosen = parser.parse_args(arguments)
    started = time.monotonic()
    words: dict[str, int] = {}
    confirmed = promoted = 0
    with tempfile.TemporaryDirectory(prefix="kda-aa-") as folder:
        ws = Path(folder) / "workspace"
        shutil.copytree(chosen.workspace, ws)
        bench = Workbench(Path(folder))
        for i in range(1, chosen.candidates + 1):
            name = f"c{i:04d}"
            shutil.copytree(ws / "baseline", ws / "candidates" / name)
            with (ws / "candidates" / name / "kernel.cu").open("a") as source:
                source.write(f"\n// candidate {name}: the incumbent once more\n")
            request = JudgeRequest(
                op="evaluate",
                workspace=str(ws),
                candidate=str(ws / "candidates" / name),
                cand_id=name,
                seeds=tuple(secrets.token_hex(8) for _ in range(3)),
            )
            found = evaluate(request, bench, lambda progress: None)
            words[found.speed] = words.get(found.speed, 0) + 1
            line = f"{name} {found.validity:8s} {found.speed:13s} ratio {found.ratio or 0:.4f} [{found.lo or 0:.4f} {found.hi or 0:.4f}]"
            if found.lo is not None and found.lo > 1.0 and found.speed == "faster":
                confirmed += 1
                again = replace(
                    request,
                    op="confirm",
                    level="confirm",
                    k=confirmed,
                    seeds=tuple(secrets.token_hex(8) for _ in range(3)),
                )
                result = evaluate(again, bench, lambda progress: None)
                promoted += result.rule_passed
                line += (
                    f"  confirm: {result.speed}, rule {'holds' if result.rule_passed else 'does not hold'}"
                )
            print(line, flush=True)
        bench.close()
    print(
        f"{chosen.candidates} candidates equal to the incumbent: {words}, {confirmed} confirmed, {promoted} promoted"
        f" ({time.monotonic() - started:.0f} s)"
    )
    return 1 if promoted else 0


if __name__ == "__main__":
    raise SystemExit(main())
