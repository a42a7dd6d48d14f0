"""A child under compute-sanitizer, and what the tool wrote about it."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from kda_tui.evaluation.devices.interface import Child

_SUMMARY = re.compile(
    r"(?:ERROR SUMMARY: (\d+) errors?|RACECHECK SUMMARY: (\d+) hazards?(?: displayed)?)[^\n]*"
)
_FINDING = re.compile(r"^=+ (?:Error: |ERROR: |Warning: )?((?!COMPUTE-SANITIZER)\S[^\n]{8,})$", re.MULTILINE)
_PLACES = ("/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer")


def sanitizer_path() -> str:
    """An absolute compute-sanitizer, or ""."""
    found = shutil.which("compute-sanitizer")
    return found or next((p for p in _PLACES if Path(p).is_file()), "")


def sanitizer_command(tool: str, log: Path) -> list[str]:
    """What stands before the child's own command."""
    return [
        sanitizer_path(), "--tool", tool, "--log-file", str(log), "--print-limit", "20",
        "--report-api-errors", "no",  # the driver's own probing of its functions
        "--target-processes", "application-only",
    ]  # fmt: skip


def parse_report(text: str) -> str | None:
    """The first finding in one line, "" for a clean run, None where no summary says how it ended."""
    ends = list(_SUMMARY.finditer(text))
    if not ends:
        return None
    if all(int(end[1] or end[2] or 0) == 0 for end in ends):
        return ""
    first = next((m[1] for m in _FINDING.finditer(text) if "SUMMARY" not in m[1]), "errors")
    return f"{first.strip()} ({ends[-1][0].strip()})"[:300]


@dataclass(frozen=True, slots=True)
class WatchedChild:
    """``findings`` may be asked once the child is closed."""

    child: Child
    log: Path

    def findings(self) -> str | None:
        try:
            return parse_report(self.log.read_text(errors="replace"))
        except OSError:
            return None
