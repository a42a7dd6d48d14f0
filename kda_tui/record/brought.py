"""The files that ledger lines bring by their hash, and whether they are still what was brought."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from kda_tui.record.artifacts import files_below, sha256_file, sha256_tree
from kda_tui.record.paths import Workspace
from kda_tui.record.snapshot import Finding

# Documents that people may edit after a line brought them.
_EDITABLE = ("docs/draft.md", "docs/plan.md")
_COPIES = (("contract_sha", "contract.toml"), ("reference_sha", "reference.py"), ("baseline_sha", "baseline"))


@dataclass(frozen=True, slots=True)
class Brought:
    """A file (or a folder of files) as a line brought it; ``path`` is relative to the workspace, as written."""

    path: str
    sha: str
    bytes: int | None = None


def brought_by(line: Mapping[str, Any], run: str) -> Iterator[Brought]:
    """What one parsed line of a run's journal or transcript brings."""
    home = f"runs/{run}"
    files = line.get("files")
    if isinstance(files, dict):
        yield from (Brought(str(path), str(sha)) for path, sha in files.items())
    samples = line.get("samples")
    for sample in samples if isinstance(samples, list) else ():
        if isinstance(sample, dict):
            size = sample.get("bytes")
            path = f"{home}/{sample.get('path')}"
            yield Brought(path, str(sample.get("sha")), size if isinstance(size, int) else None)
    blobs = line.get("blobs")
    named = [*(blobs if isinstance(blobs, list) else ()), line.get("blob"), line.get("rows_blob")]
    for sha in dict.fromkeys(str(sha) for sha in named if sha):
        yield Brought(f"{home}/blobs/{sha}", sha)
    if line.get("kind") == "plan" and line.get("file"):
        yield Brought(str(line["file"]), str(line.get("sha")))
    if line.get("kind") == "run_started":
        yield from (Brought(f"{home}/{name}", str(line[key])) for key, name in _COPIES if line.get(key))


@dataclass(slots=True)
class Artifacts:
    """Checks what was brought; the newest line about a file counts."""

    ws: Workspace
    _newest: dict[str, tuple[Brought, str, int]] = field(default_factory=dict)
    _replaced: list[Finding] = field(default_factory=list)

    def note(self, line: Mapping[str, Any], run: str, file: str, number: int) -> None:
        """Take in a line: ``file`` and ``number`` say where it stands."""
        for item in brought_by(line, run):
            before = self._newest.get(item.path)
            if before is not None and before[0].sha != item.sha and item.path not in _EDITABLE:
                seen = f"{item.path} was brought by {before[1]}:{before[2]} with another hash"
                self._replaced.append(Finding(file, number, seen, "two lines disagree", "error"))
            self._newest[item.path] = (item, file, number)

    def check(self) -> Iterator[Finding]:
        """Every file that is not what its line brought, and files that no line brought beside sources."""
        yield from self._replaced
        for item, file, number in self._newest.values():
            seen = self._fault(item)
            if seen:
                severity = "warning" if item.path in _EDITABLE else "error"
                yield Finding(item.path, 0, seen, f"{file}:{number} brought it", severity)
        yield from self._added()

    def _fault(self, item: Brought) -> str:
        pure = PurePosixPath(item.path)
        if pure.is_absolute() or ".." in pure.parts or "\0" in item.path:
            return "its line names a path outside the workspace"
        path = self.ws.root / pure
        if not path.exists():
            return "missing"
        root = self.ws.root.resolve()
        if path.is_symlink() or not path.resolve().is_relative_to(root):
            return "replaced by a link"
        try:
            return self._difference(path, item)
        except OSError as error:
            return f"cannot be read ({error.strerror})"

    def _difference(self, path: Path, item: Brought) -> str:
        facts = path.stat()
        if stat.S_ISDIR(facts.st_mode):
            sha = sha256_tree(path, files_below(path))
        elif not stat.S_ISREG(facts.st_mode):
            return "not a plain file"
        elif item.bytes is not None and facts.st_size != item.bytes:
            return f"edited: {facts.st_size} bytes instead of {item.bytes}"
        else:
            sha = sha256_file(path)
        return "" if sha == item.sha else f"edited: sha256 {sha[:12]} instead of {item.sha[:12]}"

    def _added(self) -> Iterator[Finding]:
        parts = [PurePosixPath(path).parts for path in self._newest]
        folders = {part[1] for part in parts if part[0:1] == ("candidates",) and len(part) > 2}
        for cand in sorted(folders):
            for path in files_below(self.ws.candidate(cand)):
                name = path.relative_to(self.ws.root).as_posix()
                if name not in self._newest:
                    yield Finding(name, 0, "no line brought it", "added beside a recorded source", "warning")
