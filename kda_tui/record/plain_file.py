"""Opening files that somebody else may have put there: only plain files below the workspace, never blocking."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Refused(Exception):
    """A file that is not opened; the message says why, in a few words, without the path."""


class Absent(Refused):
    """There is no such file."""


def open_plain(path: Path, root: Path) -> int:
    """A descriptor for reading a plain file that lies, links resolved, below ``root``.

    Raises Refused for a link out of ``root``, a FIFO, a device, a folder, or a file that may not be read,
    and Absent where there is nothing.
    """
    real = os.path.realpath(path)
    inside = os.path.realpath(root)
    if real != inside and not real.startswith(inside.rstrip("/") + "/"):
        raise Refused("leads out of the workspace")
    _must_be_plain(_facts(real).st_mode)  # before opening: opening a device can have effects
    try:
        fd = os.open(real, _FLAGS)
    except FileNotFoundError as error:
        raise Absent("is not there") from error
    except OSError as error:
        raise Refused(f"cannot be opened ({error.strerror})") from error
    try:
        _must_be_plain(os.fstat(fd).st_mode)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_plain(path: Path, root: Path, limit: int) -> bytes:
    """The whole of a plain file below ``root``. Raises Refused, also where it has more than ``limit`` bytes."""
    data = read_beginning(path, root, limit + 1)
    if len(data) > limit:
        raise Refused(f"has more than {limit} bytes")
    return data


def read_beginning(path: Path, root: Path, limit: int) -> bytes:
    """The first ``limit`` bytes of a plain file below ``root``. Raises Refused."""
    with os.fdopen(open_plain(path, root), "rb") as file:
        try:
            return file.read(limit)
        except OSError as error:
            raise Refused(f"cannot be read ({error.strerror})") from error


def _facts(real: str) -> os.stat_result:
    try:
        return os.lstat(real)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Absent("is not there") from error
    except OSError as error:
        raise Refused(f"cannot be looked at ({error.strerror})") from error


def _must_be_plain(mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((words for test, words in _KINDS if test(mode)), "a link")
    raise Refused(f"is {kind}, not a plain file")
