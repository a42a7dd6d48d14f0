"""The ``cuda`` device: facts of one GPU, compiling, and children that launch on it."""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kda_tui.evaluation.devices.cuda import compilers
from kda_tui.evaluation.devices.cuda.build import build
from kda_tui.evaluation.devices.cuda.gpu_lock import gpu_lock
from kda_tui.evaluation.devices.cuda.process import ChildProcess
from kda_tui.evaluation.devices.cuda.throttle import disturbances
from kda_tui.evaluation.devices.cuda.watched import WatchedChild, sanitizer_command, sanitizer_path
from kda_tui.evaluation.devices.interface import DeviceFacts
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.contract import Contract
from kda_tui.record.launch_plan import LaunchPlan
from kda_tui.text import UserError

if TYPE_CHECKING:  # these import PyCUDA
    from kda_tui.evaluation.arrays import Arrays
    from kda_tui.evaluation.devices.cuda.arena import JudgeContext
    from kda_tui.evaluation.devices.cuda.parent import CudaChild

# Datasheet peaks by name: bandwidth in B/s, dense FLOP/s by dtype. They bound the possible; targets are
# measured. H100 SXM and H200: NVIDIA Hopper datasheets; B200: NVIDIA Blackwell datasheet (dense).
_PEAKS: dict[str, tuple[float, dict[str, float]]] = {
    "H200": (4.8e12, {"float32": 67e12, "tf32": 494e12, "float16": 989e12, "bfloat16": 989e12, "fp8_e4m3": 1979e12}),
    "H100": (3.35e12, {"float32": 67e12, "tf32": 494e12, "float16": 989e12, "bfloat16": 989e12, "fp8_e4m3": 1979e12}),
    "B200": (8.0e12, {"float32": 80e12, "tf32": 1.1e15, "float16": 2.25e15, "bfloat16": 2.25e15, "fp8_e4m3": 4.5e15}),
    "A100": (2.04e12, {"float32": 19.5e12, "tf32": 156e12, "float16": 312e12, "bfloat16": 312e12}),
}  # fmt: skip


LEAST_LAUNCH = 0.75  # of the fastest empty launch ever seen: below this no time is believed


def visible_ordinal() -> int:
    """The GPU to use: the first that CUDA_VISIBLE_DEVICES leaves visible."""
    return int(os.environ.get("KDA_GPU", "0"))


def driver_or_reason() -> str:
    """ "" when a GPU can be used, else one line that says why not."""
    try:
        import pycuda.driver as pycuda
    except ImportError as error:
        return (
            f"PyCUDA cannot be imported ({error}); install kda-tui[cuda] on a machine with an NVIDIA driver"
        )
    try:
        pycuda.init()
        count = pycuda.Device.count()
    except pycuda.Error as error:
        return f"the NVIDIA driver does not answer ({error})"
    return "" if count else "no GPU is visible (CUDA_VISIBLE_DEVICES?)"


class CudaDevice:
    """One GPU. The judge's context is made when it is first needed, never at construction.

    Processes of children are kept: a spare that has never run anything waits with its context, and one
    that was emptied after use may be borrowed again.
    """

    def __init__(self, ordinal: int | None = None, cache: Path | None = None) -> None:
        reason = driver_or_reason()
        if reason:
            raise UserError(f"device cuda: {reason}; 'kda doctor' shows more")
        self.ordinal = visible_ordinal() if ordinal is None else ordinal
        self.card = _card(self.ordinal)
        self._cache = cache or Path.home() / ".cache" / "kda"
        self._spares: list[ChildProcess] = []
        self._used: list[ChildProcess] = []
        self._started = 0
        atexit.register(self._close)

    def compile(self, folder: Path, plan: LaunchPlan, contract: Contract, cache: Path) -> CompileReport:
        return build(folder, plan, contract, cache, compilers.device_arch(self.card.cc))

    @cached_property
    def facts(self) -> DeviceFacts:
        """The card's facts, and what it really reaches: measured by whoever asks first on this machine."""
        from kda_tui.evaluation.devices.cuda.peaks import peaks_of

        name = f"peaks-{self.card.uuid}-{self.card.driver}.json"
        found = peaks_of(self.context, self.supervisor_cubin, self._cache / "cuda" / name)
        return replace(
            self.card,
            reached_bandwidth=found.bandwidth,
            reached_flops=found.flops,
            empty_launch_us=found.empty_us,
            launch_floor_us=LEAST_LAUNCH * found.least_empty_us,
        )

    def exclusive(self, waiting: Callable[[str], None]) -> AbstractContextManager[None]:
        return gpu_lock(self.card.uuid, waiting)

    def disturbances(self) -> tuple[str, ...]:
        return disturbances(self.card.uuid)

    @property
    def arrays(self) -> Arrays:
        return self.context.arrays

    def prepare(self, scratch: Path) -> None:
        """Start a spare child if none waits; does not wait for it."""
        if not self._spares:
            self._spares.append(self._process(scratch))

    def settle(self) -> None:
        for process in self._spares:
            process.wait_ready()

    def start_child(self, scratch: Path) -> CudaChild:
        process = self._spares.pop() if self._spares else self._process(scratch)
        return self._child(process)

    def borrow_child(self, scratch: Path) -> CudaChild:
        if not self._used:
            return self.start_child(scratch)
        return self._child(self._used.pop())

    def watched_child(self, scratch: Path, tool: str) -> WatchedChild | str:
        if not sanitizer_path():
            return "compute-sanitizer is not installed"
        self._started += 1
        folder = scratch / f"child{self._started}"
        log = folder / f"{tool}.txt"
        process = ChildProcess(
            self.supervisor_cubin, self.ordinal, folder, sanitizer_command(tool, log), {"KDA_WATCHED": "1"}
        )
        from kda_tui.evaluation.devices.cuda.parent import CudaChild

        return WatchedChild(CudaChild(process, self.context, ChildProcess.stop), log)

    def _child(self, process: ChildProcess) -> CudaChild:
        from kda_tui.evaluation.devices.cuda.parent import CudaChild

        return CudaChild(process, self.context, self._leave)

    def _process(self, scratch: Path) -> ChildProcess:
        self._started += 1
        return ChildProcess(self.supervisor_cubin, self.ordinal, scratch / f"child{self._started}")

    def _leave(self, process: ChildProcess) -> None:
        """Keep the process of a closed child if it can be emptied; one is enough."""
        if self._used or process.ask({"op": "empty"}).get("status") != "ok":
            process.stop()
        else:
            self._used.append(process)

    def _close(self) -> None:
        for process in self._spares + self._used:
            process.stop()
        if "context" in vars(self):
            self.context.close()

    @cached_property
    def context(self) -> JudgeContext:
        """The judge's own context on this GPU."""
        from kda_tui.evaluation.devices.cuda.arena import JudgeContext

        return JudgeContext(self.ordinal, self.supervisor_cubin)

    @cached_property
    def supervisor_cubin(self) -> Path:
        """The supervisor's kernels, compiled once per source, compiler and architecture."""
        source = Path(__file__).with_name("supervisor.cu")
        arch = compilers.device_arch(self.card.cc)
        version = compilers.nvrtc_version() or compilers.nvcc_version()
        key = hashlib.sha256(source.read_bytes() + f"{arch} {version}".encode()).hexdigest()[:24]
        target = self._cache / "cuda" / f"supervisor-{key}.cubin"
        if not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            built = (
                compilers.compile_nvrtc(source, arch, [], [])
                if compilers.nvrtc_version()
                else compilers.compile_nvcc(source, arch, [], [], 120.0, target.parent)
            )
            if not built.cubin:
                raise UserError(f"device cuda: the supervisor's kernels do not compile: {built.log[:400]}")
            part = target.with_suffix(f".{os.getpid()}")
            part.write_bytes(built.cubin)
            part.replace(target)
        return target

    def describe(self) -> Mapping[str, Any]:
        return {
            "name": self.card.name,
            "uuid": self.card.uuid,
            "driver": self.card.driver,
            "cc": self.card.cc,
            "arch": compilers.device_arch(self.card.cc),
            "sm_count": self.card.sm_count,
            "l2_bytes": self.card.l2_bytes,
            "compiler": f"nvrtc {compilers.nvrtc_version()}"
            if compilers.nvrtc_version()
            else f"nvcc {compilers.nvcc_version()}",
            "judged_with": "cupy on the GPU"
            if importlib.util.find_spec("cupy")
            else "numpy on the host, which is slow: CuPy is not installed",
        }


def _card(ordinal: int) -> DeviceFacts:
    import pycuda.driver as pycuda
    from cuda.bindings import driver as cu

    device = pycuda.Device(ordinal)
    get, kind = device.get_attribute, pycuda.device_attribute
    name = device.name()
    bandwidth, flops = next((p for n, p in _PEAKS.items() if n in name), (None, {}))
    version = pycuda.get_driver_version()
    _, raw = cu.cuDeviceGetUuid(ordinal)
    major, minor = device.compute_capability()
    return DeviceFacts(
        name=name,
        kind="cuda",
        uuid=f"GPU-{bytes(raw.bytes).hex()}",
        driver=f"{version // 1000}.{version % 1000 // 10}",
        cc=f"{major}.{minor}",
        sm_count=get(kind.MULTIPROCESSOR_COUNT),
        l2_bytes=get(kind.L2_CACHE_SIZE),
        warp_size=get(kind.WARP_SIZE),
        max_shared_bytes=get(kind.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        peak_bandwidth=bandwidth,
        peak_flops=flops,
        memory_bytes=int(device.total_memory()),
    )
