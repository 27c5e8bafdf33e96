"""Instructions that make or change descriptors: views, tiles, pointers, arrays of event ids. No data moves.

A handler gets the core, the operation and its operand values, and returns the results. It runs on the scalar
unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import mul
from typing import Any

from ...ir.affine import AffineMapAttr, BadDivisor, evaluate
from ...ir.core import Operation
from ...ir.facts import left_layout, memref_strides
from ...ir.types import ConvTileType, MemRefType, PtrType, ScalarType, TileBufType, Type
from ...isa.dtypes import DTYPES
from ...isa.machine import LOCATION_OF
from ..memory import Buffer, ConvTile, Home, Pointer, Tile, View
from .core import Args, Core
from .instr import IllegalInstruction

Handler = Callable[[Core, Operation, Args], object]
HANDLERS: dict[str, Handler] = {}


def handle(*names: str) -> Callable[[Handler], Handler]:
    def register(function: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return register


def result_name(op: Operation) -> str:
    return op.results[0].name or "?"


# -- tiles -------------------------------------------------------------------------------------------------


def make_tile(
    core: Core, type: TileBufType, address: int | None, valid: tuple[int | None, int | None], name: str
) -> Tile:
    """Make a tile of a type; a valid dimension that neither the type nor `valid` gives is the whole one."""
    layout = left_layout(type, core.profile, "layout") or "" if type.loc == "left" else ""
    rows = type.v_row if type.v_row is not None else type.rows if valid[0] is None else valid[0]
    cols = type.v_col if type.v_col is not None else type.cols if valid[1] is None else valid[1]
    check_valid(type, rows, cols)
    return Tile(type, core.buffers[type.loc], address, (rows, cols), name, layout)


def check_valid(type: TileBufType | Tile, rows: int, cols: int) -> None:
    if not (0 <= rows <= type.rows and 0 <= cols <= type.cols):
        raise IllegalInstruction(
            f"valid region {rows} x {cols} does not fit a {type.rows} x {type.cols} tile"
        )


def _valid(args: Args) -> tuple[int | None, int | None]:
    return args.get("valid_row"), args.get("valid_col")


def home(core: Core, key: object, buffer: Buffer, size: int) -> int:
    """Return the address of storage that the program does not place; a key always gets the same address."""
    found = core.homes.get(key)
    if found is None:
        check_size(buffer, size)
        found = core.homes[key] = buffer.reserve(size)
    return found


def check_size(buffer: Buffer, size: int) -> None:
    """Stop if storage of a run-time size does not fit its buffer."""
    if size > buffer.limit:
        raise IllegalInstruction(f"takes {size} bytes of {buffer.name}, which has {buffer.limit}")


def check_address(core: Core, tile: Tile | ConvTile) -> None:
    """Stop if the address of a tile, which a program computed, is misaligned, or the tile ends outside the
    buffer."""
    address, buffer, align = tile.address, tile.buffer, core.profile.align
    assert address is not None
    inside = 0 <= address <= buffer.limit - tile.size
    if inside and address % align == 0:
        return
    problem = IllegalInstruction(
        f"cannot place a tile at {address} of {buffer.name}: not a multiple of {align} bytes"
        if inside
        else f"cannot place a tile of {tile.size} bytes at {address}: "
        f"{buffer.name} ends at byte {buffer.limit}"
    )
    problem.code = "SA-0354" if inside else "SA-0353"
    problem.help = f"the highest address is {max(buffer.limit - tile.size, 0) // align * align} (FIX-A12)"
    raise problem


@handle("alloc_tile")
def alloc_tile(core: Core, op: Operation, args: Args) -> Tile | ConvTile:
    type = op.result.type
    if isinstance(type, ConvTileType):
        conv = ConvTile(type, core.buffers[type.loc], args.get("addr"), result_name(op))
        if conv.address is None:
            conv.address = home(core, op, conv.buffer, conv.size)
        else:
            check_address(core, conv)
        return conv
    assert isinstance(type, TileBufType)
    tile = make_tile(core, type, args.get("addr"), _valid(args), result_name(op))
    if tile.address is None:
        tile.address = home(core, op, tile.buffer, tile.size)
    else:
        check_address(core, tile)
        if core.watch is not None:
            tile.placed_by(op)
    return tile


@handle("declare_tile")
def declare_tile(core: Core, op: Operation, args: Mapping[str, object]) -> Tile | ConvTile:
    type = op.result.type
    assert isinstance(type, TileBufType)
    return make_tile(core, type, None, (None, None), result_name(op))


@handle("treshape", "bitcast")
def treshape(core: Core, op: Operation, args: Args) -> Tile:
    type, source = op.result.type, args["src"]
    assert isinstance(type, TileBufType)
    valid = source.valid if source.shape == type.shape else (None, None)
    new = make_tile(core, type, source.address, valid, result_name(op))
    new.buffer, new.storage = source.buffer, source.storage
    return new


@handle("subview", "subset")
def subview(core: Core, op: Operation, args: Args) -> Tile:
    source: Tile = args["source"]
    type = op.result.type
    assert isinstance(type, TileBufType)
    (r, c), (rows, cols) = args["offsets"], op.attr("sizes")
    new = source.copy()
    new.name = result_name(op)
    new.rows, new.cols = rows, cols
    at = source.element_offset(r, c) * source.bits + 4 * source.nibble
    if source.address is not None:
        new.address, new.nibble = source.address + at // 8, at % 8 // 4
    given = _valid(args)
    v_row = given[0] if given[0] is not None else type.v_row
    v_col = given[1] if given[1] is not None else type.v_col
    assert op.row is not None
    if op.row.name == "subset":  # dynamic dimensions follow the valid region of the source
        v_row = min(rows, source.v_row - r % source.v_row) if v_row is None and source.v_row else v_row
        v_col = min(cols, source.v_col - c % source.v_col) if v_col is None and source.v_col else v_col
    new.v_row = rows if v_row is None else v_row
    new.v_col = cols if v_col is None else v_col
    check_valid(new, new.v_row, new.v_col)
    inside = r >= 0 and c >= 0 and r + rows <= source.rows and c + cols <= source.cols
    new.edge = None if inside else (source, r, c)
    check_edge(core, op, new)
    return new


def check_edge(core: Core, op: Operation, tile: Tile) -> None:
    """Report a window that leaves its source. On hardware, instructions touch only the valid region, so the
    rest of a window may lie outside. On cpu they also pad the rest.
    """
    if tile.edge is None:
        return
    source, r, c = tile.edge
    rows, cols = tile.shape if core.profile.behaviour.whole_windows else tile.valid
    if r < 0 or c < 0 or r + rows > source.rows or c + cols > source.cols:
        core.grid.outside_tile(core, op, source, r, c, rows, cols)


@handle("talias")
def talias(core: Core, op: Operation, args: Args) -> object:
    source, target = args["src"], args["dst"]
    target.buffer, target.address, target.nibble = source.buffer, source.address, source.nibble
    target.storage = source.storage


@handle("tassign")
def tassign(core: Core, op: Operation, args: Args) -> Any:
    tile, address = args["tile"], args["addr"]
    if isinstance(tile, View):
        tile.buffer, tile.offset = address.buffer, address.offset
    else:
        tile.address = address.offset if isinstance(address, Pointer) else int(address)
        if not isinstance(address, Pointer):
            check_address(core, tile)
        if isinstance(tile, Tile) and core.watch is not None:
            tile.placed_by(op)
    return tile


@handle("tget_scale_addr")
def tget_scale_addr(core: Core, op: Operation, args: Args) -> object:
    source = args["src"]
    args["dst"].address = None if source.address is None else source.address >> 4


@handle("set_validshape")
def set_validshape(core: Core, op: Operation, args: Args) -> None:
    tile: Tile = args["source"]
    check_valid(tile, args["valid_row"], args["valid_col"])
    tile.v_row, tile.v_col = args["valid_row"], args["valid_col"]
    check_edge(core, op, tile)


@handle("tile_buf_addr")
def tile_buf_addr(core: Core, op: Operation, args: Args) -> Any:
    tile: Tile = args["tile"]
    if tile.address is None:
        raise LookupError(tile.name)
    if isinstance(op.result.type, MemRefType):
        return View(tile.buffer, tile.address, tile.shape, (tile.cols, 1), tile.dtype, None, tile.name)
    home = Home(tile.address, tile.address + tile.size, tile.name, tile)
    return Pointer(tile.buffer, tile.address, str(op.result.type.dtype), tile.name, home)  # type: ignore[attr-defined]


@handle("bind_tile", "pointer_cast")
def bind_tile(core: Core, op: Operation, args: Args) -> Any:
    type = op.result.type
    source = args.get("source")
    address = args["addrs"][0] if args.get("addrs") else _address(source)
    if isinstance(type, TileBufType):
        tile = make_tile(core, type, address, _valid(args), result_name(op))
        if source is not None:
            tile.buffer = source.buffer
            tile.storage = getattr(source, "storage", None)
        return tile
    assert isinstance(type, MemRefType)
    return memref_value(core, op, type, core.buffers[LOCATION_OF.get(type.space, "vec")], address or 0)


def _address(source: object) -> int | None:
    return source.offset if isinstance(source, View) else getattr(source, "address", None)


# -- views of memory ---------------------------------------------------------------------------------------


@handle("make_tensor_view")
def make_tensor_view(core: Core, op: Operation, args: Args) -> View:
    pointer = args["ptr"]
    layout = op.attr("layout")
    dtype = str(op.result.type.dtype)  # type: ignore[attr-defined]
    return View(
        pointer.buffer, pointer.offset, tuple(args["shape"]), tuple(args["strides"]), dtype,
        str(layout).upper() if layout else None, pointer.name,
    )  # fmt: skip


@handle("partition_view")
def partition_view(core: Core, op: Operation, args: Args) -> View:
    source: View = args["source"]
    offsets, sizes = args["offsets"], tuple(args["sizes"])
    at = source.offset + bytes_from(sum(map(mul, offsets, source.strides)), source.bits)
    for d, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        if size and (offset < 0 or offset + size > source.dims[d]):
            core.grid.outside_view(core, op, source, d, offset, size)
    return View(
        source.buffer, at, sizes, source.strides, source.dtype, source.layout, source.name, source.whole_of
    )


def bytes_from(count: int, bits: int) -> int:
    """Return the number of bytes before element `count`; views and pointers start at whole bytes."""
    if count * bits % 8:
        raise IllegalInstruction(f"starts at element {count} of {bits} bits, in the middle of a byte")
    return count * bits // 8


@handle("get_tensor_view_dim", "memref.dim")
def get_tensor_view_dim(core: Core, op: Operation, args: Args) -> int:
    view, index = _view_and_index(args)
    return view.dims[index]


@handle("get_tensor_view_stride")
def get_tensor_view_stride(core: Core, op: Operation, args: Args) -> int:
    view, index = _view_and_index(args)
    return view.strides[index]


def _view_and_index(args: Args) -> tuple[View, int]:
    view, index = args.values()
    if not 0 <= index < len(view.dims):
        raise IllegalInstruction(f"expects a dimension below {len(view.dims)}, got {index}")
    return view, index


@handle("tensor_view_addr")
def tensor_view_addr(core: Core, op: Operation, args: Args) -> Pointer:
    return args["src"] if isinstance(op.result.type, MemRefType) else args["src"].pointer


# -- pointers ----------------------------------------------------------------------------------------------


@handle("castptr")
def castptr(core: Core, op: Operation, args: Args) -> Pointer | int:
    source, type = args["addr"], op.result.type
    assert isinstance(type, PtrType)
    dtype = type.elem.counted
    if isinstance(source, Pointer):
        return source.at(source.offset, dtype)
    if not isinstance(source, int):
        return Pointer(source.buffer, source.offset, dtype, source.name)
    if type.space != "gm":
        return Pointer(core.buffers[LOCATION_OF[type.space]], source, dtype, result_name(op))
    buffer = core.gm.find(source)
    if buffer is None:
        raise IllegalInstruction(f"address {source:#x} is not in any array of the launch")
    return Pointer(buffer, source - buffer.base, dtype, buffer.name)


@handle("addptr")
def addptr(core: Core, op: Operation, args: Args) -> Pointer:
    pointer: Pointer = args["ptr"]
    at = pointer.offset + bytes_from(args["offset"], DTYPES[pointer.dtype].bits)
    return pointer.at(at)


# -- memrefs -----------------------------------------------------------------------------------------------


def memref_value(core: Core, op: Operation, type: MemRefType, buffer: Buffer, offset: int) -> View:
    layout = memref_strides(type)
    dims = tuple(d if d is not None else 1 for d in type.dims)
    strides, start = layout or (_dense(dims), 0)
    return View(
        buffer, offset + start * (type.bits or 8) // 8, dims, strides, str(type.dtype), None, result_name(op)
    )


def _dense(dims: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for d in reversed(dims[1:]):
        strides.insert(0, strides[0] * d)
    return tuple(strides[: len(dims)])


@handle("memref.alloc", "memref.alloca", "declare_tile_memref")
def memref_alloc(core: Core, op: Operation, args: Args) -> View:
    type = op.result.type
    assert isinstance(type, MemRefType)
    given = iter(args.get("dynamicSizes", ()))
    dims = tuple(d if d is not None else next(given, 1) for d in type.dims)
    if min(dims, default=0) < 0:
        raise IllegalInstruction(f"expects sizes that are not negative, got {' x '.join(map(str, dims))}")
    size = DTYPES[str(type.dtype)].bits
    for d in dims:
        size *= d
    buffer = core.buffers[LOCATION_OF.get(type.space, "vec")]
    return View(
        buffer,
        home(core, op, buffer, -(-size // 8)),
        dims,
        _dense(dims),
        str(type.dtype),
        None,
        result_name(op),
    )


@handle("memref.dealloc")
def memref_dealloc(core: Core, op: Operation, args: Mapping[str, object]) -> None:
    return None


@handle("memref.cast", "builtin.unrealized_conversion_cast")
def cast(core: Core, op: Operation, args: Mapping[str, object]) -> object:
    values = [v for given in args.values() for v in (given if isinstance(given, list) else [given])]
    return tuple(values) if len(op.results) > 1 else values[0]


@handle("memref.reinterpret_cast")
def reinterpret_cast(core: Core, op: Operation, args: Args) -> View:
    source = args["source"]
    offsets, sizes, strides = (_mixed(op, args, n) for n in ("offsets", "sizes", "strides"))
    at = source.offset + bytes_from(sum(offsets), DTYPES[source.dtype].bits)
    return View(source.buffer, at, tuple(sizes), tuple(strides), source.dtype, None, source.name)


@handle("memref.subview")
def memref_subview(core: Core, op: Operation, args: Args) -> View:
    source: View = args["source"]
    offsets, sizes, strides = (_mixed(op, args, n) for n in ("offsets", "sizes", "strides"))
    at = source.offset + bytes_from(sum(map(mul, offsets, source.strides)), source.bits)
    kept = [(n, step * s) for n, step, s in zip(sizes, strides, source.strides, strict=True)]
    type = op.result.type
    assert isinstance(type, MemRefType)
    lost = len(kept) - type.rank
    dims: list[tuple[int, int]] = []
    for n, s in kept:
        if lost and n == 1:
            lost -= 1
        else:
            dims.append((n, s))
    return View(
        source.buffer,
        at,
        tuple(n for n, _ in dims),
        tuple(s for _, s in dims),
        source.dtype,
        None,
        source.name,
    )


_DYNAMIC = -(2**63)


def _mixed(op: Operation, args: Args, name: str) -> list[int]:
    """Return a list with some entries from attributes, the others from operands."""
    given = iter(args.get(name) or ())
    static = op.attr(f"static_{name}") or ()
    return [next(given) if v == _DYNAMIC else int(v) for v in static]


@handle("affine.apply")
def affine_apply(core: Core, op: Operation, args: Args) -> int:
    mapping = op.attrs["map"]
    assert isinstance(mapping, AffineMapAttr)
    try:
        return evaluate(mapping.results[0], args.get("mapOperands", ()))
    except BadDivisor as e:
        raise IllegalInstruction(str(e)) from None


class Group:
    """The tensors of a group of ranks, and its root."""

    __slots__ = ("root", "tensors")

    def __init__(self, tensors: list[View], root: int) -> None:
        self.tensors = tensors
        self.root = root


@handle("make_group")
def make_group(core: Core, op: Operation, args: Args) -> Group:
    return Group(args["tensors"], int(op.attr("root") or 0))


# -- queries and small state -------------------------------------------------------------------------------


handle("get_block_idx")(lambda core, op, args: core.block)
handle("get_block_num")(lambda core, op, args: core.grid.blocks)
handle("get_subblock_idx")(lambda core, op, args: core.sub)
handle("get_subblock_num")(lambda core, op, args: core.grid.subblocks)


@handle("declare_eventid_array")
def declare_eventid_array(core: Core, op: Operation, args: Mapping[str, object]) -> list[int]:
    return [None] * op.result.type.count  # type: ignore[attr-defined]


@handle("eventid_array_get")
def eventid_array_get(core: Core, op: Operation, args: Args) -> int:
    array, index = args["array"], args["index"]
    if not 0 <= index < len(array) or array[index] is None:
        raise IllegalInstruction(f"entry {index} of an array of {len(array)} event ids was never set")
    return array[index]


@handle("eventid_array_set")
def eventid_array_set(core: Core, op: Operation, args: Args) -> None:
    array, index = args["array"], args["index"]
    if not 0 <= index < len(array):
        raise IllegalInstruction(f"expects an index below {len(array)}, the number of event ids, got {index}")
    array[index] = args["value"]


@handle("declare_local_array")
def declare_local_array(core: Core, op: Operation, args: Mapping[str, object]) -> object:
    return {}


def _element(op: Operation, args: Args) -> tuple[int, ...]:
    """Return the indices of an access to an array on the stack."""
    dims, at = op.operands[0].type.dims, tuple(args["indices"])  # type: ignore[attr-defined]
    if not all(0 <= i < n for i, n in zip(at, dims, strict=True)):
        inside = "x".join(map(str, dims))
        raise IllegalInstruction(f"element {list(at)} is outside an array of {inside} elements")
    return at


@handle("local_array_get")
def local_array_get(core: Core, op: Operation, args: Args) -> object:
    at = _element(op, args)
    if at not in args["array"]:
        raise IllegalInstruction(f"element {list(at)} of an array on the stack was never set")
    return args["array"][at]


@handle("local_array_set")
def local_array_set(core: Core, op: Operation, args: Args) -> None:
    args["array"][_element(op, args)] = args["value"]


def as_tile(core: Core, value: View, type: Type) -> Tile:
    """Return a local memref as a tile for an instruction."""
    assert isinstance(type, MemRefType)
    rows, cols = (1, *value.dims)[-2:]
    elem = type.elem if isinstance(type.elem, ScalarType) else ScalarType("f32")
    tile = Tile(
        TileBufType(elem, value.buffer.space, rows, cols, rows, cols),
        value.buffer,
        value.offset,
        (rows, cols),
    )
    if len(value.strides) > 1:
        tile.pitch = (rows, value.strides[-2])
    tile.name = value.name
    return tile
