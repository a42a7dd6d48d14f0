"""The small arithmetic of launch plans and costs: integers, names, ``+ - * // % ( )``, comparisons,
``min``, ``max`` and ``ceil_div``. Nothing else parses, and nothing is executed but this."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from kda_tui.text import UserError

MAX_LENGTH = 1000
MAX_DEPTH = 40
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
    ast.Lt: operator.lt,  # type: ignore[dict-item]
    ast.LtE: operator.le,  # type: ignore[dict-item]
    ast.Gt: operator.gt,  # type: ignore[dict-item]
    ast.GtE: operator.ge,  # type: ignore[dict-item]
}
ALLOWED = "integers, names, + - * // % ( ), comparisons, min, max, ceil_div"


class ExpressionError(UserError):
    """An expression that does not parse, or has no value."""


def ceil_div(a: int, b: int) -> int:
    """The quotient rounded towards positive infinity."""
    return -(-a // b)


_FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max, "ceil_div": ceil_div}


def evaluate(expression: int | str, names: Mapping[str, Number]) -> int:
    """The value of an expression, an integer; a comparison is 1 or 0.

    Raises ExpressionError, naming the expression, for an unknown name, a division by zero or a value
    that does not fit 64 bits.
    """
    if isinstance(expression, int):
        return int(expression)
    value = _compiled(expression)(names)
    if isinstance(value, str):
        raise ExpressionError(f"'{expression}' is a text, a number is needed")
    if isinstance(value, float):
        if value != int(value):
            raise ExpressionError(f"'{expression}' is {value}, a whole number is needed")
        value = int(value)
    return int(value)


def check(expression: int | str, allowed: Iterable[str]) -> None:
    """Raise ExpressionError unless the expression parses and uses only the names allowed."""
    if isinstance(expression, int):
        return
    known = frozenset(allowed)
    for name in sorted(names_in(expression) - known):
        raise ExpressionError(
            f"'{expression}' uses {name}; known here are {', '.join(sorted(known)) or 'no names'}"
        )


def names_in(expression: int | str) -> frozenset[str]:
    """The names that an expression uses."""
    if isinstance(expression, int):
        return frozenset()
    called = set(_FUNCTIONS)
    found = {n.id for n in ast.walk(_parse(expression)) if isinstance(n, ast.Name)}
    return frozenset(found - called)


@lru_cache(maxsize=4096)
def _parse(expression: str) -> ast.expr:
    if len(expression) > MAX_LENGTH:
        raise ExpressionError(f"'{expression[:40]}...' is longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"'{expression}' is not an expression; allowed are {ALLOWED}") from error
    _depth(tree, expression, 0)
    return tree


def _depth(node: ast.AST, expression: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ExpressionError(f"'{expression[:40]}' is nested more than {MAX_DEPTH} deep")
    for child in ast.iter_child_nodes(node):
        _depth(child, expression, depth + 1)


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
        return lambda names: -_number(inner(names), text)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _binary(_BINARY[type(node.op)], _node(node.left, text), _node(node.right, text), text)
    if isinstance(node, ast.Compare):
        return _comparison(node, text)
    if isinstance(node, ast.Call):
        return _call(node, text)
    raise ExpressionError(f"'{text}' has something else than {ALLOWED}")


def _constant(node: ast.Constant, text: str) -> _Compiled:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ExpressionError(f"'{text}' has {value!r}; allowed are {ALLOWED}")
    if isinstance(value, int) and value >= MAX_MAGNITUDE:
        raise ExpressionError(f"'{text}' has a number above 63 bits")
    return lambda names: value


def _name(name: str, text: str) -> _Compiled:
    def value(names: Mapping[str, Number]) -> Number:
        try:
            return names[name]
        except KeyError:
            known = ", ".join(sorted(names)) or "no names"
            raise ExpressionError(f"'{text}' uses {name}; known here are {known}") from None

    return value


def _number(value: Number, text: str) -> int:
    """A value as an integer within 64 bits."""
    if isinstance(value, str) or value != value or abs(value) >= MAX_MAGNITUDE or value != int(value):
        raise ExpressionError(f"'{text}' needs whole numbers within 63 bits, it got {value!r}")
    return int(value)


def _binary(apply: Callable[[int, int], int], left: _Compiled, right: _Compiled, text: str) -> _Compiled:
    def value(names: Mapping[str, Number]) -> int:
        a, b = _number(left(names), text), _number(right(names), text)
        try:
            return _number(apply(a, b), text)
        except ZeroDivisionError:
            raise ExpressionError(f"'{text}' divides by zero") from None

    return value


def _comparison(node: ast.Compare, text: str) -> _Compiled:
    parts = [_node(part, text) for part in (node.left, *node.comparators)]
    operators = []
    for op in node.ops:
        if type(op) not in _COMPARE:
            raise ExpressionError(f"'{text}' has something else than {ALLOWED}")
        operators.append(_COMPARE[type(op)])

    def value(names: Mapping[str, Number]) -> int:
        values = [part(names) for part in parts]
        try:
            return int(all(op(a, b) for op, a, b in zip(operators, values, values[1:], strict=False)))
        except TypeError:
            raise ExpressionError(f"'{text}' compares a text with a number") from None

    return value


def _call(node: ast.Call, text: str) -> _Compiled:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in _FUNCTIONS or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        raise ExpressionError(f"'{text}' calls something else than min, max, ceil_div")
    if len(node.args) < 2 or (name == "ceil_div" and len(node.args) != 2):
        raise ExpressionError(f"'{text}': {name} takes {'2' if name == 'ceil_div' else '2 or more'} values")
    parts = [_node(part, text) for part in node.args]
    function = _FUNCTIONS[name]

    def value(names: Mapping[str, Number]) -> int:
        try:
            return _number(function(*[_number(part(names), text) for part in parts]), text)
        except ZeroDivisionError:
            raise ExpressionError(f"'{text}' divides by zero") from None

    return value
