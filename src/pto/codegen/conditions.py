"""Rules of the instruction table as expressions of C++: over the types of operands, or over their values.

    scope = Scope(classes={"dst": ("tile",), "src": ("tile", "conv_tile")}, attrs={"grp_axis": ..})
    scope.condition("src.cols * src.bytes % 32 == 0")  # Src::Cols * bits_of<typename Src::DType> % 256 == 0

A fact that a type lacks (such as a run-time number) raises `Open`, because the compiler cannot decide the
rule. A valid region may be part of the type; if not, the rule passes, as in the verifier. A scope with
`numbers` also translates values: `n.const <= dst.v_row` is `as_number(n) <= v_row(dst)`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache

from ..isa.dtypes import DTYPES, NUMBERS
from ..isa.machine import MEMORIES
from ..isa.record import Record
from ..isa.rules import CONSTANTS, FACTS

LOCATIONS = {loc.upper(): memory.tile_type for loc, memory in MEMORIES.items()}
_FORMS = ("ND", "DN", "NZ", "ZN", "ZZ", "NN")
#: Facts that are members of a tile, and facts of any operand with elements.
_MEMBERS = {"loc": "Loc", "blayout": "BFractal", "slayout": "SFractal", "rows": "Rows", "cols": "Cols",
            "fractal": "SFractalSize", "boxed": "isBoxedLayout"}  # fmt: skip
_ELEMENTS = frozenset({"dtype", "bits", "bytes", "kind"})
_VALID = {"v_row": "ValidRow", "v_col": "ValidCol"}
_ORDER = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_BOXES = {"ROW": "RowMajor", "COL": "ColMajor", "NONE_BOX": "NoneBox"}
_KINDS = {"tile": "is_tile_data_v", "conv_tile": "is_conv_tile_v", "view": "is_global_data_v"}


def mask_of(names: Iterable[str]) -> str:
    """Return a set of element types as a mask with one bit each."""
    return hex(sum(1 << NUMBERS[n] for n in set(names)))


def type_of(name: str) -> str:
    """Return the template parameter of an operand."""
    return name[0].upper() + name[1:]


class Open(Exception):
    """A rule needs facts that C++ types lack."""


class TemplateAttribute(Record):
    """An attribute that is a template argument: its name there, and a function that spells values in C++."""

    name: str
    spelled: Callable[[object], str]


class Number(Record):
    """A number: the value of `text` divided by `scale`, so that the bytes of 4-bit elements stay whole
    numbers.
    """

    text: str
    scale: int = 1

    def times(self, factor: int) -> str:
        if factor == 1:
            return self.text
        return str(int(self.text) * factor) if self.text.isdigit() else f"{self.text} * {factor}"


def _scaled(a: Number, b: Number) -> tuple[str, str, int]:
    """Convert two numbers to texts with a common scale."""
    if a.scale == b.scale:
        return a.text, b.text, a.scale
    return a.times(b.scale), b.times(a.scale), a.scale * b.scale


def bare(text: str) -> str:
    """Return a condition without enclosing parentheses."""
    depth = 0
    for at, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return text[1:-1] if text[0] == "(" and at == len(text) - 1 else text
    return text


def _inner(text: str) -> str:
    """Return a text as an operand of a product."""
    return f"({text})" if " " in bare(text) and bare(text) == text else text


@cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class Scope:
    """The names that a condition may use."""

    def __init__(
        self,
        classes: Mapping[str, tuple[str, ...]],
        attrs: Mapping[str, TemplateAttribute],
        numbers: Collection[str] | None = None,
    ) -> None:
        self.classes, self.attrs = classes, attrs
        self.numbers = numbers  # scalar operands of a call that runs; None if types alone decide
        self.met: dict[str, str] = {}  # expressions over values, with their names in messages
        self.static: set[str] = set()  # valid extents that must be part of types
        self.tiles: set[str] = set()  # operands of several kinds that must be tiles

    def condition(self, text: str) -> str:
        return self._condition(_parsed(text))

    # -- conditions ---------------------------------------------------------------------------------------

    def _condition(self, node: ast.expr) -> str:
        match node:
            case ast.BoolOp(op, values):
                word = " && " if isinstance(op, ast.And) else " || "
                return f"({word.join(self._condition(v) for v in values)})"
            case ast.UnaryOp(ast.Not(), operand):
                return f"!({bare(self._condition(operand))})"
            case ast.IfExp(test, body, orelse):
                return f"({self._condition(test)} ? {self._condition(body)} : {self._condition(orelse)})"
            case ast.Compare(left, ops, rights):
                pairs = zip(ops, [left, *rights], rights, strict=False)
                made = [self._comparison(op, a, b) for op, a, b in pairs]
                return made[0] if len(made) == 1 else f"({' && '.join(made)})"
            case ast.Call(ast.Name("valid_eq" | "valid_le" as name), [ast.Name(a), ast.Name(b)]):
                self._tile(a), self._tile(b)
                called = "same_valid" if name == "valid_eq" else "fitting_valid"
                if self.numbers is None:
                    return f"{called}<{type_of(a)}, {type_of(b)}>()"
                for owner in (a, b):
                    self._extent(owner, "v_row"), self._extent(owner, "v_col")
                return f"{called}({a}, {b})"
            case ast.Attribute(_, "boxed"):
                return self._fact(node).text
            case ast.Attribute(ast.Name(owner), "dyn_row" | "dyn_col" as fact):
                self._tile(owner)
                return f"{type_of(owner)}::{_VALID['v' + fact[3:]]} == DYNAMIC"
            case _:
                raise Open

    def _comparison(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> str:
        match op, left, right:
            case ast.In() | ast.NotIn(), ast.Attribute(ast.Name(owner), "dtype"), ast.Tuple(choices):
                if owner not in self.classes:
                    raise Open
                found = f"is_among<{type_of(owner)}>({mask_of(str(self._constant(c)) for c in choices)})"
                return found if isinstance(op, ast.In) else f"!{found}"
            case ast.In() | ast.NotIn(), _, ast.Tuple(choices):
                any_of = "(" + " || ".join(self._comparison(ast.Eq(), left, c) for c in choices) + ")"
                return any_of if isinstance(op, ast.In) else f"!{any_of}"
            case ast.Eq(), ast.Tuple(ours), ast.Tuple(theirs):
                pairs = zip(ours, theirs, strict=True)
                return "(" + " && ".join(self._comparison(op, a, b) for a, b in pairs) + ")"
            case ast.Eq() | ast.NotEq(), ast.Attribute(ast.Name(a), "shape"), ast.Attribute(
                ast.Name(b), "shape"
            ):
                self._tile(a), self._tile(b)
                mine, other = type_of(a), type_of(b)
                same = f"({mine}::Rows == {other}::Rows && {mine}::Cols == {other}::Cols)"
                return same if isinstance(op, ast.Eq) else f"!{same}"
            case ast.Eq() | ast.NotEq(), ast.Attribute(_, "layout"), _:
                same = self._same_layout(left, right)
                return same if isinstance(op, ast.Eq) else f"!({same})"
            case ast.Eq() | ast.NotEq(), ast.Attribute(_, "slayout"), ast.Name(name) if name in _BOXES:
                return f"{self._fact(left).text} {_ORDER[type(op)]} SLayout::{_BOXES[name]}"
            case ast.Eq() | ast.NotEq(), ast.Attribute(ast.Name(owner), "kind"), ast.Constant(str(kind)):
                if owner not in self.classes:
                    raise Open
                known = self.classes[owner]
                same = f"{_KINDS[kind]}<{type_of(owner)}>" if len(known) > 1 else str(kind in known).lower()
                return same if isinstance(op, ast.Eq) else f"!{same}"
            case ast.Eq() | ast.NotEq(), ast.Name(name), ast.Constant() if name in self.attrs:
                attr = self.attrs[name]
                return f"{attr.name} {_ORDER[type(op)]} {attr.spelled(right.value)}"
            case ast.Eq() | ast.NotEq(), _, _ if self._is_truth(left) and self._is_truth(right):
                return f"({self._condition(left)}) {_ORDER[type(op)]} ({self._condition(right)})"
            case _ if type(op) in _ORDER:
                a, b, _ = _scaled(self._term(left), self._term(right))
                return f"{a} {_ORDER[type(op)]} {b}"
            case _:
                raise Open

    @staticmethod
    def _is_truth(node: ast.expr) -> bool:
        return isinstance(node, ast.BoolOp | ast.Compare)

    def _constant(self, node: ast.expr) -> object:
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name) if name in CONSTANTS:
                return CONSTANTS[name]
            case _:
                raise Open

    def _same_layout(self, left: ast.Attribute, right: ast.expr) -> str:
        """Compare layouts of a tile and a tensor, which are two enumerations with three common names."""
        mine, enum = self._layout(left)
        if isinstance(right, ast.Attribute):
            other, theirs = self._layout(right)
            if enum == theirs:
                return f"{mine} == {other}"
            both = [f"({mine} == {enum}::{n} && {other} == {theirs}::{n})" for n in _FORMS[:3]]
            return f"({' || '.join(both)})"
        name = str(self._constant(right)).upper()
        return f"{mine} == {enum}::{name}" if enum == "Layout" or name in _FORMS else "false"

    def _layout(self, node: ast.Attribute) -> tuple[str, str]:
        """Return the layout of an operand, and its enumeration."""
        match node:
            case ast.Attribute(ast.Name(owner), "layout") if owner in self.classes:
                pass
            case _:
                raise Open
        if "tile" in self.classes[owner]:
            self._tile(owner)
            return f"{type_of(owner)}::form", "Form"
        return f"{type_of(owner)}::layout", "Layout"

    # -- terms --------------------------------------------------------------------------------------------

    def _term(self, node: ast.expr) -> Number:
        match node:
            case ast.Constant(bool(value)):
                return Number(str(value).lower())
            case ast.Constant(int(value)):
                return Number(str(value))
            case ast.Name(name) if name in LOCATIONS:
                return Number(f"TileType::{LOCATIONS[name]}")
            case ast.Name("ROW" | "COL" as name):
                return Number(f"BLayout::{name.capitalize()}Major")
            case ast.Name(name) if name in CONSTANTS and CONSTANTS[name] in DTYPES:
                return Number(f"DType::{CONSTANTS[name]}")
            case ast.Name(name) if name in self.attrs:
                return Number(f"static_cast<int>({name})")
            case ast.Attribute():
                return self._fact(node)
            case ast.BinOp(left, op, right):
                return self._arithmetic(op, self._term(left), self._term(right))
            case ast.Call(ast.Name("ceil"), [left, right]):
                a, b, _ = _scaled(self._term(left), self._term(right))
                return Number(f"rounded_up({a}, {b})")
            case ast.Call(ast.Name("min" | "max" as name), [left, right]):
                a, b, scale = _scaled(self._term(left), self._term(right))
                return Number(f"{'lesser_of' if name == 'min' else 'larger_of'}({a}, {b})", scale)
            case ast.Call(ast.Name("selected"), [ast.Name(pattern), size]) if pattern in self.attrs:
                return Number(f"selected({pattern}, {self._term(size).text})")
            case ast.IfExp(test, body, orelse):
                a, b, scale = _scaled(self._term(body), self._term(orelse))
                return Number(f"({self._condition(test)} ? {a} : {b})", scale)
            case _:
                raise Open

    @staticmethod
    def _arithmetic(op: ast.operator, left: Number, right: Number) -> Number:
        if isinstance(op, ast.Mult):
            return Number(f"{left.text} * {right.text}", left.scale * right.scale)
        a, b, scale = _scaled(left, right)
        match op:
            case ast.Mod():
                return Number(f"{_inner(a)} % {_inner(b)}", scale)
            case ast.FloorDiv() | ast.Div():
                return Number(f"({_inner(a)} / {_inner(b)})")
            case ast.Add() | ast.Sub():
                return Number(f"({a} {'+' if isinstance(op, ast.Add) else '-'} {b})", scale)
            case _:
                raise Open

    def _tile(self, owner: str) -> None:
        """Record that an operand must be a tile, because only tiles have the fact."""
        kinds = self.classes.get(owner, ())
        if "tile" not in kinds:
            raise Open
        if len(kinds) > 1:
            self.tiles.add(owner)

    def _is_met(self, owner: str, kind: str) -> bool:
        return self.numbers is not None and kind in self.classes.get(owner, ())

    def _extent(self, owner: str, fact: str) -> Number:
        """Return a valid extent: from the type, which must have it, or from the value."""
        if self.numbers is None:
            self.static.add(f"{type_of(owner)}::{_VALID[fact]}")
            return Number(f"{type_of(owner)}::{_VALID[fact]}")
        return self._value(f"{fact}({owner})", f"{owner} {FACTS[fact]}")

    def _value(self, text: str, words: str) -> Number:
        self.met[text] = words
        return Number(text)

    def _fact(self, node: ast.Attribute) -> Number:
        match node:
            case ast.Attribute(ast.Name(owner), "const") if owner in (self.numbers or ()):
                return self._value(f"as_number({owner})", owner)
            case ast.Attribute(ast.Name(owner), "elems") if self._is_met(owner, "view"):
                return self._value(f"elems({owner})", f"{owner} {FACTS['elems']}")
            case ast.Attribute(ast.Name(owner), fact) if owner in self.classes:
                pass
            case _:
                raise Open
        type = type_of(owner)
        if fact in _ELEMENTS:
            element = f"typename {type}::DType"
            if fact == "dtype":
                return Number(f"dtype_of<{element}>")
            return Number(f"bits_of<{element}>", 8 if fact == "bytes" else 1)
        kinds = self.classes[owner]
        if fact == "loc" and "view" not in kinds:
            return Number(f"{type}::Loc")
        self._tile(owner)
        if fact in _MEMBERS:
            return Number(f"{type}::{_MEMBERS[fact]}")
        if fact in _VALID:
            return self._extent(owner, fact)
        if fact == "row_bytes":
            return Number(f"{type}::Cols * bits_of<typename {type}::DType>", 8)
        if fact == "size":
            return Number(f"static_cast<int>({type}::GetSizeInBytes())")
        if fact == "pad":
            return Number(f"static_cast<uint64_t>({type}::PadVal)")
        raise Open
