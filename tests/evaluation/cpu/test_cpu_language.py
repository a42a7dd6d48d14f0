"""Threads, blocks, shared memory and barriers behave as CUDA says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from cpu_candidates import Loaded, i32

KERNELS = (
    "transpose<16>", "places", "dynamic_sum", "alignments", "vectors", "barriers", "constants", "spin", "chain",
    "missing_sync", "forward_only",
)  # fmt: skip


@pytest.fixture(scope="module")
def program(load_file: Callable[..., Loaded]) -> Loaded:
    return load_file("language.cu", *KERNELS)


def test_static_two_dimensional_shared_memory_in_a_template(program: Loaded) -> None:
    x = np.random.default_rng(1).standard_normal((64, 64), dtype=np.float32)
    y = np.zeros_like(x)
    program.ok("transpose<16>", (4, 4), (16, 16), x, y, i32(64))
    assert (y == x.T).all()


def test_every_thread_of_a_three_dimensional_grid_runs_once_in_its_place(program: Loaded) -> None:
    out = np.full(2 * 3 * 2 * 4 * 3 * 2, -1, np.int32)
    program.ok("places", (2, 3, 2), (4, 3, 2), out)
    thread = [z * 100 + y * 10 + x for z in range(2) for y in range(3) for x in range(4)]
    assert out.tolist() == [block * 1000 + t for block in range(12) for t in thread]


def test_dynamic_shared_memory_is_one_memory_under_all_its_names(program: Loaded) -> None:
    x = np.arange(4 * 256, dtype=np.float32)
    y = np.zeros(4, np.float32)
    program.ok("dynamic_sum", 4, 256, x, y, shared=1024)
    assert y.tolist() == (2 * x.reshape(4, 256).sum(1)).tolist()


def test_writing_past_the_dynamic_shared_memory_is_found(load_file: Callable[..., Loaded]) -> None:
    program = load_file("language.cu", *KERNELS)
    report = program.run(
        "dynamic_sum", 1, 256, np.zeros(256, np.float32), np.zeros(1, np.float32), shared=1020
    )
    assert report.status == "launch_error"
    assert "past the end of the dynamic shared memory" in report.text


def test_alignment_and_size_of_types(program: Loaded) -> None:
    out = np.full(6, -1, np.int32)
    program.ok("alignments", 1, 1, out)
    assert out.tolist() == [0, 1616, 1204, 404, 1616, 0]


def test_vector_loads_and_stores(program: Loaded) -> None:
    x = np.arange(128, dtype=np.float32).reshape(32, 4)
    y = np.zeros_like(x)
    program.ok("vectors", 1, 32, x, y)
    assert (y == np.stack([x[:, 1], x[:, 0], x[:, 3] * 3, x[:, 2] * 4], 1)).all()


def test_counting_barriers_and_threads_that_leave(program: Loaded) -> None:
    out = np.zeros(2, np.int32)
    program.ok("barriers", 1, 100, out)
    assert out.tolist() == [34, 1100]


def test_constant_memory_and_changed_globals(program: Loaded) -> None:
    out = np.zeros(8, np.float32)
    assert program.child.changed_globals("candidate", reset=True) == 0
    program.ok("constants", 2, 8, out)
    assert out.tolist() == [1, 10, 100, 1000] * 2
    assert program.child.changed_globals("candidate", reset=True) == 1
    assert program.child.changed_globals("candidate") == 0


def test_threads_that_wait_for_each_other_by_sleeping(program: Loaded) -> None:
    out = np.zeros(64, np.int32)
    program.ok("spin", 1, 64, np.zeros(1, np.int32), out)
    assert out.tolist() == list(range(63, -1, -1))


def test_blocks_that_wait_for_earlier_blocks(program: Loaded) -> None:
    flags = np.zeros(300, np.int32)
    program.ok("chain", 300, 1, flags)
    assert flags.tolist() == list(range(1, 301))


def test_a_missing_barrier_gives_a_wrong_result(program: Loaded) -> None:
    x = np.arange(1, 65, dtype=np.int32)
    y = np.zeros_like(x)
    program.ok("missing_sync", 1, 64, x, y)
    assert (y != x[::-1]).any()


def test_a_race_that_is_right_in_rising_order_is_wrong_in_falling_order(program: Loaded) -> None:
    x = np.arange(1, 65, dtype=np.int32)
    results = []
    for _ in range(2):
        y = np.zeros_like(x)
        program.ok("forward_only", 1, 64, x, y)
        results.append(y.tolist())
    assert results[0] != results[1]
