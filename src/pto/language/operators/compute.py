"""Operators that expand to several instructions: comparisons, selections, sine and cosine, tanh and gelu."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...isa.python import Signature, signatures
from ..dtypes import BOOL, DATA_TYPES, FP32, INT32, DataType
from ..ir import Number, ShapedType, TileType, Value, index, is_scalar, is_shaped, scalar_type
from ..ir.build import Build
from ..problems import ARGUMENTS, SHAPE, TYPE
from .core import FUNCTIONS, OPERATORS, Array, Extents, Tile, operator
from .rows import apply, array_type, comparison, elementwise, joint, result_type, scalar_for, spread

# ---- comparisons ----

#: Comparisons with exchanged operands.
_MIRRORED = (0, 1, 4, 5, 2, 3)


@operator
def cmp(b: Build, lhs: Array, rhs: Array | Number, cmp_type: int | str = 0) -> Array:
    """Compare two arrays. Tiles give a predicate for `sel`, tensors give 1 and 0. `cmp_type` 0 to 5: eq ne lt
    le gt ge."""
    found = compared(b, lhs, rhs, cmp_type)
    arrays = [v for v in (lhs, rhs) if is_shaped(v)]
    if all(isinstance(v.type, TileType) for v in arrays):
        return found
    return ones(b, found, result_type(found.type, arrays[0].type.dtype))


@operator
def cmps(b: Build, lhs: Array, rhs: Number, cmp_type: int | str = 0) -> Array:
    """Compare every element with a number."""
    return cmp.function(b, lhs, rhs, cmp_type)


@operator(name="cmp", level="tile")
def tile_cmp(b: Build, lhs: Tile, rhs: Array | Number, cmp_type: int | str = 0) -> Array:
    """Compare two tiles and return a predicate for `sel`. `cmp_type` 0 to 5: eq ne lt le gt ge."""
    return compared(b, lhs, rhs, cmp_type)


@operator(name="cmps", level="tile")
def tile_cmps(b: Build, lhs: Tile, rhs: Number, cmp_type: int | str = 0) -> Array:
    """Compare every element with a number and return a predicate for `sel`."""
    return compared(b, lhs, rhs, cmp_type)


def compared(b: Build, lhs: Array | Number, rhs: Array | Number, cmp_type: int | str) -> Value:
    """Return the predicate of a comparison."""
    if is_shaped(rhs) and is_scalar(lhs):
        lhs, rhs, cmp_type = rhs, lhs, _MIRRORED[comparison(b, cmp_type, "cmp_type")]
    if not is_shaped(lhs):
        b.fail(
            TYPE, "expected a tile or a tensor for 'lhs' of cmp", "lhs", got=getattr(lhs, "type", repr(lhs))
        )
    between, number = signatures()["cmp"], signatures()["cmps"]
    if not b.exact:
        lhs, rhs = (_comparable(b, x, between if is_shaped(rhs) else number) for x in (lhs, rhs))
    return elementwise(b, between, number, {"lhs": lhs, "rhs": rhs, "cmp_type": cmp_type}, level="tile")


def _comparable(b: Build, x: Array | Number, signature: Signature) -> Array | Number:
    """Return an array that the target can compare: narrow elements are converted to FP32, which represents
    all their values.
    """
    legal = signature.row.dtypes.get(b.target.isa, ()) if b.target is not None else ()
    if not legal or not is_shaped(x) or x.type.dtype.isa in legal or x.type.dtype.bits > 16:
        return x
    return FUNCTIONS["cast"](b, x, FP32)


def ones(b: Build, mask: Value, t: ShapedType) -> Value:
    """Return 1 where a predicate holds, else 0."""
    valid = None if t.valid is None else list(t.valid)
    one, zero = (
        b.op("full", [t], shape=list(t.shape), dtype=t.dtype, value=n, valid_shape=valid) for n in (1, 0)
    )
    return FUNCTIONS["sel"](b, mask, one, zero)


@operator
def sels(
    b: Build, mask: Array, src: Array, tmp: Array | Number | None = None, scalar: Number | None = None
) -> Array:
    """Select tile elements or a scalar by a packed predicate: `sels(mask, src, scalar)`, or with scratch
    third."""
    if scalar is None and is_scalar(tmp):
        tmp, scalar = None, tmp
    if is_shaped(src) and is_scalar(scalar):
        scalar = scalar_for(b, src, scalar, "scalar")
    return apply(b, signatures()["sels"], {"mask": mask, "src": src, "tmp": tmp, "scalar": scalar})


@operator
def where(b: Build, condition: Array, x: Array | Number, y: Array | Number) -> Array:
    """Select `x` where the condition holds, else `y`: arrays, columns, rows or numbers. The condition is a
    comparison, as in `pl.where(x > 0, x, 0.0)`, or an array, which is true where it is not 0."""
    if not is_shaped(condition):
        b.fail(TYPE, "expected an array of conditions", "condition", got=_shown(condition),
               expected="a comparison, as x > 0", help="use if and else for a number")  # fmt: skip
    sides = {"x": x, "y": y}
    for at, side in sides.items():
        if not is_shaped(side) and not is_scalar(side):
            b.fail(TYPE, f"expected an array or a number for '{at}' of where", at, got=_shown(side))
        if is_shaped(side) and side.type.dtype == BOOL:
            sides[at] = FUNCTIONS["cast"](b, side, FP32)
    like = next((v for v in sides.values() if is_shaped(v)), None)
    dtype = FP32 if any(scalar_type(v) == FP32 for v in (x, y)) else INT32
    dtype = like.type.dtype if like is not None else dtype
    shape, valid = joint(b, [v for v in (condition, *sides.values()) if is_shaped(v)], "condition")
    for at, side in sides.items():
        t = array_type(dtype, shape, valid, isinstance(condition.type, TileType))
        if not is_shaped(side):
            number = scalar_for(b, like, side, at) if like is not None else side
            sides[at] = b.op("full", [t], shape=list(shape), dtype=dtype, value=number,
                             valid_shape=None if valid is None else list(valid))  # fmt: skip
        else:
            sides[at] = spread(b, side, shape, valid)
    if condition.type.dtype != BOOL or not index.same_dims(condition.type.shape, shape):
        condition = FUNCTIONS["cast"](b, condition, FP32) if condition.type.dtype == BOOL else condition
        condition = compared(b, spread(b, condition, shape, valid), 0, "ne")
    return FUNCTIONS["sel"](b, condition, sides["x"], sides["y"])


def _shown(value: object) -> str:
    return str(value.type) if isinstance(value, Value) else repr(value)


# ---- sine and cosine ----

#: Pi in parts whose products with small integers are exact, largest first.
_PI = (3.140625, 0.0009670257568359375, 6.2771141529083251953e-07, 1.2154201256553420762e-10)
#: sin(r) = r + r^3 (c3 + r^2 (c5 + ..)) for |r| <= pi / 2.
_SINE = (2.6057805e-06, -1.980741872742e-04, 8.33302513896e-03, -1.66666596611e-01)


@operator
def sin(b: Build, x: Array) -> Array:
    """Return the sine of FP32 elements. The error is about 1e-7 near 0, and exceeds 1e-5 beyond 6000."""
    return _wave(b, x, "sin")


@operator
def cos(b: Build, x: Array) -> Array:
    """Return the cosine of FP32 elements."""
    return _wave(b, x, "cos")


def _wave(b: Build, x: Array, name: str) -> Array:
    """Return the sine or cosine. With k the nearest multiple of pi: r = x - k pi, sin(x) = (-1)^k sin(r); the
    cosine is pi / 2 ahead."""
    if not is_shaped(x) or x.type.dtype != FP32:
        b.fail(TYPE, f"expected FP32 for {name}", "x", expected="FP32", got=getattr(x, "type", repr(x)),
               help="pl.cast(x, pl.FP32)")  # fmt: skip
    o = FUNCTIONS
    turns = o["mul"](b, x, 1 / math.pi)
    if name == "cos":
        turns = o["add"](b, turns, 0.5)
    k = o["cast"](b, o["cast"](b, turns, INT32, "round" if name == "sin" else "rint"), FP32, "round")
    r = o["sub"](b, x, o["mul"](b, k, _PI[0]))
    for i, part in enumerate(_PI[1:]):
        if name == "cos" and i == 0:
            r = o["add"](b, r, math.pi / 2)
        r = o["sub"](b, r, o["mul"](b, k, part))
    if name == "cos":
        r = o["add"](b, r, math.pi / 2 - 1.57079637050628662109375)
    square = o["mul"](b, r, r)
    series = o["add"](b, o["mul"](b, square, _SINE[0]), _SINE[1])
    for c in _SINE[2:]:
        series = o["add"](b, o["mul"](b, series, square), c)
    wave = o["add"](b, o["mul"](b, o["mul"](b, series, square), r), r)
    half = o["cast"](b, o["cast"](b, o["mul"](b, k, 0.5), INT32, "floor"), FP32, "round")
    sign = o["add"](b, o["sub"](b, o["mul"](b, half, 4.0), o["mul"](b, k, 2.0)), 1.0)
    return o["mul"](b, wave, sign)


# ---- tanh, erf and gelu ----

#: Odd functions as x P(x^2) / Q(x^2), with a relative error of 4e-7: the coefficients of P and of Q, highest
#: power first, and the x from which on the function is 1 in FP32.
_TANH = (
    (1.335338506436301e-08, 2.0608242266462184e-05, 0.0034955418668687344, 0.1338098794221878, 1.0),
    (7.776057486807986e-07, 0.0003285555576439947, 0.025876810774207115, 0.4671430289745331, 1.0),
    9.0,
)
_ERF = (
    (2.0662835140683455e-06, 0.0002850320015568286, 0.0037378508131951094, 0.05266643315553665,
     0.18965788185596466, 1.1283791065216064),
    (3.8266491173999384e-05, 0.0011572217335924506, 0.014913279563188553, 0.11381484568119049,
     0.5014126896858215, 1.0),
    3.9,
)  # fmt: skip


@operator
def tanh(b: Build, x: Array) -> Array:
    """Return the hyperbolic tangent."""
    return _in_fp32(b, x, "tanh", lambda x: _odd(b, x, *_TANH))


@operator
def erf(b: Build, x: Array) -> Array:
    """Return the error function."""
    return _in_fp32(b, x, "erf", lambda x: _odd(b, x, *_ERF))


@operator
def gelu(b: Build, x: Array, approximate: str = "none") -> Array:
    """Return the Gaussian error linear unit, `x * (1 + erf(x / sqrt(2))) / 2`; `approximate="tanh"` is `x *
    (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2`."""
    if approximate not in ("none", "tanh"):
        b.fail(
            ARGUMENTS, f"unknown approximation {approximate!r}", "approximate", expected="'none' or 'tanh'"
        )
    return _in_fp32(b, x, "gelu", lambda x: _gelu(b, x, approximate == "tanh"))


def _gelu(b: Build, x: Value, by_tanh: bool) -> Value:
    o = FUNCTIONS
    if by_tanh:
        cubic = o["mul"](b, o["add"](b, o["mul"](b, o["mul"](b, x, x), 0.044715), 1.0), x)
        bend = _odd(b, o["mul"](b, cubic, math.sqrt(2 / math.pi)), *_TANH)
    else:
        bend = _odd(b, o["mul"](b, x, math.sqrt(0.5)), *_ERF)
    return o["mul"](b, o["mul"](b, x, 0.5), o["add"](b, bend, 1.0))


def _odd(b: Build, x: Value, p: tuple[float, ...], q: tuple[float, ...], end: float) -> Value:
    o = FUNCTIONS
    x = o["maximum"](b, o["minimum"](b, x, end), -end)
    square = o["mul"](b, x, x)

    def series(coefficients: tuple[float, ...]) -> Value:
        first, second, *rest = coefficients
        found = o["add"](b, o["mul"](b, square, first), second)
        for c in rest:
            found = o["add"](b, o["mul"](b, found, square), c)
        return found

    found = o["div"](b, o["mul"](b, series(p), x), series(q))
    return o["maximum"](b, o["minimum"](b, found, 1.0), -1.0)


def _in_fp32(b: Build, x: Array, name: str, function: Callable[[Value], Value]) -> Array:
    """Compute a function of floats in FP32, for the element type of its argument."""
    if not is_shaped(x) or not x.type.dtype.is_float:
        b.fail(TYPE, f"expected floats for {name}", "x", expected="an array of FP32, FP16 or BF16",
               got=_shown(x),
               help="pl.cast(x, pl.FP32)" if is_shaped(x) else "math.tanh(n) of a constant")  # fmt: skip
    cast, dtype = FUNCTIONS["cast"], x.type.dtype
    return cast(b, function(cast(b, x, FP32)), dtype, "rint")


# ---- counting and sorting ----


@operator
def arange(
    b: Build, start: Number, shape: Extents, dtype: DataType = INT32, descending: bool = False
) -> Tile:
    """Return a row of consecutive integers from `start` on."""
    sizes = b.static(shape, "shape")
    if any(n != 1 for n in sizes[:-1]) or sizes[-1:] == [1]:
        b.fail(
            SHAPE,
            "expected one row as the shape of arange",
            "shape",
            expected="[1, n], n more than 1",
            got=sizes,
        )
    return apply(
        b, signatures()["arange"], {"start": start, "shape": sizes, "dtype": dtype, "descending": descending}
    )


@operator
def sort32(b: Build, src: Array, idx: Array, tmp: Array | None = None) -> Array:
    """Sort every 32 elements of a row in descending order, each followed by its index."""
    if is_shaped(idx) and idx.type.dtype == INT32:
        idx = OPERATORS["reinterpret_view"].function(b, idx, DATA_TYPES["UINT32"])
    return apply(b, signatures()["sort32"], {"src": src, "idx": idx, "tmp": tmp})
