"""Whatever ncu left in a folder: what is shown of each file, and why not the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kda_tui.profiling import survey as module
from kda_tui.profiling.survey import survey

DETAILS = (
    "==PROF== Connected to process 1\n"
    '"ID","Kernel Name","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    '"0","k(float *)","(256, 1, 1)","(8, 1, 1)","0","9.0","GPU Speed Of Light Throughput","Duration","us","5.5"\n'
)


def test_every_file_has_hot_lines_or_the_reason(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    (root / "details.csv").write_text(DETAILS)
    (root / "state.txt").write_text("idle\n")
    (root / "damaged.ncu-rep").write_bytes(b"nothing")
    os.mkfifo(root / "pipe.csv")
    (tmp_path / "outside.csv").write_text(DETAILS)
    (root / "out.csv").symlink_to(tmp_path / "outside.csv")
    names = ["details.csv", "state.txt", "damaged.ncu-rep", "pipe.csv", "out.csv", "gone.csv"]
    found = survey(root, names)
    assert [one.file for one in found] == names
    assert [k["name"] for k in found[0].kernels] == ["k(float *)"]
    assert [one.why_no_hotspots for one in found] == [
        "a CSV of this page has no samples per line: open the .ncu-rep, or export --page source --csv",
        "neither an ncu report, nor an ncu CSV, nor ncu's text",
        "not an ncu report (it does not start as one)",
        "it is a FIFO, not a plain file",
        "it leads out of the workspace",
        "it is not there",
    ]


def test_a_file_that_kills_its_reader_is_told_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [(['{"why": "a"}'], "signal 11"), (['{"why": "c"}'], "exit code 0")]
    monkeypatch.setattr(module, "_child", lambda root, names: answers.pop(0))
    found = survey(tmp_path, ["a", "b", "c"])
    assert [(one.file, one.why_none) for one in found] == [
        ("a", "a"),
        ("b", "reading it ended the reader (signal 11)"),
        ("c", "c"),
    ]
