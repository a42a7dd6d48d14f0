"""What the judge keeps between evaluations: devices, oracles with their cached cases, compiled arms."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from kda_tui.evaluation.arrays import HOST
from kda_tui.evaluation.devices.choose import open_device
from kda_tui.evaluation.devices.interface import Device
from kda_tui.evaluation.faults import InfrastructureFault
from kda_tui.evaluation.oracle import Oracle
from kda_tui.evaluation.session import Arm, Stand
from kda_tui.record.artifacts import files_below, sha256_file, sha256_tree
from kda_tui.record.contract import Contract, load_contract
from kda_tui.record.launch_plan import load_launch_plan
from kda_tui.record.paths import Workspace


class Workbench:
    """One per judge process. ``open_device`` is replaceable for tests and self-tests."""

    def __init__(self, cache: Path, open_device: Callable[[str, Path], Device] = open_device) -> None:
        self.cache = cache
        self._open = open_device
        self._devices: dict[str, Device] = {}
        self._stands: dict[tuple[str, str, str], Stand] = {}
        self._temporary = tempfile.TemporaryDirectory(prefix="kda-judge-")

    @property
    def scratch(self) -> Path:
        """Where children work; gone when the judge ends."""
        return Path(self._temporary.name)

    def device(self, kind: str) -> Device:
        if kind not in self._devices:
            self._devices[kind] = self._open(kind, self.cache)
        return self._devices[kind]

    def stand(self, ws: Workspace) -> Stand:
        """Contract, oracle and device of a workspace as it is now; raises UserError for what is wrong with them."""
        contract = load_contract(ws.contract)
        key = (str(ws.root.resolve()), contract.sha256, _sha(ws.reference))
        if key not in self._stands:
            device = self.device(contract.task.device)
            device.prepare(self.scratch)
            oracle = Oracle(contract, ws.root, arrays=device.arrays)
            if contract.task.device == "cuda" and device.arrays is HOST:
                oracle.note = "CuPy is not installed: inputs, oracle and comparison run in NumPy on the host"
            start, borrow = device.start_child, device.borrow_child
            stand = Stand(
                device,
                contract,
                oracle,
                lambda: start(self.scratch),
                lambda: borrow(self.scratch),
                self.scratch,
            )
            self._stands = {key: stand}
        return self._stands[key]

    def arm(self, stand: Stand, name: str, cand: str, folder: Path) -> Arm:
        """Compile a candidate's folder; whether that worked is in the arm's report.

        Raises LaunchPlanError for a plan that cannot be read.
        """
        plan = load_launch_plan(folder / "launch.toml", stand.contract)
        sha = folder_sha(folder)
        report = stand.device.compile(folder, plan, stand.contract, self.cache)
        return Arm(name, cand, plan, report, sha)

    def close(self) -> None:
        self._temporary.cleanup()


def baseline_folder(ws: Workspace, contract: Contract) -> Path:
    """Where the contract's baseline lies; raises InfrastructureFault for one that is no folder."""
    if contract.baseline.candidate is None:
        raise InfrastructureFault(
            f"the baseline {contract.baseline.python} is Python, which this device cannot run: "
            "give baseline.candidate a folder with kernel.cu and launch.toml"
        )
    return ws.root / contract.baseline.candidate


def folder_sha(folder: Path) -> str:
    """One hash over every file of a candidate."""
    return sha256_tree(folder, files_below(folder))


def _sha(path: Path) -> str:
    return sha256_file(path) if path.is_file() else ""


def fingerprint(ws: Workspace, *folders: Path) -> str:
    """What an evaluation rests on; it must be the same before and after."""
    parts = [_sha(ws.contract), _sha(ws.reference), *(folder_sha(f) for f in folders)]
    return "/".join(parts)
