"""A transcript of any size, block by block."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kda_tui.record import transcript
from kda_tui.record.records import TranscriptBlock
from kda_tui.record.snapshot import Finding
from kda_tui.record.transcript import TranscriptFile


def write(path: Path, *blocks: dict[str, object] | bytes) -> None:
    with path.open("ab") as file:
        for block in blocks:
            file.write(
                (block if isinstance(block, bytes) else json.dumps(block, ensure_ascii=False).encode())
                + b"\n"
            )


def said(text: str, **fields: object) -> dict[str, object]:
    return {"kind": "text", "text": text, **fields}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "transcript.jsonl"


def texts(file: TranscriptFile) -> list[str]:
    blocks = [file.block(i) for i in range(len(file))]
    return [b.text if isinstance(b, TranscriptBlock) else f"finding {b.line}: {b.seen}" for b in blocks]


def test_blocks_by_number_as_the_file_grows(path: Path) -> None:
    write(path, said("one"), said("two", turn=3, usage={"in": 5}, novel=1))
    file = TranscriptFile(path)
    assert [b.text for b in file.tail(1) if isinstance(b, TranscriptBlock)] == ["two"]
    assert file.refresh()
    assert texts(file) == ["one", "two"]
    block = file.block(1)
    assert isinstance(block, TranscriptBlock)
    assert (block.turn, block.usage, block.extra) == (3, {"in": 5}, {"novel": 1})
    assert not file.refresh()
    write(path, said("three"))
    with path.open("ab") as ledger:
        ledger.write(b'{"kind": "text", "text": "never finis')
    assert file.refresh()
    assert len(file) == 3
    write(path, b"#torn", said("four"))
    file.refresh()
    assert texts(file) == ["one", "two", "three", "four"]


def test_a_line_that_is_no_block_is_a_finding_in_its_place(path: Path) -> None:
    write(path, said("one"), b"rubbish", b"[1]", said("x" * 300_000), said("last"))
    file = TranscriptFile(path)
    file.refresh()
    assert texts(file)[0] == "one"
    assert texts(file)[-1] == "last"
    middle = [file.block(i) for i in (1, 2, 3)]
    assert [b.line for b in middle if isinstance(b, Finding)] == [2, 3, 4]
    assert isinstance(middle[2], Finding)
    assert "bytes on one line" in middle[2].seen


def test_a_file_that_shrinks_or_is_replaced_is_indexed_anew(path: Path) -> None:
    write(path, *(said(f"old {n}") for n in range(5)))
    file = TranscriptFile(path)
    file.refresh()
    path.write_bytes(b"")
    write(path, said("new"))
    assert file.refresh()
    assert texts(file) == ["new"]
    path.unlink()
    assert file.refresh()
    assert (len(file), file.trouble) == (0, "is not there")


def test_no_file_and_a_link_out_are_empty(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    outside = tmp_path / "outside.jsonl"
    write(outside, said("secret"))
    (folder / "transcript.jsonl").symlink_to(outside)
    file = TranscriptFile(folder / "transcript.jsonl")
    file.refresh()
    assert (len(file), file.tail(5)) == (0, [])
    assert file.trouble == "leads out of the workspace"


def test_the_whole_text_of_a_blob_is_bounded(path: Path) -> None:
    data = ("long " * 20_000).encode()
    sha = hashlib.sha256(data).hexdigest()
    (path.parent / "blobs").mkdir()
    (path.parent / "blobs" / sha).write_bytes(data)
    write(
        path, said("long long", blob=sha), said("here", blob="../../etc/passwd"), said("there", blob="a" * 64)
    )
    file = TranscriptFile(path)
    file.refresh()
    first, second, third = (b for b in (file.block(i) for i in range(3)) if isinstance(b, TranscriptBlock))
    assert file.text_of(first) == data.decode()
    assert file.text_of(first, limit=1000) == data.decode()[:1000] + "\n[cut after 1000 bytes]"
    assert file.text_of(second) == "here"
    assert "is not there" in file.text_of(third)


# --- searching -----------------------------------------------------------------------------------------------


def test_search_finds_what_is_shown_both_ways(path: Path) -> None:
    write(
        path,
        said("Alpha"),
        said("beta"),
        {"kind": "tool_call", "tool": "run", "args": {"code": ["line\nbeta"]}},
        said('say "q"'),
    )
    file = TranscriptFile(path)
    file.refresh()
    assert file.search("beta", 0, 1) == 1
    assert file.search("beta", 2, 1) == 2
    assert file.search("beta", 3, 1) is None
    assert file.search("beta", 3, -1) == 2
    assert file.search("beta", 1, -1) == 1
    assert file.search("alpha", 3, -1) == 0
    assert file.search("ALPHA", 3, -1) is None  # capitals ask for capitals
    assert file.search('"q"', 0, 1) == 3
    assert file.search("kind", 0, 1) is None  # a key of every line is not what people see
    assert file.search("", 0, 1) is None
    assert file.search("beta", -5, -1) is None
    assert file.search("beta", 99, 1) is None


def test_search_finds_text_that_was_written_escaped(path: Path) -> None:
    write(path, json.dumps(said("größer")).encode(), said("größer"))
    file = TranscriptFile(path)
    file.refresh()
    assert (file.search("größer", 0, 1), file.search("größer", 1, -1)) == (0, 1)


def test_a_search_can_be_stopped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "SLICE", 200)
    write(path, *(said(f"block {n}") for n in range(50)))
    file = TranscriptFile(path)
    file.refresh()
    shares: list[float] = []

    def stop(share: float) -> bool:
        shares.append(share)
        return len(shares) == 3

    assert file.search("block 49", 0, 1, stop) is None
    assert len(shares) == 3
    assert 0 < shares[0] < shares[1] < shares[2] < 1


LINE = st.one_of(
    st.text('abAB \\"é\n', max_size=6).map(said),
    st.sampled_from([b"#torn", b"x#torn", b"", b"{}", b"rubbish b"]),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(LINE, max_size=12),
    needle=st.text("abAé", min_size=1, max_size=2),
    read=st.sampled_from([1, 5, 16, 1 << 20]),
)
def test_index_and_search_agree_with_reading_it_all(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, object] | bytes], needle: str, read: int
) -> None:
    path = tmp_path_factory.mktemp("t") / "transcript.jsonl"
    path.touch()
    write(path, *lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transcript, "_READ", read)
        patch.setattr(transcript, "SLICE", 40)
        file = TranscriptFile(path)
        file.refresh()
        kept = [line for line in lines if not (isinstance(line, bytes) and line.endswith(b"#torn"))]
        shown = [line.get("text", "") if isinstance(line, dict) else "" for line in kept]
        blocks = [file.block(i) for i in range(len(file))]
        assert [b.text if isinstance(b, TranscriptBlock) else "" for b in blocks] == shown
        fits = [needle in (t if needle != needle.lower() else t.lower()) for t in map(str, shown)]
        for start in range(len(shown)):
            ahead = next((i for i in range(start, len(shown)) if fits[i]), None)
            behind = next((i for i in range(start, -1, -1) if fits[i]), None)
            assert file.search(needle, start, 1) == ahead
            assert file.search(needle, start, -1) == behind
