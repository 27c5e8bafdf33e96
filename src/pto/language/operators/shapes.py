"""Operators that change the valid region of an array, or the type or shape of its elements."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DataType
from ..enums import PadValue, TensorLayout
from ..ir import Args, Dim, ShapedType, TensorType, TileType, Value, index
from ..ir.build import Build
from ..problems import ARGUMENTS, SHAPE, UNSUPPORTED
from .core import FUNCTIONS, OPERATORS, Array, Extents, Tensor, operator
from .memory import dense_strides, shaped_value, tensor_value
from .rows import array_type


@operator
def fillpad(b: Build, x: Array, pad_value: PadValue | float = PadValue.zero) -> Array:
    """Return an array that is valid everywhere: elements outside the valid region become the padding."""
    t = shaped_value(b, x, "x").type
    return b.op("fillpad", [_whole(t, t.shape)], x=x, pad_value=_pad(b, pad_value))


@operator(level="tile")
def fillpad_inplace(b: Build, x: Array, pad_value: PadValue | float = PadValue.zero) -> Array:
    """Fill as `fillpad` does."""
    return fillpad.function(b, x, pad_value)


@operator
def fillpad_expand(b: Build, x: Array, shape: Extents, pad_value: PadValue | float = PadValue.zero) -> Array:
    """Return a larger array, valid everywhere: elements outside the valid region of `x` become the
    padding."""
    t = shaped_value(b, x, "x").type
    sizes = b.static(shape, "shape")
    if len(sizes) != t.rank or any(
        (index.known_difference(n, d) or 0) < 0 for n, d in zip(sizes, t.shape, strict=True)
    ):
        b.fail(
            SHAPE,
            "cannot expand 'x' to a smaller shape",
            "shape",
            expected=f"at least {list(t.shape)}",
            got=sizes,
        )
    return b.op("fillpad_expand", [_whole(t, sizes)], x=x, shape=sizes, pad_value=_pad(b, pad_value))


def _whole(t: ShapedType, shape: Sequence[Dim]) -> ShapedType:
    return array_type(t.dtype, shape, None, isinstance(t, TileType))


def _pad(b: Build, given: object) -> PadValue:
    if isinstance(given, PadValue):
        return given
    words = {0: PadValue.zero, float("inf"): PadValue.max, float("-inf"): PadValue.min}
    if not isinstance(given, int | float) or given not in words:
        b.fail(
            ARGUMENTS, f"unknown padding {given!r}", "pad_value", expected="a pl.PadValue, 0 or an infinity"
        )
    return words[given]


@operator
def set_validshape(b: Build, x: Array, valid_rows: Dim, valid_cols: Dim) -> Array:
    """Return the same elements with another valid region."""
    t = shaped_value(b, x, "x").type
    if t.rank < 2:
        b.fail(SHAPE, "expected at least two dimensions", "x", got=t)
    valid = (*t.shape[:-2], b.as_index(valid_rows), b.as_index(valid_cols))
    for at, n, whole in zip(("valid_rows", "valid_cols"), valid[-2:], t.shape[-2:], strict=True):
        if (index.known_difference(n, whole) or 0) > 0 or (index.known(n) or 0) < 0:
            b.fail(SHAPE, f"{at} exceeds the array", at, expected=f"0 to {index.known(whole) or '?'}",
                   got=index.known(n))  # fmt: skip
    return b.op("set_validshape", [t.replace(valid=valid)], x=x, valid_rows=valid[-2], valid_cols=valid[-1])


@operator(level="tensor")
def view(
    b: Build,
    x: Array,
    shape: Extents | None = None,
    valid_shape: Extents | None = None,
    *,
    layout: TensorLayout | None = None,
) -> Tensor:
    """Return the same elements, row after row, in another shape with a valid region."""
    tensor_value(b, x, "x")
    if b.exact and layout is TensorLayout.DN:
        return _by_columns(b, x, shape, valid_shape)
    if layout not in (None, TensorLayout.ND):
        b.fail(UNSUPPORTED, "unsupported column-major view of a tensor", "layout", expected="pl.ND",
               got=layout,
               help="use pl.matmul(.., b_trans=True), or make a copy with pl.transpose")  # fmt: skip
    made = x if shape is None else OPERATORS["reshape"].function(b, x, shape)
    if valid_shape is None:
        return made
    rank = made.type.rank
    return OPERATORS["slice"].function(
        b, made, list(made.type.shape), [0] * rank, b.dims(valid_shape, "valid_shape", rank)
    )


def _by_columns(b: Build, x: Value, shape: Extents | None, valid_shape: Extents | None) -> Value:
    """View a tensor of a text column-major: rows and columns are exchanged."""
    if shape is not None:
        x = OPERATORS["reshape"].function(b, x, shape)
    t = x.type
    turned = {
        n: (*d[:-2], d[-1], d[-2]) for n, d in (("shape", t.shape), ("strides", dense_strides(b, t.shape)))
    }
    valid = None if valid_shape is None else b.dims(valid_shape, "valid_shape", t.rank)
    made = t.replace(**turned, valid=None if valid is None else tuple(valid), layout=TensorLayout.DN.name)
    return b.op("tensor.view", [made], x=x, valid_shape=valid, layout=TensorLayout.DN)


@operator
def reinterpret_view(b: Build, x: Array, dtype: DataType, *, shape: Extents | None = None) -> Array:
    """View the same bytes as elements of another type; the last extent scales with their width."""
    t = shaped_value(b, x, "x").type
    bits = index.known(t.shape[-1])
    if bits is None or bits * t.dtype.bits % dtype.bits:
        b.fail(SHAPE, f"cannot view rows of {t} as whole {dtype.name} elements", "dtype", got=dtype.name)
    sizes = (*t.shape[:-1], bits * t.dtype.bits // dtype.bits)
    if t.valid is not None and not index.same(t.valid[-1], t.shape[-1]):
        b.fail(SHAPE, "cannot reinterpret a tile with invalid columns", "x", got=t, help="pl.fillpad first")
    valid = None if t.valid is None else (*t.valid[:-1], sizes[-1])
    made: Args = {"dtype": dtype, "shape": sizes, "valid": valid}
    if isinstance(t, TensorType):
        made["strides"] = None
    out = b.op("reinterpret_view", [t.replace(**made)], x=x, dtype=dtype)
    return out if shape is None else OPERATORS["reshape"].function(b, out, shape)


@operator
def expand_clone(b: Build, src: Array, target: Array) -> Array:
    """Repeat `src` along the one dimension in which it is 1, to the shape of `target`. A tensor `target`
    receives the result."""
    s, t = shaped_value(b, src, "src").type, shaped_value(b, target, "target").type
    apart = [i for i, (m, n) in enumerate(zip(s.shape, t.shape, strict=False)) if not index.same(m, n)]
    if s.rank != t.rank or len(apart) > 1 or (apart and index.known(s.shape[apart[0]]) != 1):
        b.fail(
            SHAPE,
            f"cannot expand {s} to {t}: more than one extent differs",
            "src",
            expected="1 in one dimension",
        )
    o = FUNCTIONS
    whole = src
    if apart and apart[0] == s.rank - 1:
        whole = o["row_expand"](b, o["create_tile"](b, list(t.shape), s.dtype), src)
    elif apart:
        whole = o["create_tile"](b, list(t.shape), s.dtype)
        for i in range(b.static([t.shape[apart[0]]], "target")[0]):
            at = [0] * t.rank
            at[apart[0]] = i
            o["assemble"](b, whole, src, at)
    if isinstance(t, TensorType):
        return o["assemble"](b, target, whole, [0] * t.rank)
    return whole
