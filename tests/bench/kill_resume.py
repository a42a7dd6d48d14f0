"""kill -9 of a real worker at seeded moments: ``python tests/bench/kill_resume.py [--kills 30] [--seed 7] [--keep FOLDER]``.

A run of the tuner on softmax_rows (cpu device, real judge) is killed and resumed until it ends by itself. Printed
for each kill: when, what the journal ended with, and whether ``verify`` is clean once the record is opened again;
at the end everything that was lost or doubled (exit code 1), which should be nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--longest", type=float, default=3.0, help="seconds before a kill, at most")
    parser.add_argument("--template", default="softmax_rows")
    parser.add_argument("--keep", type=Path, help="leave the workspace there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for name in ("STATE", "CACHE", "CONFIG", "DATA"):
            os.environ[f"XDG_{name}_HOME"] = str(home / name.lower())
        os.environ["PYTHONPATH"] = str(ROOT)
        return run(home / given.template, given)


def run(root: Path, given: argparse.Namespace) -> int:
    from kda_tui.record import trust
    from kda_tui.record.paths import Workspace
    from kda_tui.record.reader import Reader
    from kda_tui.record.verify import verify
    from kda_tui.worker.start import RunOptions
    from tests.worker.killing import Killed, play

    shutil.copytree(ROOT / "workspaces" / given.template, root)
    ws = Workspace(root)
    trust.mark_own(ws)

    def command(resume: bool) -> list[str]:
        options = RunOptions(yes=("plan", "promotion", "end"), resume=resume)
        return [sys.executable, "-m", "kda_tui.worker", str(root), "--options", options.to_json(), "--worker"]

    def show(killed: Killed) -> None:
        clean = "clean" if killed.clean else "NOT CLEAN"
        print(
            f"{killed.number:4d}  {killed.after_s:6.2f} s  {killed.lines:5d}  {clean:9s}  {killed.last}",
            flush=True,
        )

    print("kill   after  lines  verify     the journal ended with")
    begun = time.monotonic()
    story = play(ws, command, given.seed, given.kills, given.longest, timeout_s=1200.0, on_kill=show)
    snap = Reader(root).settle()
    report = verify(ws)
    died = sum(1 for e in snap.evaluations.values() if e.extra.get("died"))
    print(
        f"{len(story.kills)} kills, {died} hit a running claim; {len(snap.candidates)} candidates, "
        f"{len(snap.evaluations)} results, {len(snap.decisions)} decisions ({len(story.sent)} sent by people); "
        f"incumbent {snap.incumbent.cand}; phase {snap.phase}; {time.monotonic() - begun:.0f} s"
    )
    print(f"verify: {'clean' if report.ok else 'NOT CLEAN'}, {report.lines} lines, head {report.head[:16]}")
    print("lost or doubled: " + ("nothing" if not story.problems else ""))
    for problem in story.problems:
        print(f"  {problem}")
    if given.keep:
        shutil.copytree(root, given.keep, dirs_exist_ok=True)
    return 0 if report.ok and story.ended and not story.problems else 1


if __name__ == "__main__":
    sys.exit(main())
