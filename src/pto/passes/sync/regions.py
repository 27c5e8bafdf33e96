"""Bytes of values.

A tile with an address is a range of bytes of its space; a dynamic address gives the range of its values. A
tile without address is a separate place, named by its allocation. Windows of a tile at known offsets are
exact: evenly spaced chunks. Global memory is distinguished by arguments (two arguments do not overlap) and,
within one view, by the windows' offsets, also between iterations of a loop.
"""

from __future__ import annotations

from ...ir.core import Block, Operation, Value, constant_of
from ...ir.facts import storage_source
from ...ir.types import ConvTileType, MemRefType, PtrType, TileBufType, Type, ViewType
from ...isa.machine import LOCATION_OF
from ...isa.profiles import Profile
from ...isa.tile import size_bytes
from .affine import BIG, Affine, Forms, innermost
from .bytes import Box, BytePlace, Geometry

GM = "gm"
#: The root of a place with an unknown position in its space.
ANYWHERE = object()
_MOST_PLACES = 8
#: Bytes of an access of the scalar unit: a line of its cache, or a block of on-chip memory.
_BLOCK = {GM: 64}


class Places:
    """The places of the values of one function."""

    def __init__(self, function: Operation, profile: Profile) -> None:
        self.profile = profile
        self.forms = Forms()
        self._known: dict[Value, tuple[BytePlace, ...]] = {}
        self._frames: dict[Value, tuple[Geometry, int, int]] = {}
        self._unique: dict[object, BytePlace] = {}
        self._busy: set[Value] = set()
        #: Tiles with an address set at run time.
        self._moving: set[Value] = set()
        #: Tiles that a FIFO places, with the FIFO.
        self.popped: dict[Value, object] = {}
        self._scan(function)

    def _scan(self, function: Operation) -> None:
        for op in function.walk():
            row = op.row
            if row is None:
                continue
            if row.fifo in ("pop", "alloc"):
                tile = op.results[0] if op.results else op.get(row.rebinds)
                if tile is not None:
                    self.popped[tile] = fifo_of(op)
            elif row.rebinds:
                self._moving.update((*op.group(row.rebinds), *op.results))

    def of(self, value: Value) -> tuple[BytePlace, ...]:
        found = self._known.get(value)
        if found is not None:
            return found
        if value in self._busy:
            return ()
        self._busy.add(value)
        found = self._resolve(value)
        self._busy.discard(value)
        if len(found) > _MOST_PLACES:
            found = (self._one(BytePlace(found[0].space, ANYWHERE)),)
        if not self._busy:
            self._known[value] = found
        return found

    def element(self, value: Value, index: Value) -> tuple[BytePlace, ...]:
        """Return the block of one element, counted from the start of the storage of a value."""
        bits = getattr(value.type, "bits", None) or 0
        low, high = self.forms.of(index).range
        places = self.of(value)
        if bits < 8 or low < 0 or any(p.box is not None or p.low <= -BIG for p in places):
            return places
        found: list[BytePlace] = []
        for p in places:
            block = _BLOCK.get(p.space, 32)
            first = (p.low + low * bits // 8) // block * block
            last = -(-(p.low + (high + 1) * bits // 8) // block) * block if high < BIG else p.high
            found.append(self._one(BytePlace(p.space, p.root, first, last)))
        return tuple(found)

    def _one(self, place: BytePlace) -> BytePlace:
        """Return the same object for equal places."""
        return self._unique.setdefault(place.key, place)

    def _anywhere(self, type: Type) -> tuple[BytePlace, ...]:
        return (self._one(BytePlace(space_of(type), ANYWHERE)),)

    def _resolve(self, value: Value) -> tuple[BytePlace, ...]:
        type = value.type
        if value in self.popped:
            space = space_of(type)
            return (self._one(BytePlace(space, ("fifo", self.popped[value], space == GM))),)
        if value in self._moving:
            return self._anywhere(type)
        sources = _sources(value)
        if sources:
            return self._joined(value, sources)
        op = value.op
        if op is None:
            known = _given(value) and space_of(type) == GM
            return (self._one(BytePlace(GM, value)),) if known else self._anywhere(type)
        handler = _HANDLERS.get(op.name)
        if handler is not None:
            return handler(self, op, type)
        source = storage_source(op)
        if source is not None and op.row is not None and not op.row.window:
            return self._renamed(op, source, type)
        return self._anywhere(type)

    def _joined(self, value: Value, sources: list[Value]) -> tuple[BytePlace, ...]:
        """Return all places that may reach a value, through all operations that hand them on."""
        found: dict[BytePlace, None] = {}
        seen = {value, *sources}
        todo = list(sources)
        while todo:
            source = todo.pop()
            more = [] if source in self.popped or source in self._moving else _sources(source)
            if more:
                todo += [v for v in more if v not in seen]
                seen.update(more)
            else:
                found.update(dict.fromkeys(self.of(source)))
        return tuple(found)

    def _renamed(self, op: Operation, source: Value, type: Type) -> tuple[BytePlace, ...]:
        """Return the places of a storage under another name or type."""
        found = self.of(source)
        if op.name == "pto.tensor_view_addr" and any(p.box is not None for p in found):
            return tuple(self._one(_somewhere(p)) for p in found)
        size = _size(type)
        if size is None or any(p.count > 1 for p in found):
            return found
        return tuple(self._one(_resized(p, size)) for p in found)

    def _part(self, op: Operation, type: Type) -> tuple[BytePlace, ...]:
        """Return the places of the operand, which contain the result."""
        return self.of(op.operands[0])

    # -- tiles -----------------------------------------------------------------------------------------

    def _alloc(self, op: Operation, type: Type) -> tuple[BytePlace, ...]:
        addresses = op.group(_ADDRESS[op.name]) if op.name in _ADDRESS else []
        space, size = space_of(type), _size(type)
        if not addresses or size is None:
            root = ANYWHERE if addresses else op.result
            return (self._one(BytePlace(space, root, 0, size or BIG, exact=size is not None)),)
        form = self.forms.of(addresses[0])
        low, high = form.range
        if not form.terms:
            return (self._one(BytePlace(space, None, low, low + size, exact=True)),)
        if low < 0 or high >= BIG:
            return self._anywhere(type)
        return (self._one(BytePlace(space, None, low, high + size, box=Box(space, (form,), (size,)))),)

    def _subview(self, op: Operation, type: Type) -> tuple[BytePlace, ...]:
        source = op.get("source")
        assert source is not None
        offsets = [constant_of(v) for v in op.group("offsets")]
        sizes = op.attr("sizes")
        frame = self._geometry(source)
        if frame is None or len(offsets) != 2:
            return self.of(source)
        if not all(isinstance(n, int) for n in offsets):
            return self._moving_window(op, frame[0], frame[1:], (int(sizes[0]), int(sizes[1])))
        geometry, r, c = frame
        r, c = r + int(offsets[0] or 0), c + int(offsets[1] or 0)
        self._frames[op.result] = (geometry, r, c)
        return (self._one(geometry.window(r, c, int(sizes[0]), int(sizes[1]))),)

    def _moving_window(
        self, op: Operation, geometry: Geometry, start: tuple[int, int], sizes: tuple[int, int]
    ) -> tuple[BytePlace, ...]:
        """Return the place of a window with dynamic offsets, such as a slot: in its tile, and disjoint from
        other windows of it by their offsets."""
        (place,) = self.of(op.operands[0]) if geometry.bits >= 8 else (None,)
        if place is None:  # elements of 4 bits share bytes
            return self.of(op.operands[0])
        offsets = tuple(
            self.forms.of(v).plus(Affine(n)) for v, n in zip(op.group("offsets"), start, strict=True)
        )
        shape = geometry.rows, geometry.cols
        frame = (geometry.space, geometry.root, geometry.base, shape, geometry.bits, geometry.layout)
        return (
            self._one(
                BytePlace(place.space, place.root, place.low, place.high, box=Box(frame, offsets, sizes))
            ),
        )

    def _geometry(self, value: Value) -> tuple[Geometry, int, int] | None:
        """Return the storage that a tile is a window of, and the position of the tile in it."""
        places = self.of(value)
        found = self._frames.get(value)
        type = value.type
        if found is None and len(places) == 1 and isinstance(type, TileBufType):
            place = places[0]
            plain = place.box is None and place.count == 1 and place.root is not ANYWHERE
            if plain and place.exact and type.compact == "null":
                found = self._frames[value] = Geometry(place, type, self.profile), 0, 0
        return found

    # -- global memory ---------------------------------------------------------------------------------

    def _view(self, op: Operation, type: Type) -> tuple[BytePlace, ...]:
        return tuple(self._one(BytePlace(p.space, p.root, p.low)) for p in self.of(op.operands[0]))

    def _window(self, op: Operation, type: Type) -> tuple[BytePlace, ...]:
        found = self.of(op.operands[0])
        frame, strides, scope = self._frame(op.operands[0])
        if frame is None or len(found) != 1 or found[0].root is ANYWHERE:
            return found
        offsets = tuple(self.forms.of(v) for v in op.group("offsets"))
        extents = [self.forms.of(v).range[1] for v in op.group("sizes")]
        low, high = found[0].low, found[0].high
        if strides and low > -BIG:
            low, high = self._hull(found[0], type, offsets, extents, strides)
        box = Box(frame, offsets, tuple(extents), scope)
        return (self._one(BytePlace(GM, found[0].root, low, high, box=box)),)

    def _frame(self, view: Value) -> tuple[object, list[Affine], Block | None]:
        """Return a key of views whose indices name the same elements, the strides if they are known, and the
        block that computes them. The key is None for a view in which two elements may share memory."""
        op = view.op
        if op is None:
            return (view if _given(view) else None), [], None
        if op.name != "pto.make_tensor_view":
            return None, [], None
        shape, strides = ([self.forms.of(v) for v in op.group(n)] for n in ("shape", "strides"))
        if not _nested(shape, strides):
            return None, [], None
        pointer = op.operands[0]
        scope = innermost((_block(pointer), *(symbol.scope for s in strides for symbol in s.terms)))
        return (pointer, tuple(s.key for s in strides)), strides, scope

    def _hull(
        self,
        whole: BytePlace,
        type: Type,
        offsets: tuple[Affine, ...],
        extents: list[int],
        strides: list[Affine],
    ) -> tuple[int, int]:
        """Return the bytes between which a window lies, for all its offsets."""
        first = last = 0
        for offset, extent, stride in zip(offsets, extents, strides, strict=True):
            low, high = offset.range
            if low < 0 or high + extent >= BIG or stride.terms:
                return whole.low, whole.high
            first += low * stride.constant
            last += (high + extent - 1) * stride.constant
        bits = getattr(type, "bits", 8) or 8
        return whole.low + first * bits // 8, whole.low - (-(last + 1) * bits // 8)

    def _addptr(self, op: Operation, type: Type) -> tuple[BytePlace, ...]:
        form = self.forms.of(op.operands[1])
        bits = getattr(type, "bits", 8) or 8
        known = not form.terms
        return tuple(
            self._one(
                BytePlace(p.space, p.root, p.low + form.constant * bits // 8)
                if known and p.low > -BIG
                else _somewhere(p)
            )
            for p in self.of(op.operands[0])
        )

    def _castptr(self, op: Operation, type: Type) -> tuple[BytePlace, ...]:
        source = op.operands[0]
        if isinstance(source.type, PtrType | MemRefType | ViewType):
            return self.of(source)
        space = space_of(type)
        known = constant_of(source)
        if space == GM or not isinstance(known, int):
            return self._anywhere(type)
        return (self._one(BytePlace(space, None, known)),)


def fifo_of(op: Operation) -> object:
    """Return the identity of the FIFO of an instruction on its core."""
    handle = op.get("pipe_handle") if op.row is not None and "pipe_handle" in op.row.operand_index else None
    return handle if handle is not None else op.attr("id") or 0


def space_of(type: Type) -> str:
    """Return the memory of a value of a type."""
    if isinstance(type, TileBufType | ConvTileType):
        return type.loc
    if isinstance(type, MemRefType):
        return LOCATION_OF.get(type.space, GM) if type.local else GM
    if isinstance(type, PtrType):
        return LOCATION_OF.get(type.space, GM)
    return GM


def _size(type: Type) -> int | None:
    """Return the bytes of storage of a type, if they are static."""
    if isinstance(type, TileBufType):
        if type.compact == "null":
            return type.size
        # whole boxes, with up to one row or element between them
        return size_bytes(-(-type.rows // 16) * 16 + 1, type.cols + 1, type.bits or 8)
    if isinstance(type, ConvTileType | MemRefType):
        total = 1
        for d in type.dims:
            if d is None:
                return None
            total *= d
        return size_bytes(1, total, type.bits or 8)
    return None


def _somewhere(place: BytePlace) -> BytePlace:
    """Return the whole root of a place."""
    return BytePlace(place.space, place.root, -BIG)


def _block(value: Value) -> Block | None:
    """Return the block that defines a value."""
    op = value.op
    if op is not None:
        return op.parent
    assert isinstance(value.owner, Block)
    return value.owner


def _given(value: Value) -> bool:
    """Return True if a value is an argument of the function."""
    block = value.owner
    if not isinstance(block, Block) or block.parent is None:
        return False
    region = block.parent
    return block is region.blocks[0] and region.parent is not None and region.parent.name == "func.func"


def _sources(value: Value) -> list[Value]:
    """Return the candidates for a value that a loop, branch or selection hands on."""
    op, index = value.op, value.index
    if op is not None:
        if op.name == "arith.select":
            return op.operands[1:]
        skip = op.name == "scf.while"  # the first operand of its end is the condition
        return [e.operands[index + skip] for e in _ends(op, "scf.condition" if skip else "scf.yield")]
    block = value.owner
    assert isinstance(block, Block)
    owner = block.outer
    if owner is None:
        return []
    if owner.name == "scf.for" and index:
        return [owner.operands[index + 2], *(e.operands[index - 1] for e in _ends(owner, "scf.yield"))]
    if owner.name == "scf.while":
        if block is owner.regions[0].blocks[0]:
            return [owner.operands[index], *(e.operands[index] for e in _ends(owner, "scf.yield"))]
        return [e.operands[index + 1] for e in _ends(owner, "scf.condition")]
    return [owner.operands[index]] if owner.name == "pto.strict_vecscope" else []


def _resized(place: BytePlace, size: int) -> BytePlace:
    box = place.box
    if box is None:
        if place.high >= BIG:
            return place
        return BytePlace(place.space, place.root, place.low, place.low + size, exact=place.exact)
    moved = Box(box.frame, box.offsets, (size,)) if len(box.sizes) == 1 else None
    return BytePlace(place.space, place.root, place.low, max(place.high, place.low + size), box=moved)


def _ends(op: Operation, name: str) -> list[Operation]:
    """Return the ends of an operation's blocks that pass values on."""
    found = [block.ops[-1] for region in op.regions for block in region.blocks if block.ops]
    return [end for end in found if end.name == name]


def _nested(shape: list[Affine], strides: list[Affine]) -> bool:
    """Return True if no two elements of a view share memory: every stride exceeds the extent of the inner
    dimensions."""
    inner: Affine | None = None  # elements of the inner dimensions
    order = range(len(shape))
    if all(not s.terms for s in strides):
        order = sorted(order, key=lambda d: -strides[d].constant)
    for d in reversed(order):
        if not shape[d].terms and shape[d].constant == 1:
            continue
        stride = strides[d]
        if inner is None:
            if stride.terms or stride.constant < 1:
                return False
        elif stride.key != inner.key and (stride.terms or inner.terms or stride.constant < inner.constant):
            return False
        if not shape[d].terms and not stride.terms:
            inner = Affine(shape[d].constant * stride.constant)
        elif not stride.terms:
            inner = shape[d].times(stride.constant)
        elif not shape[d].terms:
            inner = stride.times(shape[d].constant)
        else:
            inner = Affine(BIG)  # no outer dimension fits
    return True


#: The address operand of an allocation.
_ADDRESS = {"pto.alloc_tile": "addr", "pto.pointer_cast": "addrs"}
_HANDLERS = {
    "pto.alloc_tile": Places._alloc,
    "pto.declare_tile": Places._alloc,
    "pto.pointer_cast": Places._alloc,
    "pto.declare_tile_memref": Places._alloc,
    "memref.alloc": Places._alloc,
    "memref.alloca": Places._alloc,
    "memref.subview": Places._part,
    "memref.reinterpret_cast": Places._part,
    "pto.subview": Places._subview,
    "pto.subset": Places._subview,
    "pto.make_tensor_view": Places._view,
    "pto.partition_view": Places._window,
    "pto.addptr": Places._addptr,
    "pto.castptr": Places._castptr,
}
