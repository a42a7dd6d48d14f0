"""Huge and hostile ledgers, made here: `python tests/bench/foreign_hostile.py [--mb 200]`.

For each: seconds to the first snapshot and to the whole, the longest single poll, peak memory, findings. Each runs in a
process of its own, so that memory is that of one case.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kda_tui.record.foreign.reader import ForeignReader

Make = Callable[[Path, int], None]


def many_rows(root: Path, mb: int) -> None:
    with (root / "candidates.jsonl").open("w") as file:
        for n in range(10**9):
            row = {
                "id": f"c{n}",
                "parent": f"c{n - 1}",
                "status": "measured",
                "latency_us": n % 97 + 0.5,
                "notes": "x" * 1900,
            }
            file.write(json.dumps(row) + "\n")
            if n % 256 == 0 and file.tell() > mb << 20:
                return


def many_short_rows(root: Path, mb: int) -> None:
    with (root / "candidates.jsonl").open("w") as file:
        file.writelines(
            f'{{"id": "c{n}", "status": "measured", "us": {n % 97}}}\n' for n in range((mb << 20) // 45)
        )


def one_line(root: Path, mb: int) -> None:
    with (root / "candidates.jsonl").open("wb") as file:
        file.write(b'{"id": "a"}\n{"id": "b", "notes": "' + b"y" * (mb * 300_000) + b'"}\n{"id": "c"}\n')


def table(root: Path, mb: int) -> None:
    with (root / "benchmark.csv").open("w") as file:
        file.write("candidate,case,baseline_us,candidate_us,speedup,valid\n")
        file.writelines(f"c{n % 50},s{n % 20},10,{n % 7 + 1},2.0,True\n" for n in range((mb << 20) // 30))


def deep(root: Path, mb: int) -> None:
    (root / "candidates.jsonl").write_bytes((b'{"a":' * 30_000 + b"\n") * (mb // 2))


def digits(root: Path, mb: int) -> None:
    (root / "candidates.jsonl").write_bytes((b'{"id": "a", "n": ' + b"9" * 200_000 + b"}\n") * (mb * 2))


CASES: dict[str, Make] = {
    "rows of 2 KB": many_rows, "short rows": many_short_rows, "a line of 60 MB": one_line, "a table": table,
    "deep nesting": deep, "numbers of 200,000 digits": digits,
}  # fmt: skip


def measure(name: str, mb: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        CASES[name](root, mb)
        begin = time.perf_counter()
        reader = ForeignReader(root)
        snapshot = reader.first()
        first, longest = time.perf_counter() - begin, 0.0
        while "loading" in snapshot.extra or not snapshot.version:
            start = time.perf_counter()
            snapshot = reader.poll() or snapshot
            longest = max(longest, time.perf_counter() - start)
        whole = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(
            f"{name:28} {len(snapshot.candidates):7} candidates  first {first:5.2f} s  whole {whole:6.2f} s"
            f"  longest poll {longest:5.2f} s  {peak:4} MB  {snapshot.findings[0].seen[:60] if snapshot.findings else '-'}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=200, help="size of a ledger")
    options = parser.parse_args()
    for name in CASES:
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(name, options.mb))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
