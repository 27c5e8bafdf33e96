"""Quantisation of tiles: 8-bit integers by a scale per row, the MX formats and HiFloat4 by groups.

An MX group is 32 elements with one power of two as scale, a HiFloat4 group 64 elements with a scale of three
levels. Exponents are computed from f32 bit patterns, so they are the same in a float64 shadow run.
"""

from __future__ import annotations

import numpy as np

from ...isa.dtypes import DTYPES
from .. import elements
from ..elements import Array
from .instr import Instr
from .registry import executor

GROUP = 32
HIF4_GROUP = 64

#: By MX scheme: the exponent of the largest power of two of the element type, and its largest value.
_SCHEMES = {"MXFP8": (8, 448.0), "MXFP4_E2M1": (2, 6.0)}
_NAN_EXPONENT = 255


@executor("quantisation")
def quantise(i: Instr) -> None:
    if i.has("exp"):
        _quantise_groups(i, i.attr("grp_axis"), interleave=False)
    else:
        _quantise_int8(i)


@executor("quantisation along rows")
def quantise_down(i: Instr) -> None:
    _quantise_groups(i, 0, i.attr("interleave"))


# --- integers ---------------------------------------------------------------------------------------------


def _quantise_int8(i: Instr) -> None:
    shape = i.valid("dst")
    y = i.values("src", shape) * _per_row(i, "fp", shape[0])
    if i.has("offset"):
        y = y + _per_row(i, "offset", shape[0])
    i.store("dst", y, mode="RINT", saturate=True, nan="zero")


def _per_row(i: Instr, name: str, rows: int) -> Array:
    """Return column 0 of a parameter tile; its last valid row is repeated for further rows."""
    have = i.valid(name)[0]
    i.require(have > 0 or rows == 0, f"expects {name} to have a valid row")
    found = i.values(name, (min(rows, have), 1))
    return found[np.minimum(np.arange(rows), have - 1)] if have < rows else found


@executor("dequantisation")
def dequantise(i: Instr) -> None:
    """Compute dst = (src - offset) * scale: operands in the dst type, arithmetic in f32, one rounding."""
    dtype = i.dtype("dst")
    rows, cols = i.valid("dst")
    width = max(1, i.valid("scale")[1])
    column = np.minimum(np.arange(cols), width - 1)
    read = (rows, min(cols, width))
    scale, offset = i.values("scale", read)[:, column], i.values("offset", read)[:, column]
    x = i.values("src", (rows, cols))
    # Integers up to 16 bits are exact in f32; wider ones are rounded once, directly to the dst type.
    x = i.round(x.astype(np.float32 if x.dtype.itemsize <= 2 else np.float64), dtype)
    if i.exact:
        x = x.astype(np.float32)
    i.store("dst", (x - offset) * scale)


# --- MX ---------------------------------------------------------------------------------------------------


def _quantise_groups(i: Instr, axis: int, interleave: bool) -> None:
    """Quantise groups along columns (axis 1) or rows (0), over the whole static extent of that dimension."""
    scheme, nv = i.attr("quant_type"), i.attr("scale_alg") == "NV"
    src = i.tile("src")
    rows, cols = (src.v_row, src.cols) if axis == 1 else (src.rows, src.v_col)
    x = i.values("src", (rows, cols))
    grouped = (rows, cols // GROUP, GROUP) if axis == 1 else (rows // GROUP, GROUP, cols)
    along = 2 if axis == 1 else 1
    parts = x.reshape(grouped)
    largest = _largest(parts.astype(np.float32, copy=False), along, scheme, nv)
    exponent = _exponents(largest, scheme, nv)
    scaling = np.ldexp(np.float32(1), 127 - exponent.astype(np.int32)).astype(np.float32)
    scaling = np.where(exponent == _NAN_EXPONENT, largest, scaling)
    # The scale is a power of two, so rounding the product to bf16 (for a bf16 source) would change no code.
    y = (parts * np.expand_dims(scaling, along)).reshape(rows, cols)

    _store_elements(i, y, scheme, nv)
    _store_flat(i, "max", largest)
    _store_flat(i, "scaling", scaling)
    _store_exponents(i, _interleaved(exponent) if interleave else exponent)
    if i.has("exp_zz"):
        _store_boxes(i, exponent if axis == 1 else exponent.T)


def _largest(parts: Array, along: int, scheme: str, nv: bool) -> Array:
    """Return the largest magnitude of each group, as f32, at least 0."""
    if scheme == "MXFP8" or nv:
        sizes = np.abs(parts)
        if scheme == "MXFP8":  # skips NaN; fmax would not skip a signalling one
            sizes[np.isnan(sizes)] = 0
        return np.maximum.reduce(sizes, axis=along, initial=np.float32(0))  # a remaining NaN is the result
    high = np.ascontiguousarray(parts).view(np.uint32) & np.uint32(0x7FFF0000)  # truncated to bf16
    return np.maximum.reduce(high, axis=along, initial=np.uint32(0)).view(np.float32)


def _exponents(largest: Array, scheme: str, nv: bool) -> Array:
    """Return the e8m0 code of each group."""
    emax, limit = _SCHEMES[scheme]
    base = largest * (np.float32(1) / np.float32(limit)) if nv else largest
    bits = np.ascontiguousarray(base).view(np.uint32).astype(np.int64)
    field, mantissa = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if nv:
        up = (mantissa > 0) & (field != 0xFE) & ~((field == 0) & (mantissa <= 0x400000))
        found = np.where(field == 0xFF, 0xFE, field + up)
    else:
        found = np.maximum(field - emax, 0)
    return np.where(np.isnan(base), _NAN_EXPONENT, found).astype(np.uint8)


def _store_elements(i: Instr, y: Array, scheme: str, nv: bool) -> None:
    """Store scaled values as e4m3 or e2m1 elements (a byte tile takes their codes)."""
    dst = i.tile("dst")
    if not i.exact and DTYPES[dst.dtype].is_float:
        limit = _SCHEMES[scheme][1]
        codes = np.clip(y, -limit, limit)
    elif scheme == "MXFP8":
        codes = elements.encode("f8e4m3", y, "RINT", saturate=True)
        unsigned = codes == 0x80  # a zero keeps its sign only below 2**-10 of the NV scheme
        codes[unsigned & (np.abs(y) >= 2.0**-10) if nv else unsigned] = 0
    else:
        codes = elements.encode("f4e2m1", y, "RINT", saturate=True)
    if scheme == "MXFP4_E2M1":  # the rest of the packed tile becomes zero
        whole = np.zeros((dst.rows, dst.cols), codes.dtype)
        whole[: y.shape[0], : y.shape[1]] = codes
        codes = whole
    i.store_raw("dst", codes)


def _store_flat(i: Instr, name: str, values: Array) -> None:
    """Store a value per group, in group order from the start of the storage."""
    _require_room(i, name, values.size)
    i.store_at(name, np.arange(values.size), values.ravel())


def _store_exponents(i: Instr, codes: Array) -> None:
    """Store exponents at their two-dimensional position; a tile of one row gets them in group order."""
    tile = i.tile("exp")
    if tile.rows == 1:
        _store_flat(i, "exp", codes)
        return
    i.require(
        codes.shape[0] <= tile.rows and codes.shape[1] <= tile.cols,
        f"expects exp to hold {codes.shape[0]}x{codes.shape[1]} exponents, got {tile.rows}x{tile.cols}",
    )
    i.store("exp", codes)


def _store_boxes(i: Instr, exponent: Array) -> None:
    """Store exponents in boxes of 16 lines x 2 groups, the order of a ZZ scale tile."""
    lines, groups = exponent.shape
    i.require(
        lines % 16 == 0 and groups % 2 == 0,
        f"expects exp_zz to get whole boxes of 16x2, got {lines}x{groups}",
    )
    boxes = exponent.reshape(lines // 16, 16, groups // 2, 2).transpose(0, 2, 1, 3)
    _store_flat(i, "exp_zz", boxes)


def _interleaved(exponent: Array) -> Array:
    """Return rows 2p and 2p + 1 side by side, column by column."""
    groups, cols = exponent.shape
    out = np.zeros((-(-groups // 2), 2 * cols), exponent.dtype)  # 0 beside a last row without a partner
    out[:, 0::2] = exponent[0::2]
    out[: groups // 2, 1::2] = exponent[1::2]
    return out


def _require_room(i: Instr, name: str, size: int) -> None:
    tile = i.tile(name)
    i.require(
        size <= tile.rows * tile.cols,
        f"expects {name} to have at least {size} elements, got {tile.rows * tile.cols}",
    )


# --- HiFloat4 ---------------------------------------------------------------------------------------------


@executor("quantisation to hif4")
def quantise_hif4(i: Instr) -> None:
    """Quantise groups of 64 columns, with an e6m2 scale, and a bit per 8 and a bit per 4 elements that double
    it."""
    rows, cols = i.tile("src").v_row, i.tile("src").cols
    groups = cols // HIF4_GROUP
    x = i.values("src", (rows, cols)).reshape(rows, groups, 16, 4)
    per4 = _paired(_paired(np.abs(x)))[..., 0]
    per8 = _paired(per4)
    whole = _paired(_paired(_paired(per8)))[..., 0]

    ea = e6m2_codes(i.round(whole * np.float32(0.142578125), "bf16"))  # 1/7 in bf16
    inverse = i.round(1 / e6m2_values(ea), "bf16")[..., None]
    eb = i.round(per8 * inverse, "bf16") >= 4
    half = np.repeat(_halves(eb), 2, axis=2)
    ec = i.round(per4 * inverse, "bf16") * half >= 2
    scale = inverse * half * _halves(ec)

    y = i.round(x * scale[..., None], "bf16").reshape(rows, cols)
    cell = np.concatenate([ea[..., None], _packed(eb), _packed(ec)], axis=2)
    i.store("dst", y, mode="RINT", saturate=True)
    _store_exponents(i, cell.reshape(rows, groups * 4))
    _store_flat(i, "max", per4)
    _store_flat(i, "scaling", scale)


def _paired(x: Array) -> Array:
    """Return the larger of each two neighbours, a NaN if there is one; faster than a short reduction."""
    return np.maximum(x[..., 0::2], x[..., 1::2])


def _halves(chosen: Array) -> Array:
    """Return factors: 1/2 for chosen elements, else 1."""
    return 1 - chosen.astype(np.float32) / 2


def _packed(bits: Array) -> Array:
    """Pack booleans along the last axis into bytes, first bit lowest."""
    return np.packbits(bits, axis=-1, bitorder="little")


def e6m2_codes(values: Array) -> Array:
    """Return the nearest e6m2 codes (ties to even) of non-negative numbers; the type has no zero and ends at
    0xFE."""
    return np.searchsorted(_E6M2_LIMITS, values.astype(np.float64)).astype(np.uint8)


def e6m2_values(codes: Array) -> Array:
    """Return the numbers of e6m2 codes: (1 + m/4) * 2**(e - 48); 0xFF is NaN."""
    return _E6M2[codes]


_CODES = np.arange(256)
_E6M2 = np.where(_CODES == 0xFF, np.nan, np.ldexp(1 + (_CODES & 3) / 4, (_CODES >> 2) - 48))
#: The largest number of each code. A midpoint belongs to the even neighbour; NaN is above all limits.
_E6M2_LIMITS = (_E6M2[:-2] + _E6M2[1:-1]) / 2
_E6M2_LIMITS[1::2] = np.nextafter(_E6M2_LIMITS[1::2], 0)
_E6M2_LIMITS = np.append(_E6M2_LIMITS, np.inf)
