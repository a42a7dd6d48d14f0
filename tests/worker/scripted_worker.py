"""A worker process with the scripted judge, to be killed: ``python -m tests.worker.scripted_worker ROOT PAUSE_S [--resume]``."""

from __future__ import annotations

import sys
from pathlib import Path

from kda_tui.record.paths import Workspace
from kda_tui.worker.main import run_worker
from kda_tui.worker.start import RunOptions
from tests.worker.make import ScriptedJudge, speed_by_defines, starter

if __name__ == "__main__":
    options = RunOptions(yes=("plan", "promotion", "end"), resume="--resume" in sys.argv)
    judge = starter(lambda: ScriptedJudge(speed_by_defines, pause_s=float(sys.argv[2])))
    print(run_worker(Workspace(Path(sys.argv[1])), options, own_log=False, start_judge=judge))
