"""inbox/: how everybody but the worker writes. One decision is one file, put in place whole."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import stat
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

from kda_tui.record.clock import now, uuid7
from kda_tui.record.ledger import write_all
from kda_tui.record.lines import encode_line
from kda_tui.record.paths import Workspace
from kda_tui.record.records import FORMAT_VERSION, Decision, DecisionKind, from_line, to_line
from kda_tui.text import Redactor, UserError, clean_line

MAX_BYTES = 8 << 20  # of one file; a submitted candidate's sources travel in it
KINDS: frozenset[str] = frozenset(get_args(DecisionKind))

_MODE = 0o660  # the worker may run under another login of the same group
_TEXTS = ("id", "kind", "t", "who", "via", "reason", "text")
_OBJECTS = ("target", "expect", "amount")


@dataclass(frozen=True, slots=True)
class Pending:
    """A file that waits in the inbox; ``decision`` is None if it cannot be understood, ``error`` says why."""

    path: Path
    decision: Decision | None
    error: str = ""


def new_decision(
    kind: str,
    *,
    target: Mapping[str, Any] | None = None,
    expect: Mapping[str, Any] | None = None,
    reason: str = "",
    text: str = "",
    lines: Iterable[Mapping[str, Any]] = (),
    amount: Mapping[str, Any] | None = None,
    via: str = "cli",
    who: str | None = None,
) -> Decision:
    """A decision with a new id and the time. ``who`` is :func:`whoami` unless given."""
    if kind not in KINDS:
        raise ValueError(f"{kind} is not a kind of decision")
    return Decision(
        id=uuid7(),
        kind=kind,
        t=now(),
        who=whoami() if who is None else who,
        via=via,
        target=dict(target or {}),
        expect=dict(expect or {}),
        reason=reason,
        text=text,
        lines=tuple(lines),
        amount=amount,
    )


def whoami() -> str:
    """The name that decisions carry: KDA_USER, git's user.name, or the login."""
    return os.environ.get("KDA_USER", "").strip() or _git_name() or _login()


@cache
def _git_name() -> str:
    command = ("git", "config", "--global", "--get", "user.name")
    try:
        done = subprocess.run(command, capture_output=True, cwd="/", stdin=subprocess.DEVNULL, timeout=2)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"  # a container without an entry for this user


def send(ws: Workspace, decision: Decision) -> Decision:
    """Put a decision into the inbox and return it as it was sent, environment secrets redacted.

    Raises UserError where the inbox cannot be written, or where the decision is too large.
    """
    sent = Redactor.from_environment(os.environ).redact(to_line(decision))
    data = encode_line({"v": FORMAT_VERSION, **sent}) + b"\n"
    if len(data) > MAX_BYTES:
        raise UserError(f"{decision.kind}: {len(data)} bytes; a decision has at most {MAX_BYTES}")
    try:
        _make_inbox(ws)
        _put(ws.inbox / f"{decision.id}.json", data)
    except OSError as error:
        raise UserError(
            f"{ws.inbox}: cannot be written ({error.strerror}); decide as a user who may write this workspace"
        ) from error
    return from_line(Decision, sent)


def _make_inbox(ws: Workspace) -> None:
    """The inbox is as open to the group as the workspace itself, whatever the umask says."""
    if not ws.inbox.is_dir():
        ws.inbox.mkdir()
        ws.inbox.chmod(stat.S_IMODE(ws.root.stat().st_mode) | 0o700)


def _put(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    try:
        os.fchmod(fd, _MODE)
        write_all(fd, data)
        os.fsync(fd)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass  # the same decision was sent before
    except OSError:
        temporary.rename(path)  # a file system without links
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()


def pending(ws: Workspace) -> list[Pending]:
    """What waits in the inbox, in the order to take it: by time of writing, then by name."""
    found: list[tuple[int, str, Path]] = []
    try:
        with os.scandir(ws.inbox) as entries:
            for entry in entries:
                if entry.name.endswith(".json") and not entry.name.startswith("."):
                    with contextlib.suppress(FileNotFoundError):
                        when = entry.stat(follow_symlinks=False).st_mtime_ns
                        found.append((when, entry.name, Path(entry.path)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise UserError(f"{ws.inbox}: cannot be read ({error.strerror})") from error
    waiting = (_read(path) for _, _, path in sorted(found))
    return [item for item in waiting if item is not None]


def take(path: Path) -> None:
    """Remove a file from the inbox, after its line was written. What cannot be unlinked is put aside, hidden."""
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        path.rename(path.with_name(f".refused-{path.name}-{uuid7()}"))
    except OSError as error:
        raise UserError(f"{path}: cannot be removed ({error.strerror}); remove it by hand") from error


def _read(path: Path) -> Pending | None:
    """A waiting file, its owner as the decision's uid; None if it was taken meanwhile."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Pending(path, None, f"cannot be opened ({error.strerror})")
    facts = os.fstat(fd)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_BYTES:
        os.close(fd)
        what = f"{facts.st_size} bytes; at most {MAX_BYTES} are read"
        return Pending(path, None, what if stat.S_ISREG(facts.st_mode) else "not a plain file")
    with os.fdopen(fd, "rb") as file:
        data = file.read(MAX_BYTES)
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return Pending(path, None, "not JSON")
    problem = _problem(body, path.stem)
    if problem:
        return Pending(path, None, problem)
    return Pending(path, replace(from_line(Decision, body), uid=facts.st_uid))


def _problem(body: Any, name: str) -> str:
    """What keeps a parsed file from being a decision, or ''."""
    if not isinstance(body, dict):
        return "not a JSON object"
    for key in _TEXTS:
        if not isinstance(body.get(key, ""), str):
            return f"{key} must be text"
    for key in _OBJECTS:
        if not isinstance(body.get(key) or {}, dict):
            return f"{key} must be an object"
    lines = body.get("lines", [])
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        return "lines must be a list of objects"
    if body.get("id") != name:
        return f"id is {clean_line(str(body.get('id')), 60)!r}, not the file's name"
    if body.get("kind") not in KINDS:
        return f"unknown kind {clean_line(str(body.get('kind')), 40)!r}"
    decided = [
        key for key in ("outcome", "by", "uid", "rule", "override", "effects", "seq", "run") if key in body
    ]
    if decided:
        return f"{decided[0]} is for the worker to write"
    return ""
