"""Memrefs on the virtual machine: pointer, sizes and strides, as in a view.

An instruction gets a memref in the form that it expects there: a view, a pointer or, for on-chip memory, a
tile. This module is loaded with the first program that has a memref.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.cpp.tiles import as_tile as tile_of
from ..ir.affine import AffineMapAttr, as_arith
from ..ir.core import Operation, Value
from ..ir.facts import memref_strides
from ..ir.shape import DYNAMIC
from ..ir.types import INDEX, MemRefType, PtrType, TileBufType
from ..isa.machine import LOCATION_OF, MEMORIES
from .calls import NoCall, as_view
from .format import COPY
from .lower import Lowering, assign, handles, shape_of, width_of


def stand_ins(f: Lowering, op: Operation) -> list[Value]:
    """Return the operands of an instruction, with every memref replaced by another value."""
    assert op.row is not None
    counts = op.segments or (1,) * len(op.operands)
    out: list[Value] = []
    for declared, count in zip(op.row.operands, counts, strict=True):
        for value in op.operands[len(out) : len(out) + count]:
            out.append(_stand_in(f, value, declared.kinds) if isinstance(value.type, MemRefType) else value)
    return out


def _stand_in(f: Lowering, value: Value, kinds: Sequence[str]) -> Value:
    type = value.type
    assert isinstance(type, MemRefType)
    if type.local and "tile" in kinds:
        return as_tile(f, value)
    if not type.local and ("view" in kinds or "tensor_view" in kinds):
        made = as_view(value)
        f.slots[made] = f.slot(value)
        return made
    made = Value(pointer_type(type), value.owner)
    f.emit(COPY, f.slot(made), f.slot(value), 8)  # a view begins with its pointer
    return made


def pointer_type(type: MemRefType) -> PtrType:
    memory = MEMORIES[LOCATION_OF[type.space]] if type.local else None
    return PtrType(type.elem, memory.space if memory is not None and memory.space else "gm")


def as_tile(f: Lowering, value: Value) -> Value:
    """Return a memref of on-chip memory as a tile: from its definition, else from its strides."""
    type = value.type
    assert isinstance(type, MemRefType)
    found = f.tiles.get(value)
    if found is not None:
        return found
    rows, cols = (1, *(d or 1 for d in type.dims))[-2:] if type.dims else (1, 1)
    strides = (memref_strides(type) or ((), 0))[0]
    columns = len(strides) > 1 and strides[-1] != 1 and strides[-2] == 1 and cols != 1
    layout = "col_major" if columns else "row_major"
    made = Value(TileBufType(type.elem, LOCATION_OF[type.space], rows, cols, rows, cols, layout), value.owner)
    f.call("vm.tile_of", f.slot(made), f.slot(value), type.rank, int(columns))
    return made


# -- definitions -----------------------------------------------------------------------------------------


def _described(f: Lowering, result: Value, pointer: int) -> None:
    """Set up a memref from a pointer in the frame, with the sizes and strides of its type."""
    type = result.type
    assert isinstance(type, MemRefType)
    dims = [d if d is not None else 1 for d in type.dims]
    strides, start = memref_strides(type) or (_dense(dims), 0)
    if start:
        moved = f.room(8)
        f.call("vm.add", moved, pointer, f.number(start), 8, type.bits or 8)
        pointer = moved
    f.call("vm.view", f.slot(result), pointer, len(dims), *map(f.number, dims), *map(f.number, strides))


def _dense(dims: list[int]) -> list[int]:
    strides = [1]
    for d in reversed(dims[1:]):
        strides.insert(0, strides[0] * d)
    return strides[: len(dims)]


def _says_more(op: Operation) -> bool:
    """Return True if the definition of a memref declares a tile: a layout other than the plain one, or a
    valid region."""
    plain = tile_of(op.results[0].type)
    return plain is not None and (
        bool(op.group("valid_row")) or tile_of(op.results[0].type, str(op.attrs.get("config", ""))) != plain
    )


def placed(f: Lowering, op: Operation, address: Value | None) -> None:
    """Set up a memref at an address of on-chip memory."""
    result = op.results[0]
    type = result.type
    assert isinstance(type, MemRefType)
    if not type.local or address is None:
        raise NoCall(f"a value of type {type}")
    pointer = f.room(8)
    space = list(MEMORIES).index(LOCATION_OF[type.space])
    f.call("vm.pointer", pointer, f.slot(address), width_of(address), space)
    _described(f, result, pointer)
    if _says_more(op):
        assign(f, _tile(f, op), address)


def _tile(f: Lowering, op: Operation) -> Value:
    """Return the tile that the definition of a memref declares, without an address."""
    given = op.group("valid_row"), op.group("valid_col")
    type = tile_of(op.results[0].type, str(op.attrs.get("config", "")), bool(given[0]))
    assert type is not None
    made = f.tiles[op.results[0]] = Value(type, op)
    shape_of(f, made, type.shape, [v[0] if v else None for v in given])
    return made


def bound(f: Lowering, op: Operation) -> None:
    """Set up a memref of the storage of a tile or of another memref."""
    source, result = op.operands[0], op.results[0]
    pointer = f.slot(source)
    if isinstance(source.type, TileBufType):
        made = Value(PtrType(source.type.elem, MEMORIES[source.type.loc].space or "gm"), op)
        f.instead(op, "pto.tile_buf_addr", [source], [made])
        pointer = f.slot(made)
    _described(f, result, pointer)
    if _says_more(op):
        tile = _tile(f, op)
        address = Value(INDEX, op)
        f.slots[address] = pointer
        assign(f, tile, address)


@handles("pto.tile_buf_addr")
def _address_of_tile(f: Lowering, op: Operation) -> None:
    result, tile = op.results[0], op.operands[0]
    if isinstance(result.type, MemRefType):
        assert isinstance(tile.type, TileBufType)
        made = Value(pointer_type(result.type), op)
        f.instead(op, op.name, [tile], [made])
        cols = tile.type.cols
        f.call("vm.view", f.slot(result), f.slot(made), 2, *map(f.number, (*tile.type.shape, cols, 1)))
    else:
        f.regular(op)


@handles("memref.cast")
def _cast(f: Lowering, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    f.slots[result] = f.slot(source)
    if source in f.tiles:
        f.tiles[result] = f.tiles[source]


@handles("memref.dealloc")
def _dealloc(f: Lowering, op: Operation) -> None:
    """Ignore a deallocation: only the memory planner uses it."""


def _mixed(f: Lowering, op: Operation, name: str) -> list[int]:
    """Return offsets, sizes or strides of a window, as slots of the frame."""
    values = iter(op.group(name))
    static = op.attrs[f"static_{name}"].value
    return [f.slot(next(values)) if n == DYNAMIC else f.number(int(n)) for n in static]


@handles("memref.reinterpret_cast")
def _reinterpret(f: Lowering, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    assert isinstance(source.type, MemRefType)
    pointer = f.room(8)
    f.emit(COPY, pointer, f.slot(source), 8)
    for offset in _mixed(f, op, "offsets"):
        f.call("vm.add", pointer, pointer, offset, 8, source.type.bits or 8)
    sizes = _mixed(f, op, "sizes")
    f.call("vm.view", f.slot(result), pointer, len(sizes), *sizes, *_mixed(f, op, "strides"))


@handles("memref.subview")
def _subview(f: Lowering, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    assert isinstance(source.type, MemRefType) and isinstance(result.type, MemRefType)
    lost = source.type.rank - result.type.rank
    kept = 0
    for d, size in enumerate(op.attrs["static_sizes"].value):
        if lost and size == 1:
            lost -= 1
        else:
            kept |= 1 << d
    f.call("vm.cut", f.slot(result), f.slot(source), source.type.bits or 8, source.type.rank, kept,
           *(place for name in ("offsets", "sizes", "strides") for place in _mixed(f, op, name)))  # fmt: skip


# -- elements -----------------------------------------------------------------------------------------------


@handles("memref.load", "memref.store")
def _element(f: Lowering, op: Operation) -> None:
    memref, indices = op.group("memref")[0], op.group("indices")
    assert isinstance(memref.type, MemRefType)
    place = Value(INDEX, op)
    f.call("vm.element", f.slot(place), f.slot(memref), memref.type.rank, *map(f.slot, indices))
    pointer = _stand_in(f, memref, ("ptr",))
    if op.name == "memref.load":
        f.instead(op, "pto.load_scalar", [pointer, place], op.results)
    else:
        f.instead(op, "pto.store_scalar", [pointer, place, op.group("value")[0]], ())


# -- affine maps --------------------------------------------------------------------------------------------


@handles("affine.apply")
def _affine(f: Lowering, op: Operation) -> None:
    """Lower an affine map of one result to arithmetic."""
    mapping = op.attrs["map"]
    assert isinstance(mapping, AffineMapAttr)

    def constant(number: int) -> Value:
        made = Value(INDEX, op)
        f.slots[made] = f.number(number)
        return made

    def apply(name: str, lhs: Value, rhs: Value) -> Value:
        made = Value(INDEX, op)
        f.instead(op, name, [lhs, rhs], [made])
        return made

    def check(divisor: Value) -> None:
        f.call("vm.divisor", f.slot(divisor))

    found = as_arith(mapping.results[0], op.operands, constant, apply, check)
    f.emit(COPY, f.slot(op.results[0]), f.slot(found), 8)
