"""The pure parts: lines, filters, lineage, sparklines, series, keymap, themes, names."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.record.records import Candidate
from kda_tui.tui import line, words
from kda_tui.tui.actions import ACTIONS, FORBIDDEN_ALONE
from kda_tui.tui.columns import DEFAULT, choose, known
from kda_tui.tui.filter import FilterError, compile_filter
from kda_tui.tui.keymap import build_keymap, keymap_document
from kda_tui.tui.lineage import tree
from kda_tui.tui.panes.benchmarks import candidate_marks, incumbent_line
from kda_tui.tui.screens.workspace import WorkspaceScreen
from kda_tui.tui.series import SeriesBook
from kda_tui.tui.spark import histogram, sparkline
from kda_tui.tui.summary import since
from kda_tui.tui.themes import DEFAULT_THEME, ThemeError, load_themes, parse_theme, theme_folders
from tests.tui.sample import BENCH_ROWS, NOW, at, bench, snapshot

REPOSITORY = Path(__file__).parents[2]
TEXTS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n\t\r"), max_size=60)


# --- lines -------------------------------------------------------------------


@given(TEXTS, st.integers(5, 40))
def test_wrapping_keeps_every_word_and_the_width(text: str, cells: int) -> None:
    whole = line.plain(text)
    rows = line.wrap(whole, cells, 2)
    assert all(line.width(row) <= cells for row in rows)
    joined = "".join(line.text_of(row) for row in rows)
    assert joined.replace(" ", "") == line.text_of(whole).replace(" ", "")


@given(TEXTS, st.integers(0, 40))
def test_cropping_never_exceeds_the_width(text: str, cells: int) -> None:
    assert line.width(line.crop(line.plain(text), cells)) <= cells
    assert line.cell_len(line.fit(text, cells)) == cells


def test_spread_keeps_both_edges() -> None:
    got = line.text_of(line.spread(line.plain("left " * 10), line.plain("right"), 20))
    assert len(got) == 20 and got.startswith("left") and got.endswith(" right")


# --- words -------------------------------------------------------------------


@pytest.mark.parametrize(("minutes", "text"), [(0.5, "now"), (14, "14m"), (125, "2h"), (60 * 24 * 12, "12d")])
def test_ages_are_coarse(minutes: float, text: str) -> None:
    assert words.age(at(minutes), NOW) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, 0.0])
def test_numbers_that_are_none_say_so(value: float | None) -> None:
    for say in (words.micros, words.ratio, words.share, words.number, words.count, words.duration):
        assert say(value) in ("-", "nan", "inf", "0", "0.00", "0.0", "0%", "0.00 s")


def test_a_revoked_opponent_makes_a_verdict_stale() -> None:
    shown = snapshot()
    text = line.text_of(words.comparison(shown.candidates["c0029"], shown))
    assert text == "0.98 STALE c0022"


# --- filter, lineage ---------------------------------------------------------


@pytest.mark.parametrize(("text", "expected"), [
    ("faster", ["c0022", "c0031", "c0039"]), ("!faster reg>=40", ["c0029", "c0037", "c0042"]), ("ratio>1.2", ["c0031", "c0039"]),
    ("decision=vetoed", ["c0029"]), ("parent=c0031 us<70", ["c0039"]), ("floor>=71", ["c0039"]), ("item=P3 !incorrect", ["c0039"]), ("", 6),
])  # fmt: skip
def test_filter(text: str, expected: list[str] | int) -> None:
    found = [c.id for c in snapshot().candidates.values() if compile_filter(text)(c)]
    assert (len(found) if isinstance(expected, int) else found) == expected


@pytest.mark.parametrize("text", ["reg<x", "colour=red", "us>", "ratio<="])
def test_a_filter_that_cannot_be_read_names_the_term(text: str) -> None:
    with pytest.raises(FilterError, match=text[:3]):
        compile_filter(text)


@given(TEXTS)
def test_no_filter_text_crashes(text: str) -> None:
    try:
        test = compile_filter(text)
    except FilterError:
        return
    for cand in snapshot().candidates.values():
        assert test(cand) in (True, False)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), max_size=12))
def test_a_tree_has_every_candidate_once_whatever_the_parents(edges: list[tuple[int, int]]) -> None:
    cands = {f"c{n}": Candidate(f"c{n}", parents=(f"c{p}",)) for n, p in edges}
    assert sorted(cand for cand, _ in tree(cands)) == sorted(cands)


# --- benchmarks --------------------------------------------------------------


@pytest.mark.parametrize("values", [[math.nan], [math.inf, 1.0], [], [2.0] * 5, [1.0, math.nan, 3.0]])
def test_sparklines_and_histograms_survive_what_is_not_finite(values: list[float]) -> None:
    assert len(sparkline(values, 10)) <= 10
    assert sum(count for _, _, count, _ in histogram(values, 4, 10)) == sum(map(math.isfinite, values))


def test_series_follow_the_incumbent_and_mark_candidates() -> None:
    book = SeriesBook()
    assert book.update(bench(BENCH_ROWS))
    series = book.series["4096x4096"]
    assert incumbent_line(series) == [110.0, 96.1, 96.0, 82.7]
    assert candidate_marks(series, 20) == "+-++"


def test_series_read_only_new_rows_of_a_growing_table() -> None:
    book = SeriesBook()
    whole = bench(BENCH_ROWS)
    book.update(replace(whole, rows=4))
    assert len(book.series["4096x4096"].us) == 2
    assert book.update(whole) and len(book.series["4096x4096"].us) == 4
    assert not book.update(whole)
    assert book.update(None) and book.series == {}


def test_series_of_failed_measurements_have_no_marks() -> None:
    book = SeriesBook()
    book.update(
        bench(
            [
                ("e", "c1", "w", "candidate", math.nan, math.nan),
                ("e", "b", "w", "incumbent", math.inf, math.nan),
            ]
        )
    )
    assert candidate_marks(book.series["w"], 10).strip() == ""


# --- columns -----------------------------------------------------------------


@pytest.mark.parametrize("cells", [58, 70, 80, 120, 200])
def test_columns_fit_and_keep_what_matters(cells: int) -> None:
    chosen = choose(DEFAULT, cells)
    assert sum(width for _, width in chosen) + len(chosen) + 1 <= max(cells, 62)
    assert {"id", "hypothesis", "verdict", "us", "ratio", "decision"} <= {column.id for column, _ in chosen}


def test_unknown_columns_are_reported_and_left_out() -> None:
    names, complaints = known(("id", "colour", "us"))
    assert list(names) == ["id", "us"]
    assert "no column 'colour'" in complaints[0]


# --- keymap ------------------------------------------------------------------


def test_the_shipped_keymap_has_no_clash() -> None:
    assert build_keymap().problems == ()


def test_changing_actions_have_capital_letters_and_nobody_depends_on_eaten_keys() -> None:
    for action in ACTIONS:
        assert action.keys
        assert any(key not in FORBIDDEN_ALONE for key in action.keys), action.id
        capital = [len(key) == 1 and key.isupper() for key in action.keys]
        assert (
            all(capital)
            if action.changes
            else not any(c and k not in "GN" for c, k in zip(capital, action.keys, strict=True))
        )


def test_remaps_apply_by_id_and_clashes_are_reported() -> None:
    keymap = build_keymap({"zoom": "Z_", "find": ["/", "ctrl+s"]})
    found = keymap.action("candidates", "ctrl+s")
    assert found is not None and found.id == "find"
    clash = build_keymap({"tree": "z"})
    assert any("'tree'" in p and "'zoom'" in p for p in clash.problems)


@pytest.mark.parametrize(("remap", "problem"), [
    ({"zom": "z"}, "no such action"), ({"veto": "v"}, "capital letter"), ({"zoom": "Q"}, "capital letters are for"),
    ({"zoom": "ctrl+b"}, "cannot be the only key"), ({"zoom": "f5"}, "cannot be the only key"),
])  # fmt: skip
def test_unusable_remaps_are_reported_and_the_keys_stay(remap: dict[str, str], problem: str) -> None:
    keymap = build_keymap(remap)
    assert problem in keymap.problems[0]
    assert keymap.actions["zoom"].keys == ("z",) and keymap.actions["veto"].keys == ("V",)


def test_every_action_has_a_handler() -> None:
    from kda_tui.tui.app import KdaApp
    from kda_tui.tui.intents import intended
    from kda_tui.tui.panes.candidates import CandidatesPane
    from kda_tui.tui.panes.plan import PlanPane
    from kda_tui.tui.panes.transcript import TranscriptPane
    from kda_tui.tui.screens.detail import DetailScreen
    from kda_tui.tui.screens.runs import RunsScreen

    owners = (WorkspaceScreen, CandidatesPane, PlanPane, TranscriptPane, DetailScreen, RunsScreen, KdaApp)
    for action in ACTIONS:
        known_here = action.id in intended() or action.id.startswith("pane_")
        assert known_here or any(hasattr(owner, f"do_{action.id}") for owner in owners), action.id


def test_the_keymap_document_is_the_registry() -> None:
    assert (REPOSITORY / "docs" / "keymap.md").read_text() == keymap_document()


# --- themes ------------------------------------------------------------------


def test_six_themes_are_shipped_and_say_every_word() -> None:
    looks, failed = load_themes(theme_folders())
    assert failed == [] and len(looks) >= 6 and DEFAULT_THEME in looks
    assert sum(look.ansi for look in looks.values()) == 2
    for look in looks.values():
        assert look.style("good") != look.style("bad")
        assert {"good", "bad", "warn", "cursor", "title_focus", "wait"} <= set(look.styles)


@pytest.mark.parametrize(("text", "problem"), [
    ("[colors", "not TOML"), ("[colors]\nprimary = 'bleu'", "colors.primary: 'bleu' is not a colour"), ("[styles]\n", "colors.primary is missing"),
    ("[colors]\nprimary='red'\n[styles]\ngood='on on'", "styles.good"), ("[colors]\nprimary='red'\n[styles]\nnice='red'", "unknown word"),
    ("[colors]\nprimary='red'\nink='red'", "unknown colour"), ("dark = 3\n[colors]\nprimary='red'", "dark: must be true or false"), ("size = 1", "unknown key"),
])  # fmt: skip
def test_a_wrong_theme_names_file_and_key(text: str, problem: str) -> None:
    with pytest.raises(ThemeError, match=r"mine\.toml") as caught:
        parse_theme(text, "mine.toml")
    assert problem in str(caught.value)


def test_one_wrong_file_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("nonsense")
    (tmp_path / "b.toml").write_text("name = 'b'\n[colors]\nprimary = '#102030'\n")
    looks, failed = load_themes([tmp_path])
    assert list(looks) == ["b"] and "a.toml" in failed[0]


# --- since you left ----------------------------------------------------------


def test_since_you_left_counts_what_happened() -> None:
    assert "2 decisions" in since(snapshot(), NOW - 9 * 3600, NOW)
    assert since(snapshot(), NOW - 30, NOW) == ""
    assert since(snapshot(decisions=(), incumbents=(), evaluations={}), NOW - 9 * 3600, NOW) == ""


def test_no_name_of_ours_hides_one_of_textual() -> None:
    from textual.app import App
    from textual.screen import Screen
    from textual.widget import Widget

    import kda_tui.tui.app as app
    from kda_tui.tui.panes import benchmarks, candidates, contract, hotspots, plan, transcript
    from kda_tui.tui.widgets import rows

    allowed = {
        "app",
        "can_focus_children",
        "render_line",
        "on_mount",
        "compose",
        "on_event",
        "can_focus",
        "theme",
        "notify_style_update",
    }
    for module, base in (
        (app, App),
        (rows, Widget),
        *((m, Widget) for m in (benchmarks, candidates, contract, hotspots, plan, transcript)),
    ):
        for kind in vars(module).values():
            if (
                isinstance(kind, type)
                and issubclass(kind, base | Screen)
                and kind.__module__ == module.__name__
            ):
                ours = {
                    n
                    for n in vars(kind)
                    if not n.startswith("__") and not n.isupper() and not n.startswith("_abc")
                }
                hidden = {
                    n
                    for n in ours & set(dir(base))
                    if not n.startswith("_css") and not n.startswith("_") and n.islower()
                }
                assert hidden <= allowed, (kind, hidden - allowed)


def test_the_screen_imports_nothing_heavy() -> None:
    code = "import sys, kda_tui.tui.app; print([m for m in ('numpy', 'anthropic', 'pycuda', 'plotext', 'ncu_report') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_wiki_is_searched_on_the_screen() -> None:
    from kda_tui.tui.line import text_of
    from kda_tui.tui.pages import wiki_rows

    rows = wiki_rows("bank conflicts swizzle", 80)
    text = "\n".join(text_of(line) for _, line in rows)
    assert "Shared memory swizzles" in text
    assert "float4 tile[8][8]" in text, "code survives as it is"
    ((_, line),) = wiki_rows("zzzz", 80)
    assert "no page of a skill has 'zzzz'" in text_of(line)
