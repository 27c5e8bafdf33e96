"""Operators that quantize an array to small integers or floats, with scales."""

from __future__ import annotations

from ..dtypes import DATA_TYPES, FP32, DataType
from ..ir import TileType, Value, index, is_shaped
from ..ir.build import Build
from ..problems import ARGUMENTS, SHAPE, TYPE
from .core import Array, Extents, operator
from .memory import shaped_value
from .rows import array_type, result_type

_INT8, _UINT8 = DATA_TYPES["INT8"], DATA_TYPES["UINT8"]
#: Small floats with a scale per group of 32, and the schemes that make them.
MX = {"FP8E4M3FN": "MXFP8", "FP4": "MXFP4_E2M1"}


@operator
def quant(b: Build, x: Array, scale: object, offset: Extents | None = None) -> Array:
    """Return `x * scale`, with a scale per row, rounded to INT8; with an offset per row, rounded to UINT8."""
    t = shaped_value(b, x, "x").type
    if t.dtype != FP32:
        b.fail(
            TYPE,
            f"unsupported element type {t.dtype.name} for quant",
            "x",
            expected="FP32",
            got=t.dtype.name,
            help="pl.cast(x, pl.FP32)",
        )
    for name, given in (("scale", scale), ("offset", offset)):
        if given is None:
            continue
        column = (*t.shape[:-1], 1)
        if not is_shaped(given) or not index.same_dims(given.type.shape, column) or given.type.dtype != FP32:
            b.fail(SHAPE, f"expected a number per row for '{name}'", name, expected=f"FP32 {list(column)}",
                   got=getattr(given, "type", repr(given)))  # fmt: skip
    made = result_type(t, _INT8 if offset is None else _UINT8)
    return b.op("quant", [made], x=x, scale=scale, offset=offset)


@operator
def quant_mx(b: Build, x: Array, dtype: DataType, scale_alg: str = "OCP") -> tuple[Value, ...]:
    """Quantize to small floats with one scale per 32 columns: return the elements, and the exponents of the
    scales as UINT8."""
    t = shaped_value(b, x, "x").type
    cols = index.known(t.shape[-1])
    if not isinstance(dtype, DataType) or dtype.name not in MX:
        b.fail(
            TYPE,
            f"unknown quantization type {getattr(dtype, 'name', dtype)!r}",
            "dtype",
            expected=", ".join(MX),
        )
    if cols is None or cols % 32 or t.valid is not None or t.rank != 2:
        b.fail(
            SHAPE,
            "expected whole groups of 32 columns",
            "x",
            expected="rows of a multiple of 32 columns",
            got=t,
        )
    if scale_alg not in ("OCP", "NV"):
        b.fail(ARGUMENTS, f"unknown algorithm {scale_alg!r}", "scale_alg", expected="OCP, NV")
    if b.target is not None and b.target.isa == "a2a3" and not b.exact:
        b.fail(ARGUMENTS, f"unsupported on {b.target.name}: quant_mx", expected="a target of cpu, a5")
    tile = isinstance(t, TileType)
    types = [array_type(dtype, t.shape, None, tile), array_type(_UINT8, (t.shape[0], cols // 32), None, tile)]
    args = {"x": x, "dtype": dtype, "scale_alg": scale_alg}
    return tuple(b.append("quant_mx", list(types), args).results)
