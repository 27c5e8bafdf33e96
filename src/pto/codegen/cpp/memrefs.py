"""Memrefs: pointers with known sizes and strides, element accesses, and affine indices.

The lowering of the vendor stack turns a tile into a memref of an on-chip buffer. If the memref has no layout
of a tile, it becomes a tile for one instruction, by its strides.
"""

from __future__ import annotations

from ...ir.affine import AffineMapAttr, as_arith
from ...ir.attrs import IntAttr
from ...ir.core import Operation, Value
from ...ir.shape import DYNAMIC
from ...ir.types import INDEX, MemRefType, TileBufType
from ...isa import row
from .function import ATOM, HANDLERS, OTHER, CppFunction, Extent, Handler, KnownView, handles
from .views import declare_tensor, extent, index_text, memref_view, number_text


def memref_tensor(f: CppFunction, value: Value) -> str:
    """Return a memref as the tensor for an instruction."""
    return declare_tensor(f, memref_view(f, value))


def with_tiles(f: CppFunction, op: Operation, handler: Handler) -> None:
    """Print an instruction whose memref operands are pointers here and tiles in the call."""
    values = [v for v in op.operands if isinstance(v.type, MemRefType) and v.type.local]
    raw = {v: f.known[v] for v in values if v in f.known and v not in f.tile_types}
    for value in raw:
        _tile(f, op, value)
    handler(f, op)
    for value, known in raw.items():
        f.known[value] = known
        f.tile_types.pop(value, None)


def _tile(f: CppFunction, op: Operation, value: Value) -> None:
    """Declare a tile at the storage of a memref, with a stride between its lines."""
    view = memref_view(f, value)
    tile = _strided_tile(value, view)
    if tile is None:
        f.unit.report(
            op, "PTO-E1302", f"cannot emit a value of type {value.type} as a C++ tile",
            help="use a memref with contiguous rows or columns at equal distances, or bind it with "
                "pto.bind_tile",
        )  # fmt: skip
        return
    token, type = f.token(), f.types(tile)
    f.line(f"{type} {token};")
    f.line(f"TASSIGN({token}, reinterpret_cast<uint64_t>({f.text(value)}));")
    f.name(value, token)
    f.tile_types[value] = type


def _strided_tile(value: Value, view: KnownView) -> TileBufType | None:
    type = value.type
    assert isinstance(type, MemRefType)
    dims = [d for d in view.dims if isinstance(d, int)]
    strides = [s for s in view.strides if isinstance(s, int)]
    if not dims or not len(dims) == len(strides) == len(view.dims) == len(view.strides):
        return None
    while len(dims) > 2:  # merge outer dimensions that follow each other into rows
        if strides[0] != dims[1] * strides[1]:
            return None
        dims, strides = [dims[0] * dims[1], *dims[2:]], strides[1:]
    (rows, cols), (down, across) = [1] * (2 - len(dims)) + dims, [dims[-1]] * (2 - len(dims)) + strides
    if (across == 1 or cols == 1) and (down >= cols or rows == 1):
        pitch = cols if rows == 1 else down
        return TileBufType(type.elem, type.space, rows, pitch, rows, cols)
    if (down == 1 or rows == 1) and across >= rows:
        return TileBufType(type.elem, type.space, across, cols, rows, cols, "col_major")
    return None


def _mixed(op: Operation, name: str) -> list[Extent]:
    """Return offsets, sizes or strides of a window: numbers, with values where the list has a marker."""
    values = iter(op.group(name))
    static = op.attrs[f"static_{name}"].value
    return [extent(next(values)) if n == DYNAMIC else int(n) for n in static]


def _plus(f: CppFunction, pointer: str, terms: list[str]) -> tuple[str, int]:
    return (f"{pointer} + {' + '.join(terms)}", OTHER) if terms else (pointer, ATOM)


def _term(f: CppFunction, offset: Extent, stride: Extent) -> str:
    if isinstance(offset, int) and isinstance(stride, int):
        return f.constant(f.types.index, str(offset * stride))
    if stride == 1:
        return number_text(f, offset)
    return f"{number_text(f, offset)} * {number_text(f, stride)}"


def _pointer(f: CppFunction, value: Value, view: KnownView, text: str, kind: int) -> None:
    f.define(value, text, kind)
    view.pointer = f.operand(value) if value in f.known else text
    f.views[value] = view


@handles("memref.reinterpret_cast")
def _reinterpret(f: CppFunction, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    offsets = _mixed(op, "offsets")
    if len(offsets) != 1:
        f.unit.no_spelling(op, f"with {len(offsets)} offsets")
        return
    offset = offsets[0]
    base = f.operand(source)
    view = KnownView(base, _mixed(op, "sizes"), _mixed(op, "strides"), "ND", memref_view(f, source).elem)
    terms = [] if offset == 0 else [number_text(f, offset)]
    _pointer(f, result, view, *_plus(f, base, terms))


@handles("memref.subview")
def _subview(f: CppFunction, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    of = memref_view(f, source)
    offsets, sizes, steps = (_mixed(op, name) for name in ("offsets", "sizes", "strides"))
    if not len(offsets) == len(sizes) == len(steps) == len(of.strides):
        f.unit.no_spelling(op, f"with {len(offsets)} dimensions")
        return
    terms = [_term(f, o, s) for o, s in zip(offsets, of.strides, strict=True) if o != 0]
    pairs = list(zip(of.strides, steps, strict=True))
    if any(step != 1 and not (isinstance(stride, int) and isinstance(step, int)) for stride, step in pairs):
        f.unit.no_spelling(op, "with 'strides'")
        return
    strides: list[Extent] = [s if t == 1 else s * t for s, t in pairs]  # type: ignore[operator]
    _pointer(f, result, KnownView(of.pointer, sizes, strides, "ND", of.elem), *_plus(f, of.pointer, terms))


@handles("memref.cast")
def _cast(f: CppFunction, op: Operation) -> None:
    f.views[op.results[0]] = memref_view(f, op.operands[0])
    f.name(op.results[0], *f.known[op.operands[0]])


@handles("memref.dealloc")
def _dealloc(f: CppFunction, op: Operation) -> None:
    """Emit nothing: only the memory planner uses it."""


def _element(f: CppFunction, memref: Value, indices: list[Value], use: str = "read") -> str:
    view = memref_view(f, memref)
    terms: list[str] = []
    for index, stride in zip(indices, view.strides, strict=False):
        terms.append(
            index_text(f, index) if stride == 1 else f"{f.operand(index)} * {number_text(f, stride)}"
        )
    base = f"{f.text(memref)}.data()" if memref in f.tile_types else f.unary(memref)
    return f.element(base, " + ".join(terms) or "0", memref, use)


@handles("memref.load")
def _load(f: CppFunction, op: Operation) -> None:
    result = op.results[0]
    if f.count.get(result):
        f.declare(result, f.types(result.type), _element(f, op.operands[0], op.group("indices")))


@handles("memref.store")
def _store(f: CppFunction, op: Operation) -> None:
    f.line(f"{_element(f, op.operands[1], op.group('indices'), 'write')} = {f.text(op.operands[0])};")


@handles("memref.dim")
def _dim(f: CppFunction, op: Operation) -> None:
    at = extent(op.operands[1])
    if not isinstance(at, int):
        f.unit.no_spelling(op, "with 'index'")
        return
    found = memref_view(f, op.operands[0]).dims[at]
    if isinstance(found, int):
        f.name(op.results[0], f.constant(f.types.index, str(found)))
    else:
        f.name(op.results[0], *f.known[found])


_BAD_DIVISOR = '"[PTO-E2102] a divisor of %lld, which must be positive"'


@handles("affine.apply")
def _affine(f: CppFunction, op: Operation) -> None:
    """Emit an affine map of one result, as the arithmetic of its rows."""
    mapping = op.attrs["map"]
    assert isinstance(mapping, AffineMapAttr)

    def constant(number: int) -> Value:
        value = IntAttr(number, INDEX)
        made = Operation("arith.constant", row("arith.constant"), [], [INDEX], {"value": value}, loc=op.loc)
        HANDLERS[made.name](f, made)
        return made.result

    def apply(name: str, lhs: Value, rhs: Value) -> Value:
        made = Operation(name, row(name), [lhs, rhs], [INDEX], loc=op.loc)
        f.count[made.result] = 2  # a variable: some have two uses
        f.parts.expression(f, made)
        return made.result

    def check(divisor: Value) -> None:
        if f.unit.checked:
            fails = f"pto::detail::failf({_BAD_DIVISOR}, (long long) {f.unary(divisor)})"
            f.line(f"if ({f.operand(divisor)} <= 0) {fails};")

    found = as_arith(mapping.results[0], op.operands, constant, apply, check)
    f.name(op.results[0], *f.known.get(found, (f.text(found), ATOM)))
