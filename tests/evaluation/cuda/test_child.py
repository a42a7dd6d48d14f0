"""On the GPU: every kind of launch and argument, and every way in which a child can end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.gpu
pytest.importorskip("pycuda", reason="needs kda-tui[cuda]")

from kda_tui.evaluation.arrays import to_host
from kda_tui.evaluation.devices.cuda import compilers
from kda_tui.evaluation.devices.cuda.device import CudaDevice
from kda_tui.evaluation.devices.interface import (
    BufferRef,
    BufferSpec,
    KernelStep,
    Launch,
    MemsetStep,
    ScalarValue,
    TensorMapValue,
)
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.launch_plan import LaunchPlan, Step, Unit
from tests.evaluation.cuda.launches import KERNELS, SOURCE

PLAN = LaunchPlan(units=(Unit(),), steps=tuple(Step(kernel=k) for k in KERNELS))


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice()


@pytest.fixture(scope="module")
def report(device: CudaDevice, tmp_path_factory: pytest.TempPathFactory) -> CompileReport:
    import json

    folder = tmp_path_factory.mktemp("cubin")
    source = folder / "kernel.cu"
    source.write_text(SOURCE)
    built = compilers.compile_nvrtc(source, compilers.device_arch(device.facts.cc), [], list(KERNELS))
    assert built.cubin, built.log
    (folder / "unit.cubin").write_bytes(built.cubin)
    (folder / "report.json").write_text(json.dumps({"names": built.names, "log": "", "resources": []}))
    return CompileReport(True, binaries={"kernel": str(folder / "unit.cubin")})


@pytest.fixture
def child(device: CudaDevice, report: CompileReport, tmp_path: Path) -> Iterator[Any]:
    child = device.start_child(tmp_path)
    loaded = child.load("candidate", report, PLAN)
    assert loaded.status == "ok", loaded.text
    assert (
        child.allocate([BufferSpec("x", 1 << 20), BufferSpec("y", 1 << 20), BufferSpec("z", 4096)]).status
        == "ok"
    )
    yield child
    child.close()


def step(kernel: str, *args: Any, grid: int = 1, block: int = 1, **more: Any) -> KernelStep:
    return KernelStep("kernel", kernel, (grid, 1, 1), (block, 1, 1), tuple(args), **more)


def read(child: Any, name: str) -> Any:
    return np.asarray(to_host(child.get(name)))


def i32(value: int) -> ScalarValue:
    return ScalarValue("int32", value)


def run(child: Any, *steps: Any, timeout: float = 20.0) -> Any:
    return child.run("candidate", [Launch(tuple(steps))], timeout)


def test_offsets_memsets_and_restores(child: Any) -> None:
    x = np.arange(1024, dtype=np.float32)
    child.put("x", x.view(np.uint8))
    launch = Launch(
        (
            MemsetStep("y", 0, 4096),
            step(
                "scale",
                BufferRef("x", 16),
                BufferRef("y", 8),
                i32(100),
                ScalarValue("float32", 2.0),
                grid=4,
                block=32,
            ),
        ),
        restore=(("z", "x"),),
    )
    report = child.run("candidate", [launch], 20)
    assert report.status == "ok", report.text
    y = read(child, "y").view(np.float32)
    assert np.array_equal(y[2:102], 2 * x[4:104])
    assert y[0] == 0 and y[102] == 0
    assert np.array_equal(read(child, "z").view(np.float32), x)


def test_scalars_arrive_by_their_declared_type(child: Any) -> None:
    values = [
        ("float64", 1.25),
        ("float32", 2.5),
        ("uint8", 200),
        ("int16", -5),
        ("int64", 1 << 40),
        ("bool", 1),
    ]
    report = run(child, step("types", BufferRef("y"), *[ScalarValue(d, v) for d, v in values]))
    assert report.status == "ok", report.text
    assert read(child, "y").view(np.float64)[:6].tolist() == [1.25, 2.5, 200, -5, float(1 << 40), 1]


def test_a_wrong_argument_is_named_before_the_launch(child: Any) -> None:
    report = run(
        child,
        step("scale", BufferRef("x"), BufferRef("y"), ScalarValue("int64", 4), ScalarValue("float32", 1)),
    )
    assert report.status == "launch_error"
    assert "argument 3 (int64 4) has 8 bytes, the kernel's parameter 4" in report.text
    report = run(child, step("scale", BufferRef("x")))
    assert "takes 4 arguments, the launch plan gives 1" in report.text
    assert run(child, step("dynamic", BufferRef("y"), i32(4), shared_bytes=4)).status == "ok", (
        "the child lives on"
    )


@pytest.mark.parametrize("size", [49151, 49152, 49153, 200_000])
def test_shared_memory_across_48_kib(child: Any, size: int) -> None:
    report = run(child, step("dynamic", BufferRef("y"), i32(size), shared_bytes=size, block=32))
    assert report.status == "ok", report.text
    assert read(child, "y").view(np.int32)[0] == 7


def test_too_much_shared_memory_is_said(child: Any) -> None:
    report = run(child, step("dynamic", BufferRef("y"), i32(300_000), shared_bytes=300_000))
    assert report.status == "launch_error"
    assert "300000 bytes" in report.text


def test_a_cluster(child: Any) -> None:
    report = run(child, step("clustered", BufferRef("y"), grid=8, block=32, cluster=(2, 1, 1)))
    assert report.status == "ok", report.text
    assert read(child, "y").view(np.int32)[:8].tolist() == [1, 0, 3, 2, 5, 4, 7, 6]


def test_a_cooperative_grid(child: Any, device: CudaDevice) -> None:
    child.put("x", np.ones(10_000, np.int32).view(np.uint8))
    steps = (
        MemsetStep("z", 0, 4096),
        step("grid_sum", BufferRef("x"), BufferRef("z"), BufferRef("y"), i32(10_000), grid=device.facts.sm_count,
             block=128, cooperative=True),
    )  # fmt: skip
    report = run(child, *steps)
    assert report.status == "ok", report.text
    assert read(child, "y").view(np.int32)[0] == 10_000


def test_a_tensor_map(child: Any) -> None:
    x = np.arange(16 * 64, dtype=np.float32)
    child.put("x", x.view(np.uint8))
    tensor_map = TensorMapValue(
        "x", "float32", (64, 16), (256,), (16, 16), (1, 1), "none", "none", "128B", "zero"
    )
    report = run(child, step("tma_copy", tensor_map, BufferRef("y"), grid=4, block=64))
    assert report.status == "ok", report.text
    assert np.array_equal(read(child, "y").view(np.float32)[: 16 * 64], x)


def test_programmatic_dependent_launch(child: Any) -> None:
    child.put("x", np.arange(32, dtype=np.float32).view(np.uint8))
    first = step("scale", BufferRef("x"), BufferRef("z"), i32(32), ScalarValue("float32", 3.0), block=32)
    second = step("wait_for", BufferRef("z"), BufferRef("y"), block=32, pdl=True)
    report = run(child, first, second)
    assert report.status == "ok", report.text
    assert np.array_equal(read(child, "y").view(np.float32)[:32], 3 * np.arange(32) + 1)


def test_an_illegal_address_ends_the_child_with_words(child: Any) -> None:
    report = run(child, step("wild", BufferRef("y")))
    assert (report.status, report.child_dead) == ("launch_error", True)
    assert "illegal" in report.text.lower()
    assert run(child, MemsetStep("y", 0, 16)).child_dead


def test_an_endless_kernel_is_a_timeout(child: Any) -> None:
    report = run(child, MemsetStep("y", 0, 4), step("endless", BufferRef("y")), timeout=2.0)
    assert (report.status, report.child_dead) == ("timeout", True)


def test_out_of_memory_is_its_own_status(child: Any) -> None:
    assert child.allocate([BufferSpec("huge", 1 << 45)]).status == "out_of_memory"


def test_guards_and_live_views(child: Any) -> None:
    guards = child.guards("z").copy()
    assert guards.shape[0] == 2 and np.unique(to_host(guards)).size > 100, "not guessable"
    past = step("scale", BufferRef("x"), BufferRef("z", 4096), i32(1), ScalarValue("float32", 1.0))
    child.put("x", np.full(1 << 18, 3.0, np.float32).view(np.uint8))
    assert run(child, past).status == "ok"
    changed = to_host(child.guards("z") != guards)
    assert not changed[0].any() and changed[1, :4].any() and not changed[1, 4:].any()


def test_an_emptied_process_is_lent_again_with_nothing_in_it(
    device: CudaDevice, report: CompileReport, tmp_path: Path
) -> None:
    one = device.borrow_child(tmp_path)
    assert one.load("candidate", report, PLAN).status == "ok"
    assert one.allocate([BufferSpec("y", 1 << 16)]).status == "ok"
    assert run(one, step("counts", BufferRef("y"))).status == "ok"
    pid = one._process.pid
    one.close()
    two = device.borrow_child(tmp_path)
    assert two._process.pid == pid
    assert two.load("candidate", report, PLAN).status == "ok"
    assert two.allocate([BufferSpec("y", 1 << 16)]).status == "ok"
    assert run(two, step("counts", BufferRef("y"))).status == "ok"
    assert read(two, "y").view(np.int32)[0] == 1, "module variables begin anew"
    two.close()
    three = device.start_child(tmp_path)
    three.load("candidate", report, PLAN)
    assert three._process.pid != pid
    three.close()


def test_times_are_of_the_kernel_and_not_of_the_host(child: Any) -> None:
    one = step(
        "scale",
        BufferRef("x"),
        BufferRef("y"),
        i32(1 << 18),
        ScalarValue("float32", 2.0),
        grid=1024,
        block=256,
    )
    report = child.time("candidate", [Launch((one,))] * 20, True, 20.0)
    assert report.status == "ok", report.text
    assert len(report.samples_us) + report.voided == 20
    assert report.voided <= 2
    assert 1.0 < float(np.median(report.samples_us)) < 30.0
    assert report.clock_mhz is not None and 300 < report.clock_mhz < 2500


def test_a_changed_module_variable_is_counted(child: Any) -> None:
    assert child.changed_globals("candidate") == 0
    assert run(child, step("counts", BufferRef("y"))).status == "ok"
    assert child.changed_globals("candidate") > 0
