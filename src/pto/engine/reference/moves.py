"""Moves between tiles: copies and windows, padding, transposition, joining, packing, and single elements.

A move keeps the logical position of every element; the layouts of the two tiles decide the offsets.
"""

from __future__ import annotations

import numpy as np

from ...isa import tile as tiles
from .. import elements
from ..elements import Array
from ..memory import ConvTile, Tile
from . import convolution, fixpipe
from .instr import Instr, Shape
from .load_store import copied, fill_around
from .registry import executor

# --- whole tiles ------------------------------------------------------------------------------------------


@executor("move")
def tmov(i: Instr) -> None:
    src, dst = i.arg("src"), i.tile("dst")
    if i.has("tmp"):
        _scale_boxes(i)
    elif isinstance(src, ConvTile):
        i.store_raw("dst", convolution.fractal_window(i, dst.valid, (0, 0)))
    elif fixpipe.is_quantised(i, src.dtype, dst.dtype):
        _deliver(i)
    else:
        sized = (src.loc, dst.loc) == ("acc", "vec") or dst.loc in ("scale_left", "scale_right")
        if i.isa == "cpu" and not sized:
            i.require(
                src.valid == dst.valid,
                f"expects equal valid regions, got src {_size(src)} and dst {_size(dst)}",
            )
        for place, at in receivers(i):
            i.store_raw(place, _cast(i, src, dst, at))


def _cast(i: Instr, src: Tile, dst: Tile, at: Shape) -> Array:
    """Return the window of src that fills dst, converted. ReLU comes after the conversion, and keeps NaN."""
    relu = fixpipe.is_rectified(i)
    if src.dtype == dst.dtype and not relu:
        return i.raw("src", dst.valid, at)
    x = i.values("src", dst.valid, at)
    if not relu:
        return i.encoded(x, dst.dtype)
    if elements.DTYPES[dst.dtype].is_float:
        return i.encoded(np.where(i.round(x, dst.dtype) < 0, x.dtype.type(0), x), dst.dtype)
    return np.maximum(i.encoded(x, dst.dtype), 0)


def _scale_boxes(i: Instr) -> None:
    """Store scale exponents in boxes of 16 x 2 (ZZ), along columns, or along rows of the transpose."""
    src = i.tile("src")
    r, c = np.ogrid[: src.v_row, : src.v_col]
    if i.attr("grp_axis") == 1:
        at = ((r // 16 * (src.cols // 2) + c // 2) * 16 + r % 16) * 2 + c % 2
    else:
        at = ((c // 16 * (src.rows // 2) + r // 2) * 16 + c % 16) * 2 + r % 2
    i.store_raw_at("dst", at, i.raw("src"))


def receivers(i: Instr) -> list[tuple[Tile, Shape]]:
    """Return the destination tiles, and the starts of their windows in the source. A cube core moves to the
    buffer of one of its vector cores, or moves half the rows or columns to each of them. A vector core moves
    to the L1 of its cube core.
    """
    dst = i.tile("dst")
    cluster = i.core.cluster
    if dst.loc == "mat" and i.core.kind == "vector" and cluster is not None:
        cubes = [c for c in cluster.cores if c.kind == "cube"]
        place = dst.copy()
        place.buffer = cubes[0].buffers["mat"] if cubes else dst.buffer
        return [(place, (0, 0))]
    vectors = i.core.cluster.vectors if dst.loc == "vec" and i.core.kind == "cube" else []
    if not vectors:
        return [(dst, (0, 0))]
    i.require(
        dst.address is None or dst.address < dst.buffer.limit,
        "expects dst to have an address: in auto mode its address on another core is unknown",
    )
    mode = str(i.attr("accToVecMode"))
    places = [dst.copy() for _ in vectors]
    for place, core in zip(places, vectors, strict=True):
        place.buffer = core.buffers["vec"]
    if mode == "dual_mode_split_m":
        return [(p, (n * dst.v_row, 0)) for n, p in enumerate(places)]
    if mode == "dual_mode_split_n":
        return [(p, (0, n * dst.v_col)) for n, p in enumerate(places)]
    return [(places[-1 if mode == "single_mode_vec1" else 0], (0, 0))]


# --- windows ----------------------------------------------------------------------------------------------


@executor("quantised window")
def tmov_fp(i: Instr) -> None:
    _deliver(i)


@executor("window")
def textract(i: Instr) -> None:
    if isinstance(i.arg("src"), ConvTile):
        i.store_raw("dst", convolution.fractal_window(i, i.valid("dst"), _start(i)))
    elif not i.has("dst1"):
        _deliver(i)
    else:
        starts = {"dst": _start(i), "dst1": (i.arg("indexRow1"), i.arg("indexCol1"))}
        for name, start in starts.items():
            _inside(i, start, i.tile(name), i.tile("src"))
        parts = {name: i.raw("src", i.valid(name), start) for name, start in starts.items()}
        for name, part in parts.items():
            i.store_raw(name, part)


@executor("insertion")
def tinsert(i: Instr) -> None:
    src, dst, start = i.tile("src"), i.tile("dst"), _start(i)
    _inside(i, start, src, dst)
    part = fixpipe.outgoing(i, dst.dtype, src.valid)
    for place, _ in receivers(i):
        i.store_raw(place, part, start)


def _deliver(i: Instr) -> None:
    """Fill dst from the window of src at (indexRow, indexCol), through the fix-pipe."""
    dst, (row, col) = i.tile("dst"), _start(i)
    _inside(i, (row, col), dst, i.tile("src"))
    for place, (down, right) in receivers(i):
        at = (row + down, col + right)
        i.store_raw(place, fixpipe.outgoing(i, dst.dtype, dst.valid, at, first_word=at[1]))


def _start(i: Instr) -> Shape:
    return i.arg("indexRow") or 0, i.arg("indexCol") or 0


def _inside(i: Instr, start: Shape, part: Tile, whole: Tile) -> None:
    """Stop if a window leaves the whole tile."""
    rows, cols = whole.valid if i.core.profile.behaviour.valid_sources else whole.shape
    i.require(
        start[0] >= 0 and start[1] >= 0 and start[0] + part.v_row <= rows and start[1] + part.v_col <= cols,
        f"expects the window of {_size(part)} elements at {start} to lie inside {whole.name}, {rows}x{cols}",
    )


def _size(tile: Tile) -> str:
    return f"{tile.v_row}x{tile.v_col}"


# --- padding ----------------------------------------------------------------------------------------------


@executor("fill padding")
def tfillpad(i: Instr) -> None:
    src, dst = i.tile("src"), i.tile("dst")
    if 0 in dst.valid:
        return
    shape = min(src.v_row, dst.rows), min(src.v_col, dst.cols)
    # Copy first: if both share storage, the padding would overwrite src.
    i.store_raw("dst", copied(i, "src", dst.dtype, shape))
    fill_around(i, "dst", shape, 0 if dst.loc == "mat" else tiles.pad_bits(dst.pad, dst.dtype, i.isa))


# --- rearrangement ----------------------------------------------------------------------------------------


@executor("transposition")
def ttrans(i: Instr) -> None:
    src, dst = i.arg("src"), i.arg("dst")
    if isinstance(src, ConvTile):
        convolution.change_layout(i)
        return
    i.require(
        src.v_row <= dst.cols and src.v_col <= dst.rows,
        f"expects dst {dst.rows}x{dst.cols} to hold the transpose of {_size(src)} elements",
    )
    i.store_raw("dst", copied(i, "src", dst.dtype, src.valid).T)


@executor("concatenation")
def tconcat(i: Instr) -> None:
    rows = i.tile("dst").v_row
    if i.has("src0Idx"):
        _concat_counted(i, rows)
        return
    n0, n1 = i.tile("src0").v_col, i.tile("src1").v_col
    i.require(n0 + n1 <= i.tile("dst").cols, f"expects room for {n0} + {n1} columns in dst")
    parts = [copied(i, "src0", i.dtype("dst"), (rows, n0)), copied(i, "src1", i.dtype("dst"), (rows, n1))]
    i.store_raw("dst", np.concatenate(parts, axis=1))


def _concat_counted(i: Instr, rows: int) -> None:
    """Concatenate with a count per row, which counts bytes of the index type for all types of data."""
    src0, src1, dst = i.tile("src0"), i.tile("src1"), i.tile("dst")
    size = i.tile("src0Idx").bits // 8
    b0, b1 = (i.values(name, (rows, 1)) for name in ("src0Idx", "src1Idx"))
    # The ISA does not define negative counts and counts beyond a tile. They are clipped here.
    n0 = np.clip(b0.astype(np.int64) // size, 0, min(src0.cols, dst.cols))
    n1 = np.minimum(np.clip(b1.astype(np.int64) // size, 0, src1.cols), dst.cols - n0)
    width = int((n0 + n1).max(initial=0))
    column = np.arange(width)[None, :]
    left = column < n0
    right = ~left & (column < n0 + n1)
    region = dst.region(rows, width)
    at = region.rows.offsets[:, None] + region.cols.offsets[None, :]
    row = np.broadcast_to(np.arange(rows)[:, None], (rows, width))
    x0 = i.raw("src0", (rows, int(n0.max(initial=0))))
    x1 = i.raw("src1", (rows, int(n1.max(initial=0))))
    taken0 = x0[left[:, : x0.shape[1]]]
    taken1 = x1[row[right], np.broadcast_to(column - n0, (rows, width))[right]]
    total = b0 + b1 if i.isa == "cpu" else (n0 + n1) * size
    i.store_raw_at("dst", at[left], taken0)
    i.store_raw_at("dst", at[right], taken1)
    if i.has("dstIdx"):
        i.store("dstIdx", total)


@executor("low bits")
def tpack(i: Instr) -> None:
    dst, src = i.tile("dst"), i.tile("src")
    wider = dst.bits > src.bits and elements.DTYPES[src.dtype].is_int
    found = i.raw("src", dst.valid) if wider else i.bits("src", dst.valid)  # sign-extend wider elements
    i.store_raw("dst", found.astype(elements.code_dtype(dst.dtype)))


@executor("interleaving")
def tinterleave(i: Instr) -> None:
    rows, cols = shape = i.valid("dst0")
    _even(i, cols)
    both = np.stack([i.raw("src0", shape), i.raw("src1", shape)], axis=2).reshape(rows, 2 * cols)
    i.store_raw("dst0", both[:, :cols])
    i.store_raw("dst1", both[:, cols:])


@executor("separation")
def tdeinterleave(i: Instr) -> None:
    rows, cols = shape = i.valid("dst0")
    _even(i, cols)
    if i.has("src1"):
        both = np.concatenate([i.raw("src0", shape), i.raw("src1", shape)], axis=1)
    else:
        both = i.raw("src0", (rows, 2 * cols)).copy()
    i.store_raw("dst0", both[:, 0::2])
    i.store_raw("dst1", both[:, 1::2])


def _even(i: Instr, cols: int) -> None:
    i.require(cols % 2 == 0, f"expects an even number of valid columns, got {cols}")


# --- single elements --------------------------------------------------------------------------------------


@executor("set element")
def tsetval(i: Instr) -> None:
    _element(i, "dst")
    i.store_at("dst", np.array([i.arg("offset")]), _number(i.arg("val")))


@executor("get element")
def tgetval(i: Instr) -> object:
    _element(i, "src")
    return i.values_at("src", np.array([i.arg("offset")]))[0].item()


def _element(i: Instr, name: str) -> None:
    """Report the offset of one element in the storage if it is outside the tile."""
    tile = i.arg(name)
    if isinstance(tile, Tile) and not i.port.plain:
        inside = np.array([tile.element_at(int(i.arg("offset"))) is not None])
        what = f"a tile of {tile.rows} x {tile.cols} elements"
        i.indexed("offset", np.array([i.arg("offset")]), inside, tile, what)


def _number(value: float | int) -> Array:
    """Return a scalar operand as an array with one element; integers stay integers."""
    if isinstance(value, float):
        return np.array([value])
    return np.array([value], np.uint64 if value >= 1 << 63 else np.int64)
