"""Whatever ncu left in a folder: every file's digest, or exactly why it has none.

``python -m kda_tui.profiling.survey ROOT NAME...`` prints one JSON line a file. Reports are read by native code,
so :func:`survey` runs that as a process of its own, which may die of a damaged file without anybody else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.record.plain_file import Refused, open_plain
from kda_tui.text import UserError, clean_line

LINES = 8  # hot lines a kernel
READ_S = 60.0  # longest time for all files of one process


@dataclass(frozen=True, slots=True)
class Surveyed:
    """One file: what is in it, or ``why_none``. ``digest`` is that of ``profiling.digest.json_digest``."""

    file: str
    digest: dict[str, Any] = field(default_factory=dict)
    why_none: str = ""

    @property
    def kernels(self) -> list[dict[str, Any]]:
        found = self.digest.get("kernels")
        return [k for k in found if isinstance(k, dict)] if isinstance(found, list) else []

    @property
    def hot(self) -> dict[str, Any] | None:
        """The kernel with hot lines and most samples."""
        with_lines = [k for k in self.kernels if k.get("hotspots")]
        return max(with_lines, key=lambda k: float(k.get("samples") or 0), default=None)

    @property
    def why_no_hotspots(self) -> str:
        """Why there are no hot lines, '' if there are some."""
        if self.why_none:
            return self.why_none
        if self.hot is not None:
            return ""
        whys = dict.fromkeys(str(k.get("no_hotspots") or "") for k in self.kernels)
        findings = [str(f) for f in self.digest.get("findings", ())]
        return "; ".join([why for why in whys if why] or findings) or "no kernel in this file"


def survey(root: Path, names: Sequence[str]) -> list[Surveyed]:
    """Every file, in order. A file that ends the reading process is told, and the others are read by the next one."""
    found: list[Surveyed] = []
    waiting = list(names)
    while waiting:
        lines, end = _child(root, waiting)
        found += [_parsed(name, line) for name, line in zip(waiting, lines, strict=False)]
        waiting = waiting[len(lines) :]
        if waiting:
            found.append(Surveyed(waiting.pop(0), why_none=f"reading it ended the reader ({end})"))
    return found


def _child(root: Path, names: Sequence[str]) -> tuple[list[str], str]:
    """The lines that a reading process wrote for as many files as it came to, and how it ended."""
    command = [sys.executable, "-m", "kda_tui.profiling.survey", str(root), *names]
    folder = Path(__file__).parents[2]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=READ_S,
            check=False, cwd=folder,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        out = late.stdout or b""
        text = out.decode("utf-8", "replace") if isinstance(out, bytes) else out
        return text.split("\n")[:-1], f"after {READ_S:.0f} s"
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return done.stdout.split("\n")[:-1], how


def _parsed(name: str, line: str) -> Surveyed:
    try:
        body = json.loads(line)
        return Surveyed(name, dict(body.get("digest") or {}), str(body.get("why") or ""))
    except (ValueError, AttributeError):
        return Surveyed(name, why_none="what its reader said cannot be read")


def read_one(root: Path, name: str) -> dict[str, Any]:
    """One file's digest, or the reason in words; nothing outside ``root`` is opened."""
    # Only the reading process needs these; the screen imports this module when it starts.
    from kda_tui.profiling.digest import json_digest
    from kda_tui.profiling.read import read_profile

    path = root / name
    try:
        os.close(open_plain(path, root))
        return {"digest": json_digest(read_profile(path.resolve()), lines=LINES)}
    except Refused as error:
        return {"why": f"it {error}"}
    except UserError as error:
        return {"why": clean_line(str(error).removeprefix(f"{path.resolve()}: "))}
    except Exception as error:  # one odd file is no reason to lose the others
        return {"why": clean_line(f"cannot be read: {type(error).__name__}: {error}")}


def main(arguments: Sequence[str]) -> int:
    root = Path(arguments[0])
    for name in arguments[1:]:
        print(json.dumps(read_one(root, name), ensure_ascii=True, default=str), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
