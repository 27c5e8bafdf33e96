"""Gather and scatter between tiles: by index, by mask pattern, by comparison, by 32-byte block."""

from __future__ import annotations

import numpy as np

from ...isa.enums import MASK_PATTERNS
from .. import elements
from ..elements import Array
from ..memory import Pointer, Tile
from .instr import Instr, valid_extent
from .registry import executor

BLOCK = 32  # bytes


@executor("gather")
def gather(i: Instr) -> None:
    if i.has("cdst"):
        _gather_matches(i)
    elif i.has("indices"):
        _gather_indexed(i)
    else:
        _gather_masked(i)


def _gather_indexed(i: Instr) -> None:
    """Compute dst[r, c] = element number indices[r, c] of the static src tile, counted row by row."""
    src = i.tile("src")
    index = i.values("indices", i.valid("dst")).astype(np.int64)
    inside = (index >= 0) & (index < src.rows * src.cols)
    i.index_elements("indices", index, src, src.cols)
    if inside.all():
        i.store_raw("dst", i.raw_at("src", _flat(src, index)))
        return
    found = i.raw_at("src", _flat(src, index[inside]))
    out = np.zeros(index.shape, found.dtype)  # 0 for an index out of range
    out[inside] = found
    i.store_raw("dst", out)


def _flat(tile: Tile, index: Array) -> Array:
    """Return the storage offsets of elements that are counted row by row over the static tile."""
    if tile.layout == "ND" and tile.pitch == tile.shape:
        return index
    region = tile.region(tile.rows, tile.cols)
    return region.rows.offsets[index // tile.cols] + region.cols.offsets[index % tile.cols]


def _gather_masked(i: Instr) -> None:
    dst = i.tile("dst")
    found = i.raw("src") if i.dtype("src") == i.dtype("dst") else i.bits("src")
    if i.attr("gather_axis") == "col":
        found = found[_selected(i, found.shape[0])]
        i.require(
            found.shape[0] <= dst.rows and found.shape[1] <= dst.cols,
            f"expects dst to have room for {found.shape[0]}x{found.shape[1]} selected elements, "
            f"got {dst.rows}x{dst.cols}",
        )
        i.store_raw("dst", found)
        return
    found = found[:, _selected(i, found.shape[1])].ravel()
    i.require(
        found.size <= dst.rows * dst.cols,
        f"expects dst to have room for {found.size} selected elements, got {dst.rows * dst.cols}",
    )
    i.store_raw_at("dst", np.arange(found.size), found)  # one run in storage order


def _selected(i: Instr, size: int) -> slice:
    """Return the indices below `size` that the mask pattern selects."""
    period, first = MASK_PATTERNS[i.attr("maskPattern") or "P1111"]
    return slice(first, size, period)


def _gather_matches(i: Instr) -> None:
    """Store the indices of matching elements of each row, packed to the left, and their number."""
    src, dst = i.tile("src"), i.tile("dst")
    x = i.values("src")
    rows = x.shape[0]
    i.require(rows <= dst.rows, f"expects dst to have {rows} rows for the valid rows of src, got {dst.rows}")
    limit = i.values_at("kTile", np.arange(rows)) if i.has("kTile") else np.full(rows, i.arg("kValue"))
    limit = _as_element(limit, src.dtype).reshape(rows, 1)
    match = x > limit if i.attr("cmpMode") == "gt" else x == limit
    r, c = np.nonzero(match)
    count = match.sum(axis=1)
    rank = np.arange(r.size) - np.repeat(np.cumsum(count) - count, count)
    fits = rank < dst.cols  # a row of dst that is too short gets the first ones
    region = dst.region(rows, dst.cols)
    at = region.rows.offsets[r[fits]] + region.cols.offsets[rank[fits]]
    i.undefine("dst", (rows, dst.cols))
    i.store_at("dst", at, i.attr("offset") + r[fits] * src.cols + c[fits])
    i.store_at("cdst", np.arange(rows), count)


def _as_element(values: Array, dtype: str) -> Array:
    """Round integers or floats to numbers of an element type."""
    return elements.decode(dtype, elements.encode(dtype, values))


@executor("gather blocks")
def gather_blocks(i: Instr) -> None:
    """Copy 32 bytes of src from byte offsets[r, b] on to block (r, b) of dst. An offset outside of src leaves
    its block of dst unchanged."""
    src, dst = i.tile("src"), i.tile("dst")
    item = dst.bits // 8
    count = BLOCK // item
    rows, blocks = dst.v_row, dst.v_col // count
    start = i.bits("offsets", (rows, blocks)).astype(np.int64)
    inside = start + BLOCK <= src.size
    if not i.port.plain:
        r, c = np.divmod(start * 8 // src.bits, src.pitch[1])
        valid = inside & (r < src.v_row) & (c < src.v_col) if src.layout == "ND" else inside
        i.indexed("offsets", start, valid, src, f"which has {src.size} bytes, {valid_extent(src)}")
    start = start[inside]
    if src.dtype == dst.dtype and not (start % item).any():
        found = i.raw_at("src", start[:, None] // item + np.arange(count))
    else:
        found = i.raw_at(_bytes(src), start[:, None] + np.arange(BLOCK)).view(elements.code_dtype(dst.dtype))
    if inside.all():
        i.store_raw("dst", found.reshape(rows, blocks * count))
        return
    region = dst.region(rows, blocks * count)
    at = region.rows.offsets[:, None] + region.cols.offsets
    i.store_raw_at("dst", at.reshape(rows, blocks, count)[inside], found)


def _bytes(tile: Tile) -> Pointer:
    """Return the storage of a tile as bytes."""
    assert tile.address is not None
    return Pointer(tile.buffer, tile.address, "u8", tile.name)


@executor("scatter")
def scatter(i: Instr) -> None:
    if i.has("indexes"):
        # An index is an offset into the storage; only the bounds of the buffer are checked.
        at = i.values("indexes").astype(np.int64)
        dst = i.tile("dst")
        i.index_elements("indexes", at, dst, dst.pitch[1] if dst.layout == "ND" else dst.cols)
        found = i.raw("src", at.shape).ravel()
        if i.isa != "cpu":
            i.store_raw("dst", np.zeros(dst.shape, found.dtype))
        # Flat, so that the last write in row-major order stays.
        i.store_raw_at("dst", at.ravel(), found)
        return
    rows, cols = i.valid("dst")
    found = i.raw("src")
    out = np.zeros((rows, cols), found.dtype)
    by_rows = i.attr("scatter_axis") == "col"
    part = (_selected(i, rows), slice(None)) if by_rows else (slice(None), _selected(i, cols))
    i.require(
        out[part].shape == found.shape,
        f"expects src to have the {out[part].shape} elements that the pattern selects, got {found.shape}",
    )
    out[part] = found
    if i.isa != "cpu" and (i.attr("maskPattern") or "P1111") != "P1111":
        i.store_raw("dst", np.zeros(i.tile("dst").shape, found.dtype))
    i.store_raw("dst", out)
