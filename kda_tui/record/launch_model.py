"""The launch plan of a candidate, launch.toml: how its kernels are launched, without host code."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kda_tui.record.contract_model import DType, Expr


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Unit(_Model):
    """One compiled binary: a file with its defines and options."""

    name: str = "kernel"
    file: str = "kernel.cu"
    defines: dict[str, int | float | str | bool] = Field(default_factory=dict)
    options: dict[str, int | float | str | bool] = Field(default_factory=dict)


class Scratch(_Model):
    """A buffer that is undefined at entry (poisoned before every launch)."""

    name: str
    dtype: DType
    shape: tuple[Expr, ...]


class TensorMap(_Model):
    name: str
    tensor: str
    dims: tuple[Expr, ...]
    strides: tuple[Expr, ...]  # in bytes, without the innermost
    box: tuple[Expr, ...]
    element_strides: tuple[Expr, ...] = ()
    swizzle: Literal["none", "32B", "64B", "128B"] = "none"
    interleave: Literal["none", "16B", "32B"] = "none"
    l2_promotion: Literal["none", "64B", "128B", "256B"] = "none"
    oob: Literal["zero", "nan"] = "zero"


class TensorArg(_Model):
    tensor: str
    offset: Expr = 0  # in elements


class AxisArg(_Model):
    axis: str
    as_: DType = Field(default="int32", alias="as")


class ScalarArg(_Model):
    scalar: str
    as_: DType | None = Field(default=None, alias="as")


class ValueArg(_Model):
    value: Expr
    as_: DType = Field(default="int32", alias="as")


Arg = str | TensorArg | AxisArg | ScalarArg | ValueArg  # a bare name: tensor, scratch, map, scalar, axis


class Step(_Model):
    """A kernel launch or a memset; exactly one of ``kernel`` and ``memset``."""

    kernel: str | None = None  # "unit.function", or "function" of the first unit
    memset: str | None = None
    value: int = 0
    when: str | None = None
    grid: tuple[Expr, Expr, Expr] = (1, 1, 1)
    block: tuple[Expr, Expr, Expr] = (1, 1, 1)
    cluster: tuple[Expr, Expr, Expr] | None = None
    cooperative: bool = False
    pdl: bool = False
    shared_bytes: Expr = 0
    args: tuple[Arg, ...] = ()


class LaunchPlan(_Model):
    hypothesis: str = ""
    parents: tuple[str, ...] = ()
    family: str = ""
    units: tuple[Unit, ...] = (Unit(),)
    scratch: tuple[Scratch, ...] = ()
    tensor_maps: tuple[TensorMap, ...] = ()
    steps: tuple[Step, ...] = ()
    tune: dict[str, tuple[Any, ...]] = Field(default_factory=dict)


def unit_of(plan: LaunchPlan, kernel: str) -> tuple[Unit | None, str]:
    """The unit that a step's kernel belongs to and the kernel's own name; None where no unit has the name."""
    head, dot, name = kernel.rpartition(".")
    if not dot:
        return (plan.units[0] if plan.units else None), kernel
    return next((unit for unit in plan.units if unit.name == head), None), name
