"""The call of an operation: a function of the virtual machine's library, and its arguments.

The library is compiled from the text that `codegen.cpp` emits for one operation, with every value a reference
and every size of a tile, view or target known at run time only. The text itself is the name of the function.
This module derives the name from the operation, both for a program that needs the function and for a library
that has it.

    Tile<TileType::Vec, float, ...>& a0; ...; TADD(a0, a1, a2);
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from functools import cache
from hashlib import blake2b
from typing import Any

from ..codegen.cpp import program
from ..codegen.cpp.control import is_align
from ..codegen.cpp.function import ATOM, HANDLERS, CppFunction, Handler, reads_otherwise
from ..codegen.cpp.spelling import Types, Unspellable
from ..codegen.cpp.unit import Unit
from ..ir.core import Block, Operation, Value
from ..ir.facts import function_of, view_layout
from ..ir.types import ConvTileType, Dims, LocalArrayType, MemRefType, ScalarType, TileBufType, Type, ViewType
from ..isa import row as find_row
from ..isa.enums import ENUMS
from ..isa.machine import MEMORIES
from ..isa.record import Record
from ..isa.row import Row

_SLOT = re.compile("\x02(\\d+)\x03")
_LOCAL = re.compile("\x01(\\d+)")
#: Variables of a function with copies of registers, by the comment of their declaration.
_KEPT = re.compile(r".*/\* (\w+) \*/")
_REGISTERS = ("outtoub", "ubtoout", "outtol1")
_NUMBER = re.compile(r"-?\d+(?:u|ull)?$")

#: Families whose instructions read and write the valid regions of their tiles, independent of the layout. The
#: library has them for row-major tiles; other tiles are converted to that form around the call.
BY_REGION = frozenset(("elementwise-tile-tile", "tile-scalar-and-immediate", "reduce-and-expand"))


_SO_TOO = frozenset(("tconcat", "tinterleave", "tdeinterleave"))


def by_region(row: Row | None) -> bool:
    return row is not None and ((row.family in BY_REGION and row.writes != "all") or row.name in _SO_TOO)


def by_columns(type: Type) -> bool:
    """Return True if a tile is column-major."""
    return isinstance(type, TileBufType) and not type.boxed and type.blayout == "col_major"


#: The source of an argument of a call: an operand, a result, a number of the call, or the function's copy of
#: a register.
Source = tuple[str, int]


class NoCall(Exception):
    """An operation that the library has no function for, with the reason."""


class ImageCall(Record):
    """A function by its name, and the sources of its arguments."""

    name: str
    arguments: tuple[Source, ...]

    @property
    def key(self) -> int:
        return key(self.name)


def key(name: str) -> int:
    """Return the number under which the library finds a function."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


class OpenTypes(Types):
    """C++ types of values whose sizes are known at run time only."""

    def tile(self, t: TileBufType, valid: Dims, shape: tuple[int, int] | None = None) -> str:
        blayout = self.profile.left_blayout if t.loc == "left" else t.blayout
        return (
            f"OpenTile<TileType::{MEMORIES[t.loc].tile_type}, {self.scalar(t.elem)}, "
            f"{ENUMS['blayout'].spelling(blayout)}, {ENUMS['slayout'].spelling(t.slayout)}, {t.fractal}, "
            f"{t.pad}, {ENUMS['compact_mode'].spelling(t.compact)}>"
        )

    def conv_tile(self, t: ConvTileType) -> str:
        return (
            f"ConvTile<TileType::{MEMORIES[t.loc].tile_type}, {self.scalar(t.elem)}, 0, "
            f"pto::Layout::{t.layout.upper()}, ConvTileShape<{', '.join(['-1'] * t.rank)}>>"
        )

    def _spell(self, type: Type) -> str:
        return "OpenPipe" if type.kind == "pipe" else super()._spell(type)

    def open_view(self, t: ViewType, layout: str = "ND") -> str:
        return f"OpenView<{self.scalar(t.elem)}, pto::Layout::{layout}>"


def as_view(value: Value) -> Value:
    """Return a view, or a memref as its view in the frame."""
    type = value.type
    if not isinstance(type, MemRefType):
        return value
    return Value(ViewType(type.elem, type.dims), value.owner, value.index, value.name)


#: Enumerations that calls take as arguments, by their C++ class.
_ENUMS = {e.cpp.rpartition("::")[0]: e for e in ENUMS.values() if "::" in e.cpp}


def _enumerator(type: str, text: str) -> int | None:
    enum = _ENUMS.get(type)
    if enum is None:
        return None
    return next((n for word, n in enum.values.items() if enum.spelling(word) == text), None)


class _Always(dict[Value, Any]):
    """A mapping in which every value is used, and has its slot as a name."""

    def __init__(self, of: Callable[[Value], Any]) -> None:
        self._of = of

    def get(self, key: Value, default: Any = None) -> Any:
        return self._of(key)

    def __getitem__(self, key: Value) -> Any:
        return self._of(key)

    def __contains__(self, key: object) -> bool:
        return True


class Recorder(CppFunction):
    """The emission of one operation at a time by `codegen.cpp`, with a slot for every value instead of a
    variable."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.parts = program.PARTS
        self.types = unit.types
        self.indent = ""
        self.count = _Always(lambda _: 2)
        self.known = _Always(lambda v: (self.slot(v), ATOM))
        self.shown_views = self.handed_on = set()
        self.crossing = set()
        self.memref_tiles = set()
        self.bare, self.tile_types, self.views, self.pitch, self.pipes = {}, {}, {}, {}, {}
        self.names = {}
        self.offsets, self.hoisted, self._helpers, self._constants = set(), [], {}, {}
        self.tail = None
        self._depth = 0

    def call(self, op: Operation) -> ImageCall:
        """Return the call of an operation. It leaves out parts without effect on results, so that fewer
        functions are needed."""
        plain, kept = _plain(op)
        given = plain.operands
        try:  # try numbers as run-time values first; some calls need them as text
            plain.operands = _unknown(given)
            call = self._call(plain)
        except NoCall:
            plain.operands = _distinct(given)
            call = self._call(plain)
        finally:
            plain.operands = given
        if plain is op:
            return call
        arguments = tuple((kind, kept[n] if kind == "operand" else n) for kind, n in call.arguments)
        return ImageCall(call.name, arguments)

    def _call(self, op: Operation) -> ImageCall:
        function = function_of(op)
        assert function is not None
        self.op, self.now, self.here = function, op, op.loc
        self.lines, self.marks = [], []
        self._numbers = 0
        self._sources: list[tuple[Source, str]] = []  # sources of arguments with their C++ types
        self._at: dict[tuple[Source, str], int] = {}
        self._last: list[str] = []
        known = len(self.unit.problems)
        try:
            handler = _OWN.get(op.name) or HANDLERS.get(op.name, CppFunction.regular)
            handler(self, op)
        except Unspellable as e:
            raise NoCall(f"a value of type {e}") from None
        if len(self.unit.problems) > known:
            why = self.unit.problems[-1].message
            del self.unit.problems[known:]
            raise NoCall(why)
        return self._made(" ".join((*self.lines, *self._last)))

    def _made(self, text: str) -> ImageCall:
        order: dict[int, int] = {}
        for m in _SLOT.finditer(text):
            order.setdefault(int(m[1]), len(order))
        local: dict[str, int] = {}
        text = _SLOT.sub(lambda m: f"a{order[int(m[1])]}", text)
        text = _LOCAL.sub(lambda m: f"t{local.setdefault(m[1], len(local))}", text)
        used = [self._sources[i] for i in order]
        types = "".join(f"{type}& a{i}; " for i, (_, type) in enumerate(used))
        return ImageCall(types + text, tuple(source for source, _ in used))

    # -- places -------------------------------------------------------------------------------------------

    def _place(self, source: Source, type: str) -> str:
        at = self._at.get((source, type))
        if at is None:
            at = self._at[source, type] = len(self._sources)
            self._sources.append((source, type))
        return f"\x02{at}\x03"

    def slot(self, value: Value, type: str = "") -> str:
        for kind, values in (("operand", self.now.operands), ("result", self.now.results)):
            if value in values:
                return self._place((kind, values.index(value)), type or self.type_of(value))
        raise NoCall("a value of another operation")

    def type_of(self, value: Value) -> str:
        type = value.type
        if by_region(self.now.row) and isinstance(type, TileBufType) and not type.boxed:
            return self.types(type.replace(blayout="row_major", pad=0))
        if isinstance(type, ViewType):
            assert isinstance(self.types, OpenTypes)
            return self.types.open_view(type, self.layout(value))
        if type.kind == "group":
            return f"pto::comm::ParallelGroup<{self.member(value)}>"
        if isinstance(type, MemRefType | LocalArrayType):  # `lower` replaces these by other values
            raise NoCall(f"a value of type {type}")
        return self.types(type)

    def member(self, group: Value) -> str:
        """Return the C++ type of the tensors of a group."""
        made = group.op
        if made is None or made.name != "pto.make_group":
            raise NoCall("a group that is passed on")
        first = made.group("tensors")[0]
        return self.type_of(as_view(first))

    def layout(self, value: Value) -> str:
        """Return the layout in which the operation reads a view: the operation's own, or that of the view."""
        if "layout" in self.now.attrs and reads_otherwise(self.now, value):
            return str(self.now.attrs["layout"].value).upper()
        return (view_layout(value) or "ND").upper()

    def view_type(self, value: Value) -> str:
        return self.type_of(value)

    def text(self, value: Value) -> str:
        return self.slot(value)

    operand = unary = atom = text

    def name(self, value: Value, text: str, kind: int = ATOM) -> None:
        """Assign a text to a value after the call, because the call may change values in the text."""
        if not is_align(value.type):  # `lower` gives all states of a stream the same slot
            self._last.append(f"{self.slot(value)} = {text};")

    def define(self, value: Value, text: str, kind: int, type: str = "") -> None:
        self.declare(value, type or self.type_of(value), text)

    def declare(self, value: Value, type: str, init: str = "", extents: str = "") -> str:
        if extents:
            raise NoCall("a local array of the function")
        place = self.slot(value, type)
        if init or is_align(value.type):  # a stream starts empty
            self.line(f"{place} = {init or 'vector_align{}'};")
        return place

    def declare_result(self, value: Value) -> str:
        return self.slot(value)

    def constant(self, type: str, literal: str, mark: Any = None) -> str:
        number = _number(literal)
        if number is None:
            return f"{type}({literal})"
        return self._place(("number", number), type)

    def helper(self, type: str, init: str) -> str:
        number = _number(init)
        if number is None:
            number = _enumerator(type, init)
        if number is None and (kept := _KEPT.fullmatch(init)):
            return self._place(("register", _REGISTERS.index(kept[1])), type)
        if number is None:
            return f"{type}({init})" if "{" not in init else init
        return self._place(("number", number), type)

    def line(self, text: str) -> None:
        self.lines.append(text)


@cache
def _needless_scratch(instruction: str) -> frozenset[str]:
    """Return the scratch operands that do not change the overload of an instruction."""
    row = find_row(instruction)
    assert row is not None
    optional = (o.name for o in row.operands if o.role == "tmp" and o.optional)
    names = frozenset(optional) - {row.part_with}  # this operand selects another instruction
    found: dict[object, list[bool]] = {}
    for form in row.forms:
        said = frozenset(_NAMED.findall(form.cpp))
        found.setdefault((said - names, str(form.fixes)), []).append(bool(said & names))
    return names if all(False in ways for ways in found.values()) else frozenset()


_NAMED = re.compile(r"\$(\w+)")


def _plain(op: Operation) -> tuple[Operation, list[int]]:
    """Return an equivalent operation without inert attributes and needless scratch, and the indices of its
    operands in the original."""
    row = op.row
    if row is None:
        return op, []
    inert = [a.name for a in row.attrs if a.inert and a.name in op.attrs]
    scratch = _needless_scratch(row.full_name) if op.segments is not None else frozenset[str]()
    kept: list[int] = []
    segments: list[int] = []
    at = 0
    for declared, count in zip(row.operands, op.segments or (), strict=False):
        dropped = declared.name in scratch
        segments.append(0 if dropped else count)
        kept += () if dropped else range(at, at + count)
        at += count
    if op.segments is None:
        kept = list(range(len(op.operands)))
    if not inert and len(kept) == len(op.operands):
        return op, kept
    plain = copy(op)
    plain.attrs = {n: a for n, a in op.attrs.items() if n not in inert}
    plain.operands = [op.operands[n] for n in kept]
    plain.segments = tuple(segments) if op.segments is not None else None
    return plain, kept


def _unknown(values: list[Value]) -> list[Value]:
    """Return copies of the values, all distinct, without known numbers."""
    nowhere = Block()
    return [
        Value(v.type, nowhere, 0, v.name) if isinstance(v.type, ScalarType) else v for v in _distinct(values)
    ]


def _between_ranks(f: CppFunction, op: Operation) -> None:
    """Emit a copy from or to another rank. Our call needs no intermediate tiles, which `codegen.cpp` has to
    name.
    """
    if op.group("ping"):
        f.regular(op)
        return
    name = "TPUT" if op.name == "pto.tput" else "TGET"
    atomic = f"<{ENUMS['atomic_type'].spelling(str(op.attr('atomicType')))}>" if name == "TPUT" else ""
    values = ", ".join(f.tensor(op.group(n)[0]) for n in ("dst", "src"))
    f.line(f"pto::comm::{name}{atomic}({values});")


#: Operations with more forms in the library than `codegen.cpp` can spell.
_OWN: dict[str, Handler] = {"pto.tput": _between_ranks, "pto.tget": _between_ranks}


def _distinct(values: list[Value]) -> list[Value]:
    """Return distinct copies of the values, so that the call stays the same if an operand is passed twice."""
    seen: set[Value] = set()
    return [copy(v) if v in seen or seen.add(v) else v for v in values]


def _number(literal: str) -> int | None:
    if literal in ("true", "false"):
        return int(literal == "true")
    return int(literal.rstrip("ul")) if _NUMBER.match(literal) else None


def recorder(unit: Unit) -> Recorder:
    """Return a recorder for the operations of a program."""
    unit.types = OpenTypes(unit.profile, "int64_t")
    return Recorder(unit)


def printer(type: str) -> str:
    """Return the call that prints a number; its format is data of the program."""
    return f"char& a0; {type}& a1; cce::printf(&a0, a1);"
