"""workspace.lock: who writes the ledgers. Held with flock for life, so it is also the sign of life."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from kda_tui.record.paths import Workspace
from kda_tui.record.records import FORMAT_VERSION
from kda_tui.text import UserError, clean_line

LockState = Literal["none", "free", "held", "foreign_host"]

# File systems that one kernel alone can mount: there, flock tells the truth.
_LOCAL = {"bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "msdos", "ntfs", "ntfs3"}
_LOCAL |= {"overlay", "ramfs", "reiserfs", "rootfs", "squashfs", "tmpfs", "vfat", "xfs", "zfs"}
_RETRY_S = 0.03
_OPEN_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # never through a link, never stuck on a FIFO


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock, or held it last; ``released`` says that it was given back in order."""

    pid: int = 0
    start_ticks: int | None = None
    boot_id: str = ""
    host: str = ""
    v: int = FORMAT_VERSION
    role: str = ""
    released: bool = False

    def __str__(self) -> str:
        return f"{clean_line(self.role, 40) or 'a process'} {self.pid} on {clean_line(self.host, 60) or 'this host'}"


class LockHeld(UserError):
    """Somebody else writes this workspace; ``holder`` says who, as far as the lock file tells."""

    def __init__(self, message: str, holder: Holder | None) -> None:
        super().__init__(message)
        self.holder = holder


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot: with the boot id, tells a reused pid. None: unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the command's name may hold anything but ends at the last ')'
    return int(fields[19]) if len(fields) > 19 and fields[19].isdigit() else None


def boot_id() -> str:
    """The kernel's id of this boot, or ''. Containers on one machine share it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _this_process(role: str) -> Holder:
    pid = os.getpid()
    return Holder(pid, start_ticks(pid), boot_id(), socket.gethostname(), FORMAT_VERSION, role)


def _read_holder(fd: int) -> Holder | None:
    try:
        line = json.loads(os.pread(fd, 4096, 0))
    except (OSError, ValueError):
        return None
    if not isinstance(line, dict):
        return None
    return _holder_from(line)


def _holder_from(line: dict[str, Any]) -> Holder:
    pid, ticks = line.get("pid"), line.get("start_ticks")
    return Holder(
        pid=pid if isinstance(pid, int) else 0,
        start_ticks=ticks if isinstance(ticks, int) else None,
        boot_id=str(line.get("boot_id") or ""),
        host=str(line.get("host") or ""),
        role=str(line.get("role") or ""),
        released=line.get("released") is True,
    )


def file_system(path: Path) -> str:
    """The type of the file system that holds ``path``, such as ``ext4`` or ``nfs4``; '' where unknown."""
    try:
        device = path.stat().st_dev
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", errors="replace")
    except OSError:
        return ""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for mount in mounts.splitlines():
        before, _, after = mount.partition(" - ")
        if before.split()[2:3] == [wanted] and after:
            return after.split()[0]
    return ""


def _may_live_elsewhere(ws: Workspace, holder: Holder | None) -> bool:
    """Whether a lock that looks free may be held on another machine, where this kernel cannot see it."""
    if holder is None or holder.released or not holder.host:
        return False
    if holder.host == socket.gethostname() or (holder.boot_id and holder.boot_id == boot_id()):
        return False
    return file_system(ws.root) not in _LOCAL


def _try_lock(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(fd: int, path: Path) -> bool:
    """Whether the open file is still the one that others find at ``path``."""
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except OSError:
        return False


def probe(ws: Workspace) -> tuple[LockState, Holder | None]:
    """Who writes this workspace, without creating or changing anything.

    ``none``: there was never a lock. ``free``: nobody (the holder is the last one). ``held``: the
    holder lives. ``foreign_host``: it looks free, but was left on another machine of a shared file
    system and may be alive there.
    """
    try:
        fd = os.open(ws.lock, os.O_RDONLY | _OPEN_FLAGS)
    except OSError:
        return "none", None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return "none", None
        free = _try_lock(fd, fcntl.LOCK_SH)
        holder = _read_holder(fd)
    finally:
        os.close(fd)
    if not free:
        return "held", holder
    return ("foreign_host" if _may_live_elsewhere(ws, holder) else "free"), holder


class WorkspaceLock:
    """The right to write a workspace. Ends with :meth:`release` or with the process, whichever is first."""

    def __init__(self, ws: Workspace, fd: int, holder: Holder) -> None:
        self.ws = ws
        self.holder = holder
        self._fd = fd

    @classmethod
    def acquire(cls, ws: Workspace, wait_s: float = 2.0, role: str = "worker") -> WorkspaceLock:
        """Take the lock, trying for ``wait_s`` (a viewer's probe takes it for an instant).

        Raises LockHeld with the holder, or UserError where the workspace cannot be written.
        """
        try:
            fd = os.open(ws.lock, os.O_RDWR | os.O_CREAT | _OPEN_FLAGS, 0o666)
        except OSError as error:
            raise UserError(f"{ws.root}: cannot be written ({error.strerror}); open it read-only") from error
        try:
            cls._wait(ws, fd, time.monotonic() + wait_s)
            holder = _this_process(role)
            _write_holder(fd, holder)
        except BaseException:
            os.close(fd)
            raise
        return cls(ws, fd, holder)

    @staticmethod
    def _wait(ws: Workspace, fd: int, until: float) -> None:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UserError(f"{ws.lock}: not a plain file; remove it")
        while not (_try_lock(fd, fcntl.LOCK_EX) and _is_at(fd, ws.lock)):
            if time.monotonic() >= until:
                holder = _read_holder(fd)
                raise LockHeld(f"{ws.root}: {holder or 'somebody'} is writing it; end that run first", holder)
            time.sleep(_RETRY_S)
        # Read only now: while waiting, the file named whoever went before.
        holder = _read_holder(fd)
        if holder is not None and _may_live_elsewhere(ws, holder):
            raise LockHeld(
                f"{ws.lock}: {holder} may still be writing; look there, and remove the file if it is gone",
                holder,
            )

    @property
    def held(self) -> bool:
        return self._fd >= 0

    def release(self) -> None:
        """Give the lock back; the file stays and says that it was given back in order."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        try:
            _write_holder(fd, Holder(**{**asdict(self.holder), "released": True}))
        except OSError:
            pass  # a full disk must not keep the lock; unreleased only costs a look on a shared file system
        finally:
            os.close(fd)

    def __enter__(self) -> WorkspaceLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _write_holder(fd: int, holder: Holder) -> None:
    data = json.dumps(asdict(holder)).encode() + b"\n"
    os.pwrite(fd, data, 0)
    os.ftruncate(fd, len(data))
