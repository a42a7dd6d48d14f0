"""How fast a large workspace is read: `python tests/bench/read_workspace.py [--candidates N] [--keep FOLDER]`.

Makes a workspace of 10,000 candidates, 100,000 benchmark rows and a 300 MB transcript in a temporary folder (as a
run of the tuner writes it), then measures in a process of its own. Targets: first paint and the whole of the
ledgers under 1 s and 200 MB resident, transcript opened in 0.1 s.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from kda_tui.record.reader import Reader

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

T = TypeVar("T")
TRANSCRIPT_BYTES = 300 << 20
ROWS_PER_EVALUATION = 14  # seven workloads, two arms; a quarter of the candidates is never timed


def rss_mb() -> float:
    """Memory resident now, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def timed(name: str, work: Callable[[], T]) -> T:
    """Run and print seconds and resident memory."""
    begin = time.perf_counter()
    result = work()
    print(f"{name:52} {time.perf_counter() - begin:8.3f} s {rss_mb():8.1f} MB")
    return result


# --- making ----------------------------------------------------------------------------------------------


def make(root: Path, candidates: int) -> None:
    from tests.record.make_workspace import make_workspace

    workloads = tuple(f"w{n}" for n in range(ROWS_PER_EVALUATION // 2))
    make_workspace(root, candidates, workloads, files=False)
    path = root / "runs" / "r001" / "transcript.jsonl"
    words = "the second pass reads what the first has just written; " * 40
    with path.open("ab") as file:
        seq = 1_000_000
        while file.tell() < TRANSCRIPT_BYTES:
            seq += 1
            block = {"v": 1, "seq": seq, "t": "2026-01-01T00:00:00.000Z", "run": "r001", "kind": "text"}
            file.write(
                json.dumps({**block, "turn": seq // 5, "text": f"step {seq}: {words}"}).encode() + b"\n"
            )


# --- measuring -------------------------------------------------------------------------------------------


def append(root: Path, lines: int) -> None:
    """What a live run appends: events, and a new state of a candidate for every fourth."""
    events, ledger = root / "runs" / "r001" / "events.jsonl", root / "candidates.jsonl"
    with events.open("ab") as journal, ledger.open("ab") as states:
        for n in range(lines):
            stamp = {"v": 1, "seq": 10_000_000 + n, "t": "2026-01-02T00:00:00.000Z", "run": "r001"}
            journal.write(
                json.dumps({**stamp, "kind": "item", "id": "P1", "state": ("doing", "done")[n % 2]}).encode()
                + b"\n"
            )
            if n % 4 == 0:
                state = {
                    **stamp,
                    "id": f"c{n + 1:04d}",
                    "stage": "judged",
                    "validity": "passed",
                    "ratio": 1.1,
                }
                states.write(json.dumps(state).encode() + b"\n")


def load(reader: Reader) -> list[float]:
    """Poll as a screen does until everything is read; the seconds of each poll."""
    polls: list[float] = []
    while True:
        begin = time.perf_counter()
        snapshot = reader.poll()
        polls.append(time.perf_counter() - begin)
        if snapshot is None or "loading" not in snapshot.extra:
            return polls


def measure(root: Path) -> None:
    timed("import of the reader", lambda: __import__("kda_tui.record.reader"))
    from kda_tui.record.reader import Reader
    from kda_tui.record.transcript import TranscriptFile

    reader = Reader(root, read_only=True)
    first = timed("first()", reader.first)
    print(f"    phase {first.phase}, {first.extra.get('loading', 1.0):.0%} read, {len(first.gates)} gates")
    polls = timed("poll() in slices to the end", partial(load, reader))
    print(f"    {len(polls)} polls, the longest {1000 * max(polls):.1f} ms")
    del reader, first
    gc.collect()  # what follows stands for itself
    fresh = Reader(root, read_only=True)
    snapshot = timed("settle() by a new reader", fresh.settle)
    rows = snapshot.bench.rows if snapshot.bench else 0
    print(
        f"    {len(snapshot.candidates)} candidates, {rows} rows, {snapshot.events} events, {len(snapshot.findings)} findings"
    )
    append(root, 100)
    timed("poll() of 100 appended events", fresh.poll)
    timed("poll() of nothing, 100 times", lambda: [fresh.poll() for _ in range(100)])
    transcript = TranscriptFile(root / "runs" / "r001" / "transcript.jsonl")
    timed("transcript: the last 200 blocks", lambda: transcript.tail(200))
    timed("transcript: index of all blocks", transcript.refresh)
    count = len(transcript)
    timed(
        "transcript: 200 blocks in the middle", lambda: [transcript.block(count // 2 + n) for n in range(200)]
    )
    timed("transcript: search through all of it", lambda: transcript.search("nowhere in it", 0, 1))
    timed(
        "transcript: search the first block from the end",
        lambda: transcript.search("step 1000001:", count - 1, -1),
    )
    peak = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    print(f"{'peak':52} {'':10} {int(peak.split()[1]) / 1024:8.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument(
        "--keep", type=Path, help="make the workspace here, keep it, and use it if it is there"
    )
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        measure(options.measure)
        return
    root = options.keep or Path(tempfile.mkdtemp(prefix="kda-bench-")) / "workspace"
    try:
        if not (root / "benchmark.csv").exists():
            begin = time.perf_counter()
            make(root, options.candidates)
            print(f"made {root} in {time.perf_counter() - begin:.0f} s")
        sizes = {
            path.name: path.stat().st_size
            for path in sorted(root.rglob("*"))
            if path.suffix in (".jsonl", ".csv")
        }
        print(", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items()))
        subprocess.run([sys.executable, __file__, "--measure", str(root)], check=True)
    finally:
        if options.keep is None:
            shutil.rmtree(root.parent, ignore_errors=True)


if __name__ == "__main__":
    main()
