"""The grid of a candidate's ``[tune]`` table, and the launch plan of one point of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kda_tui.record.launch_plan import LaunchPlan, dump_launch_plan, load_launch_plan

Value = int | float | str | bool
Point = tuple[tuple[str, Value], ...]  # in the order of the [tune] table


@dataclass(frozen=True, slots=True)
class Space:
    """What may be varied: names with their values in declared order, and where the search starts."""

    name: str  # family of the candidates made from it
    files: Mapping[str, str]
    plan: LaunchPlan
    axes: tuple[tuple[str, tuple[Value, ...]], ...]
    start: Point
    hypothesis: str
    parents: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of points of the grid."""
        size = 1
        for _, values in self.axes:
            size *= len(values)
        return size

    def launch(self, point: Point, hypothesis: str, parents: tuple[str, ...]) -> str:
        """launch.toml with the defines of ``point`` in every unit that has them."""
        return dump_launch_plan(
            self.plan, dict(point), hypothesis=hypothesis, parents=parents, family=self.name
        )

    def point_of(self, defines: Mapping[str, Any]) -> Point | None:
        """The point that a recorded candidate stands for, or None if it is not of this grid."""
        if any(name not in defines for name, _ in self.axes):
            return None
        return tuple((name, defines[name]) for name, _ in self.axes)


def words(point: Point) -> str:
    """``THREADS=128 VEC=4``"""
    return " ".join(f"{name}={value}" for name, value in point) or "no tunables"


def read_space(folder: Path, name: str) -> Space:
    """The space of a candidate folder. Raises UserError where its launch plan cannot be used."""
    plan = load_launch_plan(folder / "launch.toml")
    sources = sorted(p for p in folder.iterdir() if p.is_file() and p.suffix != ".md")
    defines = {k: v for unit in plan.units for k, v in unit.defines.items()}
    tune = {k: tuple(values) for k, values in plan.tune.items() if values}
    return Space(
        name=plan.family or name,
        files={p.name: p.read_text(encoding="utf-8") for p in sources},
        plan=plan,
        axes=tuple(tune.items()),
        start=tuple((k, defines[k] if defines.get(k) in values else values[0]) for k, values in tune.items()),
        hypothesis=plan.hypothesis or name,
        parents=tuple(plan.parents),
    )
