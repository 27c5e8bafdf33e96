"""Tiles that share bytes, decided statically where their addresses are constants.

A tile is read after another one, not an alias, has overwritten part of it:

    %t = pto.alloc_tile addr = 0       tload %t
    %u = pto.alloc_tile addr = 1024    tload %u      half of %t is gone
                                       tstore %t     PTO-E2210

A function is followed in source order: a loop twice, so that the state at its end reaches its beginning.
After an `if`, only facts of both branches count, because conditions may be related in unknown ways. Unknown
facts pass: run-time addresses and valid regions, calls, pointers to on-chip memory, unstructured branches.
The sanitizer of the same name checks these. Sets of bytes are numbers with one bit each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from ..diag import Diagnostic
from ..ir.context import Context
from ..ir.core import Block, Operation, Value, constant_of
from ..ir.facts import LOOPS, storage_source
from ..ir.types import ConvTileType, MemRefType, PtrType, TileBufType
from ..isa import tile as tiles
from ..isa.dtypes import DTYPES
from ..isa.profiles import LOCATIONS

#: Operations that hold others and run them once.
_ONCE = ("pto.section.cube", "pto.section.vector", "scf.execute_region")


class PlacedStorage(NamedTuple):
    """A placed tile: its buffer, address, size in bytes and kind."""

    value: Value
    loc: str
    low: int
    size: int
    kind: object

    @property
    def name(self) -> str:
        return f"%{self.value.name}"

    def shares(self, other: PlacedStorage) -> bool:
        return self.loc == other.loc and share_bytes(self, other)


class Placed(Protocol):
    """Bytes of a buffer, and the kind of the tile there."""

    @property
    def low(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def kind(self) -> object: ...


def share_bytes(a: Placed, b: Placed) -> bool:
    """Return True if two tiles share bytes by mistake: exactly the same bytes with another type or another
    valid region are another view of the same tile."""
    if a.low >= b.low + b.size or b.low >= a.low + a.size:
        return False
    return (a.low, a.size) != (b.low, b.size) or a.kind == b.kind


def handed_on(writer: Operation, into: Operation | None, outer: Operation | None) -> bool:
    """Return True if an instruction is a copy by which compilers carry a tile to the next iteration or out of
    a branch: into a name placed there (`into`) without other uses, on the bytes of a tile placed around
    (`outer`). The written tile would otherwise have no reader."""
    if writer.row is None or into is None or outer is None or into.name != "pto.alloc_tile":
        return False
    body = into.parent
    if body is None or body is outer.parent:
        return False
    around = body.outer
    while around is not None and around.parent is not outer.parent:
        around = around.parent.outer if around.parent is not None else None
    if around is None:
        return False
    names = {into.results[0]}
    for user in (user for op in body.ops for user in op.walk()):
        if user is writer or names.isdisjoint(user.operands):
            continue
        if user.row is None or user.row.effect not in ("alias", "config") or user.name == "pto.tassign":
            return False
        names.update(user.results)  # a reshaped tile is the same one, with any valid region
    return True


class _Lost(NamedTuple):
    """Bytes of a tile that another instruction overwrote, and their previous writer."""

    bytes: int
    over: Operation
    before: Operation


class _State:
    """Contents of tiles at a place of the program: bytes they wrote, and bytes that others overwrote."""

    def __init__(self) -> None:
        self.mine: dict[PlacedStorage, tuple[int, Operation]] = {}
        self.lost: dict[PlacedStorage, dict[PlacedStorage, _Lost]] = {}

    def copy(self) -> _State:
        new = _State()
        new.mine = dict(self.mine)
        new.lost = {k: dict(v) for k, v in self.lost.items()}
        return new

    def forget(self) -> None:
        """Forget the state after an unknown operation."""
        self.mine.clear()
        self.lost.clear()

    def meet(self, other: _State) -> None:
        """Keep the facts that both paths share."""
        self.mine = {
            s: (found & other.mine[s][0], op) for s, (found, op) in self.mine.items() if s in other.mine
        }
        for storage, by in self.lost.items():
            theirs = other.lost.get(storage, {})
            self.lost[storage] = {
                s: lost._replace(bytes=lost.bytes & theirs[s].bytes) for s, lost in by.items() if s in theirs
            }


def check_overlaps(context: Context, severity: str = "error") -> None:
    """Report tiles that are read after another one has overwritten part of them."""
    for function in context.module.functions:
        if _followed(function):
            placed = [s for op in function.walk() if (s := _placed(op)) is not None]
            if any(a.shares(b) for n, a in enumerate(placed) for b in placed[:n]):
                _Follow(context, severity, placed).function(function)


def _followed(function: Operation) -> bool:
    """Return True if a function has only operations that this check follows."""
    for op in function.walk():
        if op.name.startswith("cf.") or op.name == "pto.talias":
            return False
        if op.name == "pto.tassign" and (op.parent is None or op.parent not in _blocks(function)):
            return False
        if any(isinstance(v.type, PtrType) and v.type.space != "gm" for v in (*op.operands, *op.results)):
            return False
    return True


def _placed(op: Operation) -> PlacedStorage | None:
    """Return the tile that an operation places at a constant address."""
    if op.name not in ("pto.alloc_tile", "pto.tassign"):
        return None
    tile = op.result if op.name == "pto.alloc_tile" else op.get("tile")
    assert tile is not None
    type, at = tile.type, constant_of(op.get("addr"))
    if not isinstance(type, TileBufType) or not isinstance(at, int) or at < 0:
        return None
    size = tiles.size_bytes(type.rows, type.cols, DTYPES[str(type.dtype)].bits)
    made = tile.op
    valid = (
        (made.get("valid_row"), made.get("valid_col"))
        if made is not None and made.name == "pto.alloc_tile"
        else ()
    )
    return PlacedStorage(tile, type.loc, at, size, (str(type), valid))


def _bytes_of(value: Value, storage: PlacedStorage) -> int | None:
    """Return the bytes of the valid region of a tile or of a window of it; None if unknown."""
    type, window = value.type, _window(value, storage)
    if not isinstance(type, TileBufType) or window is None or type.v_row is None or type.v_col is None:
        return None
    (first, pitch), bits = window, DTYPES[str(type.dtype)].bits
    if value is storage.value and (type.v_row, type.v_col) == (type.rows, type.cols):
        return _run(storage.low, storage.size)
    if type.layout != "ND" or bits < 8 or type.compact != "null":
        return None
    item = bits // 8
    return sum(_run(storage.low + (first + r * pitch) * item, type.v_col * item) for r in range(type.v_row))


def _window(value: Value, storage: PlacedStorage) -> tuple[int, int] | None:
    """Return the first element of a tile in its storage, and the distance of rows; None if unknown."""
    whole = storage.value.type
    assert isinstance(whole, TileBufType)
    if value is storage.value:
        return 0, whole.cols
    op = value.op
    if (
        op is None
        or op.name != "pto.subview"
        or op.get("source") is not storage.value
        or whole.layout != "ND"
    ):
        return None
    at = [constant_of(v) for v in op.group("offsets")]
    r, c = at if len(at) == 2 else (None, None)
    return (r * whole.cols + c, whole.cols) if isinstance(r, int) and isinstance(c, int) else None


def _replaces(op: Operation, name: str, dst: Value) -> bool:
    """Return True if an instruction certainly replaces the whole valid region of a destination."""
    row = op.row
    assert row is not None
    if row.writes not in ("valid", "all") or name in row.scratch:
        return False
    if row.part_with and op.get(row.part_with) is not None:
        return False
    source = op.get(row.filled_by) if row.filled_by else None
    if source is None or not isinstance(source.type, TileBufType):
        return True
    assert isinstance(dst.type, TileBufType)
    return (source.type.v_row, source.type.v_col) == (dst.type.v_row, dst.type.v_col)


def _run(low: int, size: int) -> int:
    return ((1 << size) - 1) << low


class _Follow:
    """Follows one function."""

    def __init__(self, context: Context, severity: str, placed: list[PlacedStorage]) -> None:
        self.context = context
        self.severity = severity
        self.storages: dict[Value, PlacedStorage] = {}  # storages of tiles that are placed in the same block
        self.rivals = {s: [o for o in dict.fromkeys(placed) if o != s and s.shares(o)] for s in placed}
        self.same: dict[PlacedStorage, PlacedStorage] = {}  # names of one buffer -> its representative
        self.said: set[tuple[Operation, PlacedStorage]] = set()
        self.turn = 0  # above 0 in the second walk of a loop
        self.perhaps = 0  # above 0 in an `if` in such a loop, whose branch may not be taken again

    def function(self, function: Operation) -> None:
        for block in _blocks(function):
            self.block(block, _State())

    def block(self, block: Block, state: _State) -> None:
        for op in block.ops:
            if not op.regions:
                self.instruction(op, state)
            elif op.name in LOOPS:
                self.loop(op, state)
            elif op.name in ("scf.if", "scf.index_switch"):
                self.branches(op, state)
            elif op.name in _ONCE:
                for inner in _blocks(op):
                    self.block(inner, state)
            else:
                state.forget()

    def loop(self, op: Operation, state: _State) -> None:
        for turn in range(2):
            self.turn += turn
            for inner in _blocks(op):
                self.block(inner, state)
            self.turn -= turn

    def branches(self, op: Operation, state: _State) -> None:
        self.perhaps += self.turn > 0
        ends: list[_State] = []
        for region in op.regions:
            end = state.copy()
            for inner in region.blocks:
                self.block(inner, end)
            ends.append(end)
        if op.name == "scf.if" and len([r for r in op.regions if r.blocks]) < 2:
            ends.append(state.copy())
        self.perhaps -= self.turn > 0
        state.mine, state.lost = ends[0].mine, ends[0].lost
        for other in ends[1:]:
            state.meet(other)

    def instruction(self, op: Operation, state: _State) -> None:
        row = op.row
        source, placed = storage_source(op), _placed(op)
        if placed is not None:
            self.storages[placed.value] = placed
        elif op.name in ("pto.alloc_tile", "pto.tassign"):
            self.storages.pop(op.results[0] if op.results else op.operands[0], None)
        elif source is not None and op.results and source in self.storages:
            self.storages[op.results[0]] = self.storages[source]
        if row is None or op.name == "func.call" or row.fifo:
            state.forget()
            return
        if row.effect != "memory":
            return
        touched = [
            (d, v) for d, v in op.named() if isinstance(v.type, TileBufType | ConvTileType | MemRefType)
        ]
        if any(d.writes and v not in self.storages for d, v in touched):
            state.forget()  # the operand may be any tile
            return
        read = [self.meant(self.storages[v], state) for d, v in touched if d.reads and v in self.storages]
        for declared, value in touched:
            if declared.writes:  # the tile is updated in place, under another name
                self.unite(self.storages[value], read, state)
        for declared, value in touched:
            storage = self.storages.get(value)
            if declared.reads and storage is not None and not row.element_at and not self.perhaps:
                self.read(op, value, self.one(storage), state)
        for declared, value in touched:
            if declared.writes:
                self.carried(op, self.storages[value], state)
                storage = self.one(self.storages[value])
                self.write(op, value, storage, state, _replaces(op, declared.name, value))

    def one(self, storage: PlacedStorage) -> PlacedStorage:
        """Return the representative of a storage among the names of its buffer."""
        while storage in self.same:
            storage = self.same[storage]
        return storage

    def meant(self, storage: PlacedStorage, state: _State) -> PlacedStorage:
        """Return the storage that is read. Compilers give one buffer several names, so a name that was never
        written refers to the last write to the same bytes.
        """
        mine = self.one(storage)
        if mine not in state.mine:
            self.unite(mine, list(reversed(state.mine)), state)
        return self.one(storage)

    def carried(self, op: Operation, storage: PlacedStorage, state: _State) -> None:
        """Unite a carried tile with the outer tile of the same bytes."""
        around = [s for s in reversed(state.mine) if handed_on(op, storage.value.op, s.value.op)]
        self.unite(storage, around, state)

    def unite(self, storage: PlacedStorage, others: list[PlacedStorage], state: _State) -> None:
        """Unite a storage with the first of others that has the same bytes and kind of tile."""
        mine = self.one(storage)
        for other in map(self.one, others):
            if other == mine or (other.loc, *other[2:]) != (mine.loc, *mine[2:]):
                continue
            self.same[mine] = other
            state.lost.pop(mine, None)
            if mine in state.mine:
                state.mine[other] = state.mine.pop(mine)
            return

    def read(self, op: Operation, value: Value, storage: PlacedStorage, state: _State) -> None:
        wanted = _bytes_of(value, storage)
        for other, lost in state.lost.get(storage, {}).items():
            if wanted is not None and wanted & lost.bytes and (op, other) not in self.said:
                self.said.add((op, other))
                self.report(op, storage, other, wanted & lost.bytes, lost)

    def write(self, op: Operation, value: Value, storage: PlacedStorage, state: _State, whole: bool) -> None:
        written = _bytes_of(value, storage)
        if written is None or not whole:  # the write may replace all of the tile, or nothing
            state.mine.pop(storage, None)
            state.lost.pop(storage, None)
            return
        for other in self.rivals[storage]:
            held = state.mine.get(other) if self.one(other) != storage else None
            if held is not None and held[0] & written:
                state.lost.setdefault(other, {})[storage] = _Lost(held[0] & written, op, held[1])
        before = state.mine.pop(storage, (0, op))[0]  # the last in order is the last writer
        state.mine[storage] = before | written, op
        state.lost[storage] = {
            s: lost._replace(bytes=lost.bytes & ~written) for s, lost in state.lost.get(storage, {}).items()
        }

    def report(
        self, op: Operation, mine: PlacedStorage, theirs: PlacedStorage, shared: int, lost: _Lost
    ) -> None:
        low, last = (shared & -shared).bit_length() - 1, shared.bit_length() - 1
        assert op.row is not None
        d = self.context.report(
            op,
            "PTO-E2210",
            f"reads {mine.name} after {theirs.name} has overwritten part of it: they share bytes "
            f"{low:#x}-{last:#x} of {LOCATIONS[mine.loc]}",
            severity=self.severity,
            help=f"{_takes(mine)} and {_takes(theirs)}: give one of them another address, or read "
            f"{mine.name} before {theirs.name} is written",
        )
        _note(self.context, d, lost.before, f"writes {mine.name}")
        _note(self.context, d, lost.over, f"writes {theirs.name} over it")


def _takes(storage: PlacedStorage) -> str:
    return f"{storage.name} takes {storage.low:#x}-{storage.low + storage.size - 1:#x}"


def _note(context: Context, d: Diagnostic, op: Operation, what: str) -> None:
    assert op.row is not None
    d.notes.append((f"{op.row.name} {what}", context.module.span(op)))


def _blocks(op: Operation) -> Iterator[Block]:
    for region in op.regions:
        yield from region.blocks
