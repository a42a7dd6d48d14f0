"""One append-only file of lines: appended whole, closed where a crash tore it, never truncated."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from kda_tui.record.lines import TORN
from kda_tui.text import UserError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class DiskFull(UserError):
    """Nothing was committed; the same call may be made again once there is room."""


class RecordFailed(UserError):
    """The disk did not keep what was written; what counts is what the files say when they are opened again."""


def refuse(path: Path, error: OSError) -> NoReturn:
    """Raise what a failed write means: DiskFull where room would help, RecordFailed otherwise."""
    if error.errno in _FULL:
        raise DiskFull(f"{path}: no room left ({error.strerror}); free some space") from error
    raise RecordFailed(
        f"{path}: cannot be written ({error.strerror}); mend it, then resume the run"
    ) from error


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes or raise OSError; a short write counts as a full disk."""
    written = os.write(fd, data)
    while written < len(data):
        more = os.write(fd, data[written:])
        if more == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written += more


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot, and need not
            raise
    finally:
        os.close(fd)


class Ledger:
    """A ledger open for appending. Only the holder of the workspace's lock makes one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unsynced = False
        try:
            new = not path.exists()
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(path, flags, 0o666)
            if new:
                sync_folder(path.parent)
        except OSError as error:
            refuse(path, error)

    @property
    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def close_torn_tail(self) -> bool:
        """End a line that a crash cut short with ``#torn``; whether there was one.

        The tail is not truncated: a live reader may have read the first half already, and would
        join it to what comes next.
        """
        size = self.size
        if size == 0 or os.pread(self._fd, 1, size - 1) == b"\n":
            return False
        self._append(TORN + b"\n")
        self.sync()
        return True

    def append(self, line: bytes) -> None:
        """Append a line, given without newline, with one write.

        After DiskFull the line may stand in the file without its end: close the torn tail before the next append.
        """
        self._append(line + b"\n")

    def _append(self, data: bytes) -> None:
        try:
            written = os.write(self._fd, data)
        except OSError as error:
            refuse(self.path, error)
        if written < len(data):
            refuse(self.path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        self._unsynced = True

    def sync(self) -> None:
        """Make what was appended durable. A failure is final: the kernel may have dropped the pages already."""
        if not self._unsynced:
            return
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise RecordFailed(
                f"{self.path}: the disk did not keep it ({error.strerror}); mend it, then resume the run"
            ) from error
        self._unsynced = False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
