"""Loads, stores, prefetches, and indexed gather and scatter between global memory and tiles.

Both sides are matrices (r, c): the layout of the view gives the offset of an element in global memory, the
layout of the tile its offset on chip.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

import numpy as np

from ...isa import tile as tiles
from ...isa import view as views
from .. import elements
from ..elements import Array
from ..memory import ConvTile, Tile, View
from . import convolution, fixpipe
from .instr import Instr, Place, Shape
from .registry import executor

# --- loads ------------------------------------------------------------------------------------------------


@executor("load")
def tload(i: Instr) -> None:
    dst = i.arg("dst")
    if isinstance(dst, ConvTile):
        place = convolution.as_view(dst)
        shape = convolution.matrix_shape(place)
        i.store_raw(place, copied(i, global_side(i, "src", shape, place.layout), dst.dtype, shape))
        return
    view = laid_out(i, "src", inferred_layout(i.arg("src"), dst))
    shape = loaded(i, dst, view)
    found = copied(i, view, dst.dtype, shape)
    # Custom pads are for tfillpad. Without a pad the rest becomes zero here, but on hardware only in L1.
    pad = dst.pad if dst.pad < tiles.CUSTOM_PAD else 0
    code = tiles.pad_bits(pad, dst.dtype, i.isa)
    for size, at in around(dst, shape) if i.isa == "cpu" else rest_of_blocks(dst, shape):
        i.store_raw("dst", np.full(size, code, elements.code_dtype(dst.dtype)), at)
        if dst.pad == 0 and (i.isa == "cpu" or dst.loc != "mat"):
            i.undefine("dst", size, at)
    i.store_raw("dst", found)


@executor("prefetch")
def tprefetch(i: Instr) -> None:
    dst, src = i.tile("dst"), i.arg("src")
    # Both sides are addressed with the row pitch of dst; strides and layout of the view are ignored.
    flat = View(src.buffer, src.offset, dst.valid, (dst.cols, 1), src.dtype, "ND", src.name)
    found = copied(i, flat, dst.dtype, dst.valid)
    if dst.layout == "ND":
        i.store_raw("dst", found)
    else:
        rows, cols = dst.valid
        i.store_raw_at("dst", np.arange(rows)[:, None] * dst.cols + np.arange(cols), found)


@executor("prefetch hint")
def tprefetch_async(i: Instr) -> int:
    """Do nothing, and return the event handle 0, which is complete."""
    return 0


def loaded(i: Instr, dst: Tile, view: View) -> Shape:
    """Return the shape that a load moves: the valid region of the tile, or, on some devices, of the view."""
    layout = view.effective_layout()
    extent = _matrix_shape(layout, view.dims5[0], view.bits)
    shape = views.loaded(i.isa, dst.loc, dst.layout, layout, dst.valid, extent)
    if views.is_bounded(i.isa, layout):
        _holds(i, "src", shape, extent)
    i.require(
        shape[0] <= dst.rows and shape[1] <= dst.cols,
        f"expects dst to have room for src, {shape[0]}x{shape[1]}, got {dst.rows}x{dst.cols}",
    )
    return shape


def global_side(i: Instr, name: str, shape: Shape, layout: str | None = None) -> View:
    """Return the view of an instruction with its layout, which must have `shape` elements. `layout` is for a
    view without one."""
    view = laid_out(i, name, layout)
    extent = _matrix_shape(view.effective_layout(), view.dims5[0], view.bits)
    _holds(i, name, shape, extent)
    return view


def laid_out(i: Instr, name: str, layout: str | None) -> View:
    view: View = i.arg(name)
    given = i.attr("layout")
    if given or (layout and not view.layout):
        view = view.copy()
        view.layout = given.upper() if given else layout
    return view


def _holds(i: Instr, name: str, shape: Shape, extent: Shape) -> None:
    rows, cols = extent
    i.require(
        shape[0] <= rows and shape[1] <= cols,
        f"expects {name} to hold the valid region of the tile, {shape[0]}x{shape[1]}, got {rows}x{cols}",
    )


@lru_cache(maxsize=1024)
def _matrix_shape(layout: str, dims: tuple[int, ...], bits: int) -> Shape:
    return views.matrix_shape(layout, dims, tiles.block_elements(bits))


def inferred_layout(view: View, tile: Tile) -> str | None:
    """Return the layout that a tile implies for a view without one; None if the strides give the layout."""
    if view.layout or len(view.dims) < 3:
        return None
    scales = view.dtype == "f8e8m0" and tile.loc == "mat"
    return views.window_layout(view.strided, view.dims5[0], view.bits, tile.layout, tile.valid, scales)


def copied(i: Instr, src: str | Place, dtype: str, shape: Shape, at: Shape = (0, 0)) -> Array:
    """Return elements to be stored in a place of type `dtype`, which has the same size."""
    place = i.arg(src) if isinstance(src, str) else src
    return i.raw(place, shape, at) if place.dtype == dtype else i.bits(place, shape, at)


def around(tile: Tile, inner: Shape) -> Iterator[tuple[Shape, Shape]]:
    """Yield the rectangles (shape, start) of a tile outside its first `inner` elements."""
    rows, cols = inner
    # Compact tiles have no more rows between their column blocks.
    height = tile.rows if tile.compact == "null" else min(tile.rows, -(-tile.v_row // 16) * 16)
    if rows and cols < tile.cols:
        yield (rows, tile.cols - cols), (0, cols)
    if rows < height:
        yield (height - rows, tile.cols), (rows, 0)


def rest_of_blocks(tile: Tile, inner: Shape) -> Iterator[tuple[Shape, Shape]]:
    """Yield the rectangles that a transfer pads: they share blocks of 32 bytes with the first `inner`
    elements."""
    rows, cols = inner
    if not rows or not cols:
        return
    box = tile.box if tile.box != (1, 1) else (tiles.block_elements(tile.bits),) * 2
    if tile.layout in ("ND", "NZ", "ZZ"):  # elements of a row lie side by side
        end = min(-(-cols // box[1]) * box[1], tile.cols)
        if end > cols:
            yield (rows, end - cols), (0, cols)
    else:
        end = min(-(-rows // box[0]) * box[0], tile.rows)
        if end > rows:
            yield (end - rows, cols), (rows, 0)


def fill_around(i: Instr, name: str, inner: Shape, code: int) -> None:
    """Write a bit pattern to a whole tile except its first `inner` elements."""
    tile = i.tile(name)
    for shape, at in around(tile, inner):
        i.store_raw(name, np.full(shape, code, elements.code_dtype(tile.dtype)), at)


# --- stores -----------------------------------------------------------------------------------------------


@executor("store")
def tstore(i: Instr) -> None:
    src = i.arg("src")
    if isinstance(src, ConvTile):
        place: Place = convolution.as_view(src)
        shape, layout = convolution.matrix_shape(place), place.layout
    else:
        place, shape, layout = src, src.valid, inferred_layout(i.arg("dst"), src)
    dst = global_side(i, "dst", shape, layout)
    atomic = str(i.attr("atomicType") or "none").removeprefix("atomic_")
    if atomic != "none":
        numbers = fixpipe.outgoing_numbers(i, place, dst.dtype, shape)
        i.store(dst, combined(atomic, i.values(dst, shape), element_numbers(i, numbers, dst.dtype)))
    elif src.loc == "acc" or i.has("fp") or _simulated(i, src.dtype != dst.dtype):
        i.store_raw(dst, fixpipe.outgoing(i, dst.dtype, shape, src=place))
    else:
        i.store_raw(dst, copied(i, place, dst.dtype, shape))


def _simulated(i: Instr, converts: bool) -> bool:
    """Return whether elements change that hardware would copy, because the simulator converts all tiles."""
    return i.isa == "cpu" and (converts or i.has("preQuantScalar") or fixpipe.is_rectified(i))


def element_numbers(i: Instr, numbers: Array, dtype: str) -> Array:
    """Return numbers after a store to, and a load from, a place of type `dtype`."""
    return i.round(numbers, dtype) if elements.DTYPES[dtype].is_float else i.encoded(numbers, dtype)


#: Element types of atomic updates, by their names in instructions and the control register.
ATOMIC_TYPES = {"f32": "f32", "f16": "f16", "bf16": "bf16", "s32": "i32", "s16": "i16", "s8": "i8"}


def combined(how: str, old: Array, new: Array) -> Array:
    """Return the results of an atomic operation; max and min keep the old number unless the new one is
    greater or less, so a NaN changes nothing."""
    if how == "add":
        return old + new
    return np.where(old < new if how == "max" else new < old, new, old)


# --- indexed ----------------------------------------------------------------------------------------------


@executor("gather from memory")
def mgather(i: Instr) -> None:
    dst, mem = i.tile("dst"), i.arg("mem")
    shape = dst.valid
    if not shape[0] or not shape[1]:
        return
    by_row, index, capacity = _indices(i, shape)
    how = i.attr("gatherOob")
    _check_indices(i, index, capacity, how)
    inside = index < np.uint64(capacity)
    at = _offsets(mem, by_row, _bounded(index, capacity, how), shape)
    if how == "zero" and not inside.all():
        keep = np.broadcast_to(inside, shape)
        found = i.raw_at("mem", at[keep])
        out = np.zeros(shape, found.dtype)
        out[keep] = found
    else:
        out = i.raw_at("mem", at)
    if dst.loc == "mat" and not by_row:  # staged in a zeroed scratch array the size of the tile
        fill_around(i, "dst", shape, 0)
    i.store_raw("dst", out)
    if i.has("scratch"):
        i.undefine("scratch", convolution.matrix_shape(i.arg("scratch")))


@executor("scatter to memory")
def mscatter(i: Instr) -> None:
    mem, shape = i.arg("mem"), i.valid("src")
    if not shape[0] or not shape[1]:
        return
    by_row, index, capacity = _indices(i, shape)
    how, atomic = i.attr("scatterOob"), i.attr("scatterAtomicOp")
    _check_indices(i, index, capacity, how)
    at = _offsets(mem, by_row, _bounded(index, capacity, how), shape)
    keep = np.broadcast_to(index < np.uint64(capacity), shape).ravel() if how == "skip" else slice(None)
    at = at.ravel()[keep]
    if atomic == "none":
        i.store_raw_at("mem", at, copied(i, "src", mem.dtype, shape).ravel()[keep])
    else:
        _accumulate(i, atomic, at, i.values("src", shape).ravel()[keep])


def _indices(i: Instr, shape: Shape) -> tuple[bool, Array, int]:
    """Return whether indices select rows, the indices as unsigned numbers (a column if there is one per row),
    and the number of entries of the table."""
    mem, idx = i.arg("mem"), i.arg("idx")
    valid = convolution.matrix_shape(idx) if isinstance(idx, View) else idx.valid
    mode = i.attr("coalesce")
    if mode == "auto":
        mode = "elem" if valid == shape and shape[1] > 1 else "row"
    if mode == "row":
        found = i.values_at("idx", np.arange(shape[0]))[:, None]
    else:
        found = i.values("idx", shape)
    dims = mem.dims5[0]
    capacity = prod(dims) if mode == "elem" else prod(dims[:4]) if i.isa == "a2a3" else dims[3]
    # Sign-extended to 64 bits, then read as unsigned: a negative index is outside every table.
    wide = found.astype(np.int64 if found.dtype.kind == "i" else np.uint64).view(np.uint64)
    return mode == "row", wide, capacity


def _check_indices(i: Instr, index: Array, capacity: int, how: str) -> None:
    """Report indices outside the table, unless the instruction has a rule for them."""
    if not i.port.plain and how not in ("clamp", "wrap", "zero", "skip"):
        what = "rows" if index.shape[1] == 1 and i.attr("coalesce") != "elem" else "elements"
        inside = index < np.uint64(capacity)
        i.indexed("idx", index.view(np.int64), inside, i.arg("mem"), f"which has {capacity} {what}")


def _bounded(index: Array, capacity: int, how: str) -> Array:
    """Apply an out-of-bounds rule to indices; without one they stay, and may fault."""
    size = np.uint64(capacity)
    if how == "clamp":
        index = np.minimum(index, size - np.uint64(1))
    elif how == "wrap":
        index = index % size
    return index.view(np.int64) if index.flags.c_contiguous else index.astype(np.int64)


def _offsets(mem: View, by_row: bool, index: Array, shape: Shape) -> Array:
    """Return element offsets from the start of a table: rows follow its strides, elements are counted
    densely."""
    if not by_row:
        return index
    step, across = mem.dims5[1][3:]
    return index * step + np.arange(shape[1]) * across


def _accumulate(i: Instr, how: str, at: Array, numbers: Array) -> None:
    """Combine numbers with the elements at `at` one after another; offsets may repeat."""
    if not at.size:
        return
    dtype, old = i.dtype("mem"), i.values_at("mem", at).copy()
    slot, here = _slots(at), np.arange(len(at))
    mine = slot == here
    if mine.all():
        i.store_at("mem", at, combined(how, old, numbers))
        return
    if how == "add" and (dtype in ("f32", "f64") or old.dtype.kind in "iu" or not i.exact):
        np.add.at(old, slot, numbers.astype(old.dtype))  # in sequence
    else:
        # Round k takes the k-th number of every slot, so that each sum is rounded before the next addition.
        order = _sorted(slot)
        starts = np.flatnonzero(np.diff(slot[order], prepend=-1))
        rounds = here - np.repeat(starts, np.diff(starts, append=len(at)))
        for part in np.split(order[_sorted(rounds)], np.cumsum(np.bincount(rounds))[:-1]):
            to = slot[part]
            old[to] = element_numbers(i, combined(how, old[to], numbers[part]), dtype)
    last = np.flatnonzero(mine)
    i.store_at("mem", at[last], old[last])


def _slots(at: Array) -> Array:
    """Return for every offset the position of its last occurrence."""
    key, here = at - at.min(), np.arange(len(at))
    if int(key.max()) >= 16 * len(at):  # far apart: number them densely first
        key = np.unique(key, return_inverse=True)[1]
    last = np.empty(int(key.max()) + 1, np.intp)
    last[key] = here
    return last[key]


def _sorted(key: Array) -> Array:
    """Return the stable order of numbers that are not negative; NumPy sorts 16-bit numbers faster."""
    return np.argsort(key.astype(np.uint16) if int(key.max()) < 1 << 16 else key, kind="stable")
