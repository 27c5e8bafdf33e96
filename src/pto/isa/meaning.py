"""Meaning of instructions as data: expressions over their operands, and the table of operations.

    read("where(src0 < src1, src1, src0)")
    -> Apply("where", (Apply("less", (Name("src0"), Name("src1"))), Name("src1"), Name("src0")))

The text has the form of Python: names of operands, integers, and the operators and functions of `OPERATIONS`.
`compare(cmpMode, src0, src1)` is the function that the value of the attribute cmpMode selects: see `CHOICES`.
A backend has a dictionary with an entry for each operation that it supports, and `fold`s the tree with it.

Elements compute as follows, unless the row states otherwise:

    * Floats up to 32 bits compute in f32, and are rounded once when stored (nearest, ties to even).
    * Integers wrap: integers below 32 bits compute in 32 bits, wider integers in their own width; the store
      keeps the low bits.
    * A scalar operand is an element of the type that computes.
"""

from __future__ import annotations

# only the parser, because the import of the module `ast` takes longer than reading all rows
import _ast as ast
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from operator import itemgetter
from typing import Any, TypeVar

from .record import Record


class MeaningOp(Record):
    """An operation of expressions, with the same bits in all engines. `error` is the largest distance from
    the true value, in units in the last place of an f32; with 0, the result is exact or rounded once."""

    name: str
    arity: int
    doc: str
    sign: str = ""  # operator in the text; empty for a function call
    gives: str = "number"
    error: float = 0


#: Types of results of operations.
GIVES: dict[str, str] = {
    "number": "a number of the type that computes",
    "truth": "a truth value",
    "integer": "a whole number",
    "element": "an element of the type, still as a number",
    "f16": "a number of f16",
    "f32": "a number of f32",
    "f64": "a number of f64, which is rounded once more when it is stored",
}

_LIST = (
    MeaningOp("add", 2, "Sum; integers wrap.", "+"),
    MeaningOp("sub", 2, "Difference; integers wrap.", "-"),
    MeaningOp("mul", 2, "Product, rounded; integers wrap.", "*"),
    MeaningOp("div", 2, "Quotient: of floats as in IEEE 754; of integers truncated, and 0 for the divisor "
        "0.", "/"),
    MeaningOp("floordiv", 2, "Quotient of integers, rounded down.", "//"),
    MeaningOp("ceildiv", 2, "Quotient of integers, rounded up."),
    MeaningOp("quot", 2, "Quotient of integers, rounded towards zero."),
    MeaningOp("mod", 2, "Remainder of `floordiv`.", "%"),
    MeaningOp("rem", 2, "Remainder of `quot`."),
    MeaningOp("fmod", 2, "Exact remainder of the truncated quotient, with the sign of the dividend."),
    MeaningOp("neg", 1, "The negative number.", "-"),
    MeaningOp("abs", 1, "Magnitude; the smallest integer stays the same."),
    MeaningOp("fma", 3, "a * b + c of floats, rounded once."),
    MeaningOp("bit_and", 2, "Bits that are set in both; for truth values, True if both hold.", "&"),
    MeaningOp("bit_or", 2, "Bits that are set in at least one.", "|"),
    MeaningOp("bit_xor", 2, "Bits in which the two differ.", "^"),
    MeaningOp("bit_not", 1, "Bits that are not set.", "~"),
    MeaningOp("shl", 2, "Shift to the left; a count of the width or more leaves 0.", "<<"),
    MeaningOp("shr", 2, "Shift to the right with the sign of signed numbers; larger counts leave only "
              "the sign.", ">>"),
    MeaningOp("mul_high", 2, "Upper half of the product, which has twice the width."),
    MeaningOp("carries", 2, "True if the sum of two unsigned numbers needs another bit.", "", "truth"),
    MeaningOp("popcount", 1, "Number of bits that are 1.", "", "integer"),
    MeaningOp("cls", 1, "Number of leading bits that equal the sign, without the sign.", "", "integer"),
    MeaningOp("unsigned", 1, "The same bits as an unsigned number."),
    MeaningOp("less", 2, "True if the first is less. Like most comparisons, False for a NaN.", "<", "truth"),
    MeaningOp("less_equal", 2, "True if the first is less or equal.", "<=", "truth"),
    MeaningOp("greater", 2, "True if the first is greater.", ">", "truth"),
    MeaningOp("greater_equal", 2, "True if the first is greater or equal.", ">=", "truth"),
    MeaningOp("equal", 2, "True if the two are equal; -0 equals 0.", "==", "truth"),
    MeaningOp("not_equal", 2, "True if the two differ; a NaN differs from every number.", "!=", "truth"),
    MeaningOp("both", 2, "True if both hold.", "and", "truth"),
    MeaningOp("either", 2, "True if at least one holds.", "or", "truth"),
    MeaningOp("where", 3, "The second if the first holds, else the third."),
    MeaningOp("relu", 1, "The number if it is greater than 0, else 0; 0 for NaN."),
    MeaningOp("max", 2, "Maximum; for floats, -0 is below 0, and the result is NaN if one is NaN."),
    MeaningOp("min", 2, "Minimum; for floats, -0 is below 0, and the result is NaN if one is NaN."),
    MeaningOp("maxnum", 2, "Like `max`, but the result is the number if only one is NaN."),
    MeaningOp("minnum", 2, "Like `min`, but the result is the number if only one is NaN."),
    MeaningOp("copysign", 2, "The magnitude of the first with the sign of the second."),
    MeaningOp("sqrt", 1, "Square root, correctly rounded."),
    MeaningOp("exp", 1, "Exponential.", error=0.5),
    MeaningOp("exp2", 1, "Power of two.", error=0.501),
    MeaningOp("log", 1, "Natural logarithm.", error=0.501),
    MeaningOp("log2", 1, "Logarithm to base two.", error=0.501),
    MeaningOp("pow", 2, "Power; for integers with a negative exponent, the truncated inverse.", error=0.501),
    MeaningOp("tanh", 1, "Hyperbolic tangent.", error=0.501),
    MeaningOp("sin", 1, "Sine.", error=0.501),
    MeaningOp("cos", 1, "Cosine.", error=0.501),
    MeaningOp("erf", 1, "Error function.", error=0.501),
    MeaningOp("floor", 1, "Rounded down to an integral value."),
    MeaningOp("ceil", 1, "Rounded up to an integral value."),
    MeaningOp("trunc", 1, "Rounded towards zero to an integral value."),
    MeaningOp("rint", 1, "Rounded to the nearest integral value, ties to even."),
    MeaningOp("round_away", 1, "Rounded to the nearest integral value, ties away from zero."),
    MeaningOp("round", 1, "Rounded to the element type, before the store.", "", "element"),
    MeaningOp("f16", 1, "Rounded to f16.", "", "f16"),
    MeaningOp("f32", 1, "Rounded to f32.", "", "f32"),
    MeaningOp("double", 1, "Converted to f64; all further results are computed in f64.", "", "f64"),
)  # fmt: skip
OPERATIONS: dict[str, MeaningOp] = {o.name: o for o in _LIST}

_COMPARISONS = {"eq": "a == b", "ne": "a != b", "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b"}
_ORDERED, _UNORDERED = "a == a and b == b", "a != a or b != b"
_ROUNDINGS = {"R": "rint(a)", "A": "round_away(a)", "F": "floor(a)", "C": "ceil(a)", "Z": "trunc(a)"}
#: Functions that an attribute selects: attribute value -> expression of a (and b).
CHOICES: dict[str, dict[str, str]] = {
    "compare": _COMPARISONS,
    "compare_int": {
        "eq": "a == b", "ne": "a != b",
        **{f"s{word}": _COMPARISONS[word] for word in ("lt", "le", "gt", "ge")},
        "ult": "unsigned(a) < unsigned(b)", "ule": "unsigned(a) <= unsigned(b)",
        "ugt": "unsigned(a) > unsigned(b)", "uge": "unsigned(a) >= unsigned(b)",
    },
    "compare_float": {
        **{f"o{word}": text for word, text in _COMPARISONS.items()},
        **{f"u{word}": f"{text} or {_UNORDERED}" for word, text in _COMPARISONS.items()},
        "one": "a < b or a > b", "ord": _ORDERED, "uno": _UNORDERED, "true": "1", "false": "0",
    },
    "rounded": {f"{head}{word}": text for word, text in _ROUNDINGS.items() for head in ("", "ROUND_")},
}  # fmt: skip


class Name(Record):
    """The value of an operand."""

    name: str


class Constant(Record):
    value: int


class Apply(Record):
    operation: str
    args: tuple[Expression, ...]


class Chosen(Record):
    """The function that the value of an attribute selects from one of `CHOICES`."""

    choice: str
    attribute: str
    args: tuple[Expression, ...]


Expression = Name | Constant | Apply | Chosen


class BadMeaning(ValueError):
    """A malformed expression; the message has the reason."""


_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.BitAnd: "bit_and", ast.BitOr: "bit_or", ast.BitXor: "bit_xor", ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip
_COMPARED: dict[type[ast.AST], str] = {
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal",
    ast.NotEq: "not_equal",
}  # fmt: skip
_UNARY: dict[type[ast.AST], str] = {ast.USub: "neg", ast.Invert: "bit_not"}


@cache
def read(text: str) -> Expression:
    """Parse an expression; raise `BadMeaning` if it is malformed."""
    try:
        parsed: Any = compile(text, "<expression>", "eval", ast.PyCF_ONLY_AST)
        return _read(parsed.body)
    except SyntaxError as error:
        raise BadMeaning(f"cannot parse expression {text!r}: {error.msg}") from None


def _read(node: ast.expr) -> Expression:
    match node:
        case ast.Name(name):
            return Name(name)
        case ast.Constant(int(value)) if not isinstance(value, bool):
            return Constant(value)
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            return _apply(_BINARY[type(op)], left, right)
        case ast.UnaryOp(op, operand) if type(op) in _UNARY:
            return _apply(_UNARY[type(op)], operand)
        case ast.BoolOp(op, [*before, last]):
            word = "both" if isinstance(op, ast.And) else "either"
            left = before[0] if len(before) == 1 else ast.BoolOp(op, before)
            return _apply(word, left, last)
        case ast.Compare(left, [op], [right]) if type(op) in _COMPARED:
            return _apply(_COMPARED[type(op)], left, right)
        case ast.Compare(left, [op, *ops], [right, *rest]) if ops:
            return _apply("both", ast.Compare(left, [op], [right]), ast.Compare(right, ops, rest))
        case ast.Call(ast.Name(name), [ast.Name(attribute), *args], []) if name in CHOICES:
            return Chosen(name, attribute, tuple(_read(a) for a in args))
        case ast.Call(ast.Name(name), args, []):
            known = OPERATIONS.get(name)
            if known is None or known.sign:
                raise BadMeaning(f"unknown operation {name!r}")
            if len(args) != known.arity:
                raise BadMeaning(f"{name!r}: expected {known.arity} arguments, got {len(args)}")
            return _apply(name, *args)
        case _:
            from ast import unparse

            raise BadMeaning(f"cannot use {unparse(node)!r} in an expression")


def _apply(operation: str, *args: ast.expr) -> Apply:
    return Apply(operation, tuple(_read(a) for a in args))


def parts(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all its parts, in the order of the text."""
    yield expression
    if isinstance(expression, Apply | Chosen):
        for part in expression.args:
            yield from parts(part)


def names(expression: Expression) -> tuple[str, ...]:
    """Return the operands that an expression reads, without duplicates."""
    return tuple(dict.fromkeys(p.name for p in parts(expression) if isinstance(p, Name)))


def uses(expression: Expression, *operations: str) -> bool:
    return any(isinstance(p, Apply) and p.operation in operations for p in parts(expression))


def moves(expression: Expression) -> bool:
    """Return True if the result is always one of the operands, bit for bit: the expression only selects."""
    match expression:
        case Name():
            return True
        case Apply(operation="where", args=(_, a, b)):
            return moves(a) and moves(b)
        case _:
            return False


def moved(expression: Expression) -> tuple[str, ...]:
    """Return the operands that a moving expression may return, or none if it also computes with one of
    them."""
    match expression:
        case Name(name=name):
            return (name,)
        case Apply(operation="where", args=(condition, a, b)) if moves(a) and moves(b):
            given = tuple(dict.fromkeys((*moved(a), *moved(b))))
            return () if set(given) & set(names(condition)) else given
        case _:
            return ()


def attributes(expression: Expression) -> tuple[str, ...]:
    """Return the attributes that an expression depends on, without duplicates."""
    return tuple(dict.fromkeys(p.attribute for p in parts(expression) if isinstance(p, Chosen)))


def decided(expression: Expression, values: Mapping[str, str]) -> Expression:
    """Return the expression for given values of its attributes; raise `BadMeaning` for an unknown value."""
    match expression:
        case Apply(operation=operation, args=args):
            return Apply(operation, tuple(decided(a, values) for a in args))
        case Chosen(choice=choice, attribute=attribute, args=args):
            text = CHOICES[choice].get(values[attribute])
            if text is None:
                raise BadMeaning(f"unknown {attribute} {values[attribute]!r}")
            return _given(read(text), dict(zip("ab", (decided(a, values) for a in args), strict=False)))
        case _:
            return expression


def _given(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Replace the names in an expression by other expressions."""
    match expression:
        case Name(name=name):
            return values[name]
        case Apply(operation=operation, args=args):
            return Apply(operation, tuple(_given(a, values) for a in args))
        case _:
            return expression


Made = TypeVar("Made")


def fold(
    expression: Expression, name: Callable[[str], Made], constant: Callable[[int], Made],
    apply: Callable[..., Made],
) -> Made:  # fmt: skip
    """Fold an expression: `apply(operation, *made)` combines the results of its parts."""
    match expression:
        case Name(name=found):
            return name(found)
        case Constant(value=value):
            return constant(value)
        case Apply(operation=operation, args=args):
            return apply(operation, *(fold(a, name, constant, apply) for a in args))
        case Chosen(attribute=attribute):
            raise BadMeaning(f"missing value of attribute {attribute!r}")


_Part = Callable[[tuple[Any, ...]], Any]  # operands -> value of a part of an expression


def function(
    expression: Expression, operands: tuple[str, ...], operations: Mapping[str, Callable[..., Any]]
) -> Callable[..., Any]:
    """Return an expression as a function of the operands, for given functions of its operations."""
    if isinstance(expression, Apply) and expression.args == tuple(map(Name, operands)):
        return operations[expression.operation]

    def apply(operation: str, *parts: _Part) -> _Part:
        f = operations[operation]
        match parts:
            case (x,):
                return lambda args: f(x(args))
            case (x, y):
                return lambda args: f(x(args), y(args))
            case _:
                return lambda args: f(*[part(args) for part in parts])

    whole: _Part = fold(
        expression, lambda name: itemgetter(operands.index(name)), lambda n: lambda _: n, apply
    )
    return lambda *args: whole(args)


def unknown(known: Mapping[str, Any], expression: Expression) -> list[str]:
    """Return the operations of an expression that a backend's dictionary lacks."""
    found = dict.fromkeys(p.operation for p in parts(expression) if isinstance(p, Apply))
    return [operation for operation in found if operation not in known]


@cache
def assigned(text: str) -> dict[str, Expression]:
    """Return the expression of each result of a text such as `low = lhs * rhs; high = mul_high(lhs, rhs)`, in
    order. An expression without a result name has an empty name."""
    found: dict[str, Expression] = {}
    for part in text.split(";"):
        target, equals, rest = part.partition(" = ")
        found[target.strip() if equals else ""] = read((rest if equals else part).strip())
    return found
