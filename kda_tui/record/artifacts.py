"""Files that records name by their hash: sources, samples, blobs, plans. Written whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from kda_tui.record.ledger import refuse, sync_folder, write_all

_TEMPORARY = ".kda-new-"  # what a crash can leave; swept when a run is opened


def sha256_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_tree(root: Path, files: Iterable[Path]) -> str:
    """One hash over several files: of the sorted lines ``<sha256>  <path relative to root>``, as sha256sum prints them."""
    lines = sorted(f"{sha256_file(f)}  {f.relative_to(root).as_posix()}\n" for f in files)
    return sha256_bytes("".join(lines).encode("utf-8", "surrogateescape"))


def files_below(folder: Path) -> list[Path]:
    """The plain files in a folder and below, sorted; links are not followed, hidden names are left out."""
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        paths = (Path(parent, name) for name in names if not name.startswith("."))
        found += (path for path in paths if path.is_file() and not path.is_symlink())
    return sorted(found)


def write_file(path: Path, data: bytes) -> None:
    """Put a file in place whole: temporary, fsync, rename, fsync of the folder. Raises DiskFull or RecordFailed."""
    temporary = path.parent / f"{_TEMPORARY}{uuid.uuid4().hex}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        temporary.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        refuse(path, error)


def sweep(folders: Iterable[Path]) -> None:
    """Remove what a crash left half-written in these folders."""
    for folder in folders:
        for path in folder.glob(f"{_TEMPORARY}*"):
            path.unlink(missing_ok=True)
