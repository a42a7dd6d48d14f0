"""``python -m kda_tui.worker ROOT --options JSON``: the restarting parent; with ``--worker``, the worker itself."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from pathlib import Path

from kda_tui.record.paths import Workspace
from kda_tui.text import UserError
from kda_tui.worker.processes import die_with_parent
from kda_tui.worker.start import RunOptions


def main() -> int:
    """Exit code 0: ended, or stopped on request; 2: an error that a person must mend, said in one line."""
    parser = argparse.ArgumentParser(prog="kda-worker", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--options", default="{}")
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    ws = Workspace(given.root)
    try:
        options = RunOptions.from_json(given.options)
        if not given.worker:
            return _supervise(ws, options)
        die_with_parent(signal.SIGTERM)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout
        )
        from kda_tui.worker.main import run_worker

        logging.info("the run %s", run_worker(ws, options))
    except UserError as error:
        print(f"error: {error}", flush=True)
        return 2
    return 0


def _supervise(ws: Workspace, options: RunOptions) -> int:
    from kda_tui.config import load_config
    from kda_tui.worker.supervise import supervise

    return supervise(ws, options, load_config(ws.root).worker.restarts)


if __name__ == "__main__":
    sys.exit(main())
