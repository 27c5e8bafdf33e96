"""Parameters of a search and their values, and expressions over them.

TILE=64,128,256      three numbers
STAGES=1..4          1, 2, 3, 4
K=16..256*2          16, 32, 64, 128, 256
LAYOUT=nz,nd         words
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..diag import Diagnostic, DiagnosticError, did_you_mean
from ..trials import Point

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\*(\d+)|\+(\d+))?")
_MOST = 100_000
_LONGEST = 1 << 16  # characters of a text


def _shifted(value: Any, by: Any) -> Any:
    if not by < 64:
        raise ValueError(f"cannot shift by {by}: expected less than 64")
    return value << by


def _bounded(value: Any) -> Any:
    """Return a result, or raise `ValueError` if it is too large. Parameters may refer to other parameters, so
    that each text may be twice as long as the previous one.
    """
    if (
        len(value) > _LONGEST
        if isinstance(value, str)
        else isinstance(value, int) and value.bit_length() > 4096
    ):
        raise ValueError("expected a number or text of reasonable length")
    return value


_BINARY: dict[type[ast.AST], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: _shifted,
    ast.RShift: operator.rshift,
}  # fmt: skip
_COMPARE: dict[type[ast.AST], Any] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_FUNCTIONS = {"min": min, "max": max}


def refuse(message: str, help: str = "") -> DiagnosticError:
    return DiagnosticError([Diagnostic("PTO-E2901", message, help=help)])


class Space:
    """Combinations of values. `points` are the combinations that satisfy the conditions, with the last
    parameter varying fastest; `left_out` is the number of other combinations."""

    def __init__(self, params: Mapping[str, Sequence[Any]], where: Iterable[str] = ()) -> None:
        self.params = {name: list(dict.fromkeys(values)) for name, values in params.items()}
        self.where = tuple(where)
        size = 1
        for name, values in self.params.items():
            if not name.isidentifier():
                raise refuse(f"expected the name of a parameter, got '{name}'", "--param TILE=64,128")
            if not values:
                raise refuse(f"parameter {name} has no values", "--param TILE=64,128")
            size *= len(values)
        if size > _MOST:
            raise refuse(f"expected at most {_MOST} combinations, got {size}", "give fewer values")
        if not self.params:
            raise refuse("missing parameters to search", "--param TILE=64,128")
        self.points = [p for p in self._all() if all(evaluate(c, p) for c in self.where)]
        self.left_out = size - len(self.points)

    @classmethod
    def parse(cls, texts: Iterable[str], where: Iterable[str] = ()) -> Space:
        """Return the space that options of a command line describe."""
        params: dict[str, list[Any]] = {}
        for text in texts:
            name, equals, values = text.partition("=")
            if not equals or not values:
                raise refuse(f"--param {text}: expected a name and values", "--param TILE=64,128")
            params.setdefault(name.strip(), []).extend(_values(text, values))
        return cls(params, where)

    def _all(self) -> Iterator[Point]:
        for values in itertools.product(*self.params.values()):
            yield dict(zip(self.params, values, strict=True))


def _values(text: str, values: str) -> Iterator[Any]:
    for word in (w.strip() for w in values.split(",")):
        if several := _RANGE.fullmatch(word):
            first, last = int(several[1]), int(several[2])
            factor, step = int(several[3] or 1), int(several[4] or 1)
            if last < first or (several[3] and (factor < 2 or first < 1)) or step < 1:
                raise refuse(f"--param {text}: {word} has no values", "1..4, 16..256*2 or 0..64+16")
            at = first
            for _ in range(_MOST):
                if at > last:
                    break
                yield at
                at = at * factor if several[3] else at + step
        elif word:
            yield _value(word)
        else:
            raise refuse(f"--param {text}: missing value", "--param TILE=64,128")


def _value(word: str) -> Any:
    for read in (lambda w: int(w, 0), float):
        try:
            return read(word)
        except ValueError:
            continue
    return word


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Evaluate an expression over parameters: numbers, names, arithmetic, comparisons, and, or, not, min,
    max."""
    try:
        return _evaluate(ast.parse(text.strip(), mode="eval").body, names)
    except (SyntaxError, RecursionError, MemoryError):  # the parser raises the last two for deep nesting
        raise refuse(f"expected an expression, got '{text[:200]}'") from None
    except (TypeError, ZeroDivisionError, ValueError, OverflowError) as e:
        raise refuse(f"cannot compute '{text}': {e}") from None


def _evaluate(node: ast.AST, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str() as value):
            return value
        case ast.Name(id=name):
            if name not in names:
                hint = did_you_mean(name, names) or f"expected one of {', '.join(names)}"
                raise refuse(f"unknown parameter '{name}'", hint)
            return names[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            lhs, rhs = _evaluate(left, names), _evaluate(right, names)
            # a repeated text could fill the memory
            if str in (type(lhs), type(rhs)) and not isinstance(op, ast.Add):
                raise TypeError("cannot compute with a text: expected a number")
            return _bounded(_BINARY[type(op)](lhs, rhs))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_evaluate(inner, names)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not _evaluate(inner, names)
        case ast.BoolOp(op=op, values=values):
            fold = all if isinstance(op, ast.And) else any
            return fold(_evaluate(v, names) for v in values)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(o) in _COMPARE for o in ops):
            found = [_evaluate(v, names) for v in (left, *others)]
            return all(_COMPARE[type(o)](a, b) for o, a, b in zip(ops, found, found[1:], strict=False))
        case ast.IfExp(test=test, body=body, orelse=other):
            return _evaluate(body if _evaluate(test, names) else other, names)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_evaluate(a, names) for a in args))
        case _:
            raise refuse(f"expected an expression over parameters, got '{ast.unparse(node)}'")
