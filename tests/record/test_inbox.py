"""A decision is sent whole or not at all, taken in order, and a bad file harms nobody."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.record import inbox
from kda_tui.record.inbox import new_decision, pending, send, take, whoami
from kda_tui.record.paths import Workspace
from kda_tui.record.records import Decision
from kda_tui.text import UserError


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def put(ws: Workspace, name: str, data: bytes | dict[str, object]) -> Path:
    ws.inbox.mkdir(exist_ok=True)
    path = ws.inbox / name
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


def test_what_was_sent_is_what_waits(ws: Workspace) -> None:
    sent = send(
        ws,
        new_decision(
            "request_changes",
            target={"gate": "g1", "plan_rev": 2},
            expect={"plan_sha": "ab"},
            reason="tiles\nfirst",
            text="\u202eüñ\x00",
            lines=[{"rev": 2, "item": "p1", "text": "no"}],
            via="ui",
            who="Ada",
        ),
    )
    [waiting] = pending(ws)
    assert waiting.decision is not None
    assert waiting.decision.uid == os.getuid()
    assert (waiting.decision.id, waiting.path.name) == (sent.id, f"{sent.id}.json")
    for name in ("kind", "t", "who", "via", "target", "expect", "reason", "text", "lines", "amount"):
        assert getattr(waiting.decision, name) == getattr(sent, name), name
    assert [p.name for p in ws.inbox.iterdir()] == [f"{sent.id}.json"], "no temporary is left"
    take(waiting.path)
    take(waiting.path)
    assert pending(ws) == []


def test_the_file_is_for_the_group_whatever_the_umask(ws: Workspace) -> None:
    ws.root.chmod(0o770)
    before = os.umask(0o077)
    try:
        send(ws, new_decision("pause"))
    finally:
        os.umask(before)
    [waiting] = pending(ws)
    assert stat.S_IMODE(waiting.path.stat().st_mode) == 0o660
    assert stat.S_IMODE(ws.inbox.stat().st_mode) == 0o770


def test_decisions_are_taken_in_order_of_time_then_name(ws: Workspace) -> None:
    sent = [send(ws, new_decision("note", text=str(i))) for i in range(20)]
    for decision in sent:
        os.utime(ws.inbox / f"{decision.id}.json", ns=(0, 5))
    late, early = sent[3], sent[17]
    os.utime(ws.inbox / f"{late.id}.json", ns=(0, 9))
    os.utime(ws.inbox / f"{early.id}.json", ns=(0, 1))
    order = [item.decision.text for item in pending(ws) if item.decision]
    middle = [d.text for d in sent if d not in (late, early)]
    assert order == [early.text, *middle, late.text]


def test_sending_the_same_decision_again_changes_nothing(ws: Workspace) -> None:
    decision = send(ws, new_decision("veto", target={"cand": "c1"}, reason="first"))
    send(ws, Decision(decision.id, "veto", decision.t, reason="second"))
    [waiting] = pending(ws)
    assert waiting.decision is not None and waiting.decision.reason == "first"


def test_a_file_system_without_links_works_too(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(source: object, target: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    send(ws, new_decision("pause"))
    assert len(pending(ws)) == 1


def test_a_read_only_workspace_says_so_in_one_line(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*args: object, **kwargs: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "mkdir", read_only)
    with pytest.raises(UserError, match="Read-only file system") as caught:
        send(ws, new_decision("pause"))
    assert "\n" not in str(caught.value)
    assert not ws.inbox.exists()


GOOD = {"v": 1, "id": "x", "kind": "note", "t": "2026-01-01T00:00:00.000Z"}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b'{"id": "x", "ki', "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "not a JSON object"),
        ({**GOOD, "id": "y"}, "not the file's name"),
        ({**GOOD, "id": None}, "id must be text"),
        ({**GOOD, "kind": "destroy"}, "unknown kind 'destroy'"),
        ({**GOOD, "target": "c1"}, "target must be an object"),
        ({**GOOD, "lines": [1]}, "lines must be a list of objects"),
        ({**GOOD, "text": {"a": 1}}, "text must be text"),
        ({**GOOD, "outcome": "taken"}, "outcome is for the worker to write"),
        ({**GOOD, "by": "rule"}, "by is for the worker to write"),
    ],
)
def test_a_malformed_file_waits_with_its_fault(
    ws: Workspace, data: bytes | dict[str, object], says: str
) -> None:
    put(ws, "x.json", data)
    after = send(ws, new_decision("pause"))
    os.utime(ws.inbox / "x.json", ns=(0, 0))
    bad, good = pending(ws)
    assert bad.decision is None
    assert says in bad.error
    assert good.decision is not None and good.decision.id == after.id


def test_what_is_no_plain_file_is_named_and_never_opened(ws: Workspace, tmp_path: Path) -> None:
    put(ws, "real.txt", GOOD)
    os.mkfifo(ws.inbox / "fifo.json")
    (ws.inbox / "folder.json").mkdir()
    (ws.inbox / "link.json").symlink_to(ws.inbox / "real.txt")
    put(ws, ".hidden.json", GOOD)
    with (ws.inbox / "huge.json").open("wb") as file:
        file.truncate(inbox.MAX_BYTES + 1)
    errors = {item.path.name: item.error for item in pending(ws)}
    assert set(errors) == {"fifo.json", "folder.json", "link.json", "huge.json"}
    assert all(errors.values())
    for item in pending(ws):
        take(item.path)
    assert pending(ws) == []


def test_too_much_is_refused_when_it_is_sent(ws: Workspace) -> None:
    with pytest.raises(UserError, match="at most"):
        send(ws, new_decision("submit", text="x" * inbox.MAX_BYTES))


def test_a_secret_does_not_enter_the_inbox(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-0123456789-abcdef")
    sent = send(ws, new_decision("steer", text="use sk-0123456789-abcdef"))
    assert sent.text == "use [redacted MY_API_KEY]"
    assert b"sk-0123" not in pending(ws)[0].path.read_bytes()


def test_only_known_kinds_can_be_made() -> None:
    with pytest.raises(ValueError, match="destroy"):
        new_decision("destroy")


def test_who_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDA_USER", " Ada ")
    assert whoami() == "Ada"
    monkeypatch.delenv("KDA_USER")
    inbox._git_name.cache_clear()
    monkeypatch.setattr(
        subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, b"Git Name\n", b"")
    )
    assert whoami() == "Git Name"

    def no_git(*args: object, **kwargs: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", no_git)
    monkeypatch.setenv("LOGNAME", "login")
    inbox._git_name.cache_clear()
    assert whoami() == "login"
    inbox._git_name.cache_clear()


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=60), st.text(max_size=30))
def test_any_text_arrives(scratch: Path, text: str, reason: str) -> None:
    ws = Workspace(Path(tempfile.mkdtemp(dir=scratch)))
    sent = send(ws, new_decision("note", text=text, reason=reason, who="Ada"))
    [waiting] = pending(ws)
    assert waiting.decision is not None
    safe = "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text)
    assert (waiting.decision.id, waiting.decision.text, waiting.decision.reason) == (sent.id, safe, reason)
