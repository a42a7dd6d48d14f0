"""Printing facts."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from kda_tui.cli.output import number, plain, print_json, table


@dataclass(frozen=True)
class Fact:
    name: str
    value: float | None
    parts: tuple[int, ...] = ()


def test_json_has_no_nan_and_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": Fact("µs", math.nan, (1, 2)), "path": Path("x"), "inf": math.inf, "set": {3}})
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == {
        "a": {"name": "µs", "value": None, "parts": [1, 2]},
        "path": "x",
        "inf": None,
        "set": [3],
    }


def test_booleans_stay_booleans() -> None:
    assert plain({"yes": True, "no": None}) == {"yes": True, "no": None}


def test_table_is_aligned_and_safe_for_a_terminal() -> None:
    shown = table([("id", "us"), ("c0001", 9.5), ("evil\x1b[2J", 12.25)], right=(1,))
    assert "\x1b" not in shown
    lines = shown.splitlines()
    assert len(lines) == 3
    assert len({len(line) for line in lines}) == 1
    assert lines[1].endswith(" 9.5")


def test_what_was_not_measured_is_a_dash_and_never_zero() -> None:
    assert [number(None), number(math.nan), number(0.0), number(68.52)] == ["-", "-", "0", "68.5"]
