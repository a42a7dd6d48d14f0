"""Launches as JSON between the judge's side and the child: the child gets addresses, never meanings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kda_tui.evaluation.devices.interface import (
    ArgValue,
    BufferRef,
    KernelStep,
    Launch,
    LaunchReport,
    MemsetStep,
    ResolvedStep,
    ScalarValue,
    TensorMapValue,
)


def launches_to_json(launches: Sequence[Launch]) -> list[dict[str, Any]]:
    return [
        {
            "restore": [list(pair) for pair in launch.restore],
            "steps": [_step(step) for step in launch.steps],
            "graph": launch.graph,
        }
        for launch in launches
    ]


def launches_from_json(data: Sequence[Mapping[str, Any]]) -> list[Launch]:
    return [
        Launch(
            steps=tuple(_step_from(step) for step in launch["steps"]),
            restore=tuple((str(a), str(b)) for a, b in launch["restore"]),
            graph=bool(launch["graph"]),
        )
        for launch in data
    ]


def _step(step: ResolvedStep) -> dict[str, Any]:
    if isinstance(step, MemsetStep):
        return {"memset": asdict(step)}
    body = asdict(step)
    body["args"] = [{type(arg).__name__: asdict(arg)} for arg in step.args]
    return {"kernel": body}


def _step_from(data: Mapping[str, Any]) -> ResolvedStep:
    if "memset" in data:
        return MemsetStep(**data["memset"])
    body = dict(data["kernel"])
    for name in ("grid", "block", "cluster"):
        body[name] = tuple(body[name]) if body[name] is not None else None
    body["args"] = tuple(_arg_from(arg) for arg in body["args"])
    return KernelStep(**body)


def _arg_from(data: Mapping[str, Any]) -> ArgValue:
    ((kind, body),) = data.items()
    if kind == "BufferRef":
        return BufferRef(**body)
    if kind == "ScalarValue":
        return ScalarValue(**body)
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in body.items()}
    return TensorMapValue(**fields)


def report_to_json(report: LaunchReport) -> dict[str, Any]:
    return asdict(report)


def report_from_json(data: Mapping[str, Any]) -> LaunchReport:
    return LaunchReport(**{**data, "samples_us": tuple(data.get("samples_us", ()))})
