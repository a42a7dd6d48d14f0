"""``kda bench``: one softmax kernel through this evaluator, triton's do_bench and flashinfer-bench, side by side.

The same CUDA source, the same shape, the same GPU, one after the other. Compared are the seconds from
source to verdict and how far apart the times of one and the same kernel come out. A peer that is not
installed is said to be missing.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kda_tui.evaluation.evaluator import evaluate
from kda_tui.evaluation.request import JudgeRequest
from kda_tui.evaluation.workbench import Workbench
from kda_tui.record.paths import Workspace
from kda_tui.record.scaffold import new_from_template

TEMPLATE, WORKLOAD, ROWS, COLUMNS = "softmax_rows", "r4096_c4096", 4096, 4096
THREADS = 256

OnRun = Callable[[str, float, float], None]  # who, seconds, microseconds


@dataclass(slots=True)
class Peer:
    """Seconds from source to verdict and the microseconds that were reported, run by run."""

    name: str
    seconds: list[float] = field(default_factory=list)
    us: list[float] = field(default_factory=list)
    missing: str = ""

    @property
    def median_s(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Largest over smallest reported time, minus 1; without the first run, which may start things up."""
        later = self.us[1:] or self.us
        return max(later) / min(later) - 1.0


def compare_peers(cache: Path, repeats: int, on_run: OnRun) -> list[Peer]:
    """Every peer ``repeats`` times, on sources that no cache has seen."""
    with tempfile.TemporaryDirectory(prefix="kda-bench-") as folder:
        root = new_from_template(TEMPLATE, Path(folder) / TEMPLATE, "cuda")
        source = (root / "baseline" / "kernel.cu").read_text()
        return [
            _ours(root, cache, repeats, on_run),
            _peer("triton do_bench", lambda n: _do_bench(source, n), repeats, on_run),
            _peer("flashinfer-bench", lambda n: _flashinfer(source, Path(folder), n), repeats, on_run),
        ]


def _ours(root: Path, cache: Path, repeats: int, on_run: OnRun) -> Peer:
    peer = Peer("kda (level time)")
    bench = Workbench(cache)
    try:
        for number in range(repeats):
            started = time.perf_counter()
            candidate = root / f"candidate{number}-{time.time_ns()}"
            candidate.mkdir()
            for name in ("kernel.cu", "launch.toml"):
                text = (root / "baseline" / name).read_text()
                candidate.joinpath(name).write_text(
                    f"{text}// {candidate.name}\n" if name == "kernel.cu" else text
                )
            request = JudgeRequest(
                op="evaluate", workspace=str(Workspace(root).root), candidate=str(candidate), cand_id=candidate.name,
                seeds=(candidate.name, candidate.name + "b", candidate.name + "c"), options={"workloads": [WORKLOAD]},
            )  # fmt: skip
            found = evaluate(request, bench, lambda progress: None)
            took = time.perf_counter() - started
            us = next((w.time_us for w in found.workloads if w.time_us is not None), None)
            if us is None:
                peer.missing = f"{found.validity}: {found.reason}"
                break
            peer.seconds.append(took)
            peer.us.append(us)
            on_run(peer.name, took, us)
    finally:
        bench.close()
    return peer


def _peer(name: str, run: Callable[[int], float], repeats: int, on_run: OnRun) -> Peer:
    peer = Peer(name)
    for number in range(repeats):
        started = time.perf_counter()
        try:
            us = run(number)
        except Exception as error:  # a peer's own fault is shown, not ours
            peer.missing = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
            break
        peer.seconds.append(time.perf_counter() - started)
        peer.us.append(us)
        on_run(name, peer.seconds[-1], us)
    return peer


def _do_bench(source: str, number: int) -> float:
    """Compile with NVRTC, compare once with torch, time with triton's loop (its defaults)."""
    import cupy
    import torch
    from triton.testing import do_bench

    kernel = cupy.RawKernel(f"{source}// {number}-{time.time_ns()}\n", "softmax_rows")
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    y = torch.empty_like(x)

    def launch() -> None:
        stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        with stream:
            kernel((ROWS,), (THREADS,), (x.data_ptr(), y.data_ptr(), cupy.int32(COLUMNS)))

    launch()
    if not torch.allclose(y, torch.softmax(x, dim=1), rtol=1e-4, atol=1e-7):
        raise ValueError("the kernel is wrong")
    return 1e3 * float(do_bench(launch, return_mode="median"))


_HOST = r"""
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <cuda_runtime.h>
%s
void run(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
    DLDevice device = x.device();
    cudaStream_t stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
    softmax_rows<<<x.size(0), %d, 0, stream>>>(
        static_cast<const float*>(x.data_ptr()), static_cast<float*>(y.data_ptr()), static_cast<int>(x.size(1)));
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
// %s
"""


def _flashinfer(source: str, folder: Path, number: int) -> float:
    """One definition, one workload, one solution with the tvm-ffi binding, its default settings."""
    from flashinfer_bench.bench import Benchmark, BenchmarkConfig
    from flashinfer_bench.data import TraceSet

    root = folder / f"dataset{number}"
    _write_dataset(root, _HOST % (source, THREADS, time.time_ns()))
    found = Benchmark(TraceSet.from_path(str(root)), BenchmarkConfig()).run_all(dump_traces=False)
    evaluations: Sequence[Any] = [
        t.evaluation for traces in found.traces.values() for t in traces if t.evaluation is not None
    ]
    if not evaluations or evaluations[0].performance is None:
        said = f"{evaluations[0].status}: {evaluations[0].log[-300:]}" if evaluations else "no trace"
        raise ValueError(said.replace("\n", " "))
    return 1e3 * float(evaluations[0].performance.latency_ms)


def _write_dataset(root: Path, host: str) -> None:
    matrix = {"shape": ["rows", "cols"], "dtype": "float32"}
    definition = {
        "name": "softmax", "op_type": "softmax", "axes": {"rows": {"type": "var"}, "cols": {"type": "var"}},
        "inputs": {"x": matrix}, "outputs": {"y": matrix},
        "reference": "import torch\n\ndef run(x):\n    return torch.softmax(x, dim=-1)\n",
    }  # fmt: skip
    solution = {
        "name": "plain", "definition": "softmax", "author": "kda",
        "spec": {
            "language": "cuda", "target_hardware": ["NVIDIA_H200"], "entry_point": "kernel.cu::run",
            "dependencies": [], "destination_passing_style": True, "binding": "tvm-ffi",
        },
        "sources": [{"path": "kernel.cu", "content": host}],
    }  # fmt: skip
    workload = {
        "definition": "softmax", "solution": None, "evaluation": None,
        "workload": {"axes": {"rows": ROWS, "cols": COLUMNS}, "inputs": {"x": {"type": "random"}}, "uuid": "one"},
    }  # fmt: skip
    for path, text in (
        ("definitions/softmax/softmax.json", json.dumps(definition)),
        ("workloads/softmax/softmax.jsonl", json.dumps(workload) + "\n"),
        ("solutions/kda/softmax/softmax/plain.json", json.dumps(solution)),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
