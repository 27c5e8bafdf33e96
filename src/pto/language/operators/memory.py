"""Operators that move data or name parts of it: loads, stores, windows, reshapes; new tiles and tensors."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import FP32, INDEX, DataType
from ..enums import AtomicType, MemorySpace, TensorLayout
from ..ir import (
    Args,
    ArrayType,
    Dim,
    Dims,
    Number,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    Value,
    index,
    is_int,
    is_scalar,
    is_shaped,
    is_tensor,
    is_tile,
    scalar_type,
)
from ..ir.build import Build
from ..problems import ARGUMENTS, PLACE, SHAPE, TO_A_CORE, TYPE
from ..types import MemRef
from .core import Array, Extents, Scalar, Tensor, Tile, operator


def tensor_value(b: Build, value: object, at: str) -> Value:
    if not is_tensor(value):
        b.fail(
            TYPE,
            f"expected a tensor for '{at}'",
            at,
            got=value.type if isinstance(value, Value) else repr(value),
        )
    return value


def tile_value(b: Build, value: object, at: str) -> Value:
    if not is_tile(value):
        help = "pl.load(tensor, offsets, shape) gives a tile" if is_tensor(value) else ""
        got = value.type if isinstance(value, Value) else repr(value)
        b.fail(TYPE, f"expected a tile for '{at}'", at, got=got, help=help)
    return value


def shaped_value(b: Build, value: object, at: str) -> Value:
    if not is_shaped(value):
        got = value.type if isinstance(value, Value) else repr(value)
        b.fail(TYPE, f"expected a tile or a tensor for '{at}'", at, got=got)
    return value


def in_core(b: Build, what: str = "") -> None:
    """Reject an operator of a core outside of a core. A text is exempt, because it is read again when it is
    lowered.
    """
    if not b.in_core and not b.exact:
        b.fail(
            PLACE, f"cannot use {what or b.operator} in an orchestration: it runs on a core", help=TO_A_CORE
        )


def fits(
    b: Build, source: ShapedType, offsets: Sequence[Dim], shape: Sequence[Dim], at: str, clamp: bool = False,
    name: str = "",
) -> None:  # fmt: skip
    """Reject a window that exceeds its source in every run. `name` is the name of the source."""
    if b.exact:
        return
    for axis, (o, n, whole) in enumerate(zip(offsets, shape, source.shape, strict=True)):
        start = index.known(o)
        more = index.known_difference(n, whole)
        past = None if start is None or more is None else start + more
        if (start is not None and start < 0) or (past is not None and past > 0 and not clamp):
            of = f" of '{name}'" if name else ""
            b.fail(SHAPE, f"window exceeds dimension {axis}{of}", at,
                   expected=f"within {_text(whole)}",
                   got=f"{_text(o)} to {_text(o)} + {_text(n)}")  # fmt: skip


def _text(d: Dim) -> str:
    return str(d) if not isinstance(d, Value) else d.name or "?"


def _within(offset: Dim, extent: Dim, whole: Dim) -> bool:
    """Return True if a window ends within its source in every run."""
    start, more = index.known(offset), index.known_difference(extent, whole)
    return start is not None and more is not None and start + more <= 0


def cut_valid(
    b: Build, source: ShapedType, offsets: Sequence[Dim], shape: Sequence[Dim], wanted: Sequence[Dim] | None,
    clamp: bool = False,
) -> Dims | None:  # fmt: skip
    """Return the valid region of a window: the requested region, cut at the valid region of the source or,
    with `clamp`, at the end of the source.
    """
    if b.exact:
        return None if wanted is None else tuple(wanted)
    out: list[Dim] = []
    for n, o, whole, n_valid in zip(
        shape, offsets, source.extent, wanted or [None] * len(shape), strict=True
    ):
        valid = n if n_valid is None else b.as_index(n_valid)
        narrow = source.valid is not None and not index.same(whole, source.shape[len(out)])
        if narrow or (clamp and not _within(o, valid, whole)):
            left = b.scalar("max", b.scalar("sub", whole, o), 0)
            valid = b.scalar("min", valid, left)
        out.append(valid)
    return None if index.same_dims(out, shape) else tuple(out)


@operator
def load(
    b: Build, tensor: Tensor, offsets: Extents, shapes: Extents, valid_shape: Extents | None = None,
    target_memory: MemorySpace = MemorySpace.Vec, clamp: bool = False,
) -> Tile:  # fmt: skip
    """Load a window of a tensor into a new tile; only its valid region is read. `clamp` cuts the window at
    the end of the tensor."""
    in_core(b)
    t = tensor_value(b, tensor, "tensor").type
    at = [b.as_index(d) for d in b.dims(offsets, "offsets", t.rank)]
    sizes = b.dims(shapes, "shapes", t.rank)
    shape = b.static(_room(b, tensor, sizes), "shapes")
    wanted = None if not valid_shape else b.dims(valid_shape, "valid_shape", t.rank)
    if wanted is None and not b.exact and not index.same_dims(shape, sizes):
        wanted = sizes
    fits(b, t, at, shape if wanted is None else wanted, "shapes", clamp, tensor.name)
    if target_memory not in (MemorySpace.Vec, MemorySpace.Mat):
        b.fail(ARGUMENTS, "cannot load to this memory", "target_memory", got=target_memory,
               help="pl.move takes a tile from Mat to Left and Right")  # fmt: skip
    valid = cut_valid(b, t, at, shape, wanted, clamp)
    type_ = TileType(t.dtype, tuple(shape), valid, target_memory.isa)
    if t.layout in SCALES:
        type_ = type_.replace(scales=_scales(b, t, at, shape, target_memory))
    return b.op("load", [type_], tensor=tensor, offsets=at, shapes=shape,
                valid_shape=None if valid is None else list(valid), target_memory=target_memory)  # fmt: skip


def _room(b: Build, tensor: Value, sizes: Sequence[Dim]) -> list[Dim]:
    """Return the tile shape for a window; a dynamic extent that covers a whole dimension gets its upper
    bound."""
    if b.exact:
        return list(sizes)
    whole = [
        index.known(n) is None and index.same(n, d) for n, d in zip(sizes, tensor.type.shape, strict=True)
    ]
    most = [b.most(tensor, axis) if w else None for axis, w in enumerate(whole)]
    return [n if m is None else m for n, m in zip(sizes, most, strict=True)]


#: Layouts of scales in memory: their destination in the memories of the cube, and the shape of their boxes.
SCALES = {"MX_A_ZZ": ("scale_left", (16, 2)), "MX_B_NN": ("scale_right", (2, 16))}


def _scales(b: Build, t: TensorType, at: list[Dim], shape: list[int], memory: MemorySpace) -> str:
    """Return the destination of scales in the cube's memories; scales are loaded to Mat in whole boxes."""
    space, box = SCALES[t.layout]
    known = [index.known(o) for o in at]
    if memory is not MemorySpace.Mat:
        b.fail(ARGUMENTS, "cannot load scales of products to this memory", "target_memory", got=memory)
    inside = zip(known, shape, box, strict=True)
    if not b.exact and any((o or 0) % n or size % n for o, size, n in inside):
        b.fail(
            SHAPE,
            f"expected whole boxes of {box[0]} rows and {box[1]} columns of scales",
            "shapes",
            got=shape,
        )
    return space


@operator
def store(
    b: Build, tile: Tile, offsets: Extents, output_tensor: Tensor, shapes: Extents | None = None,
    *, atomic: AtomicType = AtomicType.None_,
) -> Tensor:  # fmt: skip
    """Store the valid region of a tile to a tensor; return the tensor."""
    in_core(b)
    if is_shaped(output_tensor) and isinstance(output_tensor.type, TileType) and is_tensor(tile):
        b.fail(TYPE, "arguments swapped", expected="pl.store(tile, offsets, tensor)",
               help="give the tile first")  # fmt: skip
    t = tensor_value(b, output_tensor, "output_tensor").type
    s = shaped_value(b, tile, "tile").type
    at = [b.as_index(d) for d in b.dims(offsets, "offsets", t.rank)]
    extent = list(s.extent)[-t.rank :]
    extent = [1] * (t.rank - len(extent)) + extent
    fits(b, t, at, extent, "offsets", name=output_tensor.name)
    _same_bits(b, s, t, "tile")
    b.append("store", [], {"tile": tile, "offsets": at, "output_tensor": output_tensor, "atomic": atomic})
    return output_tensor


@operator
def slice(
    b: Build, x: Array, shape: Extents, offset: Extents, valid_shape: Extents | None = None,
    drop_dims: Sequence[int] | None = None, pad_value: object = None, clamp: bool = False,
) -> Array:  # fmt: skip
    """Return a window of a tensor or a tile, an alias of the same elements."""
    t = shaped_value(b, x, "x").type
    at = [b.as_index(d) for d in b.dims(offset, "offset", t.rank)]
    shape, more = _of_rank(b, shape, t.rank)
    sizes = b.dims(shape, "shape", t.rank)
    wanted = None if not valid_shape else b.dims(_of_rank(b, valid_shape, t.rank)[0], "valid_shape", t.rank)
    drop_dims = [*range(more), *(drop_dims or ())]
    sizes = [index.folded(n) for n in sizes]
    if isinstance(t, TileType):
        sizes = b.static(sizes, "shape")
    fits(b, t, at, sizes if wanted is None else wanted, "shape", clamp, x.name)
    valid = cut_valid(b, t, at, sizes, wanted, clamp)
    dropped = tuple(drop_dims or ())
    kept = [i for i in range(t.rank) if i not in dropped]
    type_ = t.replace(
        shape=tuple(sizes[i] for i in kept), valid=None if valid is None else tuple(valid[i] for i in kept)
    )
    if isinstance(t, TensorType) and not b.exact:
        strides = t.strides or dense_strides(b, t.shape)
        type_ = type_.replace(strides=tuple(strides[i] for i in kept))
    return b.op(
        "slice",
        [type_],
        x=x,
        shape=sizes,
        offset=at,
        valid_shape=None if valid is None else list(valid),
        drop_dims=list(dropped) or None,
    )


def _of_rank(b: Build, shape: Sequence[Dim], rank: int) -> tuple[Extents, int]:
    """Return the shape of a window with fewer dimensions than its source: leading dimensions of 1 are
    added."""
    missing = rank - len(shape) if isinstance(shape, list | tuple) else 0
    return ([1] * missing + [*shape], missing) if 0 < missing < rank else (shape, 0)


def _same_bits(b: Build, s: ShapedType, t: ShapedType, at: str) -> None:
    """Reject a store of elements to a tensor of another type of the same width, which would read them as
    other numbers.
    """
    floats = s.dtype.is_float or t.dtype.is_float
    if s.dtype != t.dtype and s.dtype.bits == t.dtype.bits and floats and not b.exact:
        b.fail(TYPE, f"cannot store {s.dtype.name} in a tensor of {t.dtype.name}", at, expected=t.dtype.name,
               got=s.dtype.name, help=f"pl.cast(x, pl.{t.dtype.name})")  # fmt: skip


def dense_strides(b: Build, shape: Sequence[Dim]) -> Dims:
    out: list[Dim] = [1]
    for n in reversed(shape[1:]):
        out.append(b.scalar("mul", out[-1], n))
    return tuple(reversed(out))


@operator
def assemble(
    b: Build, target: Array, source: Array, offset: Extents, *, atomic: AtomicType = AtomicType.None_
) -> Array:
    """Write the valid region of `source` into `target` at an offset; return `target`. In an orchestration
    this is a task that copies, unless tasks can write to that part of `target` directly."""
    t = shaped_value(b, target, "target").type
    s = shaped_value(b, source, "source").type
    at = [b.as_index(d) for d in b.dims(offset, "offset", t.rank)]
    extent = list(s.extent)[-t.rank :]
    fits(b, t, at, [1] * (t.rank - len(extent)) + extent, "offset", name=target.name)
    if s.dtype != t.dtype and not isinstance(t, TensorType) and not b.exact:
        b.fail(
            TYPE,
            f"cannot write {s.dtype.name} to {t.dtype.name}",
            "source",
            help=f"pl.cast(source, pl.{t.dtype.name})",
        )
    _same_bits(b, s, t, "source")
    b.append("assemble", [], {"target": target, "source": source, "offset": at, "atomic": atomic})
    return target


@operator
def reshape(b: Build, x: Array, shape: Extents) -> Array:
    """Return the same elements, row after row, in another shape."""
    t = shaped_value(b, x, "x").type
    sizes = [index.folded(n) for n in b.dims(shape, "shape")]
    if isinstance(t, TileType):
        sizes = b.static(sizes, "shape")
    before, after = (count(b, dims) for dims in (t.shape, sizes))
    if index.known_difference(before, after) not in (None, 0):
        b.fail(
            SHAPE,
            "number of elements changes in a reshape",
            "shape",
            expected=_text(before),
            got=_text(after),
        )
    valid = None
    if t.valid is not None:
        valid = _valid_reshaped(b, t, sizes)
        if valid is None:
            b.fail(SHAPE, "cannot reshape: the valid region is not a rectangle in the new shape", "shape",
                   help="reshape before the valid region is set, or fillpad first")  # fmt: skip
    if valid is not None and index.same_dims(valid, sizes):
        valid = None
    changes: Args = {"shape": tuple(sizes), "valid": valid}
    if isinstance(t, TensorType):
        changes["strides"] = None
    return b.op("reshape", [t.replace(**changes)], x=x, shape=sizes)


def _valid_reshaped(b: Build, t: ShapedType, sizes: Sequence[Dim]) -> Dims | None:
    """Return the valid region in another shape; None if it is not a box.

    Whole dimensions stay whole, a dimension that is kept keeps its part, and a run of whole rows becomes a
    run in the new shape.
    """
    out: list[Dim] = []
    before = [(d, v) for d, v in zip(t.shape, t.extent, strict=True) if index.known(d) != 1]
    after = [d for d in sizes if index.known(d) != 1]
    while before and after:
        have, new = [before.pop(0)], [after.pop(0)]
        while not index.same(total := count(b, [d for d, _ in have]), wanted := count(b, new)):
            fewer, more = index.known(total), index.known(wanted)
            if fewer is None or more is None or not (before if fewer < more else after):
                return None
            if fewer < more:
                have.append(before.pop(0))
            else:
                new.append(after.pop(0))
        part = merged_part(b, have, new)
        if part is None:
            return None
        out += part
    rest = iter(out)
    return tuple(1 if index.known(n) == 1 else next(rest) for n in sizes)


def merged_part(b: Build, have: Sequence[tuple[Dim, Dim]], new: list[Dim]) -> list[Dim] | None:
    """Return the valid region of dimensions that are merged or split into others."""
    if all(index.same(d, v) for d, v in have):
        return new
    if len(have) == len(new) == 1:
        return [have[0][1]]
    first = next(i for i, (_, v) in enumerate(have) if not index.same(v, 1) or i == len(have) - 1)
    if not all(index.same(d, v) for d, v in have[first + 1 :]):
        return None
    length = count(b, [have[first][1], *(d for d, _ in have[first + 1 :])])
    return _prefix(b, length, new)


def _prefix(b: Build, length: Dim, new: list[Dim]) -> list[Dim] | None:
    """Return the first elements of dimensions as a box; None if they are not a box."""
    if len(new) == 1:
        return [length]
    n, inner = index.known(length), index.known(count(b, new[1:]))
    if n is None or inner is None:
        return None
    if n % inner == 0:
        return [n // inner, *new[1:]]
    rest = _prefix(b, n, new[1:]) if n < inner else None
    return None if rest is None else [1, *rest]


def count(b: Build, dims: Sequence[Dim]) -> Dim:
    total: Dim = 1
    for d in dims:
        total = b.scalar("mul", total, d)
    return total


@operator
def create_tile(
    b: Build, shape: Extents, dtype: DataType, target_memory: MemorySpace | None = MemorySpace.Vec,
    transpose: object = None, *, flat_layout: object = None,
) -> Tile:  # fmt: skip
    """Create a tile without contents; in Mat, `transpose` makes it column-major."""
    in_core(b)
    space = "" if target_memory is None else target_memory.isa
    made = TileType(dtype, tuple(b.static(shape, "shape")), None, space, bool(transpose) and space == "mat")
    turned = {"transpose": True} if made.transposed else {}
    return b.op("create_tile", [made], shape=list(made.shape), dtype=dtype, target_memory=target_memory,
                **turned)  # fmt: skip


def _alloc(level: str) -> None:
    def alloc(b: Build, memory: object, size: object) -> MemRef:
        return MemRef(memory, size)

    alloc.__doc__ = "Name memory for tiles, beside their types. It has no effect: the tools place tiles."
    operator(alloc, name="alloc", level=level)


_alloc("tile")
_alloc("tensor")


@operator
def create_tensor(
    b: Build, shape: Extents, dtype: DataType, layout: TensorLayout = TensorLayout.ND,
    manual_dep: bool = False, init_value: Number | None = None,
) -> Tensor:  # fmt: skip
    """Create a tensor; on a core, a tile. It has no contents unless `init_value` is given."""
    sizes = [index.folded(n) for n in b.dims(shape, "shape")]
    return b.op("create_tensor", [TensorType(dtype, tuple(sizes))], shape=sizes, dtype=dtype,
                manual_dep=manual_dep, init_value=init_value)  # fmt: skip


@operator
def move(
    b: Build, tile: object, target_memory: MemorySpace, blayout: object = None, slayout: object = None
) -> Tile:
    """Copy a tile to another memory."""
    in_core(b)
    t = tile_value(b, tile, "tile").type
    return b.op("move", [t.replace(space=target_memory.isa)], tile=tile, target_memory=target_memory)


@operator
def read(b: Build, x: Array, offset: Extents | Dim) -> Scalar:
    """Return one element as a number. An orchestrator waits until the tensor is written."""
    if isinstance(x.type, ArrayType) and is_int(offset):
        return b.op("array.read", [ScalarType(x.type.dtype)], x=x, offset=b.as_index(offset))
    t = shaped_value(b, x, "x").type
    at = b.dims([offset] if is_scalar(offset) else offset, "offset")
    return b.op("read", [ScalarType(t.dtype)], x=x, offset=[b.as_index(o) for o in at])


@operator
def write(b: Build, x: Array, offset: Extents | Dim, value: Number) -> Array:
    """Set one element."""
    t = shaped_value(b, x, "x").type
    at = b.dims([offset] if is_scalar(offset) else offset, "offset")
    if isinstance(value, Value) and scalar_type(value) != t.dtype and not b.exact:
        b.fail(TYPE, f"cannot write {value.type} to {t}", "value", help=f"pl.cast(value, pl.{t.dtype.name})")
    b.append("write", [], {"x": x, "offset": [b.as_index(o) for o in at], "value": value})
    return x


@operator
def dim(b: Build, tensor: Array, axis: int) -> Dim:
    """Return the extent of a dimension."""
    t = shaped_value(b, tensor, "tensor").type
    if not isinstance(axis, int) or not -t.rank <= axis < t.rank:
        b.fail(ARGUMENTS, f"unknown dimension {axis!r}", "axis", expected=f"0 to {t.rank - 1}")
    return t.shape[axis]


@operator
def const(b: Build, value: int | float, dtype: DataType) -> Number:
    """Return a number of a given type."""
    if dtype in (INDEX, FP32) or not isinstance(value, int | float):
        return value
    return b.op("const", [ScalarType(dtype)], value=value, dtype=dtype)


@operator(name="min")
def minimum_of(b: Build, lhs: Number, rhs: Number) -> Number:
    """Return the smaller of two numbers."""
    return _of_numbers(b, "min", lhs, rhs)


@operator(name="max")
def maximum_of(b: Build, lhs: Number, rhs: Number) -> Number:
    """Return the larger of two numbers."""
    return _of_numbers(b, "max", lhs, rhs)


def _of_numbers(b: Build, name: str, lhs: Number, rhs: Number) -> Number:
    for at, value in (("lhs", lhs), ("rhs", rhs)):
        if is_shaped(value):
            b.fail(
                TYPE,
                f"expected two numbers for pl.{name}",
                at,
                got=value.type,
                help=f"pl.{name}imum(a, b) for elements; pl.row_{name}(x), pl.col_{name}(x)",
            )
    return b.scalar(name, lhs, rhs)


def _identity(name: str, doc: str) -> None:
    def function(b: Build) -> Scalar:
        in_core(b)
        return b.op(name, [ScalarType(INDEX)])

    function.__doc__ = doc
    operator(function, name=name)


_identity("get_block_idx", "Return the number of the executing block.")
_identity("get_block_num", "Return the number of blocks.")
_identity("get_subblock_idx", "Return the number of this vector core in its block.")


@operator
def transpose(b: Build, x: Array, axis1: int, axis2: int) -> Array:
    """Exchange two dimensions; on a core, this moves the elements."""
    t = shaped_value(b, x, "x").type
    axes = list(range(t.rank))
    for axis in (axis1, axis2):
        if not isinstance(axis, int) or not -t.rank <= axis < t.rank:
            b.fail(ARGUMENTS, f"unknown dimension {axis!r}", "axis1", expected=f"0 to {t.rank - 1}")
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    valid = None if t.valid is None else tuple(t.valid[i] for i in axes)
    made: ShapedType = t.replace(shape=tuple(t.shape[i] for i in axes), valid=valid)
    if isinstance(t, TensorType) and not b.in_core:
        strides = t.strides or dense_strides(b, t.shape)
        made = made.replace(strides=tuple(strides[i] for i in axes))
    elif isinstance(t, TileType):
        made = made.replace(space="vec")
    return b.op("transpose", [made], x=x, axis1=axis1 % t.rank, axis2=axis2 % t.rank)
