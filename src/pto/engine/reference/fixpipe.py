"""The fix-pipe: rectification, conversion and quantisation of numbers from the accumulator.

A 64-bit word controls quantisation, one word for all columns (scalar modes) or one per column (vector modes).
Stores and moves share this module: `tstore`, `tmov`, `textract`, `tinsert`, `_fp` forms.

    bits 31..0   scale, an f32; vector modes use its upper 19 bits only, with 8 of exponent and 10 of mantissa
    bits 35..32  shift - 1, for i32 to i16
    bits 45..37  offset, unsigned, for 8-bit results
    bit  46      8-bit results are signed

A word has no effect if the unit has no quantisation between the two types, for example from i32 to i32.
"""

from __future__ import annotations

import numpy as np

from ...isa import ctrl
from ...isa.dtypes import DTYPES
from ..elements import Array
from ..memory import Tile
from .instr import Instr, Place, Shape

_WORD = (1 << 64) - 1
#: The types that are quantised, and the integer types of their results; all float types are results, too.
_INTEGERS = {"f32": ("i8", "u8"), "i32": ("i8", "u8", "i16")}


def word_of(value: int) -> Array:
    """Return a quantisation word from a scalar (an i64, which may be negative), as a 1 x 1 table."""
    return np.full((1, 1), value & _WORD, np.uint64)


def scalar_word(scale: float, out_type: str | None) -> int:
    """Return the word of a plain scale; for one-byte results it also has their sign."""
    word = int(np.float32(scale).view(np.uint32))
    return word | 1 << 46 if out_type == "i8" else word


def table(i: Instr, count: int, first: int = 0) -> Array:
    """Return `count` words of the `fp` tile from column `first` on, 1 x count. Missing words are 0."""
    have = max(0, min(count, i.tile("fp").cols - first))
    found = i.bits("fp", (1, have), (0, first)).astype(np.uint64)
    return np.pad(found, ((0, 0), (0, count - have))) if have < count else found


def rectified(x: Array) -> Array:
    """Return x if it is positive, else +0; NaN gives 0."""
    return np.where(x > 0, x, x.dtype.type(0))


def is_quantised(i: Instr, src: str, dst: str) -> bool:
    """Return whether there are quantisation words, and the element types have a quantisation."""
    if not (i.has("fp") or i.has("preQuantScalar")):
        return False
    return src in _INTEGERS and (dst in _INTEGERS[src] or DTYPES[dst].is_float)


def is_rectified(i: Instr) -> bool:
    return i.attr("reluPreMode") == "normal_relu"


def outgoing(
    i: Instr, dtype: str, shape: Shape, at: Shape = (0, 0), first_word: int = 0, src: Place | None = None
) -> Array:
    """Return a window of `src` (by default the operand) as elements of `dtype`, for `store_raw`."""
    place: Place = i.arg("src") if src is None else src
    plain = not (is_quantised(i, place.dtype, dtype) or is_rectified(i))
    if plain and place.dtype == dtype:
        return i.raw(place, shape, at)
    return i.encoded(outgoing_numbers(i, place, dtype, shape, at, first_word), dtype)


def outgoing_numbers(
    i: Instr, src: Place, dtype: str, shape: Shape, at: Shape = (0, 0), first_word: int = 0
) -> Array:
    """Return the same window as numbers before they are rounded to `dtype`."""
    x = i.values(src, shape, at)
    if not is_quantised(i, src.dtype, dtype):
        return rectified(x) if is_rectified(i) else x
    if i.has("fp"):
        # For a plain column-major tile there is one word per row.
        if i.name == "tstore_fp" and i.tile("src").layout == "DN":
            return quantised(i, x, dtype, table(i, shape[0]).T, vector=True)
        return quantised(i, x, dtype, table(i, shape[1], first_word), vector=True)
    return quantised(i, x, dtype, word_of(i.arg("preQuantScalar")), vector=False)


def quantised(i: Instr, x: Array, dtype: str, words: Array, vector: bool) -> Array:
    """Quantise numbers (f32 or i32) by words that are broadcast to them, then rectify the results."""
    y = _quantised(i, x, dtype, words, vector)
    return rectified(y) if is_rectified(i) else y


def _quantised(i: Instr, x: Array, dtype: str, words: Array, vector: bool) -> Array:
    if dtype == "i16":
        return shifted(x, words)
    y = scaled(i, x, words, vector)
    if DTYPES[dtype].is_int:
        return to_bytes(y, words)
    return bounded(i, y, dtype, clamp=x.dtype.kind == "i" and dtype == "f16")


def shifted(x: Array, words: Array) -> Array:
    """Shift i32 numbers to the right, and keep the low 16 bits."""
    shift = (words >> np.uint64(32) & np.uint64(15)).astype(np.int32) + 1
    return (x.astype(np.int32) >> shift).astype(np.int16)


def scaled(i: Instr, x: Array, words: Array, vector: bool) -> Array:
    """Multiply numbers by the scale in their word, in f32."""
    wide = np.float32 if i.exact else np.float64
    return x.astype(wide) * scales(words, vector).astype(wide)


def to_bytes(y: Array, words: Array) -> Array:
    """Convert scaled numbers to 8-bit integers. The sign bit of the word selects the range; an element of the
    other signedness keeps the low 8 bits."""
    signed = (words >> np.uint64(46) & np.uint64(1)).astype(bool)
    return narrowed(y, words, np.where(signed, -128, 0), np.where(signed, 127, 255)).astype(np.int16)


def narrowed(y: Array, words: Array, low: Array | int, high: Array | int) -> Array:
    """Add the offset in their word to scaled numbers, and round to integers of a range; NaN gives 0."""
    offset = (words >> np.uint64(37) & np.uint64(0x1FF)).astype(y.dtype)
    whole = np.clip(np.rint(y + offset).astype(np.float64), low, high)
    return np.where(np.isnan(whole), 0.0, whole)


def bounded(i: Instr, y: Array, dtype: str, clamp: bool = False) -> Array:
    """Limit numbers to the range of a float type: finite numbers stay finite, and with `clamp` infinities
    become finite. CTRL may require that, too, and 0 for NaN."""
    if dtype == "f32":
        return y
    limit = y.dtype.type(DTYPES[dtype].max_finite)
    found = np.clip(y, -limit, limit)
    if ctrl.bit(i.control, ctrl.SATURATION) and dtype in ("f16", "bf16"):
        return np.where(np.isnan(y), y.dtype.type(0), found)
    return found if clamp else np.where(np.isinf(y), y, found)


def scales(words: Array, vector: bool) -> Array:
    """Return the scale in every word, as float32."""
    low = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    if not vector:
        return low.view(np.float32)
    # Every code except zero has a leading one: without denormals, only overflow gives infinity.
    exponent, mantissa = low >> 23 & 0xFF, low >> 13 & 0x3FF
    size = np.ldexp(1.0 + mantissa / 1024.0, exponent.astype(np.int32) - 127)
    value = np.where((exponent | mantissa) == 0, 0.0, np.where(low >> 31 == 1, -size, size))
    return value.astype(np.float32)


# --- pushes into a FIFO -----------------------------------------------------------------------------------

#: Result types of quantisation modes, without the prefix V for words by column; "8" is i8 or u8, by the word.
_PUSHED = {
    "F322F16": "f16", "F322BF16": "bf16", "REQ8": "8", "DEQF16": "f16", "SHIFTS322S16": "i16",
    "QF322B8_PRE": "8", "QF322F16_PRE": "f16", "QF322BF16_PRE": "bf16", "QS322BF16_PRE": "bf16",
}  # fmt: skip


def pushed(i: Instr, tile: Tile) -> tuple[Array, str]:
    """Return the elements that a push puts into its slot, and their type; only acc tiles are quantised or
    rectified."""
    mode = str(i.attr("quant_mode") or "NoQuant")
    if mode == "NoQuant":
        if not is_rectified(i):
            return i.raw(tile), tile.dtype
        return i.encoded(rectified(i.values(tile)), tile.dtype), tile.dtype
    number = i.attr("id") or 0
    vector = mode.startswith("V")
    fp = i.registers.get(f"QUANT_VECTOR_{number}") if vector else None
    word = word_of(int(i.registers.get(f"QUANT_SCALAR_{number}", 0)))
    words = i.bits(fp, (1, min(fp.cols, tile.v_col))).astype(np.uint64) if fp is not None else word
    dtype = _PUSHED[mode.removeprefix("V")]
    if dtype == "8":
        dtype = "i8" if words.size and int(words.flat[0]) >> 46 & 1 else "u8"
    if mode.startswith("F322"):  # a plain conversion
        x = i.values(tile)
        return i.encoded(rectified(x) if is_rectified(i) else x, dtype), dtype
    return i.encoded(quantised(i, i.values(tile), dtype, words, vector), dtype), dtype
