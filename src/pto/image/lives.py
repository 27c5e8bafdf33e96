"""How long the operands of products live in L1, L0A and L0B.

A core of the virtual machine may owe the copies that bring them there (native/include/pto/ops/owed.hpp)
where the function touches these memories in no other way. Then it is told which copies nobody needs any more,
and when others may begin to write what a copy reads.
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
#: Operations after which what a copy reads is as it was before; the others may write it, or let others do so.
_QUIET = frozenset((*_PRODUCTS, *_COPIES, "pto.tpop"))
_EFFECTS = ("memory", "sync", "io")
#: Regions that run once, or not at all.
_PLAIN = ("scf.if", "scf.index_switch", "scf.execute_region", *SECTIONS)


class Lives:
    """Of a function whose copies may be owed."""

    def __init__(self) -> None:
        #: Tiles that nobody reads any more after an operation.
        self.ended: dict[Operation, list[Value]] = {}

    @staticmethod
    def tells(op: Operation) -> bool:
        """Whether others may write what a copy reads from here on."""
        return op.row is None or (op.row.effect in _EFFECTS and op.name not in _QUIET)


def lives(function: Operation, kind: str) -> Lives | None:
    """None where copies cannot be owed, or there is no use in it."""
    if not any(op.name in _PRODUCTS for op in operations(function.regions[0])):
        return None
    found = _Function(kind)
    try:
        found.collect(function.regions[0])
        if not found.products:
            return None
        found.region(function.regions[0], 0)
    except _Unclear:
        return None
    made = Lives()
    found.end(function.regions[0], made)
    return made


class _Unclear(Exception):
    """The function does something else with those memories."""


class _Function:
    """Tiles are numbered; sets of them are bits of a number."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.tiles: list[Value] = []
        self.bits: dict[Value, int] = {}
        self.after: dict[Operation, int] = {}  # what is read after an operation
        self.products = 0

    def regions(self, op: Operation) -> Sequence[Region]:
        """Those that this kind of core executes."""
        own = SECTIONS.get(op.name)
        return () if own is not None and self.kind not in ("mix", own) else op.regions

    # -- what there is ------------------------------------------------------------------------------------

    def collect(self, region: Region) -> None:
        if len(region.blocks) > 1:
            raise _Unclear
        for block in region.blocks:
            if any(_is_operand(v) for v in block.args):
                raise _Unclear
            for op in block.ops:
                self._look(op)
                for inner in self.regions(op):
                    self.collect(inner)

    def _look(self, op: Operation) -> None:
        name = op.name
        if name == "func.call" or any(_is_memory(v) for v in op.results):
            raise _Unclear
        if name in _ALLOCATIONS and _is_operand(op.results[0]):
            if name == "pto.alloc_tile":
                self.bits[op.results[0]] = 1 << len(self.tiles)
                self.tiles.append(op.results[0])
            return  # what a FIFO places is never owed
        if any(map(_is_operand, op.results)):  # another name of a tile
            raise _Unclear
        given = [v for v in op.operands if _is_operand(v)]
        if not given and name not in _PRODUCTS:
            return
        if name not in _QUIET or any(not _is_plain(v.type) for v in given):
            raise _Unclear
        if name in _COPIES:
            source, target = op.operands[0].type, op.operands[-1].type
            moved = name == "pto.tload" or (isinstance(source, TileBufType) and source.loc == "mat")
            if (
                len(op.operands) != (4 if name == "pto.textract" else 2)
                or not moved
                or not _is_operand(op.operands[-1])
            ):
                raise _Unclear
            if getattr(source, "elem", None) != getattr(target, "elem", None):
                raise _Unclear
        self.products += name in _PRODUCTS

    # -- what is read later -------------------------------------------------------------------------------

    def _uses(self, op: Operation) -> tuple[int, int]:
        """Tiles that an operation reads, and those that it replaces."""
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
            if isinstance(source, ViewType):  # of which L1 gets no more than there is
                whole = whole and source.elems == target.rows * target.cols
            return bits.get(op.operands[0], 0), bits[op.operands[-1]] if whole else 0
        return 0, 0

    def region(self, region: Region, live: int) -> int:
        """What is read from its beginning on, if this is what is read after it."""
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
                raise _Unclear
            return live
        found = 0 if op.name == "scf.execute_region" or op.name in SECTIONS else live
        for region in inner:
            found |= self.region(region, live)
        return found | (0 if inner else live)

    def _again(self, turn: Callable[[int], int], live: int) -> int:
        """A loop: what a turn reads is read after the one before it."""
        at = live
        while (found := live | turn(at)) != at:
            at = found
        return found

    def _touches(self, region: Region) -> bool:
        return any(any(map(_is_operand, op.operands)) for op in operations(region))

    # -- what has an end ----------------------------------------------------------------------------------

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
        """A tile, and all that may have bytes in common with it."""
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
    """Whether it may name those memories in another way than as a tile."""
    type = value.type
    return isinstance(type, MemRefType) or (isinstance(type, PtrType) and type.space in _SPACES)
