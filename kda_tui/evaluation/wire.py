"""Verdicts and progress as JSON and back, exactly: what is written is what is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kda_tui.evaluation.verdict import (
    CompileReport,
    Mismatch,
    Progress,
    SampleFile,
    Verdict,
    WorkloadResult,
)


def verdict_line(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values for ``json.dumps``."""
    return asdict(verdict)


def verdict_from(line: Mapping[str, Any]) -> Verdict:
    """The verdict of a line. Raises KeyError or TypeError on a line that is none."""
    compiled, mismatch = line["compile"], line["mismatch"]
    return Verdict(
        **{
            **line,
            "workloads": tuple(WorkloadResult(**w) for w in line["workloads"]),
            "rows": tuple(line["rows"]),
            "samples": tuple(SampleFile(**s) for s in line["samples"]),
            "compile": None if compiled is None else _compile_from(compiled),
            "mismatch": None if mismatch is None else _mismatch_from(mismatch),
        }
    )


def _compile_from(line: Mapping[str, Any]) -> CompileReport:
    return CompileReport(**{**line, "warnings": tuple(line["warnings"])})


def _mismatch_from(line: Mapping[str, Any]) -> Mismatch:
    return Mismatch(
        **{
            **line,
            "index": tuple(line["index"]),
            "box": tuple((first, last) for first, last in line["box"]),
            "tile_map": tuple(line["tile_map"]),
        }
    )


def progress_line(progress: Progress) -> dict[str, Any]:
    return asdict(progress)


def progress_from(line: Mapping[str, Any]) -> Progress:
    return Progress(**line)
