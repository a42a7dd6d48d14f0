"""One measurement at a time on a GPU, across processes and users of this host.

The lock is an flock on a file named by the GPU's UUID in a folder that everyone may write to. It ends
with its process, however that ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kda_tui.text import UserError

_POLL_S = 0.2


def lock_file(uuid: str) -> Path:
    return Path(os.environ.get("KDA_LOCKS") or tempfile.gettempdir()) / f"kda-{uuid}.lock"


@contextlib.contextmanager
def gpu_lock(uuid: str, waiting: Callable[[str], None], patience_s: float = 3600.0) -> Iterator[None]:
    """Hold the GPU. ``waiting`` is told who has it, while it waits; raises UserError after ``patience_s``."""
    path = lock_file(uuid)
    descriptor = _open(path)
    try:
        deadline = time.monotonic() + patience_s
        while not _taken(descriptor):
            holder = _holder(descriptor)
            if time.monotonic() > deadline:
                raise UserError(f"GPU {uuid} is held by {holder} for over {patience_s:.0f} s ({path})")
            waiting(f"waits for the GPU, which {holder} uses")
            time.sleep(_POLL_S)
        _sign(descriptor)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """Open what is there before trying to make it: a sticky folder forbids O_CREAT on another's file."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(8):
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
                os.fchmod(descriptor, 0o666)  # other users wait for it too, whatever our umask
                return descriptor
        except OSError as error:
            raise UserError(
                f"{path}: cannot lock the GPU ({error.strerror}); KDA_LOCKS names another folder"
            ) from error
    raise UserError(f"{path}: cannot lock the GPU: the file comes and goes")


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _sign(descriptor: int) -> None:
    text = json.dumps({"pid": os.getpid(), "uid": os.getuid()}).encode()
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)


def _holder(descriptor: int) -> str:
    try:
        found = json.loads(os.pread(descriptor, 200, 0))
        return f"process {int(found['pid'])} of user {int(found['uid'])}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
