"""benchmark.csv as columns: by the header's names, whole rows only, absent numbers NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from kda_tui.record.bench_table import BenchColumns
from kda_tui.record.projections import CSV_HEADER, benchmark_row
from kda_tui.record.snapshot import BenchTable, Finding


def table_of(lines: Sequence[bytes], batch: int = 1000) -> tuple[BenchTable, list[Finding]]:
    found: list[Finding] = []
    columns = BenchColumns("benchmark.csv", found.append)
    numbered = [(0, number, line) for number, line in enumerate(lines, 1)]
    for at in range(0, len(numbered), batch):
        columns.take(numbered[at : at + batch])
    table = columns.table()
    assert table is not None
    return table, found


def row(n: int, **cells: object) -> bytes:
    line = {
        "seq": n,
        "t": "2026-01-01T00:00:00.000Z",
        "run": "r001",
        "claim": f"r001-{n}",
        "attempt": 1,
        "cand": f"c{n:04d}",
    }
    return benchmark_row(
        line, {"workload": "w", "arm": "candidate", "median_us": 1.5 * n, "admissible": True, **cells}
    )


def test_cells_of_a_row() -> None:
    table, found = table_of([CSV_HEADER, row(3, ratio=1.25, admissible=False), row(4, min_us=None)])
    assert (table.rows, found) == (2, [])
    assert [table.names[i] for i in table.candidate] == ["c0003", "c0004"]
    assert [table.names[i] for i in table.eval] == ["r001-3", "r001-4"]
    assert list(table.median_us) == [4.5, 6.0]
    assert (table.ratio[0], list(table.seq), list(table.admissible)) == (1.25, [3, 4], [0, 1])
    assert math.isnan(table.min_us[1])
    assert math.isnan(table.ratio[1])


def test_the_header_decides_where_a_column_is() -> None:
    table, found = table_of([b"extra,median_us,workload,candidate,end", b'x,2.5,"a, b",c1,.', b"y,,w,c2,."])
    assert (table.rows, table.names[table.workload[0]], table.median_us[0]) == (2, "a, b", 2.5)
    assert math.isnan(table.median_us[1])
    assert list(table.admissible) == [-1, -1]
    assert [f.seen for f in found] == ["columns extra"]


def test_rows_that_are_not_whole_are_named_and_left_out() -> None:
    whole = row(1)
    cut = whole[:40]
    unended = whole[:-1] + b"x"
    quoted = whole.replace(b"w", b'"w', 1)
    table, found = table_of([CSV_HEADER, cut, whole, unended, quoted, row(2)])
    assert list(table.median_us) == [1.5, 3.0]
    assert [(f.line, f.seen.split(":")[0]) for f in found] == [
        (2, "5 cells of 29"),
        (4, "a row without its end"),
        (5, "an open quote"),
    ]


def test_what_is_no_number_is_left_empty_and_named() -> None:
    table, found = table_of(
        [CSV_HEADER, row(1), row(2, ratio="n/a"), row(3, ratio="inf"), row(4, ratio=math.nan)]
    )
    assert [math.isnan(x) for x in table.ratio] == [True] * 4
    assert [(f.line, f.seen) for f in found] == [(3, "ratio is 'n/a'"), (4, "ratio is infinite")]


def test_the_same_table_until_rows_come_and_old_ones_stay() -> None:
    columns = BenchColumns("benchmark.csv", lambda finding: None)
    columns.take([(0, 1, CSV_HEADER), (0, 2, row(1))])
    first = columns.table()
    assert columns.table() is first
    columns.take([(0, 3, row(2))])
    second = columns.table()
    assert first is not None
    assert second is not None
    assert (first.rows, second.rows) == (1, 2)
    assert second.median_us is first.median_us


CELL = st.one_of(
    st.sampled_from(
        [
            b"",
            b".",
            b'"',
            b'""',
            b'"a,b"',
            b"1.5",
            b"nan",
            b"inf",
            b"1e999",
            b"-1",
            b"1_0",
            b"\xff",
            b"\0",
            b"true",
        ]
    ),
    st.binary(max_size=4).map(lambda b: b.replace(b"\n", b"")),
)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(
        st.one_of(st.lists(CELL, max_size=31).map(b",".join), st.integers(1, 9).map(row)), max_size=12
    ),
    batch=st.integers(1, 5),
)
def test_any_bytes_in_any_batches(rows: list[bytes], batch: int) -> None:
    lines = [CSV_HEADER, *(line for line in rows if line)]
    table, found = table_of(lines, batch)
    whole, found_whole = table_of(lines)
    assert table.rows == whole.rows
    assert sorted(found, key=str) == sorted(found_whole, key=str)
    assert not any(math.isinf(x) for x in table.median_us)
    left_out = {f.line for f in found if f.done == "not in the table"}
    assert table.rows == len(lines) - 1 - len(left_out)
