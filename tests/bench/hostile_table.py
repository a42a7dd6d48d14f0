"""Every hostile candidate and honest control with its verdict, as a table: hostile_table.py [cpu|cuda]."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from kda_tui.evaluation.evaluator import evaluate
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.workbench import Workbench

HOSTILE = Path(__file__).parents[1] / "hostile"


def contracts_for(device: str, folder: Path) -> Path:
    """The contracts of the hostile set, for a device."""
    root = folder / "contracts"
    shutil.copytree(HOSTILE / "contracts", root)
    for contract in root.glob("*/contract.toml"):
        contract.write_text(contract.read_text().replace('device = "cpu"', f'device = "{device}"'))
    return root


def expected(name: str, device: str) -> dict[str, Any]:
    """What a candidate must get; a table of the device's name overrides."""
    expect = tomllib.loads((HOSTILE / name / "expect.toml").read_text())
    return {**expect, **expect.get(device, {})}


def main() -> int:
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        root = contracts_for(device, Path(folder))
        bench = Workbench(Path(folder) / "cache")
        for name in sorted(p.parent.name for p in HOSTILE.glob("*/expect.toml")):
            expect = expected(name, device)
            if expect.get("skip"):
                print(f"-    {name:30} {expect['skip']}")
                continue
            request = JudgeRequest(
                op="evaluate", workspace=str(root / expect["contract"]), candidate=str(HOSTILE / name), cand_id=name,
                level=expect["level"], seeds=("5eed", "5eee"),
            )  # fmt: skip
            start = time.perf_counter()
            for _ in range(4):  # a disturbed machine can make a candidate look slow before it is looked at
                found = evaluate(request, bench, lambda progress: None)
                if found.stage_reached != "screen" or "slower" in expect.get("speed", ()):
                    break
            right = found.validity in (
                [expect["validity"]] if isinstance(expect["validity"], str) else expect["validity"]
            )
            wrong += not right
            failed = next((g for g, word in found.gates.items() if word == "failed"), "-")
            mark = "ok  " if right else "BAD "
            print(
                f"{mark} {name:30} {found.validity:18} {failed:13} {time.perf_counter() - start:5.1f} s  {found.reason[:90]}",
                flush=True,
            )
        bench.close()
    print(f"{wrong} verdicts are not as expected on {device}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
