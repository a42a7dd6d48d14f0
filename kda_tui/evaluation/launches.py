"""One judged call: fill, poison, launch, read; and what the memory around it must look like after."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.dtypes import item_bytes
from kda_tui.evaluation.faults import Rejected
from kda_tui.evaluation.oracle import Case, Expected
from kda_tui.evaluation.placement import Bytes, Placement, Poison
from kda_tui.evaluation.session import Session
from kda_tui.record.contract import TensorSpec

Outputs = dict[str, Bytes]
Marks = NDArray[np.bool_]


def launch_chain(
    session: Session, arm: str, placement: Placement, case: Case, poison: Poison, which: int = 0
) -> dict[int, Outputs]:
    """Call ``steps`` times on one set; the outputs of the judged calls by call number."""
    placement.fill(which, case.inputs)
    captured: dict[int, Outputs] = {}
    for call in range(session.stand.contract.benchmark.steps):
        placement.poison(which, poison)
        session.run(arm, placement, which)
        if call in case.expected:
            captured[call] = placement.outputs(which)
    return captured


def judge_memory(placement: Placement, cases: Mapping[int, Case]) -> None:
    """Inputs of the sets that were launched must be as they were, and nothing written around any buffer."""
    begin_judge_memory(placement, cases)()


def begin_judge_memory(placement: Placement, cases: Mapping[int, Case]) -> Callable[[], None]:
    """As ``judge_memory``; a device only begins here, and calling the result waits for it and raises."""
    undisturbed = placement.undisturbed({which: case.inputs for which, case in cases.items()})

    def judge() -> None:
        if not undisturbed():
            _say_what_changed(placement, cases)

    return judge


def _say_what_changed(placement: Placement, cases: Mapping[int, Case]) -> None:
    for which, case in cases.items():
        for tensor, byte in placement.changed_inputs(which, case.inputs):
            reason = f"input {tensor} was changed, first at byte {byte} ({case.key})"
            raise Rejected("tampered", "inputs", reason)
    key = next(iter(cases.values())).key
    for buffer, distance in placement.broken_guards():
        side = f"{distance} bytes past the end" if distance > 0 else f"{-distance} bytes before the start"
        raise Rejected("tampered", "bounds", f"memory outside {buffer} was written, {side} ({key})")


def judge_globals(session: Session, arm: str) -> None:
    """Module variables must hold what they held when loaded: only a changed byte is state."""
    changed = session.child.changed_globals(arm)
    if changed:
        raise Rejected("stateful", "state", f"{changed} bytes of __device__ variables changed")


def judge_unwritten(
    placement: Placement, spec: TensorSpec, case: Case, launches: list[Outputs], poison: Poison
) -> None:
    """Not written is what equals its poison under two complementary poisons.

    Every valid element must be written; what lies outside (holes of a strided output, elements that the
    reference masks out) must be left alone unless the contract says ``rest = "any"``.
    """
    first, second = launches[0][spec.name], launches[1][spec.name]
    laid = placement.pattern(poison, spec.name, 0)
    untouched = (first == laid) & (second == ~laid)
    must, must_not = written_bytes(placement, spec, next(iter(case.expected.values()))[spec.name], first)
    missing = int(np.count_nonzero(untouched & must))
    if missing:
        raise Rejected(
            "incorrect", "unwritten", f"{missing} bytes of {spec.name} are never written ({case.key})"
        )
    stray = ~untouched & must_not
    if stray.any():
        element = int(np.argmax(stray)) // item_bytes(spec.dtype)
        raise Rejected(
            "incorrect", "unwritten", f"{spec.name} is written outside its valid part, at element {element}"
        )


def written_bytes(
    placement: Placement, spec: TensorSpec, expected: Expected, storage: Bytes
) -> tuple[Marks, Marks]:
    """Per byte of an output's ``storage``: whether it must be written, and whether it must not."""
    layout = placement.layouts[spec.name]
    covered = layout.covered(None, storage)
    must = covered if expected.valid is None else layout.covered(expected.valid, storage)
    return must, ~(must if spec.rest == "untouched" else covered)
