"""Convolution tiles: their matrix view, changes of layout, fractal windows, and img2col."""

from __future__ import annotations

from math import prod

import numpy as np

from ...isa import tile as tiles
from ...isa import view as views
from ..elements import Array
from ..memory import ConvTile, View
from .instr import Instr, Shape
from .registry import executor

#: Rows of a fractal in the N direction.
N0 = 16


def block_size(tile: ConvTile) -> int:
    """Return the number of channels in a block of 32 bytes."""
    return tiles.block_elements(tile.bits)


def as_view(tile: ConvTile) -> View:
    """Return the storage of a convolution tile as a view of the same layout."""
    if tile.address is None:
        raise LookupError(tile.name)
    dims, inner = tile.dims, 1
    if tile.layout == "NDC1HWC0":
        dims, inner = dims[:5], block_size(tile)
    elif tile.layout == "NC1HWC0" and len(dims) == 4:
        dims = (*dims, block_size(tile))
    strides = tuple(inner * prod(dims[d + 1 :]) for d in range(len(dims)))
    layout = "FRACTAL_Z" if tile.layout.startswith("FRACTAL_Z") else tile.layout
    return View(tile.buffer, tile.address, dims, strides, tile.dtype, layout, tile.name)


def matrix_shape(view: View) -> Shape:
    """Return the rows and columns of a view as a matrix."""
    return views.matrix_shape(view.effective_layout(), view.dims5[0], tiles.block_elements(view.bits))


def fractal_window(i: Instr, shape: Shape, start: Shape) -> Array:
    """Return `shape` elements (k, n) of a FRACTAL_Z `src`, an array of blocks [k / C0, n / 16, 16, C0]."""
    tile = i.arg("src")
    i.require(
        tile.layout.startswith("FRACTAL_Z"),
        f"expects a convolution tile of layout FRACTAL_Z or FRACTAL_Z_3D, got {tile.layout}",
    )
    c0 = tile.dims[-1]
    n = tile.dims[-2] * (tile.dims[-3] if len(tile.dims) == 4 else 1)  # 5-D: N is one dimension
    # The window starts at whole blocks.
    k = np.arange(shape[0]) + start[0] * tile.bits // 256 * c0
    column = np.arange(shape[1]) + start[1] // N0 * N0
    return i.raw_at("src", (k // c0 * n * c0 + k % c0)[:, None] + column[None, :] * c0)


def change_layout(i: Instr) -> None:
    """Perform `ttrans` of convolution tiles: move every element to its offset in the other layout."""
    src, dst = i.arg("src"), i.arg("dst")
    pair = (src.layout, dst.layout)
    if pair in (("NCHW", "NC1HWC0"), ("GNCHW", "GNC1HWC0")):
        _move(i, *_channels_to_blocks(src.dims, dst.dims))
    elif pair == ("NC1HWC0", "NCHW"):
        at, to = _channels_to_blocks(dst.dims, src.dims)
        _move(i, to, at)
    elif pair in (("NC1HWC0", "FRACTAL_Z"), ("GNC1HWC0", "FRACTAL_Z")):
        g, n, c1, h, w, c0 = np.ogrid[tuple(slice(d) for d in (*(1,) * (6 - len(src.dims)), *src.dims))]
        block = ((g * c1.size + c1) * h.size + h) * w.size + w
        _move(i, _dense(src.dims), _fractal(block, n, c0, dst.dims))
    elif pair == ("NCDHW", "FRACTAL_Z_3D"):
        n, c, d, h, w = np.ogrid[tuple(slice(d) for d in src.dims)]
        c0 = dst.dims[-1]
        block = ((d * -(-c.size // c0) + c // c0) * h.size + h) * w.size + w
        _move(i, _dense(src.dims), _fractal(block, n, c % c0, dst.dims))
    else:
        i.require(False, f"expects a known pair of convolution layouts, got {src.layout} to {dst.layout}")


def _dense(dims: tuple[int, ...]) -> Array:
    return np.arange(prod(dims))


def _channels_to_blocks(plain: tuple[int, ...], blocks: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the offsets of (G)NCHW elements, and of the same elements in (G)NC1HWC0; tail channels have no
    source."""
    *outer, c, h, w = np.ogrid[tuple(slice(d) for d in plain)]
    image: Array = np.zeros(1, np.intp)
    for index in outer:
        image = image * index.size + index
    c1, c0 = blocks[-4], blocks[-1]
    return _dense(plain), ((((image * c1 + c // c0) * h.size + h) * w.size + w) * c0 + c % c0).ravel()


def _fractal(block: Array, n: Array, c: Array, dims: tuple[int, ...]) -> Array:
    n1, n0, c0 = dims[-3:]
    return (((block * n1 + n // n0) * n0 + n % n0) * c0 + c).ravel()


def _move(i: Instr, at: Array, to: Array) -> None:
    i.store_raw_at("dst", to, i.raw_at("src", at))


@executor("image to columns")
def timg2col(i: Instr) -> None:
    src: ConvTile = i.arg("src")
    rows, cols = i.valid("dst")
    n_, d_, c1_, h_, w_, c0_ = src.dims if src.layout == "NDC1HWC0" else (src.dims[0], 1, *src.dims[1:])
    f = src.fields
    left, right, top, bottom = f.pads
    out_h = (h_ + top + bottom - f.dilation[0] * (f.filter[0] - 1) - 1) // f.stride[0] + 1
    out_w = (w_ + left + right - f.dilation[1] * (f.filter[1] - 1) - 1) // f.stride[1] + 1
    i.require(out_h > 0 and out_w > 0, "expects a filter that fits into the padded feature map")
    if not rows or not cols:
        return
    m = (i.arg("posM") or 0) + np.arange(rows)[:, None]
    k = (i.arg("posK") or 0) + np.arange(cols)[None, :]
    image, m = np.divmod(m, d_ * out_h * out_w)
    depth, m = np.divmod(m, out_h * out_w)
    taps = f.filter[0] * f.filter[1]
    c1, kk, c0 = k // (c0_ * taps), k // c0_ % taps, k % c0_
    # The start of an output (a column), and the distance of a tap from it (a row).
    h, dh = m // out_w * f.stride[0] - top, kk // f.filter[1] * f.dilation[0]
    w, dw = m % out_w * f.stride[1] - left, kk % f.filter[1] * f.dilation[1]
    at = (((image * d_ + depth) * c1_ * h_ + h) * w_ + w) * c0_ + (((c1 * h_ + dh) * w_ + dw) * c0_ + c0)
    if _within(h, dh, h_) and _within(w, dw, w_) and int(image.max()) < n_ and int(c1.max()) < c1_:
        i.store_raw("dst", i.raw_at("src", at))
        return
    ih, iw = h + dh, w + dw
    inside = (image < n_) & (c1 < c1_) & (ih >= 0) & (ih < h_) & (iw >= 0) & (iw < w_)
    found = i.raw_at("src", at[inside])
    out = np.full((rows, cols), i.encoded(np.array([f.pad_value]), src.dtype)[0])
    out[inside] = found
    i.store_raw("dst", out)


def _within(start: Array, step: Array, size: int) -> bool:
    """Return whether all sums of the two are in 0..size - 1; steps are not negative."""
    return int(start.min()) >= 0 and int(start.max()) + int(step.max()) < size
