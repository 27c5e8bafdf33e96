"""Operators of the cube: matrix products, and operators that cut tiles for them.

A product is accumulated in FP32 or INT32, in Acc. When it is stored, or leaves its region as a tensor, it has
the element type `out_dtype`, or that of the operands (`leaving`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import FP32, INDEX, INT32, DataType
from ..enums import MemorySpace, SplitMode
from ..ir import (
    Dim,
    Dims,
    Number,
    ScalarType,
    ShapedType,
    TileType,
    Value,
    index,
    is_scalar,
    is_shaped,
    is_tile,
)
from ..ir.build import Build
from ..problems import ARGUMENTS, PLACE, SHAPE, TYPE, UNSUPPORTED
from .core import Array, Extents, Tile, operator
from .memory import in_core
from .rows import array_type

_SCALED = ("lhs", "lhs_scale", "rhs", "rhs_scale")
#: Products, and the operands that go to the cube.
PRODUCTS: dict[str, tuple[str, ...]] = {
    "matmul": ("lhs", "rhs"), "matmul_acc": ("lhs", "rhs"), "matmul_bias": ("lhs", "rhs", "bias"),
    "gemv": ("lhs", "rhs"), "gemv_acc": ("lhs", "rhs"), "gemv_bias": ("lhs", "rhs", "bias"),
    "matmul_mx": _SCALED, "matmul_mx_acc": _SCALED, "matmul_mx_bias": (*_SCALED, "bias"),
}  # fmt: skip


def _shaped(b: Build, value: object, at: str) -> ShapedType:
    if not is_shaped(value):
        got = value.type if isinstance(value, Value) else repr(value)
        b.fail(TYPE, f"expected a tile or a tensor for '{at}'", at, got=got)
    return value.type


@operator
def matmul(
    b: Build, lhs: Array, rhs: Array, out_dtype: DataType | None = None, a_trans: bool = False,
    b_trans: bool = False, c_matrix_nz: bool = False,
) -> Array:  # fmt: skip
    """Multiply two matrices, accumulated in FP32 or INT32; stacks are multiplied matrix by matrix."""
    made = _product(b, "matmul", lhs, rhs, a_trans, b_trans)
    return b.op(
        "matmul", [made], lhs=lhs, rhs=rhs, out_dtype=out_dtype, a_trans=bool(a_trans), b_trans=bool(b_trans)
    )


@operator
def batch_matmul(b: Build, lhs: Array, rhs: Array) -> Array:
    """Multiply stacks of matrices."""
    return matmul.function(b, lhs, rhs)


@operator
def matmul_acc(
    b: Build, acc: Array, lhs: Array, rhs: Array, a_trans: bool = False, b_trans: bool = False,
    init_cond: Number | None = None,
) -> Array:  # fmt: skip
    """Add the product of two matrices to `acc`; return the product alone if `init_cond` holds."""
    made = _product(b, "matmul_acc", lhs, rhs, a_trans, b_trans)
    _same_shape(b, acc, made)
    if init_cond is not None and not is_scalar(init_cond):
        b.fail(TYPE, "expected a truth value for 'init_cond'", "init_cond", got=repr(init_cond))
    return b.op("matmul_acc", [made], acc=acc, lhs=lhs, rhs=rhs, a_trans=bool(a_trans), b_trans=bool(b_trans),
                init_cond=init_cond)  # fmt: skip


@operator
def batch_matmul_acc(b: Build, acc: Array, lhs: Array, rhs: Array) -> Array:
    """Add the products of stacks of matrices to `acc`."""
    return matmul_acc.function(b, acc, lhs, rhs)


@operator
def matmul_bias(b: Build, lhs: Array, rhs: Array, bias: Array) -> Array:
    """Multiply two matrices and add a row."""
    made = _product(b, "matmul_bias", lhs, rhs)
    _row(b, bias, made)
    return b.op("matmul_bias", [made], lhs=lhs, rhs=rhs, bias=bias)


@operator
def gemv(b: Build, lhs: Array, rhs: Array, acc_phase: str = "unspecified") -> Array:
    """Multiply a row by a matrix."""
    return b.op("gemv", [_row_product(b, "gemv", lhs, rhs)], lhs=lhs, rhs=rhs)


@operator
def gemv_acc(b: Build, acc: Array, lhs: Array, rhs: Array, acc_phase: str = "unspecified") -> Array:
    """Add a row times a matrix to `acc`."""
    made = _row_product(b, "gemv_acc", lhs, rhs)
    _same_shape(b, acc, made)
    return b.op("gemv_acc", [made], acc=acc, lhs=lhs, rhs=rhs)


@operator
def gemv_bias(b: Build, lhs: Array, rhs: Array, bias: Array, acc_phase: str = "unspecified") -> Array:
    """Multiply a row by a matrix and add a row."""
    made = _row_product(b, "gemv_bias", lhs, rhs)
    _row(b, bias, made)
    return b.op("gemv_bias", [made], lhs=lhs, rhs=rhs, bias=bias)


def _same_shape(b: Build, acc: Array, made: ShapedType) -> None:
    a = _shaped(b, acc, "acc")
    if b.exact:
        return
    if not index.same_dims(a.shape, made.shape):
        b.fail(SHAPE, "shape of 'acc' does not match the product", "acc", expected=made, got=a)
    if a.dtype != made.dtype:
        b.fail(
            TYPE, f"expected {made.dtype.name} for 'acc'", "acc", expected=made.dtype.name, got=a.dtype.name
        )


def _row(b: Build, bias: Array, made: ShapedType) -> None:
    t = _shaped(b, bias, "bias")
    if not index.same(t.shape[-1], made.shape[-1]) or any(index.known(d) != 1 for d in t.shape[:-1]):
        b.fail(
            SHAPE,
            "expected one row as wide as the product for 'bias'",
            "bias",
            expected=[1, made.shape[-1]],
            got=t,
        )


def _row_product(b: Build, name: str, lhs: Array, rhs: Array) -> ShapedType:
    made = _product(b, name, lhs, rhs)
    if any(index.known(d) not in (None, 1) for d in made.shape[:-1]):
        b.fail(
            SHAPE, f"expected one row for {name}", "lhs", got=lhs.type, help="use pl.matmul for several rows"
        )
    return made


def _product(
    b: Build, name: str, lhs: Array, rhs: Array, a_trans: bool = False, b_trans: bool = False
) -> ShapedType:
    """Return the type of a product."""
    in_core(b)
    x, y = _shaped(b, lhs, "lhs"), _shaped(b, rhs, "rhs")
    if x.dtype != y.dtype:
        b.fail(
            TYPE,
            f"cannot multiply {x.dtype.name} by {y.dtype.name} with {name}",
            "rhs",
            help=f"pl.cast(rhs, pl.{x.dtype.name})",
        )
    if x.rank == 1 and y.rank == 1:
        b.fail(SHAPE, "cannot multiply two rows", "rhs", help="multiply them and use pl.row_sum")
    rows = [] if x.rank == 1 else [-1 if a_trans else -2]
    cols = [] if y.rank == 1 else [-2 if b_trans else -1]
    k, k2 = x.shape[-2 if a_trans and rows else -1], y.shape[-1 if b_trans or not cols else -2]
    if index.known_difference(k, k2) not in (None, 0):
        b.fail(
            SHAPE,
            f"cannot multiply {_text(k)} columns by {_text(k2)} rows",
            "rhs",
            expected=f"{_text(k)} rows",
            got=_text(k2),
        )

    def dims(of_x: Sequence[Dim], of_y: Sequence[Dim]) -> Dims:
        return (*_stack(b, of_x[:-2], of_y[:-2]), *(of_x[i] for i in rows), *(of_y[i] for i in cols))

    valid = None if x.valid is None and y.valid is None else dims(x.extent, y.extent)
    shape = dims(x.shape, y.shape)
    dtype = INT32 if x.dtype.is_int else FP32
    if valid is not None and index.same_dims(valid, shape):
        valid = None
    return array_type(dtype, shape, valid, is_tile(lhs) and is_tile(rhs), "acc")


def _stack(b: Build, x: Sequence[Dim], y: Sequence[Dim]) -> list[Dim]:
    """Return the joint leading dimensions of two stacks; an extent of 1, or a missing one, matches any."""
    n = max(len(x), len(y))
    out: list[Dim] = []
    for p, q in zip([1] * (n - len(x)) + list(x), [1] * (n - len(y)) + list(y), strict=True):
        if index.known(p) != 1 and index.known(q) != 1 and not index.same(p, q):
            b.fail(
                SHAPE,
                f"cannot multiply stacks of {_text(p)} and {_text(q)} matrices",
                "rhs",
                expected=_text(p),
                got=_text(q),
            )
        out.append(q if index.known(p) == 1 else p)
    return out


def _text(d: Dim) -> str:
    return str(d) if not isinstance(d, Value) else d.name or "?"


def leaving(value: Value) -> DataType:
    """Return the element type of an array outside its region: for a product, `out_dtype` or that of the
    operands."""
    seen: set[Value] = set()
    stack: list[Value | None] = [value]
    plain: DataType | None = None
    while stack:
        v = stack.pop()
        op = None if v is None else v.op  # None: a name without a value before its loop
        if v is None or op is None or v in seen:
            continue
        seen.add(v)
        if op.name in ("for", "while", "if"):
            arms = op.blocks if op.name == "if" else op.blocks[-1:]
            stack += [b.yielded[v.index] for b in arms]
            stack += op.args["init_values"][v.index : v.index + 1] if "init_values" in op.args else []
        elif "acc" in op.args and op.name in PRODUCTS:
            stack.append(op.args["acc"])
        elif op.name not in PRODUCTS or op.args.get("out_dtype") or "lhs_scale" in op.args:
            return op.args.get("out_dtype") or v.type.dtype
        elif not op.args["lhs"].type.dtype.is_int:
            plain = op.args["lhs"].type.dtype
    return plain or value.type.dtype


@operator(level="tile")
def extract(
    b: Build,
    x: Array,
    index_row: Dim,
    index_col: Dim,
    shape: Extents,
    target_memory: MemorySpace = MemorySpace.Vec,
) -> Tile:
    """Copy a window of a tile to another memory."""
    in_core(b)
    t = _shaped(b, x, "x")
    sizes = b.static(shape, "shape")
    for o, n, whole in zip((index_row, index_col), sizes, t.shape[-2:], strict=True):
        last = None if index.known(o) is None else index.known_difference(b.scalar("add", o, n), whole)
        if last is not None and last > 0:
            b.fail(
                SHAPE,
                "window exceeds the tile",
                "shape",
                expected=f"within {_text(whole)}",
                got=_text(o),
            )
    made = TileType(t.dtype, tuple(sizes), None, target_memory.isa)
    return b.op("tile.extract", [made], x=x, index_row=b.as_index(index_row), index_col=b.as_index(index_col),
                shape=sizes, target_memory=target_memory)  # fmt: skip


@operator(level="tile")
def transpose_view(b: Build, x: Array) -> Tile:
    """View a tile in Mat transposed, without a copy."""
    in_core(b)
    t = _shaped(b, x, "x")
    return b.op("tile.transpose_view", [transposed(t)], x=x)


def transposed(t: ShapedType) -> ShapedType:
    """Return the type of a transpose."""

    def swapped(dims: Sequence[Dim]) -> Dims:
        return (*dims[:-2], dims[-1], dims[-2])

    made = t.replace(shape=swapped(t.shape), valid=None if t.valid is None else swapped(t.valid))
    return (
        made.replace(space="mat", transposed=not t.transposed)
        if isinstance(made, TileType) and isinstance(t, TileType)
        else made
    )


def _halves(b: Build, x: Array, name: str, mode: object, join: bool, lane_stride: object) -> Value:
    t = _shaped(b, x, "x")
    found = mode if mode is not None else b.split
    if not isinstance(found, SplitMode):
        b.fail(PLACE, f"cannot use {b.operator} outside of `for lane in pl.split_aiv(2, mode=..)`")
    shape, valid = list(t.shape), list(t.extent)
    if found is not SplitMode.NONE:
        axis = t.rank - (2 if found is SplitMode.UP_DOWN else 1)
        n = index.known(shape[axis])
        if not b.exact or (n is not None and not n % 2):  # in all other cases an annotation gives the type
            what = "rows" if found is SplitMode.UP_DOWN else "columns"
            if n is None or (n % 2 and not join):
                b.fail(SHAPE, f"cannot halve {_text(shape[axis])} {what}", "x", got=t)
            shape[axis] = 2 * n if join else n // 2
            valid[axis] = (_joined if join else _of_lane)(b, valid[axis], n, what, t)
    made = t.replace(shape=tuple(shape), valid=None if t.valid is None else tuple(valid))
    if isinstance(made, TileType):
        made = made.replace(space="mat" if join else "vec")
    if lane_stride is None:
        return b.op(name, [made], x=x, mode=found)
    if not b.exact:
        b.fail(
            UNSUPPORTED,
            "unsupported lane_stride: the second vector core starts at the middle",
            "lane_stride",
            got=lane_stride,
        )
    return b.op(name, [made], x=x, mode=found, lane_stride=lane_stride)


def _of_lane(b: Build, valid: Dim, whole: int, what: str, t: ShapedType) -> Dim:
    """Return the valid extent in the half of the executing lane. Each lane has half of the whole tile, so
    valid data fills the first lane first.
    """
    half = whole // 2
    if index.known(valid) == whole:
        return half
    if b.exact:
        return valid
    if what == "columns":
        b.fail(SHAPE, "cannot halve partly valid columns: FIFO slots are read by rows of one "
               "length", "x", expected=f"{whole} columns of data", got=t,
               help="mode=pl.SplitMode.UP_DOWN, or pl.set_validshape(x, rows, columns) before")  # fmt: skip
    lane = b.op("get_subblock_idx", [ScalarType(INDEX)])
    left = b.scalar("sub", b.as_index(valid), b.scalar("mul", lane, half))
    found = b.scalar("min", b.scalar("max", left, 0), half)
    b.shards[found] = valid
    return found


def _joined(b: Build, valid: Dim, half: int, what: str, t: ShapedType) -> Dim:
    """Return the valid extent of two halves side by side."""
    if index.known(valid) == half or b.exact:
        return 2 * half if index.known(valid) == half else valid
    if valid not in b.shards:
        b.fail(SHAPE, f"cannot join halves with invalid {what} between them", "x", got=t,
               expected=f"{half} valid {what} in each lane",
               help="pl.fillpad(x, pl.PadValue.zero) makes all of it valid")  # fmt: skip
    return b.shards[valid]


@operator
def aiv_shard(
    b: Build,
    x: Array,
    mode: SplitMode | int | None = None,
    *,
    split: SplitMode | int | None = None,
    lane_stride: object = None,
) -> Array:
    """Return this vector core's half of a tile of the cube. `split` is the number of a mode."""
    in_core(b)
    return _halves(b, x, "aiv_shard", _mode(b, mode, split), False, lane_stride)


@operator
def aic_gather(
    b: Build,
    x: Array,
    mode: SplitMode | int | None = None,
    *,
    split: SplitMode | int | None = None,
    lane_stride: object = None,
) -> Array:
    """Join the halves of both vector cores for the cube. `split` is the number of a mode."""
    in_core(b)
    return _halves(b, x, "aic_gather", _mode(b, mode, split), True, lane_stride)


def _mode(b: Build, mode: object, split: object) -> object:
    if split is None or isinstance(split, SplitMode):
        return split if mode is None else mode
    found = [m for m in SplitMode if m.value == split]
    if not found:
        b.fail(
            ARGUMENTS,
            "expected 0, 1 or 2 for 'split': none, up and down, left and right",
            "split",
            got=repr(split),
        )
    return found[0]


__all__ = ["PRODUCTS", "leaving", "transposed"]
