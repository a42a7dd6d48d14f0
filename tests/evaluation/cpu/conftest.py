"""One device, one cache and one contract for all tests of the cpu device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cpu_candidates import CONTRACT, KERNELS, Compile, Loaded, load, plan_for

from kda_tui.evaluation.devices.cpu.cpu_child import CpuChild
from kda_tui.evaluation.devices.cpu.device import CpuDevice
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.contract import Contract, parse_contract


@pytest.fixture(scope="session")
def contract() -> Contract:
    return parse_contract(CONTRACT.encode(), "contract.toml")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def device(cache: Path) -> CpuDevice:
    return CpuDevice(threads=2, cache=cache)


@pytest.fixture
def compile_text(device: CpuDevice, contract: Contract, cache: Path, tmp_path: Path) -> Compile:
    """Compile one kernel.cu (and other files) and give the report."""

    def compiled(text: str, *kernels: str, files: dict[str, str] | None = None, **unit: Any) -> CompileReport:
        folder = tmp_path / "candidate"
        folder.mkdir(exist_ok=True)
        for name, words in {"kernel.cu": text, **(files or {})}.items():
            (folder / name).write_text(words)
        return device.compile(folder, plan_for(kernels, **unit), contract, cache)

    return compiled


@pytest.fixture(scope="session")
def load_file(
    device: CpuDevice, contract: Contract, cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Loaded]]:
    """Compile a file of ``kernels/`` (or a text) and load it into a fresh child, closed at the end."""
    children: list[CpuChild] = []

    def loaded(source: str, *kernels: str) -> Loaded:
        folder = tmp_path_factory.mktemp("candidate")
        text = (KERNELS / source).read_text() if source.endswith(".cu") else source
        (folder / "kernel.cu").write_text(text)
        made = load(device, contract, cache, folder, kernels)
        children.append(made.child)
        return made

    yield loaded
    for child in children:
        child.close()
