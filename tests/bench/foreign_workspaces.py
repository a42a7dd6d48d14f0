"""Every workspace below some folders, as it is opened: `python tests/bench/foreign_workspaces.py [FOLDER...]`.

Rows in and shown, candidates, the best admissible result and where it is stated, findings, and times: reading it to
the end, and `kda open` on a terminal from the start of the process to the first frame with the workspace in it.
Without a folder it is KDA_TEST_DATA, else ../shared/data beside the checkout. Target: first paint under 0.5 s.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kda_tui.record.foreign.check import checked
from kda_tui.record.foreign.found import find_workspaces
from kda_tui.record.open import open_reader
from kda_tui.text import clean_line
from tests.tui.pty_app import PtyApp

STATUS = b"READ-ONLY"  # on the status line as soon as there is a snapshot
TARGET_S = 0.5
HEAD = ("workspace", "rows in", "shown", "candidates", "events", "best admissible", "where it is stated", "findings", "read s", "paint s", "of it cpu s")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    data = Path(os.environ.get("KDA_TEST_DATA") or ROOT.parent / "shared" / "data")
    parser.add_argument("folders", nargs="*", type=Path, default=[data])
    parser.add_argument("--findings", action="store_true", help="print every finding")
    parser.add_argument("--no-paint", action="store_true", help="only read")
    parser.add_argument(
        "--repeats",
        type=int,
        default=5,
        help="starts of the screen; the fastest counts, the others waited for other processes",
    )
    options = parser.parse_args()
    roots = [root for folder in options.folders for root in find_workspaces(folder.absolute())]
    if not roots:
        print(f"no workspace in {' '.join(map(str, options.folders))}")
        return 1
    base = Path(os.path.commonpath(roots)) if len(roots) > 1 else roots[0].parent
    print("| " + " | ".join(HEAD) + " |\n|" + " --- |" * len(HEAD))
    late = []
    caches = tempfile.mkdtemp()
    if not options.no_paint:
        first_paint(roots[0], 1, caches)  # compiles the modules, as installing does
    for root in roots:
        entry = checked(root)
        paint = None if options.no_paint else first_paint(root, options.repeats, caches)
        late += [root] if paint is not None and paint[0] > TARGET_S else []
        print("| " + " | ".join(cells(entry, base, paint)) + " |", flush=True)
        for f in entry["findings"] if options.findings else ():
            print(f"    {f['severity']:7} {f['file']}:{f['line']}: {clean_line(f['seen'])}; {f['done']}")
    print(f"\n{len(roots)} workspaces, {len(late)} painted later than {TARGET_S} s")
    return 1 if late else 0


def cells(entry: dict[str, Any], base: Path, paint: tuple[float, float] | None) -> list[str]:
    rows, shown, best = entry["rows"], entry["shown"], entry["best"]
    number, where = "-", "-"
    if best is not None:
        ratio = f"{best['ratio']:.3f}x" if best["ratio"] is not None else best["metric"] or "no number"
        number, where = f"{best['cand']} {ratio}", best["stated"] or best["source"]
    return [
        Path(entry["workspace"]).relative_to(base).as_posix(),
        f"{rows.get('ledger', 0)} + {rows.get('table', 0)}",
        f"{shown['candidates'] + shown['events']} + {shown['numbers'] + shown['text']}",
        str(entry["candidates"]),
        str(entry["counts"].get("events", 0)),
        clean_line(number),
        clean_line(where),
        str(len(entry["findings"])),
        f"{entry['seconds']:.3f}",
        *([f"{seconds:.2f}" for seconds in paint] if paint is not None else ("-", "-")),
    ]


def first_paint(root: Path, repeats: int, caches: str) -> tuple[float, float]:
    """Seconds from the start of the process to the first frame that shows the workspace, the fastest of some starts.

    Where there are candidates the frame has the newest one's id. The second number is what the process itself used
    until then: on a machine that does other things, too, the first one holds waiting.
    """
    candidates = list(open_reader(root, read_only=True).settle().candidates)
    wanted = candidates[-1][:8].encode() if candidates else STATUS
    env = {
        "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": caches,
        "XDG_STATE_HOME": caches, "XDG_CONFIG_HOME": caches, "TMUX": "",
    }  # fmt: skip
    seconds = []
    for _ in range(repeats):
        with PtyApp([sys.executable, "-m", "kda_tui", "open", str(root)], 120, 40, env) as app:
            wall = app.wait_for(wanted, 30) - 0.05  # the pty waits that long before it starts
            used = app.process.cpu_times()
            seconds.append((wall, used.user + used.system))
    return min(seconds)


if __name__ == "__main__":
    sys.exit(main())
