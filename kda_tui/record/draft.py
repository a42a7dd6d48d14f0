"""A first contract, launch plan and reference from the signatures of kernels.

Where a signature says enough the draft is complete; elsewhere it says FILL_IN, with a comment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from keyword import iskeyword

from kda_tui.problems import FILL_IN
from kda_tui.record.contract_checks import RESERVED
from kda_tui.record.contract_tensors import FLOATS
from kda_tui.record.kernel_signature import KernelSignature, Parameter
from kda_tui.text import clean_line

THREADS = 256  # of a block, where the kernel gives no __launch_bounds__
LENGTH = 1024  # of an axis, to begin with

_TOLERANCE = {"float64": "1e-12", "float32": "1e-5", "float16": "2e-3", "bfloat16": "1e-2"}

_TUNE = """
# What the tuner may vary: macros that kernel.cu reads, their first values, and the values to try.
# [[unit]]
# defines = {THREADS = 256}
# [tune]
# THREADS = [64, 128, 256]
"""


@dataclass(frozen=True, slots=True)
class Draft:
    """The text of four files; ``seed`` is the launch plan of the candidate to begin with."""

    contract: str
    launch: str
    seed: str
    reference: str


@dataclass(frozen=True, slots=True)
class _Task:
    """What the parameters of all kernels are taken for."""

    kernels: tuple[KernelSignature, ...]
    tensors: tuple[Parameter, ...]
    axes: tuple[str, ...]
    scalars: tuple[Parameter, ...]

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        return tuple(t for t in self.tensors if not t.is_const)

    @property
    def length(self) -> str:
        """The one axis that every tensor has, or FILL_IN: the signature does not say which has which."""
        return self.axes[0] if len(self.axes) == 1 else FILL_IN


def draft_workspace(signatures: Sequence[KernelSignature], device: str) -> Draft:
    """Drafts for kernels that are launched one after the other; integers are taken for axes."""
    task = _read(signatures)
    launch = _launch(task)
    return Draft(_contract(task, device), launch, launch + _TUNE, _reference(task))


def _read(signatures: Sequence[KernelSignature]) -> _Task:
    kernels = tuple(
        replace(k, parameters=tuple(replace(p, name=_name(p)) for p in k.parameters)) for k in signatures
    )
    tensors: dict[str, Parameter] = {}
    scalars: dict[str, Parameter] = {}
    axes: list[str] = []
    for p in (p for kernel in kernels for p in kernel.parameters):
        if p.kind == "tensor":
            first = tensors.setdefault(p.name, p)
            if first.is_const and not p.is_const:  # one kernel reads it, another writes it
                tensors[p.name] = p
        elif p.kind == "scalar" and _is_axis(p):
            axes.append(p.name)
        elif p.kind == "scalar":
            scalars.setdefault(p.name, p)
    own = tuple(axis for axis in dict.fromkeys(axes) if axis not in tensors)
    taken = tensors.keys() | scalars.keys()
    free = next(name for name in (f"n{i or ''}" for i in range(len(taken) + 1)) if name not in taken)
    return _Task(
        kernels,
        tuple(tensors.values()),
        own or (free,),
        tuple(s for s in scalars.values() if s.name not in tensors and s.name not in own),
    )


def _name(p: Parameter) -> str:
    """The parameter's name, unless expressions give it a meaning of their own."""
    taken = p.name in RESERVED or (p.kind == "scalar" and iskeyword(p.name))
    return f"{p.name}_" if taken else p.name


def _is_axis(p: Parameter) -> bool:
    return p.dtype is not None and p.dtype not in FLOATS and p.dtype != "bool"


def _comment(text: str) -> str:
    return clean_line(text, 100)


def _contract(task: _Task, device: str) -> str:
    first = task.kernels[0]
    parts = [
        f"# Drafted from the signature of {', '.join(k.name for k in task.kernels)}. Read it through: a signature\n"
        "# does not say everything. `kda contract check` names what is still to be filled in.\n",
        f'[task]\nname = "{first.name}"\nobjective = "the same as the baseline, faster"\ndevice = "{device}"\n',
    ]
    parts += [_tensor(p, task) for p in task.tensors] or [_no_tensor()]
    parts += [_scalar(p) for p in task.scalars]
    axes = ", ".join(f"{axis} = {LENGTH}" for axis in task.axes)
    odd = ", ".join(f"{axis} = {LENGTH - 23}" for axis in task.axes)
    parts += [
        "# Lengths to measure at, and an odd one: kernels that assume whole blocks fail there.\n"
        f'[[workload]]\nid = "even"\naxes = {{{axes}}}\n',
        f'[[workload]]\nid = "odd"\naxes = {{{odd}}}\n',
        '# What must at least be moved and computed, for the speed of light: bytes = "8 * n", flops = "n".\n[cost]\n',
        '[baseline]\ncandidate = "baseline"\n',
    ]
    if device == "cpu":
        parts.append(
            "# A cpu shared with other work is noisy.\n[promotion]\nmin_speedup = 1.05\nfloor = 0.95\n"
        )
    parts.append("[budget]\ncandidates = 40\nhours = 2.0\n")
    return "\n".join(parts)


def _tensor(p: Parameter, task: _Task) -> str:
    lines = ["[[tensor]]", f'name = "{p.name}"']
    role = "in" if p.is_const else "out"
    told = "const" if p.is_const else "not const; inout if the kernel also reads it, state if it lives on"
    lines.append(f'role = "{role}"  # {told}')
    lines.append(
        f'dtype = "{p.dtype or FILL_IN}"  # `{_comment(p.c_type)}`'
        + ("" if p.dtype else ", for example float32")
    )
    lanes = f"; in elements of {p.dtype}, {p.lanes} to each of the kernel's" if p.lanes > 1 else ""
    lines.append(
        f'shape = ["{task.length}"]  # one length or expression for each axis, over {", ".join(task.axes)}{lanes}'
    )
    if role == "out":
        lines.append(_check(p))
    return "\n".join(lines) + "\n"


def _check(p: Parameter) -> str:
    if p.dtype is None:
        return f'check = {{rel_l2 = "{FILL_IN}"}}  # a number, or check = {{exact = true}}'
    if p.dtype not in FLOATS:
        return "check = {exact = true}"
    return f"check = {{rel_l2 = {_TOLERANCE.get(p.dtype, '5e-2')}}}  # relative L2 error against reference.py"


def _no_tensor() -> str:
    return (
        f'[[tensor]]\nname = "{FILL_IN}"  # no pointer parameter was understood: describe them one by one\n'
        f'role = "out"\ndtype = "float32"\nshape = ["{FILL_IN}"]\ncheck = {{rel_l2 = 1e-5}}\n'
    )


def _scalar(p: Parameter) -> str:
    value = "0.75"  # not 1: a kernel that only copies must not pass
    if p.dtype == "bool":
        value = "1"
    elif "eps" in p.name.lower():
        value = "1e-6"
    return f'[[scalar]]\nname = "{p.name}"\ndtype = "{p.dtype}"\nvalue = {value}  # what callers pass\n'


def _launch(task: _Task) -> str:
    parts = [
        "# How the kernel is launched; expressions over axes, scalars and device facts (sm_count).\n"
        'hypothesis = "as it was given"\nfamily = "baseline"\n'
    ]
    parts += [_step(kernel, task) for kernel in task.kernels]
    return "\n".join(parts)


def _step(kernel: KernelSignature, task: _Task) -> str:
    threads = kernel.max_threads or THREADS
    lines = ["[[step]]"]
    if kernel.template:
        lines.append(
            f'kernel = "{kernel.name}<{FILL_IN}>"  # values for <{_comment(", ".join(kernel.template))}>'
        )
    else:
        lines.append(f'kernel = "{kernel.name}"')
    blocks = f'"ceil_div({task.length}, {threads})"' if len(task.axes) == 1 else f'"{FILL_IN}"'
    told = "enough threads for every element" if len(task.axes) == 1 else "for example ceil_div(n, 256)"
    lines.append(f"grid = [{blocks}, 1, 1]  # {told}")
    lines.append(f"block = [{threads}, 1, 1]")
    if kernel.dynamic_shared:
        lines.append(
            f'shared_bytes = "{FILL_IN}"  # the file declares extern __shared__; 0 if this kernel uses none'
        )
    lines.append("args = [")
    lines += [f"  {_arg(p, task)}" for p in kernel.parameters]
    lines.append("]")
    return "\n".join(lines) + "\n"


def _arg(p: Parameter, task: _Task) -> str:
    if p.kind == "scalar" and p.name in task.axes:
        return f'{{axis = "{p.name}", as = "{p.dtype}"}},'
    if p.kind == "tensor" or (p.kind == "scalar" and p.name in {s.name for s in task.scalars}):
        return f'"{p.name}",'
    what = "a [[tensor_map]]" if p.kind == "tensor_map" else "not understood"
    return f'"{FILL_IN}",  # `{_comment(p.c_type)}`: {what}'


def _reference(task: _Task) -> str:
    tensors = "".join(f'    {_variable(t.name)} = inputs["{t.name}"]\n' for t in task.tensors if t.is_const)
    numbers = (*task.axes, *(s.name for s in task.scalars))
    scalars = "".join(f'    {_variable(name)} = scalars["{name}"]\n' for name in numbers)
    outputs = ", ".join(f'"{t.name}": {_variable(t.name)}' for t in task.outputs)
    return f'''"""What is right: the outputs of {task.kernels[0].name}, computed in float64."""

import numpy as np


def reference(inputs, scalars):
    """Inputs by name as float64 (or int64) arrays of their shapes, axes and scalars by name -> outputs by name."""
{tensors}{scalars}    raise RuntimeError("compute the outputs here, with NumPy, for example y = np.exp(x)")
    return {{{outputs}}}
'''


def _variable(name: str) -> str:
    """A variable for a name that Python, or the reference itself, may have taken."""
    return f"{name}_" if iskeyword(name) or name in ("np", "inputs", "scalars", "reference") else name
