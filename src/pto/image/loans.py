"""Loads and pops without a copy: a tile that is only read may borrow the memory of its source, if that has no
observable effect. Such a tile is written by the load or pop only. All its other uses read it, in the same
block, before any operation could change the source or free the entry. No other tile or FIFO overlaps its
memory. One condition is checked at run time (vm.lent, vm.lend): the rows of the source must be contiguous, as
in the tile.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..codegen.cpp.fifo import slot_numbers
from ..ir.core import Block, Operation, Region, Value, constant_of
from ..ir.facts import makes_fifo, touches_global, view_layout
from ..ir.types import MemRefType, PtrType, TileBufType
from ..isa.machine import MEMORIES, SECTIONS
from .calls import by_region

_LOAD, _POP, _FREE = "pto.tload", "pto.tpop", "pto.tfree"
#: Orders between the pipes of one core.
_OWN = ("set", "wait", "barrier")
_UB = MEMORIES["vec"].space


def loans(function: Operation, kind: str) -> dict[Operation, Value]:
    """Return the loads and pops of a function, on one kind of core, that may borrow, and their tiles."""
    if not _written_once(function.regions[0]):
        return {}
    found = _Function(kind)
    try:
        found.collect(function.regions[0])
    except _Unclear:
        return {}
    return {op: _tile(op) for op, block, at in found.takes if found.lends(op, block, at)}


class _Unclear(Exception):
    """An operation may access tiles in an unknown way."""


class _Function:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.takes: list[tuple[Operation, Block, int]] = []
        self.uses: dict[Value, list[tuple[Operation, Block, int]]] = {}
        self.placed: list[tuple[Value, int, int]] = []  # tiles, and their bytes

    def collect(self, region: Region) -> None:
        for block in region.blocks:
            if any(_is_tile(v) for v in block.args):
                raise _Unclear
            for at, op in enumerate(block.ops):
                own = SECTIONS.get(op.name)
                if own is None or self.kind in ("mix", own):
                    self._look(op, block, at)
                    for inner in op.regions:
                        self.collect(inner)

    def _look(self, op: Operation, block: Block, at: int) -> None:
        if op.name == "func.call" or op.row is None:
            raise _Unclear
        for value in op.results:
            type = value.type
            if isinstance(type, MemRefType) or (isinstance(type, PtrType) and type.space == _UB):
                raise _Unclear
            if _is_tile(value) and op.name == "pto.alloc_tile":
                self._place(value, op.get("addr"), value.type.size)  # type: ignore[attr-defined]
        for value in op.operands:
            if _is_tile(value):
                self.uses.setdefault(value, []).append((op, block, at))
        if op.name == _POP and _is_tile(op.operands[0]):
            self._pop(op)
        if op.name in (_LOAD, _POP) and len(op.operands) == 2:
            self.takes.append((op, block, at))

    def _pop(self, op: Operation) -> None:
        """Place the tile of a pop: at the entries of the FIFO on its vector cores."""
        tile, fifo = op.operands[0], op.operands[1].op
        if fifo is None or not makes_fifo(fifo):
            raise _Unclear
        buffer = fifo.group("peer_local_addr" if int(fifo.attr("dir_mask")) == 2 else "local_addr")
        slots, local = slot_numbers(fifo)
        count = local if fifo.name == "pto.initialize_l2g2l_pipe" else slots
        between = (count - 1) * int(fifo.attr("slot_size"))
        self._place(tile, buffer[0] if buffer else None, between + tile.type.size)  # type: ignore[attr-defined]

    def _place(self, tile: Value, address: Value | None, size: int) -> None:
        first = constant_of(address) if address is not None else None
        if not isinstance(first, int):
            raise _Unclear
        self.placed.append((tile, first, first + size))

    # -- one load or pop ----------------------------------------------------------------------------------

    def lends(self, op: Operation, block: Block, at: int) -> bool:
        tile = _tile(op)
        if not _is_tile(tile) or not _is_dense(tile.type) or tile.op is None:
            return False
        if op.name == _LOAD and view_layout(op.operands[0]) not in (None, "ND"):
            return False
        if tile.op.name != ("pto.alloc_tile" if op.name == _LOAD else "pto.declare_tile"):
            return False
        last = at
        for user, where, number in self.uses[tile]:
            if user is op:
                continue
            if where is not block or number < at or not _only_reads(user, tile):
                return False
            last = max(last, number)
        end = last
        if op.name == _POP:
            end = next((n for n, o in enumerate(block.ops[at:], at) if o.name == _FREE), -1)
            if end < last or block.ops[end].operands[0] is not op.operands[1]:
                return False
        return all(map(_is_still, block.ops[at + 1 : end])) and self._alone(tile)

    def _alone(self, tile: Value) -> bool:
        """Return True if no other tile overlaps its memory; popped tiles may overlap one another."""
        own = [(a, b) for t, a, b in self.placed if t is tile]
        popped = _is_popped(tile)
        others = [(a, b) for t, a, b in self.placed if t is not tile and not (popped and _is_popped(t))]
        return not any(a < d and c < b for a, b in own for c, d in others)


def _is_popped(tile: Value) -> bool:
    return tile.op is not None and tile.op.name == "pto.declare_tile"


def _written_once(region: Region) -> bool:
    """Return True if a tile that is loaded or popped is the destination of one operation only. Few functions
    have such a tile, so this test saves the other checks for most functions.
    """
    taken: dict[Value, int] = {}
    todo = [region]
    while todo:
        for block in todo.pop().blocks:
            for op in block.ops:
                if op.regions:
                    todo += op.regions
                elif op.name in (_LOAD, _POP):
                    tile = _tile(op)
                    taken[tile] = taken.get(tile, 0) + 1
                elif op.operands and op.operands[-1] in taken and not op.results:
                    taken[op.operands[-1]] += 1
    return 1 in taken.values()


def _tile(op: Operation) -> Value:
    return op.operands[-1] if op.name == _LOAD else op.operands[0]


def _is_tile(value: Value) -> bool:
    return isinstance(value.type, TileBufType) and value.type.loc == "vec"


def _is_dense(type: object) -> bool:
    return (
        isinstance(type, TileBufType)
        and not type.boxed
        and type.blayout == "row_major"
        and (type.v_row, type.v_col) == (type.rows, type.cols)
        and (type.bits or 0) >= 8
    )


def _only_reads(op: Operation, tile: Value) -> bool:
    row = op.row
    assert row is not None
    if not by_region(row) or touches_global(op) or row.names:
        return False
    roles = list(_roles(op))
    return all(reads and not writes for value, reads, writes in roles if value is tile)


def _roles(op: Operation) -> Iterator[tuple[Value, bool, bool]]:
    """Yield operands, with True if they are read and if they are written."""
    assert op.row is not None
    operands = op.row.operands
    counts = op.segments if op.segments is not None else [1] * len(op.operands)
    at = 0
    for operand, count in zip(operands, counts, strict=False):
        for value in op.operands[at : at + count]:
            yield value, operand.reads, operand.writes
        at += count


def _is_still(op: Operation) -> bool:
    """Return True if an operation changes only tiles and numbers, and lets no other core change memory."""
    row = op.row
    if row is None or op.regions or op.successors or row.fifo:
        return False
    if row.effect in ("pure", "alloc", "alias"):
        return True
    if row.effect == "sync":
        return row.order in _OWN
    return row.effect == "memory" and (op.name == _LOAD or not touches_global(op))
