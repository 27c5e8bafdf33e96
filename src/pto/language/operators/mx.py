"""Products of small floats with a scale, a power of two, for every 32 terms (MX).

Scales are stored in memory in boxes of 16 rows and 2 columns (`pl.MX_A_ZZ`, of left operands) or 2 rows and
16 columns (`pl.MX_B_NN`, of right ones): `pl.Tensor[[M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ]`.
"""

from __future__ import annotations

from ..dtypes import FP32
from ..ir import ShapedType, index, is_shaped, is_tile
from ..ir.build import Build
from ..problems import ARGUMENTS, SHAPE, TYPE
from .core import Array, operator
from .memory import in_core
from .rows import array_type

_GROUP = 32


@operator
def matmul_mx(b: Build, lhs: Array, lhs_scale: Array, rhs: Array, rhs_scale: Array) -> Array:
    """Multiply two matrices of small floats with scales, accumulated in FP32."""
    made = _product(b, "matmul_mx", lhs, lhs_scale, rhs, rhs_scale)
    return b.op("matmul_mx", [made], lhs=lhs, lhs_scale=lhs_scale, rhs=rhs, rhs_scale=rhs_scale)


@operator
def matmul_mx_acc(b: Build, acc: Array, lhs: Array, lhs_scale: Array, rhs: Array, rhs_scale: Array) -> Array:
    """Add the product of two matrices of small floats with scales to `acc`."""
    made = _product(b, "matmul_mx_acc", lhs, lhs_scale, rhs, rhs_scale)
    t = _array(b, acc, "acc")
    if not index.same_dims(t.shape, made.shape) or t.dtype != FP32:
        b.fail(SHAPE, "type of 'acc' does not match the product", "acc", expected=made, got=t)
    return b.op("matmul_mx_acc", [made], acc=acc, lhs=lhs, lhs_scale=lhs_scale, rhs=rhs, rhs_scale=rhs_scale)


@operator
def matmul_mx_bias(
    b: Build, lhs: Array, lhs_scale: Array, rhs: Array, rhs_scale: Array, bias: Array
) -> Array:
    """Multiply two matrices of small floats with scales and add a row."""
    made = _product(b, "matmul_mx_bias", lhs, lhs_scale, rhs, rhs_scale)
    t = _array(b, bias, "bias")
    if not index.same_dims(t.shape, (1, made.shape[-1])):
        b.fail(
            SHAPE,
            "expected one row as wide as the product for 'bias'",
            "bias",
            expected=[1, made.shape[-1]],
            got=t,
        )
    return b.op("matmul_mx_bias", [made], lhs=lhs, lhs_scale=lhs_scale, rhs=rhs, rhs_scale=rhs_scale,
                bias=bias)  # fmt: skip


def _array(b: Build, value: object, at: str) -> ShapedType:
    if not is_shaped(value):
        b.fail(TYPE, f"expected a tile or a tensor for '{at}'", at, got=getattr(value, "type", repr(value)))
    return value.type


def _product(b: Build, name: str, lhs: Array, lhs_scale: Array, rhs: Array, rhs_scale: Array) -> ShapedType:
    in_core(b)
    if b.target is not None and b.target.isa == "a2a3" and not b.exact:
        b.fail(ARGUMENTS, f"unsupported on {b.target.name}: {name}", expected="a target of cpu, a5")
    x, y = _array(b, lhs, "lhs"), _array(b, rhs, "rhs")
    for at, t in (("lhs", x), ("rhs", y)):
        if t.rank != 2 or t.dtype.bits > 8 or not t.dtype.is_float:
            b.fail(
                TYPE,
                f"expected a matrix of small floats for '{at}' of {name}",
                at,
                expected="FP8E4M3FN, FP4",
                got=t,
            )
    if index.known_difference(x.shape[1], y.shape[0]) not in (None, 0):
        b.fail(SHAPE, "columns of 'lhs' do not match rows of 'rhs'", "rhs", expected=x.shape[1], got=y)
    groups = index.known(x.shape[1])
    if groups is None or groups % (2 * _GROUP):
        b.fail(
            SHAPE, "expected pairs of groups of 32 terms", "lhs", expected="a multiple of 64 columns", got=x
        )
    wanted = {"lhs_scale": (x.shape[0], groups // _GROUP), "rhs_scale": (groups // _GROUP, y.shape[1])}
    for (at, shape), given in zip(wanted.items(), (lhs_scale, rhs_scale), strict=True):
        t = _array(b, given, at)
        if t.dtype.name != "FP8E8M0" or not index.same_dims(t.shape, shape):
            b.fail(
                SHAPE,
                f"expected a scale per 32 terms in '{at}'",
                at,
                expected=f"FP8E8M0 {list(shape)}",
                got=t,
            )
    shape, valid = (x.shape[0], y.shape[1]), (x.extent[0], y.extent[1])
    extent = None if index.same_dims(shape, valid) else valid
    return array_type(FP32, shape, extent, is_tile(lhs) and is_tile(rhs), "acc")
