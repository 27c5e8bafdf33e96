"""Tiles as variables: allocation, windows and other readings of the same storage."""

from __future__ import annotations

import math
import re

from ...ir.core import Operation, Value, constant_of
from ...ir.facts import is_manual
from ...ir.types import ConvTileType, Dims, MemRefType, PtrType, TileBufType, Type
from ...isa.enums import ENUMS
from ...isa.tile import inner_box
from .function import CAST, CppFunction, handles
from .views import local_pointer


def _valid(f: CppFunction, type: TileBufType, value: Value, given: list[Value]) -> tuple[Dims, list[Value]]:
    """Return static valid extents of a tile (None: at run time) and the values of the others.

    If only one extent is a run-time value and it is a constant, it is printed as a constant. With two, both
    stay run-time extents.
    """
    static = (type.v_row, type.v_col)
    if len(given) == 1 and static.count(None) == 1 and value not in f.handed_on:
        number = constant_of(given[0])
        if isinstance(number, int):
            return tuple(number if d is None else d for d in static), []
    return static, given


def _construct(f: CppFunction, value: Value, spelled: str, given: list[str]) -> str:
    """Declare a tile; run-time extents are constructor arguments."""
    f.tile_types[value] = spelled
    return f.declare(value, spelled, f"{spelled}({', '.join(given)})" if given else "")


def _rebind(f: CppFunction, source: str, type: TileBufType, value: Value, offset: str = "") -> None:
    """Point a tile at the storage of another variable."""
    pointer = local_pointer(f, type.loc, f.types.scalar(type.elem))
    data, address = f.token(), f.token()
    f.line(f"{pointer} {data} = {source}.data();")
    place = f"({pointer}) ({data} + {offset})" if offset and pointer != "auto" else data
    f.line(f"uint64_t {address} = reinterpret_cast<uint64_t>({place});")
    f.line(f"TASSIGN({f.text(value)}, {address});")


def _only_bound(f: CppFunction, value: Value) -> bool:
    return not f.count.get(value)


@handles("pto.alloc_tile")
def _alloc(f: CppFunction, op: Operation) -> None:
    result = op.results[0]
    if _only_bound(f, result):
        return
    address = op.get("addr")
    # otherwise the program has a tassign for the tile
    if address is None and not is_manual(f.unit.module, None):
        f.unit.report(op, "PTO-E1301", "no C++ spelling: the tile has no address",
                      help="let the passes place it: use `ptoas` or `pto.emit_cpp`")  # fmt: skip
        f.name(result, "0")
        return
    type = result.type
    if isinstance(type, ConvTileType):
        f.declare(result, f.types(type))
        if address is not None:
            f.line(f"TASSIGN({f.text(result)}, {f.text(address)});")
        return
    assert isinstance(type, TileBufType)
    static, given = _valid(f, type, result, [*op.group("valid_row"), *op.group("valid_col")])
    spelled = f.types.tile(type, static)
    arguments = [f.text(v) for v in given]
    whole = f.types.tile(type, type.shape)
    if address is None:
        _construct(f, result, spelled, arguments)
        return
    if f.unit.planned:
        f.offsets.add(f.text(address))
    if f.unit.planned and spelled != whole:
        base = f.token()
        f.line(f"{whole} {base};")
        f.line(f"TASSIGN({base}, {f.text(address)});")
        _construct(f, result, spelled, arguments)
        _rebind(f, base, type, result)
        return
    _construct(f, result, spelled, arguments)
    f.line(f"TASSIGN({f.text(result)}, {f.text(address)});")


@handles("pto.declare_tile")
def _declare(f: CppFunction, op: Operation) -> None:
    result = op.results[0]
    type = result.type
    assert isinstance(type, TileBufType)
    extents = zip((type.v_row, type.v_col), (type.rows, type.cols), strict=True)
    given = [str(size) for valid, size in extents if valid is None]
    if given and _set_next(op):  # the run-time extents come with the set_validshape that follows
        given = []
    _construct(f, result, f.types(type), given)


def _set_next(op: Operation) -> bool:
    block = op.parent
    assert block is not None
    at = block.ops.index(op)
    following = block.ops[at + 1] if at + 1 < len(block.ops) else None
    return (
        following is not None
        and following.name == "pto.set_validshape"
        and following.operands[0] is op.results[0]
    )


@handles("pto.pointer_cast")
def _pointer_cast(f: CppFunction, op: Operation) -> None:
    result = op.results[0]
    if _only_bound(f, result):
        return
    address = op.group("addrs")[0]
    given = [*op.group("valid_row"), *op.group("valid_col")]
    type = as_tile(result.type, str(op.attrs.get("config", "")), bool(given))
    if type is None:
        f.define(result, f"({f.types(result.type)}) {f.unary(address)}", CAST)
        return
    static, given = _valid(f, type, result, given)
    _construct(f, result, f.types.tile(type, static), [f.text(v) for v in given])
    f.line(f"TASSIGN({f.text(result)}, {f.text(address)});")


def as_tile(type: Type, config: str = "", open_valid: bool = False) -> TileBufType | None:
    """Return a tile, or the tile of a memref of an on-chip buffer; None for other types."""
    if isinstance(type, TileBufType):
        return type
    if not isinstance(type, MemRefType) or not type.local or None in type.dims or not type.dims:
        return None
    *outer, cols = (d or 1 for d in type.dims)
    rows = math.prod(outer)
    said = dict(re.findall(r"(\w+)\s*=\s*(?:#pto\.\w+<)?(\w+)", config))

    def named(key: str, enum: str) -> str:
        """Return a word of the configuration, which may be a number; by default the first one."""
        words = dict(enumerate(ENUMS[enum].values))
        word = said.get(key, "0")
        return words.get(int(word), words[0]) if word.isdigit() else ENUMS[enum].canonical(word) or words[0]

    return TileBufType(
        type.elem, type.space, rows, cols, None if open_valid else rows, None if open_valid else cols,
        named("blayout", "blayout"), named("slayout", "slayout"),
        int(said.get("s_fractal_size", 512)), ENUMS["pad_value"].values[named("pad", "pad_value")],
        named("compact", "compact_mode"),
    )  # fmt: skip


def _open_extents(f: CppFunction, type: TileBufType, source: Value, same_shape: bool) -> list[str]:
    """Return run-time extents of another reading of a tile: those of a source of the same shape, or the
    shape."""
    name = f.text(source)
    asked = (("GetValidRow", type.v_row, type.rows), ("GetValidCol", type.v_col, type.cols))
    return [f"{name}.{get}()" if same_shape else str(size) for get, valid, size in asked if valid is None]


@handles("pto.treshape", "pto.bitcast", "pto.bind_tile")
def _other_reading(f: CppFunction, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    if _only_bound(f, result):
        return
    type, of = as_tile(result.type, str(op.attrs.get("config", ""))), as_tile(source.type)
    if type is None or of is None:
        f.unit.no_spelling(op, f"from {source.type} to {result.type}")
        return
    given = (
        [f.text(v) for v in (*op.group("valid_row"), *op.group("valid_col"))]
        if op.name == "pto.bind_tile"
        else []
    )
    static: list[int | None] = [type.v_row, type.v_col]
    if static.count(None) != len(given):
        given = _open_extents(f, type, source, of.shape == type.shape)
    _construct(f, result, f.types(type), given)
    if op.name == "pto.treshape":
        f.line(f"TRESHAPE({f.text(result)}, {f.text(source)});")
    else:
        f.line(f"TASSIGN({f.text(result)}, reinterpret_cast<uint64_t>({f.text(source)}.data()));")


def strides(type: TileBufType, rows: int, cols: int) -> tuple[int, int]:
    """Return the elements between rows and between columns (whole boxes if the tile has boxes)."""
    extra = type.compact == "row_plus_one"
    if not type.boxed:
        return (cols + extra, 1) if type.blayout == "row_major" else (1, rows + extra)
    box = inner_box(type.bits or 8, type.slayout, type.fractal)
    return (box[1], rows + extra) if type.blayout == "col_major" else (cols + extra, box[0])


Size = tuple[int, int]


def window(pitch: dict[Value, Size], op: Operation) -> tuple[Size, Size, Size]:
    """Return the storage of a window, its size, and its shape. The window keeps the pitch of its source, so
    along the lines it has the shape of the source. Record the storage for windows of this window.
    """
    source, result = op.operands[0], op.results[0]
    type, of = result.type, source.type
    assert isinstance(type, TileBufType) and isinstance(of, TileBufType)
    storage = pitch[result] = pitch.get(source, of.shape)
    size = op.attr("sizes") or type.shape
    return storage, size, (size[0], storage[1]) if of.blayout == "row_major" else (storage[0], size[1])


@handles("pto.subset", "pto.subview")
def _window(f: CppFunction, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    if _only_bound(f, result):
        return
    type, of = result.type, source.type
    assert isinstance(type, TileBufType) and isinstance(of, TileBufType)
    (rows, cols), size, shape = window(f.pitch, op)
    row, col = op.group("offsets")
    extents = _window_extents(f, op, type, source, of, size)
    spelled = f.types.tile(type, tuple(e if isinstance(e, int) else None for e in extents), shape)
    _construct(f, result, spelled, [e for e in extents if isinstance(e, str)])
    if op.name == "pto.subview":
        f.line(f"TSUBVIEW({f.text(result)}, {f.text(source)}, {f.text(row)}, {f.text(col)});")
        _own_line(f, result, size, shape)
        return
    zero = f.helper("unsigned", "0")
    down, across = strides(of, rows, cols)
    terms = [zero]
    for value, step in ((row, down), (col, across)):
        number = constant_of(value)
        first = (
            f.helper("unsigned", str(number)) if isinstance(number, int) else f"(unsigned) {f.unary(value)}"
        )
        terms.append(f"{first} * {f.helper('unsigned', str(step))}")
    offset = f"({' + '.join(terms)})"
    _rebind(f, f.text(source), type, result, offset if type.bits != 4 else f"{offset} / 2")
    _own_line(f, result, size, shape)


def _own_line(f: CppFunction, window: Value, size: Size, shape: Size) -> None:
    """Pass the ends of the lines of a window to our headers, because its C++ type has the longer lines of its
    tile.
    """
    own = next((mine for mine, whole in zip(size, shape, strict=True) if mine < whole), None)
    if f.unit.checked and own is not None:
        f.line(f"{f.text(window)}.Line = {own};")


def _window_extents(
    f: CppFunction, op: Operation, type: TileBufType, source: Value, of: TileBufType, size: tuple[int, int]
) -> list[int | str]:
    """Return valid extents of a window: static, given, or cut to the valid region of the source."""
    given = (
        {"v_row": op.group("valid_row"), "v_col": op.group("valid_col")} if op.name == "pto.subview" else {}
    )
    out: list[int | str] = []
    names = (("v_row", "GetValidRow", type.v_row, of.v_row), ("v_col", "GetValidCol", type.v_col, of.v_col))
    for i, (name, get, static, whole) in enumerate(names):
        values = given.get(name)
        if static is not None:
            out.append(static)
        elif values:
            out.append(f.text(values[0]))
        elif op.name == "pto.subview":
            out.append(str(size[i]))
        else:
            offset = f.atom(op.group("offsets")[i])
            valid = str(whole) if whole is not None else f"{f.text(source)}.{get}()"
            left = f"{valid} - {offset} % {valid}"
            out.append(f"({size[i]} < {left}) ? {size[i]} : {left}")
    return out


@handles("pto.tile_buf_addr")
def _tile_address(f: CppFunction, op: Operation) -> None:
    tile, result = op.operands[0], op.results[0]
    if isinstance(result.type, PtrType | MemRefType) and isinstance(tile.type, TileBufType):
        to = f.types(result.type)
        f.define(result, f"({to}) {f.text(tile)}.data()", CAST)


@handles("pto.tassign")
def _tassign(f: CppFunction, op: Operation) -> None:
    tile, address = op.operands
    if isinstance(address.type, PtrType):
        place = (
            f.text(address) if not isinstance(tile.type, TileBufType) else f"(uint64_t) {f.unary(address)}"
        )
    else:
        place = f"(uint64_t) {f.unary(address)}"
    f.line(f"TASSIGN({f.text(tile)}, {place});")
    for result in op.results:
        f.name(result, *f.known[tile])
        if tile in f.tile_types:
            f.tile_types[result] = f.tile_types[tile]
