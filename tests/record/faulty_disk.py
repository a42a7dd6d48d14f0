"""A disk that stops after a number of bytes: by a crash, or because it is full."""

from __future__ import annotations

import errno
import os
from types import TracebackType
from typing import Any

import pytest


class PowerCut(BaseException):
    """The machine went off here. Not an Exception: nothing may catch it and tidy up."""


class FaultyDisk:
    """Counts every byte written and every name changed; after ``budget`` of them the fault comes.

    ``cut`` raises PowerCut, there and in every later write. ``full`` writes what fits, then fails with ENOSPC until
    ``budget`` is raised.
    """

    def __init__(self, budget: int, fault: str) -> None:
        self.budget = budget
        self.fault = fault
        self.used = 0
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> FaultyDisk:
        write, rename, link, mkdir = os.write, os.rename, os.link, os.mkdir

        def faulty_write(fd: int, data: bytes) -> int:
            room = self.budget - self.used
            if len(data) <= room:
                self.used += len(data)
                return write(fd, data)
            if room > 0:
                self.used += write(fd, data[:room])
            if self.fault == "cut":
                raise PowerCut
            if room > 0:
                return room
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def whole(change: Any) -> Any:
            def faulty(*args: Any, **kwargs: Any) -> Any:
                if self.used >= self.budget:
                    if self.fault == "cut":
                        raise PowerCut
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                self.used += 1
                return change(*args, **kwargs)

            return faulty

        self._patch.setattr(os, "write", faulty_write)
        self._patch.setattr(os, "rename", whole(rename))
        self._patch.setattr(os, "link", whole(link))
        self._patch.setattr(os, "mkdir", whole(mkdir))
        self._patch.setattr(os, "fsync", lambda fd: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._patch.undo()
