"""The arithmetic of launch plans: what it computes, what it refuses, and that it never does anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kda_tui.expressions import ExpressionError, ceil_div, check, evaluate, names_in

NAMES = {"rows": 1000, "cols": 777, "BM": 128, "zero": 0, "eps": 1e-6, "two": 2.0, "KIND": "fast"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (7, 7),
        ("7", 7),
        ("-7 // 2", -4),
        ("-7 % 4", 1),
        ("rows * (cols + 1)", 778000),
        ("ceil_div(rows, BM)", 8),
        ("min(rows, cols, 5) + max(1, 2)", 7),
        ("rows >= 1000", 1),
        ("1 < 2 < 2", 0),
        ("(rows > 1) * 3", 3),
        ("KIND == 'fast'", 1),
        ('KIND != "fast"', 0),
        ("eps < 1", 1),
        ("two * 3", 6),
        ("  BM\n", 128),
    ],
)
def test_what_an_expression_is_worth(text: int | str, value: int) -> None:
    assert evaluate(text, NAMES) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not an expression"),
        ("rows +", "is not an expression"),
        ("rows / 2", "has something else"),
        ("2 ** 9", "has something else"),
        ("rows if rows else 1", "has something else"),
        ("rows and 1", "has something else"),
        ("rows.real", "has something else"),
        ("[1][0]", "has something else"),
        ("(lambda: 1)()", "calls something else"),
        ("__import__('os')", "calls something else"),
        ("min(1, *rows)", "calls something else"),
        ("max(1)", "2 or more"),
        ("ceil_div(1, 2, 3)", "which takes 2"),
        ("rows in 3", "has something else"),
        ("1.5", "has 1.5"),
        ("True", "has True"),
        ("rows // zero", "divides by zero"),
        ("ceil_div(rows, zero)", "divides by zero"),
        ("eps * 2", "whole numbers"),
        ("KIND", "needs numbers"),
        ("KIND < 2", "compares a text with a number"),
        ("9223372036854775808", "63 bits"),
        ("rows * 9223372036854775807", "63 bits"),
        ("row", "uses row; known here are BM, KIND, cols"),
        ("min", "uses min"),
        ("1" * 1001, "longer than"),
        ("(" * 400 + "1" + ")" * 400, "is not an expression"),
        ("-" * 200 + "1", "nested"),
        ("rows\x00", "is not an expression"),
        ("'\\d'", "needs numbers"),
    ],
)
def test_a_refusal_names_the_expression_and_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, NAMES)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_numbers_that_are_no_integers_are_refused(value: float) -> None:
    for text in ("x", "x + 1", "min(x, 1)", "-x"):
        with pytest.raises(ExpressionError):
            evaluate(text, {"x": value})


def test_checking_needs_no_values() -> None:
    check("ceil_div(rows, BM) * sm_count", ["rows", "BM", "sm_count"])
    with pytest.raises(ExpressionError, match="uses BN; known here are BM, rows"):
        check("rows * BN", ["rows", "BM"])
    with pytest.raises(ExpressionError, match="something else"):
        check("rows.real", ["rows"])
    assert names_in("max(max_rows, rows) + rows") == {"max_rows", "rows"}


def test_the_terminal_is_safe_from_an_expression() -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate("\x1b[2Jrows +", NAMES)
    assert "\x1b" not in str(caught.value)


EXPRESSIONS = st.recursive(
    st.integers(0, 99).map(str) | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.tuples(
            inner, st.sampled_from(["+", "-", "*", "//", "%", "<", "<=", "==", "!=", ">", ">="]), inner
        ).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
        | inner.map(lambda e: f"(-{e})")
        | st.tuples(st.sampled_from(["min", "max", "ceil_div"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        )
    ),
    max_leaves=8,
)


@given(text=EXPRESSIONS, a=st.integers(-1000, 1000), b=st.integers(-1000, 1000))
def test_it_computes_what_python_computes(text: str, a: int, b: int) -> None:
    names = {"a": a, "b": b}
    try:
        expected = int(
            eval(text, {"__builtins__": {}}, {**names, "min": min, "max": max, "ceil_div": ceil_div})
        )
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="divides by zero"):
            evaluate(text, names)
        return
    check(text, names)
    if abs(expected) < 1 << 63:
        try:
            assert evaluate(text, names) == expected
        except ExpressionError as error:
            assert "63 bits" in str(error)


@given(text=st.text(max_size=40) | st.text(alphabet="ab19()+-*/%<>=!,. '\"[]{}:", max_size=40))
def test_rubbish_is_refused_and_never_raises_anything_else(text: str) -> None:
    try:
        evaluate(text, {"a": 1, "b": 2})
    except ExpressionError as error:
        assert "\n" not in str(error)
