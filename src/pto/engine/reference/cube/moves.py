"""Moves on the way to the cube unit: GM to L1, L1 to L0A and L0B with their MX scales, to BT, FB and UB.

    GM --mte_gm_l1, mte_gm_l1_frac--> L1 --mte_l1_l0a, mte_l1_l0b--> L0A, L0B    data, in fractals
                                         --mte_l1_l0a_mx, mte_l1_l0b_mx-->       scales of the same operands
                                         --mte_l1_bt, mte_l1_fb--> BT, FB        bias, fix-pipe parameters

L1 holds operands in NZ: blocks of 32 bytes, one for each row, column block after column block. L0A and L0B
take whole fractals, including the padding of the last ones.
"""

from __future__ import annotations

import numpy as np

from ....isa.dtypes import DTYPES
from ....isa.tables.dma import BURST_BITS
from ...elements import Array
from ...memory import Pointer
from ..dma import Loop, copy_bursts, loop_clauses, register_loops
from ..instr import Instr, Shape
from ..matmul import MX_GROUP
from ..registry import executor
from . import matrix
from .matrix import Matrix, aligned, counted, extent, up

_STRIDE_BITS = 40
#: The unit of `mte_l1_fb` in bytes: 8 parameters of 64 bits, 16 on A2 and A3.
FB_UNIT = {"cpu": 64, "a5": 64, "a2a3": 128}
#: The size of a block in bytes, which is the unit of the destination strides of `mte_gm_l1_frac`.
C0 = 32
_SMALL_C0 = 4


# --- bursts -----------------------------------------------------------------------------------------------


@executor("bursts to a core")
def bursts(i: Instr) -> None:
    source, target = aligned(i, "src"), aligned(i, "dst")
    if i.kind == "into L1 by registers":
        _by_registers(i, source, target)
        return
    if i.kind == "blocks out of L1":
        _blocks(i, source, target)
        return
    into = i.kind == "into L1"
    length, count = extent(i, "len_burst", 0), counted(i, "count", 0, BURST_BITS[i.isa] if into else 16)
    strides = extent(i, "src_stride", 0), extent(i, "dst_stride", 0)
    if i.kind == "out of L1":
        target = vector_place(i, target, 0)
        if i.core.semantics.l1_ub_units == "hw":
            length, strides = length * C0, ((length + strides[0]) * C0, (length + strides[1]) * C0)
    loops: list[Loop] = [*loop_clauses(i, _STRIDE_BITS, _STRIDE_BITS), (count, *strides)]
    copy_bursts(i, source, target, length, loops)


def _by_registers(i: Instr, source: Pointer, target: Pointer) -> None:
    length, count = (counted(i, name, 0, BURST_BITS[i.isa]) for name in ("len_burst", "n_burst"))
    strides = counted(i, "src_stride", 0, _STRIDE_BITS), counted(i, "dst_stride", 0, 21)
    copy_bursts(i, source, target, length, [*register_loops(i, "outtol1"), (count, *strides)])


def _blocks(i: Instr, source: Pointer, target: Pointer) -> None:
    """Copy bursts to a selected vector core; lengths and gaps count blocks."""
    length, count, at, to = (counted(i, n, 0) for n in ("len_burst", "n_burst", "src_stride", "dst_stride"))
    target = vector_place(i, target, extent(i, "sid", 0, 1))
    copy_bursts(i, source, target, length * C0, [(count, (length + at) * C0, (length + to) * C0)])


def vector_place(i: Instr, target: Pointer, sub: int) -> Pointer:
    """Return a pointer into UB on a cube core as a pointer into the UB of one of its vector cores."""
    vectors = i.core.cluster.vectors if i.core.kind == "cube" and i.core.cluster is not None else []
    if not vectors or target.buffer is not i.core.buffers["vec"]:
        return target
    i.require(sub < len(vectors), f"expects vector core {sub}, the cluster has {len(vectors)}")
    return Pointer(vectors[sub].buffers["vec"], target.offset, target.dtype, target.name, target.home)


@executor("bias")
def mte_l1_bt(i: Instr) -> None:
    """Copy bias values, and widen narrow floats; lengths and gaps count values."""
    source, target = aligned(i, "src"), aligned(i, "dst")
    if i.kind == "blocks":
        _bias_blocks(i, source, target)
        return
    length, count = extent(i, "len_burst", 0), counted(i, "count", 0)
    if not length or not count:
        return
    at, to = (length + extent(i, name, 0) for name in ("src_gap", "dst_gap"))
    place = matrix.plain(source, at, 1)
    if source.dtype == target.dtype:
        i.store_raw(matrix.plain(target, to, 1), i.raw(place, (count, length)))
    else:
        i.store(matrix.plain(target, to, 1), i.values(place, (count, length)))


def _bias_blocks(i: Instr, source: Pointer, target: Pointer) -> None:
    """Copy bias values; lengths and gaps count blocks of 32 bytes of the source."""
    length, count = counted(i, "len_burst", 0), counted(i, "n_burst", 0)
    at, to = (length + counted(i, name, 0) for name in ("source_gap", "dst_gap"))
    if source.dtype == "bf16" or (source.dtype == "f16" and i.arg("conv_control")):
        each = matrix.block(source.dtype)
        if length and count:
            found = i.values(matrix.plain(source, at * each, 1), (count, length * each))
            i.store(matrix.plain(target.at(target.offset, "f32"), to * each, 1), found)
        return
    copy_bursts(i, source, target, length * C0, [(count, at * C0, to * C0)])


@executor("fix-pipe parameters")
def mte_l1_fb(i: Instr) -> None:
    """Copy parameters of the fix-pipe unchanged; lengths and gaps count `FB_UNIT`."""
    source, target = aligned(i, "src"), aligned(i, "dst", 64)
    unit = FB_UNIT[i.isa]
    length, count = extent(i, "len_burst", 0), counted(i, "n_burst" if i.kind else "count", 0)
    gaps = ("source_gap" if i.kind else "src_gap", "dst_gap")
    at, to = ((length + extent(i, name, 0)) * unit for name in gaps)
    copy_bursts(i, source, target, length * unit, [(count, at, to)])


# --- GM to fractals ---------------------------------------------------------------------------------------


@executor("fractals from memory")
def mte_gm_l1_frac(i: Instr) -> None:
    """Copy matrices of n rows and d columns, stored by rows (nd2nz) or columns (dn2nz), into blocks."""
    source, target = aligned(i, "src"), aligned(i, "dst")
    n, d, groups = counted(i, "n_value"), counted(i, "d_value"), counted(i, "group_count", 0)
    inner = _elements(i, "src_inner_stride", source.dtype)
    outer = _elements(i, "src_outer_stride", source.dtype) if i.has("src_outer_stride") else 0
    row, column, matrices = (extent(i, f"dst_loop{k}_stride", 0) for k in (2, 3, 4))
    small = bool(i.arg("smallc0_en"))
    i.require(not small or d <= _SMALL_C0, f"expects at most {_SMALL_C0} columns in small-C0 mode, got {d}")
    if not groups:
        return
    width = matrix.block(target.dtype)
    steps = (inner, 1) if i.attr("mode") == "nd2nz" else (1, inner)
    if small:
        # Rows of 4 elements, one after another; zeros fill the last block.
        rows, cols = up(n * _SMALL_C0, width) // _SMALL_C0, _SMALL_C0
        block, across, down = _SMALL_C0, 0, _SMALL_C0
    else:
        rows, cols = n, up(d, width)
        block, across, down = width, column * width, row * width
    found = [i.raw(matrix.plain(source.moved(g * outer), *steps), (n, d)) for g in range(groups)]
    for g, part in enumerate(found):
        place = Matrix(target.moved(g * matrices * width), (down, 0, across, 1), (1, block))
        i.store_raw(place, _padded(part, rows, cols))


def _elements(i: Instr, name: str, dtype: str) -> int:
    """Return a stride in bytes as a number of elements."""
    bits = DTYPES[dtype].bits
    found = extent(i, name, 0)
    i.require(found * 8 % bits == 0, f"expects {name} to be whole elements of {dtype}, got {found} bytes")
    return found * 8 // bits


def _padded(part: Array, rows: int, cols: int) -> Array:
    if part.shape == (rows, cols):
        return part
    out = np.zeros((rows, cols), part.dtype)
    out[: part.shape[0], : part.shape[1]] = part
    return out


# --- L1 to L0 ---------------------------------------------------------------------------------------------


@executor("left operand")
def mte_l1_l0a(i: Instr) -> None:
    """Copy a left operand; the source is m x k, with `transpose` k x m."""
    m, k = counted(i, "m"), counted(i, "k")
    source, target = aligned(i, "src"), aligned(i, "dst")
    transpose = bool(i.attr("transpose"))
    if m == 1 and not transpose:
        # A vector for GEMV is shorter than the fractals that the hardware copies.
        source = Pointer(source.buffer, source.offset, source.dtype, source.name)
    size = _squares(i, source, m, k) if transpose else (m, k)
    _feed(i, source, matrix.left(i, target, *size), size, _starts(i, "m", "k"), transpose)


@executor("right operand")
def mte_l1_l0b(i: Instr) -> None:
    """Copy a right operand. L0B keeps k innermost, which is the NZ order of the n x k matrix. On hardware the
    source is n x k, and k x n with `transpose`; in the manual it is the other way round."""
    k, n = counted(i, "k"), counted(i, "n")
    source, target = aligned(i, "src"), aligned(i, "dst")
    transpose, hardware = bool(i.attr("transpose")), i.core.semantics.l0b_source == "hw"
    size = _squares(i, source, k, n) if transpose and hardware else (k, n)
    _feed(i, source, matrix.right(target, *size), size, _starts(i, "k", "n"), transpose != hardware)


def _squares(i: Instr, source: Pointer, rows: int, cols: int) -> Shape:
    """Return the size that the hardware transposes. On A5 it consists of whole squares, so an operand of
    narrow elements has additional lines, in L1 and in its buffer. A product that counts fewer fractals of
    lines reads these additional lines instead of the next elements of k.
    """
    if i.isa == "a2a3":
        return rows, cols
    square = max(matrix.M0, matrix.block(source.dtype))
    return up(rows, square), up(cols, square)


def _feed(i: Instr, source: Pointer, place: Matrix, size: Shape, start: Shape, turned: bool) -> None:
    """Copy a window of an NZ matrix in L1, whose column blocks are as high as the window. If `turned`, the
    matrix there is the transpose of the operand."""
    if turned:
        size, start = (size[1], size[0]), (start[1], start[0])
    width = matrix.block(source.dtype)
    pitch = up(size[0], matrix.M0)
    box = place.box[::-1] if turned else place.box
    rows = min(pitch, up(size[0], box[0]))
    cols = min(up(size[1], width), up(size[1], box[1]))
    found = i.raw(Matrix(source, (width, 0, pitch * width, 1), (1, width)), (rows, cols), start)
    i.store_raw(place, found.T if turned else found)


def _starts(i: Instr, first: str, second: str) -> Shape:
    """Return the start of the window in the operand, in elements."""
    a, b = (extent(i, f"{n}_start", 0) if i.has(f"{n}_start") else 0 for n in (first, second))
    return a, b


@executor("fractals of L1")
def fractals(i: Instr) -> None:
    """Copy fractals by their numbers: column blocks are strides apart; L0A of A2 and A3 has rows of them."""
    source, target = aligned(i, "src"), aligned(i, "dst")
    row, col, below, beside = (
        counted(i, name, 0) for name in ("m_start", "k_start", "src_stride", "dst_stride")
    )
    rows, cols = (counted(i, name, 0, 8) for name in ("m_step", "k_step"))
    if not rows or not cols:
        return
    lanes = matrix.block(source.dtype)
    box, each = (matrix.M0, lanes), matrix.M0 * lanes
    by_rows = i.kind == "left" and i.core.profile.left_blayout != "col_major"
    origin = Matrix(source.moved((col * below + row) * each), (each, lanes, below * each, 1), box)
    transpose = i.attr("transpose") if "transpose" in i.op.row.attr_index else i.arg("transpose")  # type: ignore[union-attr]
    if transpose:
        found = i.raw(origin, (rows * matrix.M0, cols * lanes)).T[: beside * matrix.M0]
        if found.size:
            wide = up(found.shape[1], lanes) // lanes
            steps = (wide * each, lanes, each, 1) if by_rows else (each, lanes, beside * each, 1)
            i.store_raw(Matrix(target, steps, box), found)
        return
    found = i.raw(origin, (rows * matrix.M0, cols * lanes))
    if by_rows or beside >= rows or cols == 1:
        steps = (cols * each, lanes, each, 1) if by_rows else (each, lanes, beside * each, 1)
        i.store_raw(Matrix(target, steps, box), found)
        return
    for j in range(cols):  # column blocks overlap: the later one stays
        part = found[:, j * lanes : (j + 1) * lanes]
        i.store_raw(Matrix(target.moved(j * beside * each), (each, lanes, 0, 1), box), part)


@executor("boxes of scales")
def scale_boxes(i: Instr) -> None:
    source, target = aligned(i, "src"), aligned(i, "dst")
    x, y, below, beside = (
        counted(i, name, 0) for name in ("x_start_position", "y_start_position", "src_stride", "dst_stride")
    )
    rows, boxes = (counted(i, name, 0, 8) for name in ("x_step", "y_step"))
    origin = source.at(source.offset + (x * below + y) * C0, "f8e8m0")
    place = matrix.scale_pointer(i, target, f"scale_{i.kind}")
    copy_bursts(i, origin, place, boxes * C0, [(rows, below * C0, beside * C0)])


@executor("operand scales")
def scales(i: Instr) -> None:
    """Copy scales to the buffer beside the operand, in the boxes of 32 bytes that they have in L1."""
    k = counted(i, "k")
    source = aligned(i, "src")
    target = aligned(i, "dst")
    groups = -(-k // MX_GROUP)
    source = source.at(source.offset, "f8e8m0")
    if i.kind == "left":
        m = counted(i, "m")
        start, first = _starts(i, "m", "k")
        place, size = matrix.left_scales(i, target, m, groups), (up(m, matrix.M0), up(groups, 2))
        at = start, _group(i, first)
        origin = matrix.laid_out(source, "ZZ", m, groups, place.box)
    else:
        n = counted(i, "n")
        first, start = _starts(i, "k", "n")
        place, size = matrix.right_scales(i, target, groups, n), (up(groups, 2), up(n, matrix.N0))
        at = _group(i, first), start
        origin = matrix.laid_out(source, "NN", groups, n, place.box)
    i.store_raw(place, i.raw(origin, size, at))


def _group(i: Instr, first: int) -> int:
    """Return the group of 32 that begins with an element of k."""
    i.require(first % MX_GROUP == 0, f"expects k_start to be a multiple of {MX_GROUP}, got {first}")
    return first // MX_GROUP
