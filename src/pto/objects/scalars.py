"""Replace calls that are scalar arithmetic by LLVM IR.

The name of a call is its C++ (`image.calls`): one statement per result. An expression has 32-bit and 64-bit
integers, conditions, and floats that are only compared, selected or converted from integers. Any other call
remains a call: a division traps through the machine, and float arithmetic must come from one compiler.

    int32_t& a0; int32_t& a1; int32_t& a2; a0 = (int32_t) ((uint32_t) a1 + (uint32_t) a2);
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..isa.record import Record

_DECLARED = re.compile(r"(\w+)& a(\d+); ")
_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|(\d+)(?![\w.])|([<>=!]=|&&|\|\||[-+*&|^<>!?:()]))")
_TYPES = {
    "bool": "i1", "int32_t": "i32", "uint32_t": "i32", "int64_t": "i64", "uint64_t": "i64",
    "float": "float", "double": "double",
}  # fmt: skip
_BITS = {"bool": 1, "int32_t": 32, "uint32_t": 32, "int64_t": 64, "uint64_t": 64}

#: Binary operators by precedence, lowest first -> their LLVM instruction or comparison for integers.
_LEVELS: tuple[dict[str, str], ...] = (
    {"||": "or"},
    {"&&": "and"},
    {"|": "or"},
    {"^": "xor"},
    {"&": "and"},
    {"==": "eq", "!=": "ne"},
    {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"},
    {"+": "add", "-": "sub"},
    {"*": "mul"},
)
_COMPARES = frozenset(("==", "!=", "<", "<=", ">", ">="))
_LOGIC = frozenset(("||", "&&"))


class _Other(Exception):
    """An expression that must remain a call."""


#: A tuple; its first entry is the kind of the expression.
Expression = tuple[Any, ...]


class ScalarCall(Record):
    """A call that is scalar arithmetic: the types of its operands, and (operand, expression) per
    statement."""

    types: tuple[str, ...]
    statements: tuple[tuple[int, Expression], ...]


@lru_cache(maxsize=4096)
def scalar(name: str) -> ScalarCall | None:
    """Return the arithmetic of a call, or None if it must remain a call."""
    types: list[str] = []
    at = 0
    while (m := _DECLARED.match(name, at)) is not None:
        types.append(m[1])
        at = m.end()
    if not types or any(t not in _TYPES for t in types):
        return None
    statements = []
    try:
        for text in filter(None, map(str.strip, name[at:].split(";"))):
            to = re.match(r"a(\d+) = ", text)
            if to is None:
                return None
            statements.append(
                (int(to[1]), _ExpressionReader(text[to.end() :], types).whole(types[int(to[1])]))
            )
    except _Other:
        return None
    return ScalarCall(tuple(types), tuple(statements))


class _ExpressionReader:
    """Parser of an expression; every part is a tuple (kind, type, ...)."""

    def __init__(self, text: str, types: list[str]) -> None:
        self.types = types
        self.tokens: list[str] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            m = _TOKEN.match(text, at)
            if m is None:
                raise _Other
            self.tokens.append(m[1] or m[2] or m[3])
            at = m.end()
        self.tokens.append("")
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    def take(self, token: str = "") -> str:
        taken = self.next
        if token and taken != token:
            raise _Other
        self.at += 1
        return taken

    def whole(self, type: str) -> Expression:
        made = self.choice()
        if self.next:
            raise _Other
        return _cast(made, type)

    def choice(self) -> Expression:
        condition = self.binary(0)
        if self.next != "?":
            return condition
        self.take()
        yes = self.choice()
        self.take(":")
        no = self.choice()
        if yes[1] != no[1]:
            raise _Other
        return "choose", yes[1], _cast(condition, "bool"), yes, no

    def binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.next in _LEVELS[level]:
            operator = self.take()
            left = _binary(operator, _LEVELS[level][operator], left, self.binary(level + 1))
        return left

    def unary(self) -> Expression:
        token = self.take()
        if token == "-":
            value = _promoted(self.unary())
            if value[1] not in _BITS:
                raise _Other
            return "sub", value[1], ("number", value[1], 0), value
        if token == "!":
            return "xor", "bool", _cast(self.unary(), "bool"), ("number", "bool", 1)
        if token == "(":
            if self.next in _TYPES and self.tokens[self.at + 1] == ")":
                type = self.take()
                self.take()
                return _cast(self.unary(), type)
            inner = self.choice()
            self.take(")")
            return inner
        if token in ("true", "false"):
            return "number", "bool", int(token == "true")
        if token.isdigit():
            if int(token) >= 1 << 31:
                raise _Other
            return "number", "int32_t", int(token)
        place = re.fullmatch(r"a(\d+)", token)
        if place is None or int(place[1]) >= len(self.types):
            raise _Other
        return "place", self.types[int(place[1])], int(place[1])


def _promoted(value: Expression) -> Expression:
    return _cast(value, "int32_t") if value[1] == "bool" else value


def _cast(value: Expression, type: str) -> Expression:
    """Convert a value to another type. A float is not converted to an integer, because C++ leaves the result
    out of range undefined."""
    if value[1] == type:
        return value
    if value[0] == "number" and type in _BITS and type != "bool":
        return "number", type, value[2]
    if value[1] not in _BITS:
        raise _Other
    return "cast", type, value


def _binary(operator: str, what: str, left: Expression, right: Expression) -> Expression:
    if operator in _LOGIC:
        return what, "bool", _cast(left, "bool"), _cast(right, "bool")
    if operator not in ("==", "!=") or left[1] != right[1]:
        left, right = _promoted(left), _promoted(right)
    if left[0] == "number" and right[1] in _BITS:
        left = _cast(left, right[1])
    elif right[0] == "number" and left[1] in _BITS:
        right = _cast(right, left[1])
    if left[1] != right[1]:
        raise _Other
    if operator in _COMPARES:
        return "compare", "bool", what, left, right
    if left[1] not in _BITS:
        raise _Other
    return what, left[1], left, right


# -- as LLVM IR ----------------------------------------------------------------------------------------------


def emit(made: ScalarCall, load: Callable[[int, str], str], store: Callable[[int, str, str], None],
         line: Callable[[str], str]) -> None:  # fmt: skip
    """Write the IR of a call. `load` returns the value of an operand, `store` sets it, and `line` appends an
    instruction and returns the name of its value."""

    def value(e: Expression) -> str:
        what, type = e[0], e[1]
        llvm = _TYPES[type]
        if what == "number":
            return ("true" if e[2] else "false") if type == "bool" else str(e[2])
        if what == "place":
            byte = load(e[2], "i8" if type == "bool" else llvm)
            return line(f"icmp ne i8 {byte}, 0") if type == "bool" else byte
        if what == "choose":
            condition, yes, no = map(value, e[2:])
            return line(f"select i1 {condition}, {llvm} {yes}, {llvm} {no}")
        if what == "compare":
            return _compare(e[2], e[3][1], value(e[3]), value(e[4]), line)
        if what == "cast":
            return _converted(e[2][1], type, value(e[2]), line)
        left, right = value(e[2]), value(e[3])
        return line(f"{what} {llvm} {left}, {right}")

    for place, e in made.statements:
        result = value(e)
        if e[1] == "bool":
            result = line(f"zext i1 {result} to i8")
        store(place, "i8" if e[1] == "bool" else _TYPES[e[1]], result)


def _compare(what: str, type: str, left: str, right: str, line: Callable[[str], str]) -> str:
    llvm = _TYPES[type]
    if type not in _BITS:
        condition = {"eq": "oeq", "ne": "une"}.get(what, f"o{what}")
        return line(f"fcmp {condition} {llvm} {left}, {right}")
    sign = "" if what in ("eq", "ne") else "s" if type.startswith("int") else "u"
    return line(f"icmp {sign}{what} {llvm} {left}, {right}")


def _converted(source: str, type: str, value: str, line: Callable[[str], str]) -> str:
    of, to = _TYPES[source], _TYPES[type]
    if type == "bool":
        return line(f"icmp ne {of} {value}, 0")
    signed = source.startswith("int")
    if type not in _BITS:
        return line(f"{'sitofp' if signed else 'uitofp'} {of} {value} to {to}")
    if _BITS[type] == _BITS[source]:
        return value
    if _BITS[type] < _BITS[source]:
        return line(f"trunc {of} {value} to {to}")
    return line(f"{'sext' if signed else 'zext'} {of} {value} to {to}")
