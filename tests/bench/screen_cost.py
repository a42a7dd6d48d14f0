"""What the screen costs: `python tests/bench/screen_cost.py [--only idle,live,...] [--secs 10]`.

Bytes to the terminal, CPU and memory on a pty, beside the same figures for a screen of stock Textual
widgets that shows the same snapshots. Targets: idle 0 B/s and 0.5 % of a core; live at 2 updates/s,
120x40, under 20 kB/s and 8 %; first paint of 10,000 candidates in 1 s; key to paint 50 ms at the 95th
percentile while 100 events/s arrive; 70 MB resident after 50,000 events; under 5 MB for 1,000 changes
of focus.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.stock_screen import __file__ as STOCK
from tests.record.make_workspace import make_workspace
from tests.tui.pty_app import PtyApp

OURS = "from pathlib import Path; import sys; from kda_tui.tui.app import run_app; sys.exit(run_app(Path(sys.argv[1])))"
READY = b"c00"


def start(root: Path, cols: int = 120, rows: int = 40, stock: bool = False, theme: str = "") -> PtyApp:
    """The screen on a workspace, settings and state of its own."""
    state = root.parent / "state"
    state.mkdir(exist_ok=True)
    config = state / "kda.toml"
    config.write_text(
        f'[ui]\ntheme = "{theme}"\nupdates_per_second = 2.0\n'
        if theme
        else "[ui]\nupdates_per_second = 2.0\n"
    )
    env = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(state), "TMUX": "", "KDA_CONFIG": str(config)}
    command = [sys.executable, STOCK, str(root)] if stock else [sys.executable, "-c", OURS, str(root)]
    return PtyApp(command, cols, rows, env)


class Life:
    """Appends to a workspace as a worker does, from a thread: ``rate`` events a second."""

    def __init__(self, root: Path, rate: float, newest: int) -> None:
        self.root = root
        self.newest = newest
        self.pause = 1.0 / rate
        self.count = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Life:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self.pause):
            self.count += 1
            live(self.root, self.count)
            append(self.root, self.count, self.newest)


def append(root: Path, n: int, newest: int) -> None:
    """New numbers of one of the twelve newest candidates, every other time a block of the transcript."""
    t = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    stamp = {"v": 1, "seq": 20_000_000 + n, "t": t, "run": "r001"}
    us = 150 + n % 37
    state = {
        **stamp,
        "id": f"c{newest - n % 12:04d}",
        "stage": "judged",
        "validity": "passed",
        "speed": "faster",
        "time_us": us,
        "ratio": 200 / us,
    }
    _add(root / "runs/r001/events.jsonl", {**stamp, "kind": "candidate", "candidate": state})
    _add(root / "candidates.jsonl", state)
    if n % 2 == 0:
        text = (
            f"step {n}: the barrier is the top stall; next a swizzle so that the second pass is conflict free"
        )
        _add(root / "runs/r001/transcript.jsonl", {**stamp, "kind": "text", "turn": n, "text": text})


def _add(path: Path, line: dict[str, object]) -> None:
    with path.open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")


def live(root: Path, n: int) -> None:
    body = {
        "v": 1,
        "claim": "x",
        "op": "evaluate",
        "cand": "c0006",
        "stage": "time",
        "fraction": n % 100 / 100,
        "pid": os.getpid(),
    }
    temporary = root / "runs/r001/.live"
    temporary.write_text(json.dumps(body))
    temporary.replace(root / "runs/r001/live.json")


def row(name: str, *cells: str) -> None:
    print(f"{name:<46} " + "  ".join(f"{c:>16}" for c in cells), flush=True)


def over(app: PtyApp, secs: float) -> tuple[float, float]:
    """(bytes/s, % of a core) over some seconds."""
    begin, cpu = time.monotonic(), app.cpu()
    time.sleep(secs)
    spent = time.monotonic() - begin
    return app.written(begin) / spent, 100 * (app.cpu() - cpu) / spent


def quiet_minute(secs: float) -> None:
    """Wait until no minute turns within ``secs``: ages and the clock move then."""
    while not 2 < time.time() % 60 < 59 - secs:
        time.sleep(0.5)


def idle(base: Path, secs: float) -> None:
    for stock in (False, True):
        root = make_workspace(base / f"idle{stock}" / "softmax_rows", 40)
        with start(root, stock=stock) as app:
            app.wait_for(READY)
            time.sleep(12)  # the follower looks less often after ten quiet seconds
            quiet_minute(secs)
            rate, share = over(app, secs)
            row(
                f"idle, 120x40{', stock widgets' if stock else ''}",
                f"{rate:.0f} B/s",
                f"{share:.2f} %",
                f"{app.rss_mb():.1f} MB",
            )


def updates(base: Path, secs: float) -> None:
    for stock, cols, rows, theme in (
        (False, 120, 40, ""), (False, 120, 40, "kda-ansi-dark"), (False, 80, 24, ""), (False, 200, 50, ""), (True, 120, 40, ""),
    ):  # fmt: skip
        root = make_workspace(base / f"live{stock}{cols}{theme}" / "softmax_rows", 40)
        with start(root, cols, rows, stock, theme) as app, Life(root, 2, 40):
            app.wait_for(READY)
            time.sleep(3)
            rate, share = over(app, secs)
            name = f"live, 2 updates/s, {cols}x{rows}{', ' + theme if theme else ''}{', stock widgets' if stock else ''}"
            row(name, f"{rate / 1000:.1f} kB/s", f"{share:.1f} %", f"{app.rss_mb():.1f} MB")


def large(base: Path) -> Path:
    root = base / "large" / "softmax_rows"
    if not root.exists():
        make_workspace(root, 10_000, tuple(f"w{n}" for n in range(5)), files=False)
    return root


def first_paint(base: Path, secs: float) -> None:
    root = large(base)
    for stock in (False, True):
        times, whole = [], ""
        for _ in range(3):
            with start(root, stock=stock) as app:
                times.append(app.wait_for(b"c0001" if stock else b"iterate", 60))
                if not stock:  # it shows the newest first, the other one the oldest
                    whole = f"all {app.wait_for(b'c10000', 90):.2f} s"
                rss = app.rss_mb()
        name = f"first paint, 10,000 candidates{', stock widgets' if stock else ''}"
        row(name, f"{statistics.median(times):.2f} s", whole, f"{rss:.1f} MB")


def keys(base: Path, secs: float) -> None:
    for stock in (False, True):
        root = make_workspace(base / f"keys{stock}" / "softmax_rows", 200)
        with start(root, stock=stock) as app, Life(root, 100, 200):
            app.wait_for(READY)
            time.sleep(3)
            times = []
            for n in range(int(secs * 8)):
                times.append(app.key_to_paint("jk"[n // 20 % 2]))
                time.sleep(0.1)
            ordered = sorted(1000 * t for t in times)
            p95 = ordered[int(0.95 * len(ordered))]
            row(
                f"key to paint, 100 events/s{', stock widgets' if stock else ''}",
                f"{statistics.median(ordered):.1f} ms",
                f"p95 {p95:.1f} ms",
                f"{app.rss_mb():.1f} MB",
            )


def soak(base: Path, secs: float) -> None:
    root = make_workspace(base / "soak" / "softmax_rows", 12)
    with start(root, 200, 50) as app:
        app.wait_for(READY)
        time.sleep(2)
        before = app.rss_mb()
        for n in range(50_000):
            append(root, n, 12)
        time.sleep(8)
        after = app.rss_mb()
        row("50,000 events", f"{after:.1f} MB", f"{after - before:+.1f} MB")
        for _ in range(1000):
            app.press("\t")
            time.sleep(0.02)
        time.sleep(2)
        row("1,000 changes of focus", f"{app.rss_mb():.1f} MB", f"{app.rss_mb() - after:+.1f} MB")


PARTS: dict[str, Callable[[Path, float], None]] = {
    "idle": idle, "live": updates, "first": first_paint, "keys": keys, "soak": soak,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--secs", type=float, default=10)
    parser.add_argument("--keep", type=Path, help="make workspaces here and keep them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kda-screen-") as folder:
        base = options.keep or Path(folder)
        for name in options.only.split(","):
            PARTS[name](base, options.secs)


if __name__ == "__main__":
    main()
