"""Operators that are several instructions: comparisons of tensors, sine and cosine."""

from __future__ import annotations

import math
from typing import Any

from ...isa.python import signatures
from .. import index
from ..build import Build
from ..dtypes import DATA_TYPES, FP32, INT32, DataType
from ..ir import ShapedType, TileType, Value, is_scalar, is_shaped
from ..problems import SHAPE, TYPE
from .core import FUNCTIONS, OPERATORS, operator
from .rows import apply, elementwise, result_type, scalar_for

# ---- comparisons ----


@operator
def cmp(b: Build, lhs: Any, rhs: Any, cmp_type: Any = 0) -> Any:
    """Compare: of tiles a predicate for `sel`, of tensors 1 and 0. `cmp_type` 0 to 5: eq ne lt le gt ge."""
    found = _predicate(b, lhs, rhs, cmp_type)
    if all(isinstance(v.type, TileType) for v in (lhs, rhs) if is_shaped(v)):
        return found
    return ones(b, found, result_type(lhs.type))


@operator
def cmps(b: Build, lhs: Any, rhs: Any, cmp_type: Any = 0) -> Any:
    """Compare every element with a number."""
    return cmp.function(b, lhs, rhs, cmp_type)


@operator(name="cmp", level="tile")
def tile_cmp(b: Build, lhs: Any, rhs: Any, cmp_type: Any = 0) -> Any:
    """Compare: a predicate for `sel`. `cmp_type` 0 to 5: eq ne lt le gt ge."""
    return _predicate(b, lhs, rhs, cmp_type)


@operator(name="cmps", level="tile")
def tile_cmps(b: Build, lhs: Any, rhs: Any, cmp_type: Any = 0) -> Any:
    """Compare every element with a number: a predicate for `sel`."""
    return _predicate(b, lhs, rhs, cmp_type)


def _predicate(b: Build, lhs: Any, rhs: Any, cmp_type: Any) -> Value:
    given = {"lhs": lhs, "rhs": rhs, "cmp_type": cmp_type}
    if not is_shaped(lhs):
        b.fail(TYPE, "'lhs' of cmp is a tile or a tensor", "lhs", got=getattr(lhs, "type", repr(lhs)))
    if is_shaped(rhs) and not index.same_dims(lhs.type.shape, rhs.type.shape):
        b.fail(SHAPE, "arrays of one shape are compared", "rhs", expected=lhs.type, got=rhs.type)
    return elementwise(b, signatures()["cmp"], signatures()["cmps"], given, level="tile")


def ones(b: Build, mask: Value, t: ShapedType) -> Any:
    """1 where a predicate holds, else 0."""
    valid = None if t.valid is None else list(t.valid)
    one, zero = (
        b.op("full", [t], shape=list(t.shape), dtype=t.dtype, value=n, valid_shape=valid) for n in (1, 0)
    )
    return OPERATORS["sel"].function(b, mask, one, zero)


@operator
def sels(b: Build, mask: Any, src: Any, tmp: Any = None, scalar: Any = None) -> Any:
    """Selects tile elements or a scalar by a packed predicate: `sels(mask, src, scalar)`, or with scratch
    third."""
    if scalar is None and is_scalar(tmp):
        tmp, scalar = None, tmp
    if is_shaped(src) and is_scalar(scalar):
        scalar = scalar_for(b, src, scalar, "scalar")
    return apply(b, signatures()["sels"], {"mask": mask, "src": src, "tmp": tmp, "scalar": scalar})


# ---- sine and cosine ----

#: Pi in parts whose products with small integers are exact, largest first.
_PI = (3.140625, 0.0009670257568359375, 6.2771141529083251953e-07, 1.2154201256553420762e-10)
#: sin(r) = r + r^3 (c3 + r^2 (c5 + ..)) for |r| <= pi / 2.
_SINE = (2.6057805e-06, -1.980741872742e-04, 8.33302513896e-03, -1.66666596611e-01)


@operator
def sin(b: Build, x: Any) -> Any:
    """Sine, of FP32; exact to some 1e-7 near 0, worse than 1e-5 beyond 6000."""
    return _wave(b, x, "sin")


@operator
def cos(b: Build, x: Any) -> Any:
    """Cosine, of FP32."""
    return _wave(b, x, "cos")


def _wave(b: Build, x: Any, name: str) -> Any:
    """With k the nearest multiple of pi: r = x - k pi, sin(x) = (-1)^k sin(r); cosine is half a turn
    ahead."""
    if not is_shaped(x) or x.type.dtype != FP32:
        b.fail(TYPE, f"{name} of FP32", "x", expected="FP32", got=getattr(x, "type", repr(x)),
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


# ---- counting and sorting ----


@operator
def arange(b: Build, start: Any, shape: Any, dtype: DataType = INT32, descending: bool = False) -> Any:
    """A row of consecutive integers from `start` on."""
    sizes = b.static(shape, "shape")
    if any(n != 1 for n in sizes[:-1]) or sizes[-1:] == [1]:
        b.fail(
            SHAPE, "integers are counted along one row", "shape", expected="[1, n], n more than 1", got=sizes
        )
    return apply(
        b, signatures()["arange"], {"start": start, "shape": sizes, "dtype": dtype, "descending": descending}
    )


@operator
def sort32(b: Build, src: Any, idx: Any, tmp: Any = None) -> Any:
    """Sort every 32 elements of a row in descending order, each with its index beside it."""
    if is_shaped(idx) and idx.type.dtype == INT32:
        idx = OPERATORS["reinterpret_view"].function(b, idx, DATA_TYPES["UINT32"])
    return apply(b, signatures()["sort32"], {"src": src, "idx": idx, "tmp": tmp})
