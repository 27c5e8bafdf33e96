"""A program as objects: Value, Operation, Block, Region, Module; walking, uses and replacement.

Every operation keeps its source location (`loc`, a range of characters of any source) for diagnostics of all
later stages. Uses are not stored; `uses` computes them for a region.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..diag import Source, Span
from ..isa import scalars
from ..isa.row import Operand, Row
from ..shown import Shown
from .attrs import Attribute
from .types import ScalarType, Type

Numbers = tuple[int | float, ...]


class Value:
    """An SSA value: result of an operation or argument of a block."""

    __slots__ = ("index", "name", "owner", "type")

    def __init__(self, type: Type, owner: Operation | Block, index: int = 0, name: str = "") -> None:
        self.type = type
        self.owner = owner
        self.index = index
        self.name = name

    @property
    def op(self) -> Operation | None:
        """Return the defining operation; None for a block argument."""
        return self.owner if isinstance(self.owner, Operation) else None

    def __repr__(self) -> str:
        return f"<Value %{self.name or '?'} : {self.type}>"


class _NoAttrs(dict[str, Attribute]):
    """The shared attributes of all operations without attributes; nothing may be added to them."""

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise TypeError("operations without attributes share an empty dictionary: use set_attr")

    __setitem__ = setdefault = update = _refused  # pyright: ignore[reportAssignmentType]


_NO_ATTRS = _NoAttrs()


def may_name(text: str) -> bool:
    """Check whether a text may name an operation: with a dialect, and printable without escapes."""
    return "." in text and text.isprintable() and not {'"', "\\"} & set(text)


class Operation:
    """One operation. `row` is its table row, None for an operation of an unknown dialect.

    `operands` is flat; if the row has optional or variadic operands, `segments` has the number of values of
    each of `row.operands`. `loc` is None for operations without a source; its parts `source`, `start` and
    `end` are for parsers, which set them often.
    """

    __slots__ = (
        "attrs", "end", "name", "operands", "parent", "regions", "results", "row", "segments", "source",
        "start", "successors",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        row: Row | None,
        operands: list[Value],
        result_types: list[Type] | tuple[Type, ...] = (),
        attrs: dict[str, Attribute] | None = None,
        segments: tuple[int, ...] | None = None,
        loc: Span | None = None,
    ) -> None:
        self.name = name
        self.row = row
        self.operands = operands
        self.results: list[Value] | tuple[Value, ...] = (
            [Value(t, self, i) for i, t in enumerate(result_types)] if result_types else ()
        )
        self.attrs: dict[str, Attribute] = attrs if attrs else _NO_ATTRS
        self.segments = segments
        self.regions: list[Region] | tuple[Region, ...] = ()
        self.successors: tuple[Successor, ...] = ()
        self.source: Source | None = None
        if loc is not None:
            self.source, self.start, self.end = loc.source, loc.start, loc.end
        self.parent: Block | None = None

    def get(self, name: str) -> Value | None:
        """Return the value of a named operand, or None if it is absent."""
        values = self.group(name)
        return values[0] if values else None

    def group(self, name: str) -> list[Value]:
        """Return the values of a named operand (several for a variadic one)."""
        assert self.row is not None
        index = self.row.operand_index[name]
        if self.segments is None:
            return self.operands[index : index + 1]
        at = sum(self.segments[:index])
        return self.operands[at : at + self.segments[index]]

    def named(self) -> Iterator[tuple[Operand, Value]]:
        """Yield (operand declaration, value) pairs in order."""
        assert self.row is not None
        if self.segments is None:
            yield from zip(self.row.operands, self.operands, strict=False)
            return
        at = 0
        for declared, count in zip(self.row.operands, self.segments, strict=True):
            for value in self.operands[at : at + count]:
                yield declared, value
            at += count

    def set_attr(self, name: str, value: Attribute) -> None:
        if self.attrs is _NO_ATTRS:
            self.attrs = {}
        self.attrs[name] = value

    def attr(self, name: str) -> Any:
        """Return the Python value of an attribute, its declared default if absent, else None."""
        found = self.attrs.get(name)
        if found is not None:
            return found.value
        declared = self.row.attr_index.get(name) if self.row else None
        return declared.default if declared else None

    @property
    def result(self) -> Value:
        return self.results[0]

    @property
    def loc(self) -> Span | None:
        """Return the source location."""
        return None if self.source is None else Span(self.source, self.start, self.end)

    @loc.setter
    def loc(self, loc: Span) -> None:
        self.source, self.start, self.end = loc.source, loc.start, loc.end

    @property
    def outer(self) -> Operation | None:
        """Return the operation whose region holds this one."""
        return self.parent.outer if self.parent is not None else None

    @property
    def order(self) -> tuple[int, ...]:
        """Return a key that sorts operations by their order in the program."""
        steps: list[int] = []
        op: Operation | None = self
        while op is not None and op.parent is not None:
            block = op.parent
            steps.append(block.ops.index(op))
            region = block.parent
            if region is None:
                break
            steps.append(region.blocks.index(block))
            op = region.parent
            if op is not None:
                steps.append(op.regions.index(region))
        return tuple(reversed(steps))

    def walk(self) -> Iterator[Operation]:
        """Yield this operation and all nested ones, pre-order."""
        stack: list[Operation] = [self]
        while stack:
            op = stack.pop()
            yield op
            if op.regions:
                for region in reversed(op.regions):
                    for block in reversed(region.blocks):
                        stack.extend(reversed(block.ops))

    def __repr__(self) -> str:
        return f"<Operation {self.name}>"


class Successor:
    """A branch target with the values passed to it."""

    __slots__ = ("args", "block")

    def __init__(self, block: Block, args: list[Value]) -> None:
        self.block = block
        self.args = args


class Block:
    __slots__ = ("args", "label", "ops", "parent")

    def __init__(self, label: str = "") -> None:
        self.args: list[Value] = []
        self.ops: list[Operation] = []
        self.label = label
        self.parent: Region | None = None

    def add_arg(self, type: Type, name: str = "") -> Value:
        value = Value(type, self, len(self.args), name)
        self.args.append(value)
        return value

    @property
    def outer(self) -> Operation | None:
        """Return the operation whose region holds this block."""
        return self.parent.parent if self.parent is not None else None

    def append(self, op: Operation) -> Operation:
        op.parent = self
        self.ops.append(op)
        return op


class Region:
    __slots__ = ("blocks", "parent")

    def __init__(self, parent: Operation | None = None) -> None:
        self.blocks: list[Block] = []
        self.parent = parent

    def add_block(self, label: str = "") -> Block:
        block = Block(label)
        block.parent = self
        self.blocks.append(block)
        return block

    @property
    def entry(self) -> Block | None:
        return self.blocks[0] if self.blocks else None


def _defined_elsewhere(function: Operation, functions: Sequence[Operation]) -> Operation | None:
    """Return the function of a declaration that another module defines for other modules, if there is one."""
    if function.regions[0].blocks:
        return None
    name = function.attr("sym_name")
    for other in functions:
        if other.attr("sym_name") == name and other.regions[0].blocks and other.outer is not function.outer:
            return other if other.attr("sym_visibility") != "private" else None
    return None


class Module(Shown):
    """A whole program. `source` is its own text, though operations may come from others; `implicit` means
    that its functions had no `module` around them."""

    __slots__ = ("__weakref__", "implicit", "op", "source")

    def __init__(self, op: Operation, source: Source, implicit: bool = False) -> None:
        self.op = op
        self.source = source
        self.implicit = implicit

    def __repr__(self) -> str:
        names = ", ".join(f"@{f.attr('sym_name')}" for f in self.functions)
        return f"<Module {names or 'without functions'}>"

    @property
    def body(self) -> Block:
        return self.op.regions[0].blocks[0]

    @property
    def attrs(self) -> dict[str, Attribute]:
        return self.op.attrs

    @property
    def functions(self) -> list[Operation]:
        """Return every function, in the order of the text. A function that one module declares and another
        defines counts once, as the definition."""
        found: list[Operation] = []
        stack = [self.op]
        while stack:
            op = stack.pop()
            if op.name == "func.func":
                found.append(op)
            for region in reversed(op.regions):
                for block in reversed(region.blocks):
                    stack += [o for o in reversed(block.ops) if o.regions or o.name == "func.func"]
        return [f for f in found if _defined_elsewhere(f, found) is None]

    @property
    def declarations(self) -> Iterator[tuple[Operation, Operation]]:
        """Yield declarations of functions that another module of the text defines, each with its function."""
        found = [op for op in self.walk() if op.name == "func.func"]
        for function in found:
            other = _defined_elsewhere(function, found)
            if other is not None:
                yield function, other

    def function(self, name: str) -> Operation | None:
        for op in self.functions:
            if op.attr("sym_name") == name:
                return op
        return None

    def walk(self) -> Iterator[Operation]:
        return self.op.walk()

    @property
    def sources(self) -> list[Source]:
        """Return its own source and those of its operations, in order of appearance."""
        return list(dict.fromkeys((self.source, *(op.source for op in self.walk() if op.source is not None))))

    def span(self, op: Operation) -> Span:
        """Return the location of an operation; the beginning of the source if it has none."""
        return op.loc or Span(self.source, 0, 0)

    def mark(self, op: Operation) -> int:
        """Return a number for the location of an operation that is stable through all passes, or -1: its
        offset in the own source of the module, or a number above all offsets for another source."""
        loc = op.loc
        if loc is None or loc.source is self.source:
            return -1 if loc is None else loc.start
        from zlib import crc32

        return 1 << 30 | crc32(f"{loc.source.name}:{loc.start}".encode("utf-8", "surrogateescape")) >> 2

    def line(self, op: Operation, last: bool = False) -> str:
        """Return the first or last line of an operation, as in messages: `12`, or `12 of k.py` outside the
        own source of the module."""
        span = self.span(op)
        number = span.source.place(max(span.start, span.end - 1))[0] if last else span.line
        if span.source is self.source:
            return str(number)
        name = span.source.name  # Python uses the whole paths of its files
        return f"{number} of {os.path.basename(name) if name.endswith('.py') else name}"


def uses(region: Region) -> dict[Value, list[tuple[Operation, int]]]:
    """Return every use of every value inside a region: value -> [(operation, operand index)]."""
    found: dict[Value, list[tuple[Operation, int]]] = {}
    for block in region.blocks:
        for top in block.ops:
            for op in top.walk():
                for index, value in enumerate(op.operands):
                    found.setdefault(value, []).append((op, index))
                for successor in op.successors:
                    for value in successor.args:
                        found.setdefault(value, []).append((op, -1))
    return found


def replace_uses(region: Region, old: Value, new: Value) -> int:
    """Replace every use of `old` by `new`; return the number of replacements."""
    count = 0
    for op, index in uses(region).get(old, ()):
        if index >= 0:
            op.operands[index] = new
            count += 1
    for block in region.blocks:
        for top in block.ops:
            for op in top.walk():
                for successor in op.successors:
                    count += sum(v is old for v in successor.args)
                    successor.args = [new if v is old else v for v in successor.args]
    return count


#: Attributes that make a function a kernel entry: the current name, a newer one and the older two.
ENTRY_MARKS = ("pto.entry", "pto.kernel", "hacc.entry", "pto.aicore")


#: The mark of a loop that represents a vecscope in lowered programs.
LOWERED_VECSCOPE = "llvm.loop.aivector_scope"


def entry_mark(func: Operation) -> str | None:
    """Return the attribute that makes a function a kernel entry, if it has one."""
    return next((mark for mark in ENTRY_MARKS if mark in func.attrs), None)


# -- constants ----------------------------------------------------------------------------------------------

#: Limit for the operations that `constant_of` visits.
_MOST_FOLDED = 64


def constant_of(value: Value | None) -> int | float | None:
    """Return the number a value is known to be, as an engine computes it from constants; None if unknown."""
    op = value.owner if value is not None else None
    if not isinstance(op, Operation):
        return None
    if op.name == "arith.constant":
        return _literal(op)
    if op.row is None or op.row.set != "scalar" or not op.operands:
        return None
    found = _folded(op, {})
    return None if found is None or value is None else found[value.index]


def _literal(op: Operation) -> int | float | None:
    number, type = getattr(op.attrs.get("value"), "value", None), op.results[0].type
    if not isinstance(number, int | float) or not isinstance(type, ScalarType):
        return None
    return scalars.fit(type.text)(number) if (type.bits or 0) <= scalars.FOLDED else None


def _folded(op: Operation, known: dict[Operation, Numbers | None]) -> Numbers | None:
    """Fold an operation and the operations that it uses. `known` has the operations that this call has
    visited.
    """
    if op in known or len(known) == _MOST_FOLDED:
        return known.get(op)
    known[op] = None  # an operation that uses its own result has no known result
    numbers: list[int | float] = []
    for v in op.operands:
        made = v.owner
        if not isinstance(made, Operation):
            return None
        if made.name == "arith.constant":
            number = _literal(made)
        elif made.row is None or made.row.set != "scalar" or (found := _folded(made, known)) is None:
            return None
        else:
            number = found[v.index]
        if number is None:
            return None
        numbers.append(number)
    found = known[op] = folded(op, numbers)
    return found


def folded(op: Operation, numbers: Sequence[int | float]) -> Numbers | None:
    """Return the results of a scalar operation on integers whose operands are known.

    Return None for an operation that is not folded: on floats, illegal in every program, or with a result
    that the table does not define.
    """
    if not numbers or (function := scalar_function(op, folding=True)) is None:
        return None
    try:
        found = function(*numbers)
    except ArithmeticError:
        return None
    return (found,) if len(op.results) == 1 else found


def scalar_function(op: Operation, folding: bool = False) -> Callable[..., Any] | None:
    """Return the function of `isa.scalars` that an operation computes, if it has one."""
    row = op.row
    if row is None or row.set != "scalar":
        return None
    types, results = tuple(str(v.type) for v in op.operands), tuple(str(r.type) for r in op.results)
    expr = row.expr
    if row.algorithm == "scalar bits" and scalars.width(results[0]):
        expr = "src"  # the result has the same bits as the operand, so it is the wrapped number
    if not expr:
        return None
    decided = tuple(str(op.attr(name)) for name in scalars.deciding(expr))
    return scalars.function(expr, tuple(row.operand_index), decided, types, results, folding)
