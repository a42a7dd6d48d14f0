"""The oracle: reference.py, run in the judge's process and never in a child's, and what it expects."""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kda_tui.evaluation.arrays import HOST, Array, Arrays, on_host, to_host
from kda_tui.evaluation.dtypes import encode, is_float
from kda_tui.evaluation.inputs import CaseKey, GeneratorFunction, InputSet, logical_shape, make_inputs
from kda_tui.evaluation.layout import TensorLayout, scalar_values
from kda_tui.record.contract import Check, Contract, TensorSpec, WorkloadSpec
from kda_tui.text import UserError

OUTPUT_ROLES = ("out", "inout", "state")
DISAGREEMENT = 1e-9  # of the largest magnitude: how far reference.py on the device may be from NumPy


class OracleError(UserError):
    """reference.py cannot be loaded, fails, or returns something that the contract does not describe."""


class NotANumber(OracleError):
    """The reference is NaN somewhere, and the contract forbids NaN."""


class Reference:
    """reference.py of a workspace: reference(inputs, scalars), and optionally inputs() and facts().

    With device ``arrays`` every global that is numpy becomes the device's numpy.
    """

    def __init__(self, path: Path, arrays: Arrays = HOST) -> None:
        self.path = path
        try:
            data = path.read_bytes()
        except OSError as error:
            raise OracleError(f"{path}: cannot be read ({error.strerror}): a contract needs one") from error
        self.sha256 = hashlib.sha256(data).hexdigest()
        self._module = self._load(data)
        if arrays.name != HOST.name:
            stand_in = _DeviceNumpy(arrays.xp)
            for name, value in list(vars(self._module).items()):
                if value is np:
                    setattr(self._module, name, stand_in)
        if not callable(getattr(self._module, "reference", None)):
            raise OracleError(f"{path.name}: needs a function reference(inputs, scalars) -> outputs")

    def _load(self, data: bytes) -> ModuleType:
        module = ModuleType(f"kda_reference_{self.sha256[:16]}")
        module.__file__ = str(self.path)
        sys.modules[module.__name__] = module
        try:
            # from the very bytes that were hashed: an import would trust a .pyc that came with the workspace
            exec(compile(data, str(self.path), "exec"), module.__dict__)
        except (Exception, SystemExit) as error:
            raise OracleError(self._explain("cannot be loaded", error)) from error
        return module

    def _explain(self, what: str, error: BaseException) -> str:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(self.path)]
        if isinstance(error, SyntaxError) and error.filename == str(self.path):
            lines = [error.lineno]
        where = f"{self.path.name}:{lines[-1]}" if lines else self.path.name
        return f"{where}: {what}: {type(error).__name__}: {error}"

    @property
    def generator(self) -> GeneratorFunction | None:
        return getattr(self._module, "inputs", None)

    def facts(self, inputs: Mapping[str, Array]) -> dict[str, int]:
        """Numbers for the cost expressions that depend on the inputs (nnz, total_kv)."""
        function: Callable[[Mapping[str, Array]], Mapping[str, int]] | None = getattr(
            self._module, "facts", None
        )
        if function is None:
            raise OracleError(f"{self.path.name}: cost.facts = true needs a function facts(inputs) -> dict")
        try:
            found = function({name: to_host(values) for name, values in inputs.items()})
            return {str(k): int(v) for k, v in found.items()}
        except (Exception, SystemExit) as error:
            raise OracleError(self._explain("facts() failed", error)) from error

    def __call__(self, inputs: Mapping[str, Array], scalars: Mapping[str, Any]) -> Any:
        try:
            return self._module.reference(inputs, scalars)
        except (Exception, SystemExit) as error:
            raise OracleError(self._explain("reference() failed", error)) from error


@dataclass(frozen=True, slots=True)
class Expected:
    """One output: float64 ``values``, or ``bits`` where the contract wants exactness; ``valid`` None = all."""

    layout: TensorLayout
    values: Array | None
    bits: Array | None
    valid: NDArray[np.bool_] | None

    @property
    def nbytes(self) -> int:
        return sum(int(a.nbytes) for a in (self.values, self.bits, self.valid) if a is not None)


@dataclass(frozen=True, slots=True)
class Case:
    """Inputs and, for each judged call of a chain (just call 0 when steps = 1), the expected outputs."""

    key: CaseKey
    inputs: InputSet
    expected: Mapping[int, Mapping[str, Expected]]

    @property
    def nbytes(self) -> int:
        outputs = sum(e.nbytes for call in self.expected.values() for e in call.values())
        return self.inputs.nbytes + outputs


def require_numbers(expected: Expected, spec: TensorSpec, workload: str) -> None:
    """Raises NotANumber where the oracle is NaN and the contract forbids it."""
    if check_of(spec).nan != "forbid" or expected.values is None or not is_float(spec.dtype):
        return
    judged = expected.values if expected.valid is None else expected.values[expected.valid]
    if np.isnan(judged).any():
        where = f"reference.py: output {spec.name!r} for workload {workload!r}"
        raise NotANumber(f"{where} is NaN somewhere: set check.nan = 'match' if that is meant")


def check_of(spec: TensorSpec) -> Check:
    """How an output is judged; a contract that was checked says so for each."""
    return spec.check or Check(exact=True)


def judged_calls(steps: int) -> tuple[int, ...]:
    """First, middle and last call of a chain."""
    return tuple(sorted({0, steps // 2, steps - 1}))


class Oracle:
    """Cases by key, kept while they fit in ``cache_bytes``; the least recently used go first.

    With device arrays reference.py runs on the device, its ``numpy`` replaced by the device's; where it
    cannot, or does not agree with NumPy on the first case, it runs on the host and ``note`` says so.
    """

    def __init__(
        self, contract: Contract, root: Path, cache_bytes: int | None = None, arrays: Arrays = HOST
    ) -> None:
        self.contract = contract
        self.root = root
        self.arrays = arrays
        self.reference = Reference(root / "reference.py")
        self.note = ""
        self._on_device: Reference | None = None
        if arrays.name != HOST.name:
            self._on_device = Reference(root / "reference.py", arrays)
        self._proven = False  # that the device's reference agrees with NumPy's
        self.outputs = tuple(t for t in contract.tensors if t.role in OUTPUT_ROLES)
        self._limit = arrays.cache_bytes if cache_bytes is None else cache_bytes
        self._cases: OrderedDict[tuple[str, CaseKey], Case] = OrderedDict()
        self._held = 0

    def case(self, workload: WorkloadSpec, key: CaseKey) -> Case:
        """Inputs and expectation. Raises InputError, OracleError, or NotANumber for a probe out of range."""
        name = (repr(sorted(workload.axes.items())), key)
        found = self._cases.get(name)
        if found is not None:
            self._cases.move_to_end(name)
            return found
        inputs = make_inputs(self.contract, workload, key, self.reference.generator, self.root, self.arrays)
        case = Case(key, inputs, self._expect(workload, inputs, key))
        self._cases[name] = case
        self._held += case.nbytes
        while self._held > self._limit and len(self._cases) > 1:
            _, old = self._cases.popitem(last=False)
            self._held -= old.nbytes
        return case

    def _expect(
        self, workload: WorkloadSpec, inputs: InputSet, key: CaseKey
    ) -> Mapping[int, Mapping[str, Expected]]:
        scalars = {**workload.params, **workload.axes, **scalar_values(self.contract, workload)}
        steps = self.contract.benchmark.steps
        wanted = judged_calls(steps)
        values = inputs.values()
        expected: dict[int, Mapping[str, Expected]] = {}
        for call in range(steps):
            outputs = self._outputs(values, scalars)
            if call in wanted:
                expected[call] = {
                    spec.name: self._expected(spec, inputs.layouts[spec.name], outputs, workload, key)
                    for spec in self.outputs
                }
            if call + 1 < steps:
                values = inputs.values()
                for spec in self.outputs:
                    if spec.role != "out":
                        values[spec.name] = outputs[spec.name].copy()
        return expected

    def _outputs(self, values: Mapping[str, Array], scalars: Mapping[str, Any]) -> dict[str, Array]:
        """What reference() returns, by name, on the device where that works and agrees with NumPy."""
        if self._on_device is not None:
            try:
                found = self._named(self._on_device(values, scalars))
            except OracleError as error:
                self._leave_device(str(error))
            else:
                if self._proven or self._agrees(found, values, scalars):
                    return found
        return self._named(self._by_numpy(values, scalars))

    def _by_numpy(self, values: Mapping[str, Array], scalars: Mapping[str, Any]) -> Any:
        return self.reference({name: to_host(v) for name, v in values.items()}, scalars)

    def _leave_device(self, why: str) -> None:
        self._on_device = None
        self.note = f"reference.py runs in NumPy on the host, which is slow: {why}"

    def _agrees(
        self, found: Mapping[str, Array], values: Mapping[str, Array], scalars: Mapping[str, Any]
    ) -> bool:
        host = self._named(self._by_numpy(values, scalars))
        for name, mine in found.items():
            if name not in host or not _close(to_host(mine), to_host(host[name])):
                self._leave_device(f"on the device it gives another {name!r} than NumPy does")
                return False
        self._proven = True
        return True

    def _named(self, returned: Any) -> dict[str, Array]:
        """What reference() returned, by output name: a mapping, a tuple in contract order, or one array."""
        if isinstance(returned, Mapping):
            named = dict(returned)
        elif isinstance(returned, tuple | list):
            named = {spec.name: value for spec, value in zip(self.outputs, returned, strict=False)}
        else:
            named = {self.outputs[0].name: returned}
        missing = [spec.name for spec in self.outputs if spec.name not in named]
        if missing:
            raise OracleError(f"reference.py: reference() returned no {', '.join(map(repr, missing))}")
        return {name: self.arrays.own(value) for name, value in named.items()}

    def _expected(
        self,
        spec: TensorSpec,
        layout: TensorLayout,
        outputs: Mapping[str, Array],
        workload: WorkloadSpec,
        key: CaseKey,
    ) -> Expected:
        values = outputs[spec.name]
        shape = logical_shape(layout)
        where = f"reference.py: output {spec.name!r} for workload {workload.id!r}"
        if values.shape != shape:
            raise OracleError(f"{where} has shape {list(values.shape)}, the contract says {list(shape)}")
        if values.dtype.kind not in "fiubc":
            raise OracleError(f"{where} has type {values.dtype}, which is not a number")
        valid = self._valid(spec, outputs, shape, where)
        check = check_of(spec)
        kind = np.complex128 if values.dtype.kind == "c" else np.float64
        if check.exact:
            if is_float(spec.dtype):
                require_numbers(Expected(layout, values, None, valid), spec, workload.id)
            return Expected(layout, None, encode(values, spec.dtype), _of_storage(valid, spec.dtype))
        expected = Expected(layout, values.astype(kind, copy=on_host(values)), None, valid)
        if not key.part:  # of a timed part it is asked when an output differs: asking waits for the device
            require_numbers(expected, spec, workload.id)
        return expected

    def _valid(
        self, spec: TensorSpec, outputs: Mapping[str, Any], shape: tuple[int, ...], where: str
    ) -> NDArray[np.bool_] | None:
        if spec.valid == "all":
            return None
        name = f"{spec.name}_valid"
        if name not in outputs:
            raise OracleError(
                f"{where} has valid = 'mask': reference() must also return {name!r}, a bool array"
            )
        mask = outputs[name]
        try:
            return np.broadcast_to(mask.astype(np.bool_), shape)
        except ValueError as error:
            raise OracleError(f"{where}: the mask has shape {list(mask.shape)}, not {list(shape)}") from error


def _of_storage(valid: NDArray[np.bool_] | None, dtype: str) -> NDArray[np.bool_] | None:
    """A mask over values as one over stored elements: a pair counts when either half does."""
    return valid if valid is None or dtype != "fp4x2" else valid[..., 0::2] | valid[..., 1::2]


def _close(mine: Array, theirs: Array) -> bool:
    """Two results of one reference: equal up to the rounding of sums in another order."""
    if mine.shape != theirs.shape:
        return False
    finite = np.isfinite(mine) & np.isfinite(theirs)
    same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    scale = float(np.abs(theirs[finite]).max(initial=0.0))
    far = np.abs(np.where(finite, mine, 0) - np.where(finite, theirs, 0)) > DISAGREEMENT * scale
    return bool(np.all(np.where(finite, ~far, same)))


class _DeviceNumpy:
    """Stands for ``numpy`` in reference.py on a device: the device's function where it has one."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name, None)
        return getattr(np, name) if found is None else found
