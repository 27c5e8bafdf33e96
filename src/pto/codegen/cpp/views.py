"""Views of global memory as GlobalTensors, and pointers into it.

A tensor view has no statement of its own; a window of it becomes a GlobalTensor of five dimensions if an
instruction needs one. The offset of a window is added to the pointer in unsigned arithmetic.
"""

from __future__ import annotations

import re

from ...ir.core import Operation, Value, constant_of
from ...ir.facts import view_layout
from ...ir.types import MemRefType, PtrType, ViewType
from ...isa.machine import MEMORIES
from ...isa.view import packed_scales
from .function import ATOM, CAST, OTHER, CppFunction, Extent, KnownView, handles, reads_otherwise
from .spelling import QUALIFIER


def extent(value: Value, static: int | None = None) -> Extent:
    if static is not None:
        return static
    number = constant_of(value)
    return number if isinstance(number, int) else value


@handles("pto.make_tensor_view")
def _make(f: CppFunction, op: Operation) -> None:
    result = op.results[0]
    assert isinstance(result.type, ViewType)
    pointer = op.operands[0]
    shape = [extent(v, d) for v, d in zip(op.group("shape"), result.type.dims, strict=False)]
    view = KnownView(
        f.operand(pointer), shape, [extent(v) for v in op.group("strides")],
        view_layout(result) or "ND", f.types.scalar(result.type.elem),
    )  # fmt: skip
    f.views[result] = view
    if result in f.shown_views:
        _declare(f, result, view)


@handles("pto.partition_view")
def _partition(f: CppFunction, op: Operation) -> None:
    result = op.results[0]
    assert isinstance(result.type, ViewType)
    source = f.views.get(op.operands[0])
    if source is None:
        source = _argument(f, op.operands[0])
    offsets, sizes = op.group("offsets"), op.group("sizes")
    same = result.type.rank == len(sizes)
    dims = [extent(v, result.type.dims[i] if same else None) for i, v in enumerate(sizes)]
    view = KnownView(
        source.pointer, dims, source.strides, view_layout(result) or source.layout, source.elem,
        (*source.terms, *zip(offsets, source.strides, strict=False)),
    )  # fmt: skip
    f.views[result] = view
    if result in f.shown_views:
        _declare(f, result, view)


def _argument(f: CppFunction, value: Value) -> KnownView:
    """Return a view from an argument or from control flow: the object has its strides."""
    assert isinstance(value.type, ViewType)
    name = f.text(value)
    rank = value.type.rank
    dims: list[Extent] = []
    for i, d in enumerate(value.type.dims):
        dims.append(d if d is not None else _query(f, name, "GetShape", 5 - rank + i))
    strides: list[Extent] = [_query(f, name, "GetStride", 5 - rank + i) for i in range(rank)]
    return KnownView(f"{name}.data()", dims, strides, "ND", f.types.scalar(value.type.elem))


def _query(f: CppFunction, name: str, member: str, dim: int) -> Value:
    from ...ir.core import Block
    from ...ir.types import INDEX

    made = Value(INDEX, Block())
    f.name(made, f"({f.types.index}) {name}.{member}({dim})", CAST)
    return made


def number_text(f: CppFunction, extent: Extent) -> str:
    """Return an extent as an operand of the offset arithmetic."""
    if isinstance(extent, int):
        return f.constant(f.types.index, str(extent))
    return f.operand(extent)


def _text(f: CppFunction, extent: Extent) -> str:
    return str(extent) if isinstance(extent, int) else f.text(extent)


def pointer_text(f: CppFunction, view: KnownView) -> str:
    """Return the address of the first element."""
    if not view.terms:
        return view.pointer
    terms: list[str] = []
    if f.unit.wide:
        terms.append(f.constant(f.types.index, "0"))
        terms += [f"{number_text(f, extent(o))} * {number_text(f, s)}" for o, s in view.terms]
    else:
        terms.append(f.helper("unsigned", "0"))
        for offset, stride in view.terms:
            number = constant_of(offset)
            first = (
                f.helper("unsigned", str(number))
                if isinstance(number, int)
                else f"(unsigned) {f.unary(offset)}"
            )
            scale = f.constant(f.types.index, str(stride)) if isinstance(stride, int) else f.unary(stride)
            terms.append(f"{first} * (unsigned) {scale}")
    return f"{view.pointer} + ({' + '.join(terms)})"


def _strides(f: CppFunction, view: KnownView) -> list[int | str]:
    """Return strides in five dimensions: the stride of an added dimension spans the dimension after it."""
    pad = 5 - len(view.dims)
    shape: list[Extent] = [1] * pad + view.dims
    strides: list[int | str] = [s if isinstance(s, int) else f.text(s) for s in view.strides]
    for at in range(pad - 1, -1, -1):
        dim, stride = shape[at + 1], strides[0]
        if isinstance(dim, int) and isinstance(stride, int):
            strides.insert(0, dim * stride)
        elif dim == 1:
            strides.insert(0, stride)
        else:
            left = f.operand(dim) if isinstance(dim, Value) else str(dim)
            strides.insert(0, f"{left} * {stride}")
    return strides


def _five(f: CppFunction, view: KnownView) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return static shape and strides in five dimensions (-1: at run time), and the values of the run-time
    extents and strides.
    """
    numbers = [d for d in view.dims if isinstance(d, int)]
    packed = packed_scales(view.layout, numbers, numbers)
    if packed is not None and len(numbers) == len(view.dims):
        return [str(d) for d in packed[0]], [], [str(s) for s in packed[1]], []
    shape: list[Extent] = [1] * (5 - len(view.dims)) + view.dims
    static = ["-1" if isinstance(d, Value) else str(d) for d in shape]
    given = [f.text(d) for d in shape if isinstance(d, Value)]
    strides = _strides(f, view)
    steps = ["-1" if isinstance(s, str) else str(s) for s in strides]
    return static, given, steps, [s for s in strides if isinstance(s, str)]


def _declare(f: CppFunction, value: Value, view: KnownView) -> None:
    """Declare the tensor of a view."""
    if len(view.dims) > 5:
        f.unit.report(value.op or f.op, "PTO-E1302", "cannot emit a view of more than five dimensions in C++")
        return
    declare_tensor(f, view, value)


def declare_tensor(f: CppFunction, view: KnownView, value: Value | None = None) -> str:
    """Declare shape, stride and tensor of a window; the tensor is the variable of `value`, if given."""
    shape, given, steps, run_time = _five(f, view)
    shape_type = f"pto::Shape<{', '.join(shape)}>"
    stride_type = f"pto::Stride<{', '.join(steps)}>"
    name = value.name if value is not None and not value.name.isdigit() else ""
    one, two = f.token(name and f"{name}_shape"), f.token(name and f"{name}_stride")
    f.line(f"{shape_type} {one} = {shape_type}({', '.join(given)});")
    f.line(f"{stride_type} {two} = {stride_type}({', '.join(run_time)});")
    view.type = f"GlobalTensor<{view.elem}, {shape_type}, {stride_type}, pto::Layout::{view.layout}>"
    init = f"{view.type}({pointer_text(f, view)}, {one}, {two})"
    if value is not None:
        return f.declare(value, view.type, init)
    token = f.token()
    f.line(f"{view.type} {token} = {init};")
    return token


@handles("pto.tload", "pto.tstore", "pto.tstore_fp")
def _access(f: CppFunction, op: Operation) -> None:
    """Emit an access with its own tensor if it reads its window in another layout."""
    view = op.group("src" if op.name == "pto.tload" else "dst")[0]
    if "layout" not in op.attrs or not isinstance(view.type, ViewType) or not reads_otherwise(op, view):
        f.regular(op)
        return
    known, of = f.known.get(view), f.views.get(view)
    made = (of or _argument(f, view)).but(str(op.attrs["layout"].value).upper())
    f.name(view, declare_tensor(f, made))
    f.views[view] = made
    f.regular(op)
    if of is None:
        del f.views[view]
    else:
        f.views[view] = of
    if known is None:
        del f.known[view]
    else:
        f.known[view] = known


def memref_view(f: CppFunction, value: Value) -> KnownView:
    """Return the known facts of a memref: tracked, or from its type."""
    found = f.views.get(value)
    if found is not None:
        return found
    type = value.type
    assert isinstance(type, MemRefType)
    strided = re.search(r"\[(.*?)\]", type.layout_text)
    strides: list[Extent]
    if strided and "?" not in strided[1]:
        strides = [int(s) for s in strided[1].split(",")]
    else:
        strides = [1]
        for d in reversed(type.dims[1:]):
            strides.insert(0, strides[0] * (d or 1))  # type: ignore[operator]
    dims: list[Extent] = [d if d is not None else 1 for d in type.dims]
    return KnownView(f.operand(value), dims, strides, "ND", f.types.scalar(type.elem))


def open_view(f: CppFunction, value: Value) -> str:
    """Return a view as a tensor with run-time strides."""
    view = f.views.get(value)
    type = f.types(value.type)
    if view is None:
        return f.text(value)
    matrix = all(d == 1 for d in view.dims[:-2])  # elements have the same addresses in ND and DN
    if view.layout not in ("ND", "DN") or (view.layout == "DN" and not matrix):
        f.unit.report(
            value.op or f.op, "PTO-E1302",
            f"cannot pass on a view of layout {view.layout} in C++",
            help="make the view where it is used",
        )  # fmt: skip
    dims: list[Extent] = [1] * (5 - len(view.dims)) + view.dims
    texts = [str(stride) for stride in _strides(f, view)]
    declared = [("-1" if d is None else str(d)) for d in value.type.dims]  # type: ignore[attr-defined]
    declared = ["1"] * (5 - len(declared)) + declared
    given = [_text(f, d) for d, known in zip(dims, declared, strict=True) if known == "-1"]
    return (
        f"{type}({pointer_text(f, view)}, pto::Shape<{', '.join(declared)}>({', '.join(given)}), "
        f"pto::Stride<-1, -1, -1, -1, -1>({', '.join(texts)}))"
    )


@handles("pto.get_tensor_view_dim", "pto.get_tensor_view_stride")
def _ask(f: CppFunction, op: Operation) -> None:
    source = op.operands[0]
    if isinstance(source.type, MemRefType):
        view = memref_view(f, source)
    else:
        view = f.views.get(source) or _argument(f, source)
    at = constant_of(op.operands[1])
    values = view.dims if op.name.endswith("dim") else view.strides
    if not isinstance(at, int):
        f.unit.no_spelling(op, "with 'dim_index'")
        return
    found = values[at]
    if isinstance(found, int):
        f.name(op.results[0], f.constant(f.types.index, str(found)))
    elif f.count.get(op.results[0]):
        f.name(op.results[0], *f.known[found])


@handles("pto.tensor_view_addr")
def _address(f: CppFunction, op: Operation) -> None:
    source = op.operands[0]
    view = f.views.get(source)
    if view is not None:
        text = pointer_text(f, view)
        f.define(op.results[0], text, OTHER if view.terms else ATOM)
    elif isinstance(source.type, MemRefType):
        f.name(op.results[0], *f.known[source])
    else:
        f.define(op.results[0], f"{f.text(source)}.data()", ATOM)


def start_of(f: CppFunction, value: Value) -> str:
    """Return a pointer, or the start of the memory of a view."""
    view = f.views.get(value)
    if view is not None:
        return pointer_text(f, view)
    return f"{f.text(value)}.data()" if isinstance(value.type, ViewType) else f.text(value)


@handles("pto.addptr")
def _addptr(f: CppFunction, op: Operation) -> None:
    """Emit a pointer variable; an offset of an element access is added to its index instead."""
    result = op.results[0]
    if not f.count.get(result):
        return
    pointer, offset = f.operand(op.operands[0]), f.atom(op.operands[1])
    if isinstance(result.type, PtrType):
        type = f.types(result.type)
    else:
        type = f.types(op.operands[0].type)
    f.declare(result, type, f"{pointer} + {offset}")
    if f.unit.addptr_trace:
        f.line(f"/* ADDPTR_TRACE: {f.text(result)} = {pointer} + {offset} */;")


#: The kind of tiles in the space of a pointer.
_TILE_TYPES = {m.space: m.tile_type for m in MEMORIES.values() if m.space}


@handles("pto.castptr")
def _castptr(f: CppFunction, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    to = f.types(result.type)
    if to == f.types(source.type):
        f.name(result, *f.known[source])
    elif (
        f.unit.checked
        and not isinstance(source.type, PtrType)
        and isinstance(result.type, PtrType)
        and result.type.space in _TILE_TYPES
    ):
        # Compiled for this machine, on which on-chip addresses are not valid.
        at = f"pto::detail::pointer_at(TileType::{_TILE_TYPES[result.type.space]}, {f.text(source)})"
        f.define(result, f"reinterpret_cast<{to}>({at})", ATOM)
    else:
        f.define(result, f"reinterpret_cast<{to}>({f.text(source)})", ATOM)


def index_text(f: CppFunction, value: Value) -> str:
    return f.bare.get(value) or f.text(value)


@handles("pto.load_scalar")
def _load(f: CppFunction, op: Operation) -> None:
    pointer, index = op.operands
    result = op.results[0]
    text = f.element(f.unary(pointer), index_text(f, index), pointer)
    if f.count.get(result):
        f.declare(result, f.types(result.type), text)


@handles("pto.store_scalar")
def _store(f: CppFunction, op: Operation) -> None:
    pointer, index, value = op.operands
    f.line(f"{f.element(f.unary(pointer), index_text(f, index), pointer, 'write')} = {f.text(value)};")


def local_pointer(f: CppFunction, location: str, elem: str) -> str:
    """Return the type of a pointer into an on-chip buffer."""
    return f"{QUALIFIER[location]} {elem}*" if location != "bias" else "auto"
