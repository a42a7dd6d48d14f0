"""Warp collectives: values, widths, masks, and what happens where they cannot meet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from cpu_candidates import Loaded, i32

KERNELS = (
    "shuffles", "shuffle_types", "votes", "reductions", "halves_apart", "short_warp", "left_early",
    "absent_source", "mixed", "deadlock", "outside_mask",
)  # fmt: skip


@pytest.fixture(scope="module")
def program(load_file: Callable[..., Loaded]) -> Loaded:
    return load_file("warps.cu", *KERNELS)


def test_shuffles_with_widths(program: Loaded) -> None:
    x = np.arange(64, dtype=np.int32) * 7 + 1
    out = np.zeros(512, np.int32)
    program.ok("shuffles", 1, 64, x, out)
    lane, base = np.arange(64) % 32, np.arange(64) // 32 * 32
    eight, last = lane // 8 * 8, lane // 8 * 8 + 7
    sources = [
        np.full(64, 5), lane ^ 3, np.where(lane + 4 < 32, lane + 4, lane), np.where(lane >= 4, lane - 4, lane),
        eight + 3, np.where(lane + 2 <= last, lane + 2, lane), np.where(lane - 2 >= eight, lane - 2, lane),
        np.where((lane ^ 12) <= last, lane ^ 12, lane),
    ]  # fmt: skip
    for got, source in zip(out.reshape(8, 64), sources, strict=True):
        assert got.tolist() == x[base + source].tolist()


def test_shuffles_of_wide_types(program: Loaded) -> None:
    d, w, f = np.arange(32) * 1.5, np.arange(32) * 2**40, np.arange(32, dtype=np.float32)
    got = d.copy(), w.copy(), f.copy()
    program.ok("shuffle_types", 1, 32, *got)
    lane = np.arange(32)
    assert got[0].tolist() == d[lane ^ 1].tolist()
    assert got[1].tolist() == w[np.minimum(lane + 1, 31)].tolist()
    assert got[2].tolist() == f[np.maximum(lane - 1, 0)].tolist()


def test_votes_and_matches(program: Loaded) -> None:
    out = np.zeros((4, 32), np.uint32)
    program.ok("votes", 1, 32, out)
    assert set(out[0]) == {0xAAAAAAAA}
    assert set(out[1]) == {3}
    assert out[2].tolist() == [0xFF << (t // 8 * 8) for t in range(32)]
    assert set(out[3]) == {0xFFFFFFFF}


def test_reductions(program: Loaded) -> None:
    out = np.zeros((8, 32), np.int32)
    program.ok("reductions", 1, 32, out)
    v = np.arange(32) - 10
    wanted = [v.sum(), -10, 21, -1, 0xF0 & np.bitwise_and.reduce(0xF0 | np.arange(32)), -1, 0, 3]
    assert [set(row.tolist()) for row in out] == [{int(w)} for w in wanted]


def test_halves_of_a_warp_that_part_and_meet_again(program: Loaded) -> None:
    out = np.zeros(32, np.int32)
    program.ok("halves_apart", 1, 32, out)
    assert out.tolist() == [120 + 20] * 16 + [40] * 16


def test_a_warp_of_twenty_threads(program: Loaded) -> None:
    out = np.zeros(20, np.int32)
    program.ok("short_warp", 1, 20, out)
    assert set(out.tolist()) == {190 + 20}


def test_lanes_that_ended_are_not_waited_for(program: Loaded) -> None:
    out = np.zeros(32, np.uint32)
    program.ok("left_early", 1, 32, out)
    assert out.tolist() == [0xFF] * 8 + [0] * 24


def test_the_value_of_an_absent_lane_shows(program: Loaded) -> None:
    out = np.zeros(4, np.uint32)
    program.ok("absent_source", 1, 32, out)
    assert set(out.tolist()) == {0xFFFFFFFF}


def test_collectives_between_block_barriers(program: Loaded) -> None:
    threads, rounds = 256, 7
    out = np.zeros(3 * threads, np.float32)
    program.ok("mixed", 3, threads, out, i32(rounds))
    t = np.arange(threads, dtype=np.float32)
    v = t.copy()
    for _ in range(rounds):
        for o in (16, 8, 4, 2, 1):
            v = v + v[np.arange(threads) ^ o]
        room = v[::32]
        v = room[(np.arange(threads) // 32 + 1) % (threads // 32)] * np.float32(0.001) + t
    assert np.allclose(out.reshape(3, threads), v, rtol=1e-6)


def test_a_divergent_barrier_is_a_deadlock_with_the_thread(load_file: Callable[..., Loaded]) -> None:
    program = load_file("warps.cu", *KERNELS)
    report = program.run("deadlock", 1, 32, np.zeros(32, np.int32))
    assert report.status == "launch_error" and report.child_dead
    assert "deadlock: thread (16, 0, 0) waits in a warp collective" in report.text
    assert "for thread (0, 0, 0)" in report.text


def test_a_mask_without_the_caller(load_file: Callable[..., Loaded]) -> None:
    program = load_file("warps.cu", *KERNELS)
    report = program.run("outside_mask", 1, 32, np.zeros(32, np.int32))
    assert report.status == "launch_error"
    assert "mask leaves out the calling lane" in report.text
