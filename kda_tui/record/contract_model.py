"""The task contract, contract.toml: the model of every key, and errors that name key and line."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Expr = int | str  # an integer, or an expression over axes, scalars, defines and device facts

DType = Literal[
    "float64", "float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2", "fp4x2", "e8m0",
    "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "bool", "complex64", "complex128",
]  # fmt: skip

Fill = Literal["normal", "uniform", "integers", "ones", "one_hot", "constant_rows", "npy", "generator"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Task(_Model):
    name: str
    objective: str = ""
    device: Literal["cuda", "cpu"]
    arch: str | None = None


class Check(_Model):
    """How an output is judged. ``exact`` excludes the tolerances."""

    exact: bool = False
    rel_l2: float | None = None
    tile: tuple[str, ...] = ()  # "row", or axis names; () = blocks of 4096 elements
    max_abs_over_rms: float | None = None
    vs_baseline: float | None = None
    nan: Literal["forbid", "match"] = "forbid"
    inf: Literal["forbid", "match"] = "match"


class Domain(_Model):
    min: Expr | None = None
    max: Expr | None = None
    sorted: bool = False
    unique: bool = False
    sums_to: Expr | None = None


class TensorSpec(_Model):
    name: str
    role: Literal["in", "out", "inout", "state"]
    dtype: DType
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...] | None = None  # in elements; None = contiguous
    offset: Expr = 0
    align: int = 16
    fill: Fill = "normal"
    path: str | None = None  # with fill = "npy"
    kind: Literal["data", "index", "scale", "mask"] = "data"
    domain: Domain | None = None
    constant: bool = False
    valid: Literal["all", "mask"] = "all"  # "mask": the reference returns NAME_valid too
    rest: Literal["untouched", "any"] = "untouched"
    check: Check | None = None


class ScalarSpec(_Model):
    name: str
    dtype: DType
    value: float | int | None = None
    axis: str | None = None


class WorkloadSpec(_Model):
    id: str
    axes: dict[str, int]
    params: dict[str, Any] = Field(default_factory=dict)
    scalars: dict[str, float | int] = Field(default_factory=dict)
    weight: float = 1.0
    floor: float | None = None  # lowest admissible ratio of this workload; None = promotion.floor
    timed: bool = True  # False: judged for correctness only


class Hidden(_Model):
    """Shapes drawn per confirm from the run's secret; the agent sees gate names only."""

    count: int
    ranges: dict[str, tuple[int, int]]


class Correctness(_Model):
    seeds: int = 3
    repeats: int = 3  # launches of one input that must agree bit for bit
    deterministic: bool = True
    spread: float | None = None  # allowed relative L2 between repeats when not deterministic
    probes: bool = True
    prior_calls: int = 4  # launches before the one that is checked for staleness


class BenchmarkSpec(_Model):
    cache: Literal["cold", "warm"] = "cold"
    launch: Literal["stream", "graph"] = "stream"
    steps: int = 1
    prepare: Literal["forbidden", "timed", "free"] = "forbidden"
    launches: int = 10  # per slot
    blocks: int = 8
    timeout_s: float = 60.0


class Include(_Model):
    path: str
    sha256: str


class CompileSpec(_Model):
    arch: str | None = None
    include: tuple[Include, ...] = ()
    allowed: tuple[str, ...] = ()
    timeout_s: float = 120.0


class Cost(_Model):
    bytes: Expr | None = None
    flops: Expr | None = None
    flops_dtype: str | None = None
    facts: bool = False  # reference.py has facts(inputs) -> {name: int}


class Baseline(_Model):
    candidate: str | None = None  # a folder with kernel.cu and launch.toml, relative to the workspace
    python: str | None = None  # module:function


class Promotion(_Model):
    min_speedup: float = 1.01
    floor: float = 0.98
    profile: Literal["required", "optional"] = "optional"
    by: Literal["person", "rule"] = "person"
    lower_trust: bool = False  # evidence from python or command evaluators may promote


class BudgetSpec(_Model):
    candidates: int | None = None
    hours: float | None = None
    usd: float | None = None
    count_held: bool = False  # held and waiting time counts as hours


class GatesSpec(_Model):
    max_open: int = 3
    plan: Literal["person", "auto"] = "person"
    question_timeout_s: float | None = 3600.0
    promotion_timeout_s: float | None = None


class Contract(_Model):
    """contract.toml. Fields are named as JUDGE names the tables; repeated tables are plural here."""

    task: Task
    tensors: tuple[TensorSpec, ...]
    scalars: tuple[ScalarSpec, ...] = ()
    workloads: tuple[WorkloadSpec, ...]
    hidden: Hidden | None = None
    correctness: Correctness = Correctness()
    benchmark: BenchmarkSpec = BenchmarkSpec()
    compile: CompileSpec = CompileSpec()
    cost: Cost = Cost()
    baseline: Baseline
    promotion: Promotion = Promotion()
    budget: BudgetSpec = BudgetSpec()
    gates: GatesSpec = GatesSpec()
    sha256: str = ""  # of the file's bytes; filled by load_contract
