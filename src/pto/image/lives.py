"""Lifetimes of the operands of products in L1, L0A and L0B.

A core of the virtual machine may defer the copies into these memories
(native/include/pto/ops/deferred_copies.hpp) if the function accesses them in no other way. The image then
marks the deferred copies that are not needed any more, and the operations after which the source of a copy
may be overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.core import Block, Operation, Region, Value, constant_of
from ..ir.types import MemRefType, PtrType, TileBufType, ViewType
from ..isa.machine import MEMORIES, SECTIONS
from ..passes.edit import operations

_MEMORIES = ("mat", "left", "right")
_SPACES = {MEMORIES[name].space for name in _MEMORIES}
_PRODUCTS = ("pto.tmatmul", "pto.tmatmul.acc")
_COPIES = ("pto.tload", "pto.textract", "pto.tmov")
_ALLOCATIONS = ("pto.alloc_tile", "pto.declare_tile")
#: Operations that leave the sources of copies unchanged; others may write them, or let other cores do so.
_QUIET = frozenset((*_PRODUCTS, *_COPIES, "pto.tpop"))
_EFFECTS = ("memory", "sync", "io")
#: Regions that run at most once.
_PLAIN = ("scf.if", "scf.index_switch", "scf.execute_region", *SECTIONS)


class Lives:
    """The lifetimes in a function whose copies may be deferred."""

    def __init__(self) -> None:
        #: Tiles that are not read any more after an operation.
        self.ended: dict[Operation, list[Value]] = {}

    @staticmethod
    def tells(op: Operation) -> bool:
        """Return True if the sources of copies may be written from this operation on."""
        return op.row is None or (op.row.effect in _EFFECTS and op.name not in _QUIET)


def lives(function: Operation, kind: str) -> Lives | None:
    """Return the lifetimes of a function; None if copies cannot be deferred, or if that is useless."""
    if not any(op.name in _PRODUCTS for op in operations(function.regions[0])):
        return None
    found = _TileLives(kind)
    try:
        found.collect(function.regions[0])
        if not found.products:
            return None
        found.region(function.regions[0], 0)
    except _UnclearAccess:
        return None
    made = Lives()
    found.end(function.regions[0], made)
    return made


class _UnclearAccess(Exception):
    """The function accesses those memories in another way."""


class _TileLives:
    """The tiles of a function, by number; a set of tiles is the bits of a number."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.tiles: list[Value] = []
        self.bits: dict[Value, int] = {}
        self.after: dict[Operation, int] = {}  # tiles that are read after an operation
        self.products = 0

    def regions(self, op: Operation) -> Sequence[Region]:
        """Return the regions that this kind of core executes."""
        own = SECTIONS.get(op.name)
        return () if own is not None and self.kind not in ("mix", own) else op.regions

    # -- collecting tiles ------------------------------------------------------------------------------------

    def collect(self, region: Region) -> None:
        if len(region.blocks) > 1:
            raise _UnclearAccess
        for block in region.blocks:
            if any(_is_operand(v) for v in block.args):
                raise _UnclearAccess
            for op in block.ops:
                self._look(op)
                for inner in self.regions(op):
                    self.collect(inner)

    def _look(self, op: Operation) -> None:
        name = op.name
        if name == "func.call" or any(_is_memory(v) for v in op.results):
            raise _UnclearAccess
        if name in _ALLOCATIONS and _is_operand(op.results[0]):
            if name == "pto.alloc_tile":
                self.bits[op.results[0]] = 1 << len(self.tiles)
                self.tiles.append(op.results[0])
            return  # a copy into a tile of a FIFO is never deferred
        if any(map(_is_operand, op.results)):  # the operation gives a tile another name
            raise _UnclearAccess
        given = [v for v in op.operands if _is_operand(v)]
        if not given and name not in _PRODUCTS:
            return
        if name not in _QUIET or any(not _is_plain(v.type) for v in given):
            raise _UnclearAccess
        if name in _COPIES:
            source, target = op.operands[0].type, op.operands[-1].type
            moved = name == "pto.tload" or (isinstance(source, TileBufType) and source.loc == "mat")
            if (
                len(op.operands) != (4 if name == "pto.textract" else 2)
                or not moved
                or not _is_operand(op.operands[-1])
            ):
                raise _UnclearAccess
            if getattr(source, "elem", None) != getattr(target, "elem", None):
                raise _UnclearAccess
        self.products += name in _PRODUCTS

    # -- liveness --------------------------------------------------------------------------------------------

    def _uses(self, op: Operation) -> tuple[int, int]:
        """Return the tiles that an operation reads, and those that it overwrites completely."""
        bits = self.bits
        if op.name in _PRODUCTS:
            return sum({bits[v] for v in op.operands if v in bits}), 0
        if op.name in _ALLOCATIONS:
            return 0, bits.get(op.results[0], 0)
        if op.name in _COPIES and op.operands[-1] in bits:
            target = op.operands[-1].type
            assert isinstance(target, TileBufType)
            whole = (target.v_row, target.v_col) == (target.rows, target.cols)
            source = op.operands[0].type
            if isinstance(source, ViewType):  # a copy to L1 writes at most the elements of the tile
                whole = whole and source.elems == target.rows * target.cols
            return bits.get(op.operands[0], 0), bits[op.operands[-1]] if whole else 0
        return 0, 0

    def region(self, region: Region, live: int) -> int:
        """Return the tiles live at the beginning of a region, given those live after it."""
        return self.block(region.blocks[0], live) if region.blocks else live

    def block(self, block: Block, live: int) -> int:
        for op in reversed(block.ops):
            if op.regions:
                live = self.nested(op, live)
                continue
            self.after[op] = live
            read, replaced = self._uses(op)
            live = live & ~replaced | read
        return live

    def nested(self, op: Operation, live: int) -> int:
        inner = self.regions(op)
        if op.name == "scf.for":
            return self._again(lambda at: self.region(inner[0], at), live)
        if op.name == "scf.while":
            return self._again(lambda at: self.region(inner[0], self.region(inner[1], at) | live), live)
        if op.name not in _PLAIN:
            if any(self._touches(r) for r in inner):
                raise _UnclearAccess
            return live
        found = 0 if op.name == "scf.execute_region" or op.name in SECTIONS else live
        for region in inner:
            found |= self.region(region, live)
        return found | (0 if inner else live)

    def _again(self, turn: Callable[[int], int], live: int) -> int:
        """Return the tiles live before a loop: reads of an iteration are live after the previous one."""
        at = live
        while (found := live | turn(at)) != at:
            at = found
        return found

    def _touches(self, region: Region) -> bool:
        return any(any(map(_is_operand, op.operands)) for op in operations(region))

    # -- ends of lifetimes -----------------------------------------------------------------------------------

    def end(self, region: Region, into: Lives) -> None:
        shared = [self._shared(n) for n in range(len(self.tiles))]
        for block in region.blocks:
            seen = 0
            for op in block.ops:
                for inner in self.regions(op):
                    self.end(inner, into)
                if op.regions:
                    continue
                seen |= self._uses(op)[0]
                if seen and op in self.after:
                    ended = [
                        n for n in range(len(self.tiles)) if seen >> n & 1 and not shared[n] & self.after[op]
                    ]
                    if ended:
                        into.ended[op] = [self.tiles[n] for n in ended]
                        seen &= ~sum(1 << n for n in ended)

    def _shared(self, n: int) -> int:
        """Return a tile and all tiles that may overlap it, as bits."""
        return sum(
            1 << m for m in range(len(self.tiles)) if n == m or _may_meet(self.tiles[n], self.tiles[m])
        )


def _may_meet(a: Value, b: Value) -> bool:
    first, second = a.type, b.type
    assert isinstance(first, TileBufType) and isinstance(second, TileBufType)
    if first.loc != second.loc:
        return False
    places = [constant_of(v.op.get("addr")) if v.op else None for v in (a, b)]
    if not all(isinstance(place, int) for place in places):
        return True
    return places[0] < places[1] + second.size and places[1] < places[0] + first.size  # type: ignore[operator]


def _is_operand(value: Value) -> bool:
    return isinstance(value.type, TileBufType) and value.type.loc in _MEMORIES


def _is_plain(type: object) -> bool:
    return isinstance(type, TileBufType) and (type.bits or 0) >= 16


def _is_memory(value: Value) -> bool:
    """Return True if a value may access those memories other than as a tile."""
    type = value.type
    return isinstance(type, MemRefType) or (isinstance(type, PtrType) and type.space in _SPACES)
