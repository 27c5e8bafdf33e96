"""Matrix products of the cube unit: Left x Right into Acc, plain, accumulating, biased, block-scaled.

Float results have the bits of a chain of fused multiply-adds in f32 with k rising from 0; the accumulator or
bias is added once at the end. Integers accumulate in i32 and wrap.
"""

from __future__ import annotations

import numpy as np

from ...isa import ctrl
from .. import elements
from ..elements import Array, round_integral
from .instr import Instr
from .quantise import e6m2_values
from .registry import executor

#: Elements of K that share one scale.
MX_GROUP = 32
HIF4_GROUP = 64

#: The number of mantissa bits of TF32.
TF32_BITS = {"cpu": 10, "a2a3": 11, "a5": 10}

_F32_MAX = float(np.finfo(np.float32).max)


@executor("matrix product")
def product(i: Instr) -> None:
    """Compute dst = a x b, plus the accumulator or bias of the form. The valid regions give the size: that of
    a is M x K, that of b has N columns; a larger dst keeps the rest."""
    left, right = ("lhs", "rhs") if i.has("lhs") else ("a", "b")
    (m, k), (depth, n) = i.valid(left), i.valid(right)
    i.require(k <= depth, f"expects {right} to have {k} valid rows for the columns of {left}, got {depth}")
    rows, cols = i.valid("dst")
    i.require(m <= rows and n <= cols, f"expects dst to hold a product of {m}x{n}, got {rows}x{cols}")
    a, b = i.values(left), i.values(right, (k, n))
    if i.kind == "hif4":
        a, b = a * _hif4_scales(i, "a_scale", m, k), b * _hif4_scales(i, "b_scale", n, k)
    elif i.has("a_scale"):
        a, b = a * _mx_scales(i, "a_scale", m, k), b * _mx_scales(i, "b_scale", n, k)
    elif i.dtype(left) == "f32" and i.exact:
        a, b = reduced(i, a, i.control), reduced(i, b, i.control)
    out = dot(i, a, b)
    for name in ("acc_in", "c_in"):
        if i.has(name):
            out = i.values(name, (m, n)) + out
    if i.has("bias"):
        out = out + i.values("bias", (1, n))
    i.store("dst", out)


def dot(i: Instr, a: Array, b: Array) -> Array:
    """Return the product with the sums of the cube unit; in a float64 shadow run, without rounding."""
    if a.dtype.kind in "iu":
        return integer_dot(a, b)
    return fused_dot(a, b) if i.exact else a.astype(np.float64) @ b.astype(np.float64)


def integer_dot(a: Array, b: Array) -> Array:
    """Return the product of 8-bit integers in i32. Every partial sum is exact as a float, so any order gives
    the same result.
    """
    size = 255**2 if a.dtype.kind == b.dtype.kind == "u" else 2**15
    wide = np.float32 if size * a.shape[1] <= 2**24 else np.float64
    return (a.astype(wide) @ b.astype(wide)).astype(np.int64).astype(np.int32)


def fused_dot(a: Array, b: Array) -> Array:
    """Return the f32 results of acc = fma(a[i, k], b[k, j], acc), k = 0, 1, .. from 0.

    The operands are floats whose products are exact in a double: f32 numbers, or scaled numbers of a shorter
    type.
    """
    short = [single_or_none(x) for x in (a, b)]
    if short[0] is not None and short[1] is not None:
        return elements.loops().dot_f32(*short)
    return elements.loops().dot_f64(*(np.ascontiguousarray(x, np.float64) for x in (a, b)))


def single_or_none(x: Array) -> Array | None:
    """Return the same numbers in f32; None if f32 cannot represent them all."""
    single = np.ascontiguousarray(x, np.float32)
    return single if x.dtype == np.float32 or bool(((single == x) | np.isnan(x)).all()) else None


def saturated_dot(a: Array, b: Array) -> Array:
    """Compute `fused_dot`, with every sum outside the range of f32 replaced by the largest number."""
    out = fused_dot(a, b)
    over = ~np.isfinite(out)
    if over.any():
        r, c = np.nonzero(over)
        left, right = a[r].astype(np.float64), b[:, c].T.astype(np.float64)
        acc = np.zeros(len(r))
        for x, y in zip(left.T, right.T, strict=True):
            term = x * y
            total = to_odd(acc + term, acc, term).astype(np.float32)
            acc[...] = np.clip(total, -_F32_MAX, _F32_MAX)
        out = out.copy()
        out[r, c] = acc
    return out


def to_odd(total: Array, x: Array, y: Array) -> Array:
    """Return total = x + y in double, rounded to odd: an even last bit moves towards the exact sum. A later
    rounding to fewer bits then equals the rounding of the exact sum."""
    part = total - x
    lost = (x - (total - part)) + (y - part)
    even = (total.view(np.int64) & 1) == 0
    toward = np.where(lost > 0, np.inf, -np.inf)
    return np.where(even & (np.abs(lost) > 0), np.nextafter(total, toward), total)


# --- scales -----------------------------------------------------------------------------------------------


def _mx_scales(i: Instr, name: str, size: int, depth: int) -> Array:
    """Return a factor for every element of `a` or `b`."""
    groups = -(-depth // MX_GROUP)
    axis = 1 if name == "a_scale" else 0
    found = i.values(name, (size, groups) if axis else (groups, size))
    # The assembler's `scaling` tiles take any type: bytes are e8m0 codes, other elements are numbers.
    if coded := i.dtype(name) in ("i8", "u8"):
        found = elements.decode("f8e8m0", np.ascontiguousarray(found).view(np.uint8))
    return mx_factors(found, axis, depth, powers=coded or i.dtype(name) == "f8e8m0")


def mx_factors(found: Array, axis: int, depth: int, powers: bool = True) -> Array:
    """Expand one scale per group of 32 along `axis` to a factor for each of `depth` elements."""
    # Powers of two scale short numbers in f32, unless the results leave its range: then use doubles.
    if not powers or ((found < 2.0**-100) | (found > 2.0**100)).any():
        found = found.astype(np.float64)
    return np.repeat(found, MX_GROUP, axis=axis)[(slice(None),) * axis + (slice(depth),)]


def _hif4_scales(i: Instr, name: str, size: int, depth: int) -> Array:
    """Return a factor for every element from four bytes per 64 elements: Ea, Eb and the two of Ec. Factors
    have three significant bits and a small exponent."""
    groups = -(-depth // HIF4_GROUP)
    found = i.values(name, (size, 4 * groups)) if name == "a_scale" else i.values(name, (4 * groups, size)).T
    cell = found.astype(np.uint8).reshape(size, groups, 4)
    bits = np.unpackbits(cell[..., 1:], axis=2, bitorder="little")
    power = np.repeat(bits[..., :8], 2, axis=2) + bits[..., 8:]
    factor = e6m2_values(cell[..., 0])[..., None] * (1 << power)
    factor = np.repeat(factor.reshape(size, groups * 16).astype(np.float32), 4, axis=1)[:, :depth]
    return factor if name == "a_scale" else factor.T


# --- reduced precision ------------------------------------------------------------------------------------


def reduced(i: Instr, x: Array, control: int) -> Array:
    """Round f32 operands as HF32 mode or a control word requires. The simulator column keeps full precision,
    unless bit 60 of the word is clear. A clear bit means that the word was set for this instruction; TF32
    then replaces HF32.
    """
    simulated, explicit = i.isa == "cpu", not ctrl.bit(control, ctrl.OBEYED)
    tf32 = ctrl.bit(control, ctrl.TF32) and (explicit or not simulated)
    mode = i.registers.get("hf32")
    if mode is not None and not simulated and not (tf32 and explicit):
        x = shortened(x, 11, mode)
    if tf32:
        x = shortened(x, TF32_BITS[i.isa], "ROUND" if ctrl.bit(control, ctrl.TF32_AWAY) else "RINT")
    return x


def shortened(x: Array, mantissa: int, mode: str) -> Array:
    """Round f32 numbers to `mantissa` bits, without a change of the exponent range."""
    unit = np.maximum(np.frexp(x)[1] - 1, -126) - mantissa
    rounded = np.ldexp(round_integral(np.ldexp(x.astype(np.float64), -unit), mode), unit)
    return np.where(np.isfinite(x), rounded, x).astype(np.float32)
