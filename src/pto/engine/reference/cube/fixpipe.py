"""The fix-pipe: copies of a matrix in L0C to L1, GM or UB.

Each element is quantised, rectified, clipped and converted, in this order, and the matrix is written by rows
(nz2nd), by columns (nz2dn) or in blocks. The numbers are computed as in `..fixpipe`, which serves tiles. A
mode is named `<stem>_scalar`, with one scale, or `<stem>_vec`, with a word for every column in FB:

    pre_quant   8 bytes per column: the element of the pointer's type is the scale, the upper half has offset,
                shift and sign
    pre_relu    4 bytes per column: the element of the pointer's type is the slope for negative numbers
"""

from __future__ import annotations

import numpy as np

from ....isa import ctrl
from ....isa.dtypes import DTYPES
from ...elements import Array
from ...memory import Pointer, array_of
from .. import fixpipe
from ..instr import Instr, Shape
from ..load_store import ATOMIC_TYPES, combined
from ..registry import executor
from . import matrix
from .matrix import Matrix, aligned, extent
from .moves import vector_place

#: Modes that convert without a scale.
_PLAIN = ("f32_f16", "f32_bf16", "f322f16", "f322bf16")
#: Bytes of FB for one column, by clause; a row has 16 columns.
_QUANT, _RELU = 8, 4


@executor("accumulator out")
def write_back(i: Instr) -> None:
    m, n = matrix.counted(i, "m"), matrix.counted(i, "n")
    source, target = aligned(i, "src", 64), aligned(i, "dst")
    pitch, stride = extent(i, "src_stride", 0), extent(i, "dst_stride", 0)
    count, far, apart = 1, 0, 0
    if i.has("loop3_count"):
        count = matrix.counted(i, "loop3_count", 0)
        far, apart = (extent(i, f"loop3_{side}_stride", 0) for side in ("src", "dst"))
    parts = _parts(i, target, m, n)
    made: list[tuple[Matrix, Array]] = []
    for r in range(count):
        origin = _origin(i, source.moved(r * far * matrix.N0), pitch)
        for place, (rows, cols), at in parts:
            numbers = _outgoing(i, origin, target.dtype, (rows, cols), at)
            made.append((_destination(i, place.moved(r * apart), stride), numbers))
    update = _updates(i)
    for place, numbers in made:
        if update is not None:
            _update(i, place, numbers, *update)
        else:
            i.store_raw(place, numbers)


# --- places -----------------------------------------------------------------------------------------------

Part = tuple[Pointer, Shape, Shape]


def _parts(i: Instr, target: Pointer, m: int, n: int) -> list[Part]:
    """Return the parts of the matrix: the destination, the size and the start of each."""
    if i.kind != "to UB":
        return [(target, (m, n), (0, 0))]
    split = i.attr("dst_mode")
    if split is None:
        return [(vector_place(i, target, extent(i, "sub_blockid", 0, 1)), (m, n), (0, 0))]
    first, second = ((m // 2, n), (m // 2, 0)) if split == "split_m" else ((m, n // 2), (0, n // 2))
    i.require(split != "split_m" or m % 2 == 0, f"expects an even m for split_m, got {m}")
    i.require(split != "split_n" or n % 32 == 0, f"expects n to be a multiple of 32 for split_n, got {n}")
    places = [vector_place(i, target, 0)]
    if places[0] is not target and len(i.core.cluster.vectors) > 1:
        places.append(vector_place(i, target, 1))
    return [(p, first, at) for p, at in zip(places, ((0, 0), second), strict=False)]


def _origin(i: Instr, source: Pointer, pitch: int) -> Matrix:
    """Return the matrix in L0C: column blocks of 16, `pitch` rows apart. nz2dn may skip rows."""
    step = extent(i, "layout_arg", 0) if i.attr("layout") == "nz2dn" else 1
    return Matrix(source, (step * matrix.N0, 0, pitch * matrix.N0, 1), (1, matrix.N0))


def _destination(i: Instr, target: Pointer, stride: int) -> Matrix:
    layout = i.attr("layout")
    if layout == "nz2nd":
        return matrix.plain(target, stride, 1)
    if layout == "nz2dn":
        return matrix.plain(target, 1, stride)
    # Blocks of 16 columns; 32 bytes have more columns of a narrow type, and half as many of f32.
    width = max(matrix.N0, matrix.block(target.dtype))
    if layout == "nz2nz" and i.arg("layout_arg"):
        width = matrix.block(target.dtype)
    return Matrix(target, (width, 0, stride, 1), (1, width))


def _updates(i: Instr) -> tuple[str, str] | None:
    """Return the type and operation of an atomic update of GM, from its clause or the control register."""
    if i.kind != "to memory":
        return None
    if i.attr("atomic_op"):
        return str(i.attr("atomic_type")), str(i.attr("atomic_op"))
    found = ctrl.update(i.control)
    if found is not None:
        i.is_atomic()
    return found


def _update(i: Instr, place: Matrix, codes: Array, kind: str, operation: str) -> None:
    """Combine elements with those of GM in the type of the atomic update."""
    dtype = ATOMIC_TYPES[kind]
    i.require(
        DTYPES[dtype].bits == DTYPES[place.dtype].bits,
        f"expects an atomic type of {DTYPES[place.dtype].bits} bits for {place.dtype}, got {kind}",
    )
    old_place = Matrix(place, place.steps, place.box, dtype)
    new = codes if codes.dtype == np.float64 else i.decoded(dtype, codes.view(array_of(dtype)))
    i.store(old_place, combined(operation, i.values(old_place, codes.shape), new))


# --- numbers ----------------------------------------------------------------------------------------------


def _outgoing(i: Instr, src: Matrix, dtype: str, size: Shape, at: Shape) -> Array:
    """Return a window of L0C as elements of `dtype`. Only whole matrices, not halves, are quantised or
    rectified, so parameters begin with the first column."""
    mode, relu = i.attr("quant_mode"), i.attr("relu_mode") or "no_relu"
    if mode is None and relu == "no_relu" and src.dtype == dtype:
        return i.raw(src, size, at)
    x = i.values(src, size, at)
    if mode is not None:
        x = _quantised(i, x, str(mode), dtype)
    x = _rectified(i, x, relu)
    if i.has("clip"):
        x = np.minimum(x, i.arg("clip"))
    return _converted(i, x, dtype, mode)


def _words(i: Instr, count: int) -> tuple[Array, bool]:
    """Return the quantisation words, 1 x 1 or one for each column, and whether they are in the form of FB."""
    payload = i.arg("quant_payload")
    if not isinstance(payload, Pointer):
        return fixpipe.word_of(fixpipe.scalar_word(payload, i.arg("dst").dtype)), False
    aligned(i, "quant_payload", matrix.N0 * _QUANT)
    found = i.bits(payload.at(payload.offset, "u64"), (1, count)).astype(np.uint64)
    if payload.dtype != "f32":  # a narrow scale at the start of the word
        narrow = matrix.plain(payload, 0, _QUANT * 8 // 16)
        scale = i.values(narrow, (1, count)).astype(np.float32).view(np.uint32)
        found = found >> np.uint64(32) << np.uint64(32) | scale
    return found, True


def _quantised(i: Instr, x: Array, mode: str, dtype: str) -> Array:
    """Return numbers for the destination type: integers in its range, or floats before rounding."""
    if mode in _PLAIN:
        return x
    words, vector = _words(i, x.shape[1])
    if mode.startswith("shifts322s16"):
        return fixpipe.shifted(x, words)
    y = fixpipe.scaled(i, x, words, vector)
    d = DTYPES[dtype]
    if not d.is_int:
        return y
    if dtype in ("i8", "u8") and not mode.startswith("deqs32_int"):
        return fixpipe.to_bytes(y, words)
    return fixpipe.narrowed(y, words, *_range(dtype))


def _range(dtype: str) -> tuple[int, int]:
    d = DTYPES[dtype]
    return (0, (1 << d.bits) - 1) if d.kind == "u" else (-(1 << d.bits - 1), (1 << d.bits - 1) - 1)


def _rectified(i: Instr, x: Array, mode: str) -> Array:
    if mode == "no_relu":
        return x
    if mode == "normal_relu":
        return fixpipe.rectified(x)
    slope = i.arg("relu_payload")
    if mode == "vector_relu":
        aligned(i, "relu_payload", matrix.N0 * _RELU)
        step = _RELU * 8 // DTYPES[slope.dtype].bits
        slope = i.values(matrix.plain(slope, 0, step), (1, x.shape[1]))
    wide = np.float64 if x.dtype.kind in "iu" or x.dtype == np.float64 else np.float32
    return np.where(x >= 0, x, x.astype(wide) * np.asarray(slope).astype(wide))


def _converted(i: Instr, x: Array, dtype: str, mode: str | None) -> Array:
    """Return numbers as elements. Floats obey the `sat` word, else CTRL and the mode; integers obey none."""
    d = DTYPES[dtype]
    if d.is_int:
        if x.dtype.kind == "f":
            low, high = (-128, 255) if dtype in ("i8", "u8") else _range(dtype)
            x = np.where(np.isnan(x), 0.0, np.clip(np.rint(x), low, high))
        return i.encoded(x.astype(np.int64), dtype)
    sat, keeps = i.attr("sat_mode"), bool(i.attr("preserve_nan"))
    if sat is None and not ctrl.bit(i.control, ctrl.OBEYED):
        sat = "nosat" if ctrl.bit(i.control, ctrl.SATURATION) else "sat"
        keeps = ctrl.bit(i.control, ctrl.KEEPS_NAN)
    if x.dtype.kind in "iu":
        x = x.astype(np.float64)
    if dtype == "f32" or sat == "nosat":
        return i.encoded(x, dtype)
    if sat == "sat":
        keep = keeps and d.nan
        limit = x.dtype.type(d.max_finite)
        x = np.where(np.isnan(x), x if keep else x.dtype.type(0), np.clip(x, -limit, limit))
        return i.encoded(x, dtype)
    if mode is None and not ctrl.bit(i.control, ctrl.SATURATION):
        return i.encoded(x, dtype)
    return i.encoded(fixpipe.bounded(i, x, dtype, clamp=bool(mode and mode.startswith("deqf16"))), dtype)
