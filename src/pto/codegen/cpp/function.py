"""Emission of one function: values and their names, constants, statements and guards.

A pure scalar value with a single use in its own block is folded into that use; every other value is a
variable. In the body a variable is a token (`\\x01` and a number). At the end it gets the name of its value
in the program, or else v1, v2, ... in order of appearance, so that constants found in the middle of the body
count first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...diag import Span
from ...ir.core import Block, Operation, Value
from ...ir.facts import in_global, may_fail, view_layout
from ...ir.types import (
    ConvTileType,
    FunctionType,
    MemRefType,
    PtrType,
    ShapedType,
    TileBufType,
    TokenType,
    Type,
    ViewType,
    VRegType,
)
from ...isa.dtypes import DTYPES
from ...isa.enums import ENUMS
from ...isa.record import Record
from .spelling import NARROW, Unspellable, identifier
from .template import Alternative, template
from .unit import Unit

#: Binding strength of a text: a name or call, a cast, any other expression.
ATOM, CAST, OTHER = 0, 1, 2

_LONGEST = 160  # longest expression that is not yet a variable
_TOKEN = re.compile("\x01(\\d+)")

Handler = Callable[["CppFunction", Operation], None]
HANDLERS: dict[str, Handler] = {}
#: Kinds of places in spellings, in addition to those of every row.
PLACES: dict[str, Callable[[CppFunction, Operation, str, dict[str, str]], str]] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register the emitter of operations whose row has no regular spelling."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


#: Operations that read a view without needing it as a GlobalTensor.
_VIEW_QUERIES = frozenset(
    ("pto.partition_view", "pto.get_tensor_view_dim", "pto.get_tensor_view_stride", "pto.tensor_view_addr",
     "pto.initialize_l2g2l_pipe")
)  # fmt: skip
#: Operations that hand on a tile, so that the tile needs the C++ type of its IR type.
_HANDS_ON = frozenset(("scf.yield", "scf.condition", "func.call", "func.return", "scf.for", "scf.while",
                       "cf.br", "cf.cond_br", "cf.switch", "arith.select"))  # fmt: skip


def reads_otherwise(op: Operation, view: Value) -> bool:
    """Return True if an access reads its window in another layout than the window's own."""
    return str(op.attrs["layout"].value).upper() != (view_layout(view) or "ND")


def _as_tile(op: Operation, value: Value) -> bool:
    """Return True if an operation takes one of its operands as a tile."""
    row = op.row
    return row is not None and any("tile" in o.kinds and value in op.group(o.name) for o in row.operands)


def all_lanes(op: Operation) -> int:
    """Return the granularity of a mask for all lanes of the first register of an instruction."""
    first = next(v for v in (*op.operands, *op.results) if isinstance(v.type, VRegType))
    return min(DTYPES[str(first.type.dtype)].bits, 32)  # type: ignore[attr-defined]


Extent = int | Value


class KnownView:
    """Known facts of a view: its start, extents and strides."""

    def __init__(
        self, pointer: str, dims: list[Extent], strides: list[Extent], layout: str, elem: str,
        terms: tuple[tuple[Value, Extent], ...] = (),
    ) -> None:  # fmt: skip
        self.pointer = pointer
        self.dims = dims
        self.strides = strides
        self.layout = layout
        self.elem = elem
        self.terms = terms  # offset and stride of every window taken
        self.type = ""

    def but(self, layout: str) -> KnownView:
        """Return the same window in another layout."""
        return KnownView(self.pointer, self.dims, self.strides, layout, self.elem, self.terms)


class Parts(Record):
    """The parts of functions for the modules that use them: `program` joins these parts."""

    body: Callable[[CppFunction], None]
    expression: Handler
    with_tiles: Callable[[CppFunction, Operation, Handler], None]
    memref_tensor: Callable[[CppFunction, Value], str]


class CppFunction:
    def __init__(self, unit: Unit, op: Operation, parts: Parts) -> None:
        self.unit = unit
        self.op = op
        self.parts = parts
        self.types = unit.types
        self.lines: list[str] = []
        self.marks: list[Span | None] = []  # the source location of each line
        self.indent = "  "
        self.here = op.loc
        self.known: dict[Value, tuple[str, int]] = {}  # value -> text, binding strength
        self.bare: dict[Value, str] = {}  # induction variables without the cast to the index type
        self.tile_types: dict[Value, str] = {}
        self.views: dict[Value, KnownView] = {}
        # by window of a tile: the shape of the storage that contains the window
        self.pitch: dict[Value, tuple[int, int]] = {}
        self.pipes: dict[Value, str] = {}  # FIFO handles -> C++ type
        self.hoisted: list[str] = []
        self.crossing: set[Value] = set()  # values of one basic block that another block uses
        self.labels: dict[Block, str] = {}
        # values that a yield assigns, by the operation it leaves
        self.yields: dict[Operation, list[Value]] = {}
        self.leave: dict[Operation, str] = {}  # its jump target, if not the next operation
        self._labels = 0
        self.tail: Operation | None = None
        self._numbers = 0
        self.names: dict[str, str] = {}  # number of a token -> its name in the program
        self._constants: dict[tuple[str, str], tuple[str, Span | None, bool]] = {}
        self.offsets: set[str] = set()  # constants that are planned addresses
        self._helpers: dict[tuple[str, str], str] = {}
        self._depth = 0
        self._count()

    # -- values -------------------------------------------------------------------------------------------

    def _count(self) -> None:
        count: dict[Value, int] = {}
        where: dict[Value, Block | None] = {}
        self.shown_views: set[Value] = set()
        self.handed_on: set[Value] = set()
        self.memref_tiles: set[Operation] = set()  # instructions with a memref in place of a tile
        for op in self.op.walk():
            parent, name = op.parent, op.name
            for value in op.operands:
                count[value] = count.get(value, 0) + 1
                where[value] = parent
                type = value.type
                if isinstance(type, ViewType):
                    own = "layout" in op.attrs and reads_otherwise(op, value)
                    if name not in _VIEW_QUERIES and not own:
                        self.shown_views.add(value)
                elif name in _HANDS_ON and isinstance(type, TileBufType):
                    self.handed_on.add(value)
                elif isinstance(type, MemRefType) and type.local and _as_tile(op, value):
                    self.memref_tiles.add(op)
            for successor in op.successors:
                for value in successor.args:
                    count[value] = count.get(value, 0) + 1
                    where[value] = parent
            if name == "pto.make_tensor_view":  # strides and sizes are printed more than once
                for value in op.group("strides"):
                    count[value] += 1
            elif name == "pto.partition_view":
                for value in op.group("sizes"):
                    count[value] += 1
        self.count, self.where = count, where

    def token(self, name: str = "") -> str:
        """Return a fresh variable; `name` is a wish."""
        self._numbers += 1
        if name:
            self.names[str(self._numbers)] = name
        return f"\x01{self._numbers}"

    def text(self, value: Value) -> str:
        """Return a value as an argument or right-hand side."""
        found = self.known.get(value)
        return found[0] if found is not None else self._missing(value)

    def operand(self, value: Value) -> str:
        """Return a value as an operand of a binary operator."""
        text, kind = self.known.get(value) or (self._missing(value), ATOM)
        return f"({text})" if kind == OTHER else text

    def unary(self, value: Value) -> str:
        """Return a value after a cast or sign."""
        text, kind = self.known.get(value) or (self._missing(value), ATOM)
        return text if kind == ATOM else f"({text})"

    def _missing(self, value: Value) -> str:
        """Report a value without a spelling, unless its definition was reported."""
        if not self.unit.problems:
            op = value.op or self.op
            self.unit.report(op, "PTO-E1302", f"cannot emit a value of type {value.type} in C++")
        return "0"

    def atom(self, value: Value) -> str:
        """Return a value as a name; an expression becomes a variable of the current scope."""
        text, kind = self.known.get(value) or (self._missing(value), ATOM)
        if kind == ATOM:
            return text
        token = self.token()
        self.line(f"{self.types(value.type)} {token} = {text};")
        return token

    def name(self, value: Value, text: str, kind: int = ATOM) -> None:
        """Set the text of a value."""
        self.known[value] = text, kind

    def define(self, value: Value, text: str, kind: int, type: str = "") -> None:
        """Emit a pure value: folded into its only use, else a variable; skip unused values."""
        uses = self.count.get(value, 0)
        if not uses:
            return
        if kind == ATOM and text[0] == "\x01":
            self.known[value] = text, kind
            return
        type = type or self.types(value.type)
        if uses == 1 and value not in self.crossing and len(text) < _LONGEST:
            op = value.op
            if op is not None and self.where[value] is op.parent:
                if kind != CAST and type in NARROW:  # C++ computes it in a wider type
                    text, kind = f"({type}) ({text})", CAST
                self.known[value] = text, kind
                return
        self.declare(value, type, text)

    def declare(self, value: Value, type: str, init: str = "", extents: str = "") -> str:
        """Declare a variable for a value, with its initial value if there is one; `extents` of an array."""
        token = self.token()
        self.known[value] = token, ATOM
        if value not in self.crossing:
            self.line(f"{type} {token} = {init};" if init else f"{type} {token}{extents};")
            return token
        tail = "(nullptr)" if type.startswith("GlobalTensor<") else extents
        self.hoisted.append(f"{type} {token}{tail};")
        if init:
            self.line(f"{token} = {init};")
        return token

    def constant(self, type: str, literal: str, mark: Span | None = None) -> str:
        """Return the hoisted constant of a type; equal constants share a variable."""
        key = type, literal
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.token(), mark, self._depth > 0
        return found[0]

    def helper(self, type: str, init: str) -> str:
        """Return a hoisted variable for other values: enum values, offsets, the null pointer."""
        key = type, init
        found = self._helpers.get(key)
        if found is None:
            found = self._helpers[key] = self.token()
        return found

    def tile_type(self, value: Value) -> str:
        return self.tile_types.get(value) or self.types(value.type)

    def element(self, base: str, index: str, of: Value, use: str = "read") -> str:
        """Return an element of a pointer or memref at an index, to read or to write it."""
        if self.unit.checked and in_global(of.type):
            return f"pto::detail::element<pto::detail::Use::{use}>({base}, {index})"
        if self.unit.checked and isinstance(of.type, PtrType) and of.type.space == "ub":
            return f"pto::detail::element_of_ub({base}, {index})"  # its address may be an offset
        return f"{base}[{index}]"

    def type_of(self, value: Value) -> str:
        """Return the C++ type of an operand: that of its variable, if it is narrower than the IR type."""
        if isinstance(value.type, ViewType):
            return self.view_type(value)
        return self.pipes.get(value) or self.tile_type(value)

    def view_type(self, value: Value) -> str:
        """Return the C++ type of the tensor of a view."""
        view = self.views.get(value)
        return view.type if view is not None and view.type else self.types(value.type)

    # -- statements ---------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)
        self.marks.append(self.here)

    def block(self, block: Block) -> None:
        """Emit the operations of a block."""
        handlers, checked = HANDLERS, self.unit.checked
        for op in block.ops:
            self.here = op.loc
            if checked and may_fail(op):
                self.line(f"pto::detail::mark({self.unit.module.mark(op)});")
            handler = handlers.get(op.name, CppFunction.regular)
            if op in self.memref_tiles:
                self.parts.with_tiles(self, op, handler)
            else:
                handler(self, op)
            if checked and op.row is not None and op.row.dialect == "arith" and may_fail(op):
                self.line(f"pto::detail::now({self.operand(op.result)});")

    def nested(self, block: Block) -> None:
        """Emit the operations of a block, one level deeper."""
        self.indent += "  "
        self._depth += 1
        self.block(block)
        self.close()

    def open(self) -> None:
        self.indent += "  "
        self._depth += 1

    def close(self) -> None:
        if self.lines[-1].endswith(":"):  # a label needs a statement
            self.lines[-1] += ";"
        self.indent = self.indent[:-2]
        self._depth -= 1

    def regular(self, op: Operation) -> None:
        """Emit an operation with a spelling from the table."""
        row = op.row
        if row is not None and row.dialect in ("arith", "math"):
            self.parts.expression(self, op)
            return
        if row is None or not row.cpp or self.unit.other_registers(op):
            self.unit.no_spelling(op)
            return
        chosen, left = template(row, self.unit.profile.isa).choose(op)
        if chosen is None:
            self.unit.no_spelling(op, left)
            return
        text = self.fill(op, chosen)
        written = {name.partition(":")[0] for kind, name in chosen.places if kind != "text"}
        if op.results and not any(r.name in written for r in row.results):
            result = op.results[0]
            if self.count.get(result) or row.set == "comm":
                self.declare(result, self.types(result.type), text)
            elif row.effect != "pure":
                self.line(text + ";")
            return
        for statement in text.split("; "):
            self.line(statement + ";")

    def fill(self, op: Operation, chosen: Alternative) -> str:
        """Return the text of an alternative for one operation."""
        out: list[str] = []
        row = op.row
        assert row is not None
        own: dict[str, str] = {}  # registers for the internal use of the call
        for kind, name in chosen.places:
            if kind == "text":
                out.append(name)
            elif kind == "value":
                out.append(self._value(op, name))
            elif kind == "cast":
                out.append(self.unary(op.group(name)[0]))
            elif kind == "type":
                out.append(self.type_of(op.group(name)[0]))
            elif kind == "elem":
                out.append(self.types.scalar(op.group(name)[0].type.elem))  # type: ignore[attr-defined]
            elif kind in PLACES:
                out.append(PLACES[kind](self, op, name, own))
            else:
                out.append(self._attr(op, kind, name))
        return "".join(out)

    def _value(self, op: Operation, name: str) -> str:
        row = op.row
        assert row is not None
        index = row.operand_index.get(name)
        if index is None:
            at = next(i for i, r in enumerate(row.results) if r.name == name)
            return self.declare_result(op.results[at])
        if row.operands[index].kind != "tile" and "view" in row.operands[index].kind:
            return ", ".join(self.tensor(v) for v in op.group(name))
        if op.segments is None:
            return self.text(op.operands[index])
        if name == "mask" and not op.group(name):
            return f"pset_b{all_lanes(op)}(PAT_ALL)"
        return ", ".join(self.text(v) for v in op.group(name))

    def tensor(self, value: Value) -> str:
        """Return a view as the object for an instruction; a memref of global memory becomes one."""
        if isinstance(value.type, MemRefType) and not value.type.local:
            return self.parts.memref_tensor(self, value)
        return self.text(value)

    def declare_result(self, value: Value) -> str:
        found = self.known.get(value)
        return found[0] if found is not None else self.declare(value, self.types(value.type))

    def _attr(self, op: Operation, kind: str, name: str) -> str:
        value: Any = op.attr(name)
        if value is None and name == "cmpMode":
            value = "eq"
        assert op.row is not None
        attr = op.row.attr_index[name]
        if attr.kind in ENUMS and kind in ("attr", "variable"):
            text = ENUMS[attr.kind].spelling(str(value))
            return self.helper(text.rpartition("::")[0], text) if kind == "variable" else text
        if kind == "number":
            return str(int(value or 0))
        if kind == "camel":
            return "".join(w[:1].upper() + w[1:] for w in str(value).split("_"))
        if isinstance(value, bool) or attr.kind == "bool":
            text = "true" if value else "false"
            return self.constant("bool", text) if kind == "variable" else text
        if kind == "attr":
            return attr.words.get(str(value), str(value))
        return str(value).upper() if kind == "upper" else str(value)

    # -- the whole function -------------------------------------------------------------------------------

    def emit(self) -> tuple[list[str], list[Span | None]]:
        """Return the lines of the function with their source locations, variables still as tokens."""
        head = self.signature()
        self.unit.guard(self.op, self.parts.body, self)
        for value, (text, _) in self.known.items():
            if (m := _TOKEN.fullmatch(text)) is not None:
                self.names.setdefault(m[1], value.name)
        lines = [head + " {"]
        marks = [self.op.loc]
        used = set(_TOKEN.findall("\n".join(self.lines)))
        helpers = sorted(self._helpers.items(), key=lambda h: h[0][0] != "SaturationMode")
        for (type, init), token in helpers:
            lines.append(f"  {type} {token} = {init};")
            marks.append(None)
        constants = [(t, x, *found) for (t, x), found in self._constants.items() if found[0][1:] in used]
        placed = [c for c in constants if c[2] in self.offsets]
        outer = [c for c in constants if c[2] not in self.offsets and not c[4]]
        inner = [c for c in constants if c[2] not in self.offsets and c[4]]
        for type, literal, token, mark, _ in (*placed, *reversed(outer), *inner):
            lines.append(f"  const {type} {token} = {literal};")
            marks.append(mark)
        lines += [f"  {text}" for text in self.hoisted]
        lines.append("  using T = float;")
        lines += self.lines
        marks += [None] * (len(lines) - len(self.lines) - len(marks)) + self.marks
        lines.append("}")
        marks.append(None)
        return lines, marks

    def signature(self) -> str:
        op = self.op
        function = op.attrs["function_type"].value
        assert isinstance(function, FunctionType)
        name = identifier(str(op.attr("sym_name")))
        blocks = op.regions[0].blocks
        result = "void"
        arguments: list[str] = []
        try:
            if len(function.results) > 1:
                raise Unspellable("several results")
            if function.results:
                result = self.types(function.results[0])
            if blocks:
                for value in blocks[0].args:
                    token = self.token()
                    self.known[value] = token, ATOM
                    arguments.append(f"{self.parameter(value.type)}{token}")
            else:
                arguments = [f"{self.parameter(t)}{self.token()}" for t in function.inputs]
        except Unspellable as e:
            self.unit.report(
                op, "PTO-E1302", f"cannot emit a function with {e} in its signature",
                help="pass pointers and scalars, and make views of them inside",
            )  # fmt: skip
        return f"{self.unit.prefix(op)}{result} {name}({', '.join(arguments)})"

    def parameter(self, type: Type) -> str:
        """Return the type of a parameter, ready for its name: objects go by reference."""
        by_reference = isinstance(type, TileBufType | ConvTileType | ViewType | ShapedType | TokenType)
        return f"{self.types(type)}{'& ' if by_reference else ' '}"

    def label(self) -> str:
        self._labels += 1
        return f"label{self._labels}"
