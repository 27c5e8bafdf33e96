"""Regions: whichever way elements are reached, it is the one that element offsets describe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto.engine.memory import Buffer, Tile, View
from pto.engine.region import Axis, Region, blocked, load_at, scattered, store_at
from pto.ir.types import ScalarType, TileBufType

SIZE = 1 << 14


@st.composite
def axes(draw: st.DrawFn) -> tuple[Axis, Axis]:
    """Row and column parts of a layout: plain, boxed, or anything; no two elements meet."""
    rows, cols = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    kind = draw(st.sampled_from(("row", "column", "boxes", "scattered")))
    pitch = draw(st.integers(0, 5))
    if kind == "row":
        return blocked(0, rows, 1, cols + pitch, 0), blocked(0, cols, 1, 1, 0)
    if kind == "column":
        return blocked(0, rows, 1, 1, 0), blocked(0, cols, 1, rows + pitch, 0)
    if kind == "scattered":
        at = np.array(draw(st.lists(st.integers(0, 60), min_size=rows, max_size=rows, unique=True)))
        return scattered(np.sort(at) * 16), scattered(np.arange(cols))
    r, c = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((2, 4, 8)))
    across, down = draw(st.booleans()), draw(st.booleans())
    inner = (1, r) if down else (c, 1)
    block = r * c
    outer = (block, block * 16) if across else (block * 16, block)
    return blocked(0, rows, r, outer[0], inner[0]), blocked(0, cols, c, outer[1], inner[1])


@given(axes(), st.sampled_from((4, 8, 16, 32)), st.integers(0, 1), st.integers(0, 31), st.integers(0, 2**32))
def test_load_and_store(parts: tuple[Axis, Axis], bits: int, nibble: int, base: int, seed: int) -> None:
    rows, cols = parts
    region = Region(base, rows, cols, bits, nibble if bits == 4 else 0)
    rng = np.random.default_rng(seed)
    kind = np.dtype(f"u{max(8, bits) // 8}")
    data: Any = rng.integers(0, 256, SIZE, np.uint8)
    at = rows.offsets[:, None] + cols.offsets[None, :]
    want = load_at(data, base, at, bits, kind, region.nibble)
    assert region.load(data, kind).shape == region.shape
    assert (region.load(data, kind) == want).all()

    values = rng.integers(0, 1 << bits, region.shape, np.uint64).astype(kind)
    other = data.copy()
    region.store(data, values)
    store_at(other, base, at, bits, values, region.nibble)
    assert (data == other).all()
    assert (region.load(data, kind) == values).all()


@given(axes(), st.sampled_from((4, 8, 16)), st.integers(0, 31))
def test_bytes(parts: tuple[Axis, Axis], bits: int, base: int) -> None:
    region = Region(base, *parts, bits)
    data = np.zeros(SIZE, np.uint8)
    region.store(data, np.full(region.shape, (1 << bits) - 1, f"u{max(8, bits) // 8}"))
    touched = np.flatnonzero(data)
    assert (np.unique(region.byte_offsets()) == touched).all()
    low, high = region.bounds
    assert (low, high) == (touched[0], touched[-1] + 1)
    if region.dense:
        assert len(touched) == high - low
    rows, cols = parts
    runs, marks = region.runs(), region.marks(np.arange(SIZE + 3), 3)
    assert (runs is not None) == (bits > 4 and bool((np.diff(cols.offsets) == 1).all()))
    assert (marks is not None) == (runs is not None and rows.stride is not None)
    if runs is not None:
        assert (np.concatenate([np.arange(*run) for run in runs]) == region.byte_offsets()).all()
    if marks is not None:
        assert (marks.ravel() == region.byte_offsets() + 3).all()


@pytest.mark.parametrize("shape", [(16, 64), (1, 2), (128, 128)])
def test_pairs_of_nibbles_are_read_as_bytes(shape: tuple[int, int]) -> None:
    """The fast way is taken, and only where bytes are whole."""
    rows, cols = shape
    assert Region(0, blocked(0, rows, 1, cols, 0), blocked(0, cols, 1, 1, 0), 4)._pairs() is not None
    assert Region(0, blocked(0, rows, 1, cols, 0), blocked(0, cols, 1, 1, 0), 4, 1)._pairs() is None
    assert Region(0, blocked(0, rows, 1, cols, 0), blocked(1, cols - 1, 1, 1, 0), 4)._pairs() is None
    assert Region(0, blocked(0, 3, 1, cols + 1, 0), blocked(0, cols, 1, 1, 0), 4)._pairs() is None


def test_outside() -> None:
    region = Region(SIZE - 8, blocked(0, 2, 1, 8, 0), blocked(0, 8, 1, 1, 0), 8)
    with pytest.raises(IndexError):
        region.load(np.zeros(SIZE, np.uint8), np.uint8)
    with pytest.raises(IndexError):
        region.store(np.zeros(SIZE, np.uint8), np.zeros((2, 8), np.uint8))
    four = Region(SIZE - 4, blocked(0, 2, 1, 8, 0), blocked(0, 8, 1, 1, 0), 4)
    with pytest.raises(IndexError):
        four.load(np.zeros(SIZE, np.uint8), np.uint8)


def test_a_tile_keeps_the_region_asked_for_last_until_something_about_it_changes() -> None:
    """Instructions of a loop ask for the same one every time, and those who watch for what follows from it."""
    buffer = Buffer("UB", "vec", np.zeros(SIZE, np.uint8))
    tile = Tile(TileBufType(ScalarType("f32"), "vec", 16, 32, 16, 32), buffer, 0, (16, 32))
    first = tile.region(16, 32)
    assert tile.region(16, 32) is first and first.bounds == (0, 2048) and first.dense
    data = first.load(buffer.data, np.dtype(np.float32))
    assert first.load(buffer.data, np.dtype(np.float32)) is data
    assert tile.region(8, 32).bounds == (0, 1024)
    moved = tile.copy()
    moved.address = 4096
    assert moved.region(16, 32).bounds == (4096, 6144) and tile.region(16, 32).bounds == (0, 2048)
    buffer.grow(2 * SIZE)
    assert tile.region(16, 32).load(buffer.data, np.dtype(np.float32)).base is not data.base


def test_a_view_keeps_the_region_asked_for_last_until_it_moves() -> None:
    view = View(Buffer("x", "gm", np.zeros(SIZE, np.uint8)), 0, (16, 32), (32, 1), "f32")
    first = view.region(16, 32)
    assert view.region(16, 32) is first
    view.offset = 128
    moved = view.region(16, 32)
    assert moved.bounds == (128, 128 + 2048) and view.region(16, 32) is moved
    view.layout = "DN"
    assert view.region(16, 32) is not moved
