"""New workspaces: a copy of a template, or a draft from a kernel's signature."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kda_tui.config import share_path
from kda_tui.problems import near
from kda_tui.record import trust
from kda_tui.record.contract import load_contract
from kda_tui.record.draft import Draft, draft_workspace
from kda_tui.record.kernel_signature import read_signatures
from kda_tui.record.paths import Workspace
from kda_tui.record.plain_file import Refused, read_plain
from kda_tui.text import UserError

Device = Literal["cpu", "cuda"]

MAX_SOURCE_BYTES = 4 << 20

# What a run leaves behind, and what no task needs: a template is copied without it.
_RECORD = frozenset(
    {"runs", "candidates", "inbox", "profile", "outputs", "exports", "workspace.lock", "__pycache__"}
    | {"candidates.jsonl", "decisions.jsonl", "benchmark.csv"}
)


@dataclass(frozen=True, slots=True)
class TemplateInfo:
    """A task that comes with the program; ``devices`` are those it has a contract for."""

    name: str
    objective: str
    devices: tuple[str, ...]
    workloads: int
    path: Path


def templates() -> dict[str, TemplateInfo]:
    """The shipped templates by name."""
    folders = sorted(p.parent for p in share_path("workspaces").glob("*/contract.toml"))
    return {folder.name: _info(folder) for folder in folders}


def _info(folder: Path) -> TemplateInfo:
    contract = load_contract(folder / "contract.toml")
    devices = [contract.task.device]
    devices += [d for d in ("cpu", "cuda") if _contract_of(folder, d).exists() and d not in devices]
    return TemplateInfo(folder.name, contract.task.objective, tuple(devices), len(contract.workloads), folder)


def _contract_of(folder: Path, device: str) -> Path:
    return folder / f"contract.{device}.toml"


def new_from_template(name: str, dest: Path, device: Device | None = None) -> Path:
    """Copy the template ``name`` to ``dest``, with its contract for ``device`` (default: the template's own).

    Returns ``dest``. The copy counts as made here: its reference may run. Raises UserError for an unknown
    template or device, or a ``dest`` that has something in it.
    """
    known = templates()
    if name not in known:
        raise UserError(f"there is no template {name}; {near(name, known)}")
    info = known[name]
    if device is not None and device not in info.devices:
        raise UserError(f"template {name} has no contract for {device}; it has {', '.join(info.devices)}")

    def fill(folder: Path) -> None:
        _copy(info.path, folder)
        chosen = _contract_of(info.path, device or info.devices[0])
        if chosen.exists():
            shutil.copyfile(chosen, folder / "contract.toml")

    return _make(dest, fill)


def new_from_kernel(kernel: Path, dest: Path, device: Device = "cpu") -> Path:
    """Draft a workspace from the signatures of the ``__global__`` functions in a .cu file.

    The kernel becomes the baseline, and the first candidate to vary. What a signature cannot tell stands
    as FILL_IN in contract.toml and launch.toml, which their loaders then name with line. Returns ``dest``.
    Raises UserError when the file has no kernel, or ``dest`` has something in it.
    """
    try:
        source = read_plain(kernel, kernel.parent, MAX_SOURCE_BYTES)
    except Refused as error:
        raise UserError(f"{kernel}: {error}; give a .cu file") from error
    signatures = read_signatures(source.decode("utf-8", "replace"))
    if not signatures:
        raise UserError(f"{kernel}: there is no __global__ function in it; give the file that has the kernel")
    draft = draft_workspace(signatures, device)
    return _make(dest, lambda folder: _write_draft(folder, source, draft))


def _write_draft(folder: Path, source: bytes, draft: Draft) -> None:
    for place, launch in (("baseline", draft.launch), ("seeds/start", draft.seed)):
        (folder / place).mkdir(parents=True)
        (folder / place / "kernel.cu").write_bytes(source)
        (folder / place / "launch.toml").write_text(launch, encoding="utf-8")
    (folder / "contract.toml").write_text(draft.contract, encoding="utf-8")
    (folder / "reference.py").write_text(draft.reference, encoding="utf-8")


def _copy(template: Path, folder: Path) -> None:
    """Every file of the task, as plain writable files; links and records stay behind."""
    for parent, folders, files in os.walk(template):
        here = Path(parent).relative_to(template)
        folders[:] = sorted(f for f in folders if not _is_left_out(f))
        (folder / here).mkdir(parents=True, exist_ok=True)
        for name in files:
            source = Path(parent, name)
            is_variant = here == Path() and name.startswith("contract.") and name != "contract.toml"
            if not (_is_left_out(name) or is_variant or source.is_symlink()):
                shutil.copyfile(source, folder / here / name)


def _is_left_out(name: str) -> bool:
    return name in _RECORD or name.startswith(".")


def _make(dest: Path, fill: Callable[[Path], None]) -> Path:
    """Fill a folder beside ``dest`` and move it there: a half-made workspace is never seen."""
    try:
        if dest.is_symlink() or (dest.exists() and (not dest.is_dir() or any(dest.iterdir()))):
            raise UserError(f"{dest}: already there; name a new or an empty folder")
        dest.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{dest.name}.", dir=dest.parent))
        try:
            inner = made / "workspace"
            inner.mkdir()
            fill(inner)
            inner.rename(dest)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        where = error.filename or dest
        raise UserError(
            f"{where}: cannot be written ({error.strerror or error}); name another folder"
        ) from error
    trust.mark_own(Workspace(dest))
    return dest
