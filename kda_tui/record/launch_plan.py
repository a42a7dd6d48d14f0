"""The launch plan of a candidate: its model, and how it is read and written."""

from kda_tui.record.launch_file import (
    LaunchPlanError,
    dump_launch_plan,
    load_launch_plan,
    parse_launch_plan,
    with_defines,
)
from kda_tui.record.launch_model import (
    Arg,
    AxisArg,
    LaunchPlan,
    ScalarArg,
    Scratch,
    Step,
    TensorArg,
    TensorMap,
    Unit,
    ValueArg,
    unit_of,
)

__all__ = [
    "Arg",
    "AxisArg",
    "LaunchPlan",
    "LaunchPlanError",
    "ScalarArg",
    "Scratch",
    "Step",
    "TensorArg",
    "TensorMap",
    "Unit",
    "ValueArg",
    "dump_launch_plan",
    "load_launch_plan",
    "parse_launch_plan",
    "unit_of",
    "with_defines",
]
