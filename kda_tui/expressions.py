"""The small arithmetic of launch plans and costs: integers, names, ``+ - * // % ( )``, comparisons,
``min``, ``max`` and ``ceil_div``. Nothing else parses, and nothing is executed but this."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from kda_tui.text import UserError, clean_line

MAX_LENGTH = 1000
MAX_DEPTH = 64
MAX_MAGNITUDE = 1 << 63

Number = int | float | str
_Compiled = Callable[[Mapping[str, Number]], Number]

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
ALLOWED = "integers, names, + - * // % ( ), comparisons, min, max, ceil_div"


class ExpressionError(UserError):
    """An expression that does not parse, or has no value."""


def ceil_div(a: int, b: int) -> int:
    """The quotient rounded towards positive infinity."""
    return -(-a // b)


_FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max, "ceil_div": ceil_div}
FUNCTIONS = frozenset(_FUNCTIONS)


def evaluate(expression: int | str, names: Mapping[str, Number]) -> int:
    """The value of an expression, an integer; a comparison is 1 or 0.

    Raises ExpressionError, naming the expression, for an unknown name, a division by zero or a value
    that does not fit 63 bits.
    """
    if isinstance(expression, int):
        return _number(expression, "a number")
    return _number(_compiled(expression)(names), expression)


def check(expression: int | str, allowed: Iterable[str]) -> None:
    """Raise ExpressionError unless the expression parses and uses only the names allowed."""
    if isinstance(expression, int):
        _number(expression, "a number")
        return
    known = frozenset(allowed)
    for name in sorted(names_in(expression) - known):
        raise _unknown(name, known, expression)


def names_in(expression: int | str) -> frozenset[str]:
    """The names that an expression uses. Raises ExpressionError when it does not parse."""
    if isinstance(expression, int):
        return frozenset()
    _compiled(expression)
    tree = _parse(expression)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called)


def _error(text: str, what: str) -> ExpressionError:
    return ExpressionError(f"'{clean_line(text, 60)}' {what}")


def _unknown(name: str, known: Iterable[str], text: str) -> ExpressionError:
    words = ", ".join(sorted(known)) or "no names"
    return _error(text, f"uses {clean_line(name, 40)}; known here are {clean_line(words, 400)}")


@lru_cache(maxsize=4096)
def _parse(expression: str) -> ast.expr:
    if len(expression) > MAX_LENGTH:
        raise _error(expression, f"is longer than {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings():  # Python comments on odd literals; they are refused below
            warnings.simplefilter("ignore")
            tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _error(expression, f"is not an expression; allowed are {ALLOWED}") from error
    _measure(tree, expression, 0)
    return tree


def _measure(node: ast.AST, expression: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _error(expression, f"is nested more than {MAX_DEPTH} deep")
    for child in ast.iter_child_nodes(node):
        _measure(child, expression, depth + 1)


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> _Compiled:
    return _node(_parse(expression), expression)


def _node(node: ast.expr, text: str) -> _Compiled:
    if isinstance(node, ast.Constant):
        return _constant(node, text)
    if isinstance(node, ast.Name):
        return _name(node.id, text)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _node(node.operand, text)
        return _applied(operator.neg, [inner], text)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _applied(_BINARY[type(node.op)], [_node(node.left, text), _node(node.right, text)], text)
    if isinstance(node, ast.Compare):
        return _comparison(node, text)
    if isinstance(node, ast.Call):
        return _call(node, text)
    raise _error(text, f"has something else than {ALLOWED}")


def _constant(node: ast.Constant, text: str) -> _Compiled:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise _error(text, f"has {clean_line(repr(value), 40)}; allowed are {ALLOWED}")
    if isinstance(value, int):
        value = _number(value, text)
    return lambda names: value


def _name(name: str, text: str) -> _Compiled:
    def value(names: Mapping[str, Number]) -> Number:
        try:
            return names[name]
        except KeyError:
            raise _unknown(name, names, text) from None

    return value


def _number(value: Number, text: str) -> int:
    """A value as an integer within 63 bits."""
    if isinstance(value, str):
        raise _error(text, f"needs numbers, it got the text '{clean_line(value, 40)}'")
    if not -MAX_MAGNITUDE < value < MAX_MAGNITUDE:  # also false for NaN
        raise _error(text, "has no value within 63 bits")
    if value != int(value):
        raise _error(text, f"needs whole numbers, it got {value}")
    return int(value)


def _applied(
    function: Callable[..., int], parts: Sequence[_Compiled], text: str
) -> Callable[[Mapping[str, Number]], int]:
    def value(names: Mapping[str, Number]) -> int:
        try:
            return _number(function(*[_number(part(names), text) for part in parts]), text)
        except ZeroDivisionError:
            raise _error(text, "divides by zero") from None

    return value


def _comparison(node: ast.Compare, text: str) -> _Compiled:
    parts = [_node(part, text) for part in (node.left, *node.comparators)]
    operators = []
    for op in node.ops:
        if type(op) not in _COMPARE:
            raise _error(text, f"has something else than {ALLOWED}")
        operators.append(_COMPARE[type(op)])

    def value(names: Mapping[str, Number]) -> int:
        values = [part(names) for part in parts]
        try:
            return int(all(op(a, b) for op, a, b in zip(operators, values, values[1:], strict=False)))
        except TypeError:
            raise _error(text, "compares a text with a number") from None

    return value


def _call(node: ast.Call, text: str) -> _Compiled:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in _FUNCTIONS or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        raise _error(text, f"calls something else than {', '.join(_FUNCTIONS)}")
    if len(node.args) < 2 or (name == "ceil_div" and len(node.args) != 2):
        raise _error(text, f"calls {name}, which takes {'2' if name == 'ceil_div' else '2 or more'} values")
    return _applied(_FUNCTIONS[name], [_node(part, text) for part in node.args], text)
