"""Every workspace below some folders, as the foreign reader shows it: `python tests/bench/read_foreign.py FOLDER...`.

Rows in ledger and tables, candidates, events, the best admissible result with where it is stated, findings, seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kda_tui.record.foreign.found import find_workspaces
from kda_tui.record.open import open_reader
from kda_tui.text import clean_line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--findings", action="store_true", help="print every finding")
    options = parser.parse_args()
    found = [root for folder in options.folders for root in find_workspaces(folder)]
    print(
        f"{'workspace':44} {'ledger':>6} {'table':>6} {'times':>6} {'cands':>5} {'events':>6} {'finds':>5} {'s':>6}  best"
    )
    for root in found:
        begin = time.perf_counter()
        snapshot = open_reader(root).settle()
        seconds = time.perf_counter() - begin
        rows = snapshot.extra.get("rows", {"ledger": 0, "table": 0})
        best = snapshot.extra.get("best")
        told = "-"
        if best is not None:
            ratio = (
                f"{best.ratio:.3f}x, {best.stated}" if best.ratio is not None else f"no number, {best.source}"
            )
            told = f"{best.cand} ({ratio})"
        print(
            f"{'/'.join(root.parts[-2:])[-44:]:44} {rows['ledger']:6} {rows['table']:6}"
            f" {snapshot.bench.rows if snapshot.bench else 0:6} {len(snapshot.candidates):5}"
            f" {snapshot.counts.get('events', 0):6} {len(snapshot.findings):5} {seconds:6.3f}  {clean_line(told, 90)}"
        )
        for finding in snapshot.findings if options.findings else ():
            print(f"    {finding.severity:7} {finding.file}:{finding.line}: {finding.seen}; {finding.done}")


if __name__ == "__main__":
    main()
