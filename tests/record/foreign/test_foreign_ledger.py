"""Rows to candidates: ids, lineage with ghosts and circles, tables joined by name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kda_tui.record.foreign.best import best_of
from kda_tui.record.foreign.joining import candidates_of, measure_all
from kda_tui.record.foreign.ledger import LedgerRow, nodes_of
from kda_tui.record.foreign.measurements import Measurement, measure
from kda_tui.record.foreign.series import bench_table
from kda_tui.record.foreign.tables import TableRow, read_table
from kda_tui.record.snapshot import Finding


def rows(*bodies: dict[str, Any]) -> list[LedgerRow]:
    return [LedgerRow("candidates.jsonl", number, body) for number, body in enumerate(bodies, 1)]


def table(text: str) -> tuple[list[TableRow], list[Finding]]:
    found: list[Finding] = []
    lines = [(0, number, line.encode()) for number, line in enumerate(text.strip("\n").split("\n"), 1)]
    return read_table("benchmark.csv", lines, found.append), found


# --- lineage -----------------------------------------------------------------------------------------------


def test_rows_of_one_id_are_observations_of_one_candidate() -> None:
    nodes = nodes_of(
        rows({"name": "a", "latency_us": 5}, {"name": "b"}, {"name": "a", "latency_us": 7}), lambda f: None
    )
    candidates, _ = candidates_of(nodes, [])
    assert list(candidates) == ["a", "b"]
    assert candidates["a"].extra["observations"] == ("candidates.jsonl:1", "candidates.jsonl:3")
    assert candidates["a"].time_us is None  # two sizes have no one time
    assert candidates["a"].extra["raw"] == {"name": "a", "latency_us": 7}


def test_parents_may_come_later_be_several_be_unknown_or_be_nothing() -> None:
    found: list[Finding] = []
    bodies = (
        {"id": "a", "parent": "null"},
        {"id": "b", "parents": ["c", "a"]},
        {"id": "c", "parent": "A"},
        {"id": "d", "parent": "baseline:x.py"},
        {"id": "e", "parent": "0123456789abcdef"},
        {"id": "f", "parent": "merged from b and c"},
        {"id": "g", "parent": "g"},
    )
    nodes = nodes_of(rows(*bodies), found.append)
    candidates, _ = candidates_of(nodes, [])
    assert {c.id: c.parents for c in candidates.values()} == {
        "a": (), "b": ("c", "a"), "c": ("a",), "d": ("baseline:x.py",), "e": ("commit 0123456789",), "f": ("b", "c"), "g": (),
    }  # fmt: skip
    assert [(f.line, f.seen) for f in found] == [(7, "g names itself as its parent")]


def test_a_circle_is_cut_at_its_later_row_and_told() -> None:
    found: list[Finding] = []
    nodes = nodes_of(
        rows({"id": "a", "parent": "c"}, {"id": "b", "parent": "a"}, {"id": "c", "parent": "b"}), found.append
    )
    assert {n.id: n.parents for n in nodes.values()} == {"a": ("c",), "b": ("a",), "c": ()}
    (finding,) = found
    assert (finding.line, finding.done) == (3, "c is shown without its parent b")


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 6), st.lists(st.integers(0, 8), max_size=3)), max_size=12))
def test_no_lineage_has_a_circle_and_no_row_is_lost(links: list[tuple[int, list[int]]]) -> None:
    bodies = [{"id": f"n{a}", "parents": [f"n{b}" for b in parents]} for a, parents in links]
    nodes = nodes_of(rows(*bodies), lambda finding: None)
    assert sum(len(node.rows) for node in nodes.values()) == len(bodies)
    done: set[str] = set()
    while len(done) < len(nodes):
        ready = {n.id for n in nodes.values() if n.id not in done and all(p in done for p in n.parents)}
        assert ready  # else what is left is a circle
        done |= ready


def test_a_chain_as_long_as_a_ledger_needs_no_deep_stack() -> None:
    bodies = [{"id": f"n{n}", "parent": f"n{n + 1}"} for n in range(20_000)]
    nodes = nodes_of(rows(*bodies), lambda finding: None)
    assert len(nodes) == 20_000


def test_events_carry_the_chain_and_stand_beside_the_table() -> None:
    bodies = (
        {"id": "v1"},
        {"id": "review", "kind": "review", "parent": "v1"},
        {"id": "v2", "parent": "review"},
    )
    candidates, events = candidates_of(nodes_of(rows(*bodies), lambda f: None), [])
    assert list(candidates) == ["v1", "v2"]
    assert candidates["v2"].parents == ("v1",)
    assert [(e.id, e.parents) for e in events] == [("review", ("v1",))]


def test_a_row_without_an_id_is_kept_and_told() -> None:
    found: list[Finding] = []
    candidates, _ = candidates_of(
        nodes_of(rows({"notes": "?"}, {"candidate": "runs/k_v2.py"}), found.append), []
    )
    assert list(candidates) == ["row-1", "k_v2"]
    assert [f.seen for f in found] == ["a row without an id"]


# --- tables ------------------------------------------------------------------------------------------------


def test_both_arms_kinds_and_units_stay_apart() -> None:
    text = """
case,metric,base_median_us,base_min_us,cand_median_us,speedup_median,candidate_id
s1,sync_wall,10,9,8,1.25,v1
s1,device_ev,4,3,2,2.0,v1
GEOMEAN,geomean_speedup_x,,,,1.58,v1
"""
    read, _ = table(text)
    found: list[Finding] = []
    measurements = [m for row in read for m in measure(row, "", found.append)]
    assert [(m.arm, m.kind, m.value, m.least) for m in measurements] == [
        ("baseline", "sync wall", 10.0, 9.0),
        ("candidate", "sync wall", 8.0, None),
        ("baseline", "device ev", 4.0, 3.0),
        ("candidate", "device ev", 2.0, None),
        ("candidate", "geomean", 1.58, None),
    ]
    assert [m.summary for m in measurements] == [False] * 4 + [True]
    bench = bench_table(measurements)
    assert {bench.names[w] for w in bench.workload} == {"s1 [sync wall]", "s1 [device ev]"}
    assert found == []


def test_a_stated_speedup_far_from_its_own_times_is_told() -> None:
    read, _ = table("case,baseline_us,candidate_us,speedup_x\na,10,5,2.0\nb,10,5,3.0\n")
    found: list[Finding] = []
    for row in read:
        measure(row, "v1", found.append)
    assert [(f.line, f.seen) for f in found] == [(3, "speedup 3, but its times give 2")]


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"valid": "False"}, "valid is false"),
        ({"idle_after": "False"}, "idle_after is false"),
        ({"idle_after_util": "34"}, "idle_after_util: the GPU was 34 % in use"),
        ({"gpu_idle_before": "util=55% mem=40MiB"}, "gpu_idle_before: the GPU was 55 % in use"),
        ({"candidate": "r1-INVALIDATED"}, "the candidate is called r1-INVALIDATED"),
        ({"correctness_result": "FAIL"}, "correctness_result: FAIL"),
    ],
)
def test_rows_that_say_themselves_that_they_may_not_count(cells: dict[str, str], why: str) -> None:
    (found,) = measure(TableRow("b.csv", 2, {"latency_us": "5", **cells}), "v1", lambda f: None)
    assert (found.admissible, found.why) == (False, why)


def test_headers_again_comments_ragged_rows_and_quotes_over_lines() -> None:
    read, found = table(
        '# notes\ntime,candidate,latency_us\n1,a,5,extra\n2,b\ncandidate,cycles,notes\nc,7,"two\nlines"\n'
    )
    assert [dict(r.cells) for r in read] == [
        {"time": "1", "candidate": "a", "latency_us": "5", "column 4": "extra"},
        {"time": "2", "candidate": "b"},
        {"candidate": "c", "cycles": "7", "notes": "two\nlines"},
    ]
    assert [(f.line, f.seen) for f in found] == [
        (3, "4 cells of 3"), (4, "2 cells of 3"), (5, "another header, 3 columns"), (1, "1 comment lines"),
    ]  # fmt: skip


@settings(max_examples=150)
@given(st.lists(st.text('ab1,."# \t', max_size=12), max_size=10))
def test_no_table_line_is_lost(lines: list[str]) -> None:
    found: list[Finding] = []
    numbered = [(0, n, line.encode()) for n, line in enumerate(lines, 1)]
    read = read_table("b.csv", numbered, found.append)
    shown = {r.line for r in read}
    for row in read:
        measure(row, "x", found.append)
    for number, line in enumerate(lines, 1):
        is_content = line.strip() and not line.lstrip().startswith("#")
        if is_content and '"' not in "".join(lines):
            assert number in shown or number == 1 or "candidate" in line


# --- the best ------------------------------------------------------------------------------------------------


def best(*bodies: dict[str, Any], text: str = "") -> str:
    nodes = nodes_of(rows(*bodies), lambda f: None)
    read = {"benchmark.csv": table(text)[0]} if text else {}
    measurements: list[Measurement] = measure_all(read, nodes, lambda f: None)
    candidates, events = candidates_of(nodes, measurements)
    found = best_of(candidates, events, measurements)
    return f"{found.cand} {found.ratio} {found.stated}" if found else ""


def test_the_last_promoted_counts_and_not_the_largest_number() -> None:
    bodies = (
        {"id": "a", "status": "promoted", "speedup": 1.5},
        {"id": "b", "status": "promoted", "speedup": 1.2},
    )
    assert best(*bodies, {"id": "c", "status": "rejected", "speedup": 9.0}) == "b 1.2 candidates.jsonl:2"


def test_a_superseded_or_incorrect_promotion_does_not_count() -> None:
    bodies = (
        {"id": "a", "status": "promoted", "speedup": 1.1},
        {"id": "b", "status": "promoted", "speedup": 1.4, "superseded_by": "a"},
        {"id": "c", "status": "promoted", "speedup": 2.0, "passed": False},
    )
    assert best(*bodies) == "a 1.1 candidates.jsonl:1"
    assert best(*bodies, {"id": "d", "supersedes": "a"}) == ""


def test_without_a_promotion_it_is_what_was_kept_last() -> None:
    bodies = (
        {"id": "a", "status": "KEEP"},
        {"id": "b", "status": "kept", "result": {"in_tree_geomean": 1.1}},
    )
    assert (
        best(*bodies, {"id": "c", "status": "measured", "speedup": 3})
        == "b 1.1 candidates.jsonl:2 result.in_tree_geomean"
    )


def test_a_decision_promotes_what_it_follows_and_its_evidence_names_the_run() -> None:
    bodies = (
        {"id": "v1", "evidence": "benchmark.csv, tag r7-final (idle)"},
        {"id": "final", "kind": "decision", "parent": "v1", "status": "promoted"},
    )
    text = "case,tag,impl,median_us\na,r7-final,baseline,6\na,r7-final,candidate,4\na,r6,candidate,1\n"
    where = "benchmark.csv: line 3, computed from both arms, of r7-final, which its row names"
    assert best(*bodies, text=text) == f"v1 1.5 {where}"


def test_an_export_has_the_number_of_what_it_exports() -> None:
    bodies = (
        {"id": "v1", "status": "measured", "speedup": 1.3},
        {"id": "export", "status": "promoted", "parent": "v1"},
    )
    assert best(*bodies) == "export 1.3 candidates.jsonl:1, of its ancestor v1"


def test_rows_of_both_arms_give_a_speedup_of_one_run_kind_and_unit() -> None:
    text = """
case,run_id,impl,mode,S,median_us
a,r1,baseline,wall,64,10
a,r1,candidate,wall,64,5
a,r2,candidate,wall,64,8
a,r1,candidate,device,64,1
"""
    found = measure_all({"benchmark.csv": table(text)[0]}, {}, lambda f: None)
    speedups = [(m.of, m.kind, m.speedup, m.paired) for m in found if m.arm == "candidate"]
    assert speedups == [("r1", "wall", 2.0, True), ("r2", "wall", 1.25, True), ("r1", "device", None, False)]
    assert {m.unit.name for m in found} == {"us"}  # S is a size, not seconds


def test_numbers_inside_ledger_rows_are_measurements_of_a_rate_and_a_time() -> None:
    def results(us: float, gbs: float) -> dict[str, Any]:
        return {
            "benchmark": {"results": [{"shape": [8, 8], "candidate_us_median": us, "bandwidth_gbs": gbs}]}
        }

    nodes = nodes_of(
        rows({"id": "baseline", **results(4, 10)}, {"id": "v1", **results(2, 20)}), lambda f: None
    )
    found = [m for m in measure_all({}, nodes, lambda f: None) if m.cand == "v1"]
    assert [(m.workload, m.unit.name, m.speedup) for m in found] == [("8x8", "us", 2.0), ("8x8", "GB/s", 2.0)]
    assert [bench_table(found).names[w] for w in bench_table(found).workload] == ["8x8"]


def test_what_has_no_time_is_drawn_in_its_own_unit() -> None:
    found = measure_all(
        {"benchmark.csv": table("candidate,cycles\na,2167\nb,invalid\n")[0]}, {}, lambda f: None
    )
    bench = bench_table(found)
    assert [(bench.names[w], v) for w, v in zip(bench.workload, bench.median_us, strict=True)] == [
        ("all [cycles]", 2167.0)
    ]


def test_an_arbiters_pass_promotes_what_it_follows_and_only_admissible_rows_count() -> None:
    bodies = (
        {"id": "v1", "status": "measured"},
        {"id": "arb", "kind": "promotion-arbiter", "parent": "v1", "status": "PASS"},
    )
    text = "case,candidate,base_us,candidate_us,speedup,valid\na,v1,2,1,2.0,True\nb,v1,8,1,8.0,True\nb,v1,90,1,90.0,False\n"
    assert best(*bodies, text=text) == "v1 4.0 benchmark.csv: geometric mean of 2 workloads"
