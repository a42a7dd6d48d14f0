"""A followed file gives each whole line once, however it grows, and says when it became another file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kda_tui.record.lines import READABLE_LINE
from kda_tui.record.snapshot import Finding
from kda_tui.record.tail import TailedFile


class Followed:
    """A file being written, and its reader."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.jsonl"
        self.found: list[Finding] = []
        self.file = TailedFile(self.path, folder, self.found.append)

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def lines(self, chunk: int = 1 << 16) -> list[tuple[int, int, bytes]] | None:
        self.file.look()
        lines: list[tuple[int, int, bytes]] = []
        while True:
            before = self.file.offset
            more = self.file.read(chunk)
            if more is None:
                return None
            lines += more
            if self.file.offset == before:
                return lines


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def test_lines_have_their_offset_and_number(followed: Followed) -> None:
    followed.write(b"one\n\ntwo\nthr")
    assert followed.lines() == [(0, 1, b"one"), (5, 3, b"two")]
    assert followed.file.tail == (9, 4, b"thr")
    followed.write(b"ee\nfour\n")
    assert followed.lines() == [(9, 4, b"three"), (15, 5, b"four")]
    assert followed.file.tail is None


LINE = st.one_of(
    st.binary(max_size=12).map(lambda b: b.replace(b"\n", b" ")),
    st.sampled_from(
        [b"#torn", b"half#torn", b"cr\r", b"", b"x" * (READABLE_LINE + 5), b"\0\0", b"\xef\xbb\xbf{}"]
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINE, max_size=8), chunk=st.sampled_from([3, 64, 1 << 20]), data=st.data())
def test_any_split_gives_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], chunk: int, data: st.DataObject
) -> None:
    if chunk < 64 and any(len(line) > 1000 for line in lines):
        chunk = 4099
    body = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=3)))
    piecewise, at_once = Followed(tmp_path_factory.mktemp("a")), Followed(tmp_path_factory.mktemp("b"))
    taken: list[tuple[int, int, bytes]] = []
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        piecewise.write(body[start:end])
        more = piecewise.lines(chunk)
        assert more is not None
        taken += more
    at_once.write(body)
    assert taken == at_once.lines()
    assert piecewise.found == at_once.found
    expected = [line.removesuffix(b"\r") for line in lines]
    if lines:
        expected[0] = (
            expected[0].removeprefix(b"\xef\xbb\xbf") if body.startswith(b"\xef\xbb\xbf") else expected[0]
        )
    kept = [line for line in expected if line and not line.endswith(b"#torn") and len(line) <= READABLE_LINE]
    if not body.startswith((b"\xff\xfe", b"\xfe\xff")):
        assert [line for _, _, line in taken] == kept


def test_an_overlong_line_is_a_finding_with_its_size(followed: Followed) -> None:
    followed.write(b"a" * 3_000_000)
    assert followed.lines() == []
    followed.write(b"\nb\n")
    assert followed.lines() == [(3_000_001, 2, b"b")]
    (finding,) = followed.found
    assert finding.seen.startswith("3000000 bytes on one line: aaa")


@pytest.mark.parametrize("change", ["shorter", "other inode", "other content"])
def test_another_file_begins_anew(followed: Followed, change: str) -> None:
    followed.write(b"one\ntwo\n")
    followed.lines()
    if change == "shorter":
        followed.path.write_bytes(b"one\n")
    elif change == "other inode":
        new = followed.path.with_name("new")
        new.write_bytes(b"one\ntwo\nthree\n")
        new.replace(followed.path)
    else:
        followed.path.write_bytes(b"ONE\nTWO\nthree\n")
    assert followed.lines() is None
    again = followed.lines()
    assert again is not None
    assert [line for _, _, line in again] == followed.path.read_bytes().splitlines()


def test_utf16_is_read_and_said(followed: Followed) -> None:
    followed.write("eins\nzwei €\n".encode("utf-16"))
    lines = followed.lines(chunk=3)
    assert lines == [(-1, 1, b"eins"), (-1, 2, "zwei €".encode())]
    assert [f.seen for f in followed.found] == ["the file is UTF-16"]


def test_crlf_and_a_mark_are_said_once(followed: Followed) -> None:
    followed.write(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert followed.lines() == [(3, 1, b"one"), (8, 2, b"two")]
    assert [f.seen for f in followed.found] == ["a byte order mark", "CR LF line ends"]


def test_a_device_or_a_link_out_is_never_opened(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    followed = Followed(folder)
    for target, reason in (("/dev/zero", "leads out"), (tmp_path / "x", "leads out")):
        (tmp_path / "x").write_text("secret\n")
        followed.path.symlink_to(target)
        assert followed.lines() == []
        assert followed.file.trouble is not None
        assert reason in followed.file.trouble.seen
        followed.path.unlink()
    inside = folder / "real.jsonl"
    inside.write_text("fine\n")
    followed.path.symlink_to(inside)
    assert followed.lines() == [(0, 1, b"fine")]
    assert followed.file.trouble is None
