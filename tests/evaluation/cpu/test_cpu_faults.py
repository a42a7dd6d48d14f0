"""What a kernel does wrong ends in a report: never in a dead judge, never in a wait without end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cpu_candidates import Loaded, i32, load, plan_for

from kda_tui.evaluation.devices.cpu.device import CpuDevice
from kda_tui.evaluation.devices.cpu.store import Store
from kda_tui.evaluation.devices.interface import BufferSpec
from kda_tui.evaluation.verdict import CompileReport
from kda_tui.record.contract import Contract

FAULTS = """
__global__ void past(float* y, int by) { if (threadIdx.x == 3) y[by] = 1.0f; }
__global__ void forever(volatile int* y) { while (y[0] == 0) {} }
__global__ void divide(int* y) { y[1] = y[0] / y[2]; }
__global__ void trap(int* y) { if (threadIdx.x == 2) __trap(); }
__global__ void deep(int* y, int n) {
    volatile char room[100000];
    for (int i = 0; i < n; i += 1000) room[i] = i;
    if (n > 0) y[0] += room[n / 2];
}
__device__ __noinline__ int below(int n, volatile int* above) {
    volatile int room[100];
    room[n % 100] = above[n % 7];
    return n == 0 ? 0 : below(n - 1, room) + room[n % 100];
}
__global__ void recursive(int* y, int n) { y[1] = below(n, y); }
__global__ void late(float* y) { if (threadIdx.x) __syncthreads(); y[threadIdx.x] = 1; }
"""
NAMES = ("past", "forever", "divide", "trap", "deep", "recursive", "late")


@pytest.fixture
def fresh(load_file: Callable[..., Loaded]) -> Loaded:
    return load_file(FAULTS, *NAMES)


def test_a_write_just_past_the_output_is_in_the_guard_band(fresh: Loaded) -> None:
    for offset in (-1, 16):
        assert fresh.child.allocate([BufferSpec("y", 64)]).status == "ok"
        before = fresh.child.guards("y")
        assert before.size >= 2 * 4096 and len(set(before.tolist())) > 100
        launch = fresh.launch("past", 1, 32, "y", i32(offset))
        assert fresh.child.run("candidate", [launch], 10).status == "ok"
        changed = np.flatnonzero(before != fresh.child.guards("y"))
        assert 0 < changed.size <= 4
        fresh.child.release()


def test_a_wild_write_names_thread_and_buffer(fresh: Loaded) -> None:
    report = fresh.run("past", 2, 32, np.zeros(16, np.float32), i32(4000))
    assert (report.status, report.child_dead) == ("launch_error", True)
    assert report.text.startswith("past, thread (3, 0, 0) of block (")
    assert "SIGSEGV: out of bounds, 15936 bytes past the end of buffer b0" in report.text


def test_without_a_guard_the_first_byte_past_the_end_is_found(fresh: Loaded) -> None:
    fresh.child.allocate([BufferSpec("y", 64, align=4, guard=0)])
    report = fresh.child.run("candidate", [fresh.launch("past", 1, 32, "y", i32(16))], 10)
    assert "0 bytes past the end of buffer y" in report.text


def test_a_kernel_that_never_ends(fresh: Loaded) -> None:
    begin = time.monotonic()
    report = fresh.run("forever", 1, 1, np.zeros(1, np.int32), timeout_s=0.5)
    assert (report.status, report.child_dead) == ("timeout", True)
    assert time.monotonic() - begin < 10
    assert not Path(f"/proc/{fresh.child.pid}/task").exists()
    assert fresh.child.run("candidate", [], 1).status == "timeout"  # a dead child stays dead, and says so


@pytest.mark.parametrize(
    ("kernel", "arguments", "words"),
    [
        ("divide", [np.array([1, 0, 0], np.int32)], "integer division by zero"),
        ("trap", [np.zeros(4, np.int32)], "trap, thread (2, 0, 0) of block (0, 0, 0): __trap()"),
        ("recursive", [np.zeros(8, np.int32), i32(10_000_000)], "more than 256 KiB of local memory"),
    ],
)
def test_faults_in_words(fresh: Loaded, kernel: str, arguments: list[object], words: str) -> None:
    report = fresh.run(kernel, 1, 4, *arguments)
    assert (report.status, report.child_dead) == ("launch_error", True)
    assert words in report.text


def test_large_local_arrays_work(fresh: Loaded) -> None:
    y = np.zeros(1, np.int32)
    fresh.ok("deep", 3, 1, y, i32(100_000))


def test_a_thread_that_ends_is_not_waited_for_at_the_barrier(fresh: Loaded) -> None:
    y = np.zeros(40, np.float32)
    fresh.ok("late", 1, 40, y)
    assert (y == 1).all()


def test_more_buffers_than_memory(fresh: Loaded) -> None:
    report = fresh.child.allocate([BufferSpec("huge", 1 << 44)])
    assert report.status == "out_of_memory"
    assert not report.child_dead


def hostile(device: CpuDevice, contract: Contract, cache: Path, folder: Path, body: str) -> Loaded:
    """A child with a program that no lint and no symbol check has seen."""
    folder.mkdir()
    (folder / "kernel.cu").write_text("__global__ void attack(float* y) { y[0] = 1; }")
    loaded = load(device, contract, cache, folder, ["attack"])
    loaded.child.close()
    source = folder / "attack.cpp"
    source.write_text(
        textwrap.dedent(f"""
        #include <kda_cpu.hpp>
        extern "C" {{
        int fork();
        int setsid();
        long write(int, const void*, unsigned long);
        void* malloc(unsigned long);
        void* memset(void*, int, unsigned long);
        void _exit(int);
        int open(const char*, int, ...);
        }}
        static void attack(float* y) {{ {body} }}
        static constexpr char* (*none)() = nullptr;
        extern "C" {{
        KDA_RUNTIME extern const kda::Kernel kda_kernels[];
        const kda::Kernel kda_kernels[] = {{KDA_KERNEL("attack", attack), {{nullptr, nullptr, 0, nullptr}}}};
        KDA_RUNTIME char* (*kda_dynamic_shared_of())() {{ return none; }}
        }}
        """)
    )
    shim = Path(sys.modules[CpuDevice.__module__].__file__ or "").parent / "shim"
    call = [*device.compiler.command, *device.compiler.options(), "-I", str(shim), "-shared", str(source)]
    subprocess.run([*call, "-o", str(folder / "attack.so")], check=True, capture_output=True)
    stored = Store(cache).put("attack" + folder.name, (folder / "attack.so").read_bytes(), {})
    report = CompileReport(True, binaries={"kernel": str(stored.path)})
    child = device.start_child(folder)
    assert child.load("candidate", report, plan_for(["attack"])).status == "ok"
    return Loaded(child)


ATTACKS = {
    "flood": ("for (;;) (void)!write(1, y, 1 << 16);", ("launch_error",)),
    "fork": ("for (;;) if (fork() == 0) setsid();", ("timeout",)),
    "memory": ("for (;;) *(volatile char*)malloc(1 << 26) = 1;", ("launch_error",)),
    "exit": ("_exit(0);", ("crashed",)),
    "reply": (
        'for (int i = 3; i < 64; i++) (void)!write(i, "\\x02\\0\\0\\0\\0\\0\\0\\0{}", 10); _exit(0);',
        ("crashed", "infrastructure_error"),
    ),
    "file": (
        'int f = open("big", 0101, 0600); for (;;) (void)!write(f, y, 65536);',
        ("crashed", "timeout", "launch_error"),
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_on_the_host_ends_in_a_report(
    name: str, device: CpuDevice, contract: Contract, cache: Path, tmp_path: Path
) -> None:
    body, statuses = ATTACKS[name]
    loaded = hostile(device, contract, cache, tmp_path / name, body)
    owner = Path(f"/proc/{loaded.child.pid}").stat().st_uid
    begin = time.monotonic()
    report = loaded.run("attack", 1, 1, np.zeros(1 << 16, np.uint8), timeout_s=2.0)
    assert report.status in statuses, report
    assert report.child_dead
    loaded.child.close()
    assert time.monotonic() - begin < 20
    assert not alive(loaded.child.pid, owner)
    assert sum(f.stat().st_size for f in (tmp_path / name).rglob("big")) <= 2 << 20


def alive(session: int, owner: int) -> list[int]:
    """Processes of the child's session, and of the user that only the child was (where the judge is root)."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            state, _, _, its_session = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:4]
            mine = int(its_session) == session or (owner != os.getuid() and entry.stat().st_uid == owner)
            if mine and state != "Z":
                found.append(int(entry.name))
    return found


def test_the_child_dies_with_its_judge(device: CpuDevice, cache: Path, tmp_path: Path) -> None:
    program = textwrap.dedent(f"""
        import os, pathlib
        from kda_tui.evaluation.devices.cpu.device import CpuDevice
        child = CpuDevice(threads=1, cache=pathlib.Path({str(cache)!r})).start_child(pathlib.Path({str(tmp_path)!r}))
        print(child.pid, flush=True)
        os._exit(0)
    """)
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    stat = Path(f"/proc/{int(said.stdout)}/stat")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and running(stat):
        time.sleep(0.02)
    assert not running(stat)


def running(stat: Path) -> bool:
    with contextlib.suppress(OSError):
        return stat.read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False
