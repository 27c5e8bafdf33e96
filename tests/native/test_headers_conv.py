"""Convolution tiles and layouts of global memory in the C++ headers, index by index against the walks that the
tests of the reference engine are written with."""

from __future__ import annotations

import ctypes
from itertools import product

import numpy as np
import pytest
from tests.made import compiled
from tests.sampling import EVERY, some

from pto.engine.memory import ConvFields

from ..engine.rows import Array
from ..engine.test_convolution import FIELDS, PAIRS, transposed, unfolded
from ..engine.test_load_store import CONV, TENSORS, WALKS, strides_of
from .instructions import COMPILER, FLAGS, INCLUDE

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

HEAD = """\
#include "pto/ops/calls.hpp"
#include "pto/ops/rearrange.hpp"
using namespace pto;
template <class T> T& at(T& object, void* data) { detail::bind(object, data); return object; }
"""


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The functions of all tests, compiled together."""
    assert COMPILER is not None
    folder = tmp_path_factory.mktemp("conv")
    source, made = folder / "conv.cpp", folder / "conv.so"
    source.write_text(HEAD + unfoldings() + layouts() + fractals() + tensors() + convolutions() + COMPACT)
    level = ["-O1"] if EVERY else []
    command = [COMPILER, *FLAGS, *level, f"-I{INCLUDE}"]
    done = compiled(command, source, made)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(made))


def pointer(x: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def conv(loc: str, element: str, layout: str, dims: tuple[int, ...]) -> str:
    shape = ", ".join(str(d) for d in dims)
    return f"ConvTile<TileType::{loc}, {element}, {int(np.prod(dims))}, Layout::{layout}, ConvTileShape<{shape}>>"


def random(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(0, 1 << 16, shape).astype(np.uint16)


# --- img2col ------------------------------------------------------------------------------------------------

MAPS = {"flat": ("NC1HWC0", (2, 2, 4, 5, 16)), "deep": ("NDC1HWC0", (2, 3, 2, 3, 4, 16))}


def settings(f: ConvFields) -> str:
    pads = "".join(f"s.SetPadList({n}, {p});" for n, p in enumerate(f.pads))
    return (
        f"s.SetFilterH({f.filter[0]}); s.SetFilterW({f.filter[1]}); s.SetStrideH({f.stride[0]}); "
        f"s.SetStrideW({f.stride[1]}); s.SetDilationH({f.dilation[0]}); s.SetDilationW({f.dilation[1]}); {pads} "
        f"s.SetPadValue(static_cast<int16_t>({int(f.pad_value)}));"
    )


def unfoldings() -> str:
    return "".join(
        f'extern "C" void {kind}{n}(void* src, void* dst, int rows, int cols, int m, int k) {{\n'
        f"  {conv('Mat', 'int16_t', layout, dims)} s; {settings(f)}\n"
        "  Tile<TileType::Left, int16_t, 16, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor> d(rows, cols);\n"
        "  TIMG2COL(at(d, dst), at(s, src), static_cast<uint16_t>(m), static_cast<uint16_t>(k)); }\n"
        for kind, (layout, dims) in MAPS.items()
        for n, f in enumerate(FIELDS)
    )


@pytest.mark.parametrize("kind", MAPS)
def test_img2col(kind: str, lib: ctypes.CDLL) -> None:
    dims = MAPS[kind][1]
    rng = np.random.default_rng(0)
    src = random(rng, dims)
    whole = src if kind == "deep" else src.reshape(2, 1, *dims[1:])
    for n, f in enumerate(FIELDS):
        for (rows, cols), (m, k) in some(
            product(((16, 64), (5, 33), (0, 7)), ((0, 0), (7, 16), (38, 50))), 2
        ):
            got = random(rng, (16 * 64,))
            want = got.copy()
            getattr(lib, f"{kind}{n}")(pointer(src), pointer(got), rows, cols, m, k)
            for r in range(rows):
                for c in range(cols):
                    found = unfolded(whole, f, m + r, k + c)
                    value = int(f.pad_value) & 0xFFFF if found is None else found
                    want[c // 16 * 256 + r * 16 + c % 16] = value  # NZ boxes of 16 x 16 in one line of boxes
            assert (got == want).all(), (n, rows, cols, m, k)


# --- changes of layout --------------------------------------------------------------------------------------


def layouts() -> str:
    return "".join(
        f'extern "C" void layout{n}(void* src, void* dst) {{ {conv("Vec", "half", layout, dims)} s; '
        f"{conv('Vec', 'half', to, dst_dims)} d; TTRANS(at(d, dst), at(s, src), d); }}\n"
        for n, (layout, dims, to, dst_dims) in enumerate(PAIRS)
    )


def test_changes_of_layout(lib: ctypes.CDLL) -> None:
    rng = np.random.default_rng(1)
    for n, (layout, dims, to, dst_dims) in enumerate(PAIRS):
        src, got = random(rng, dims), random(rng, dst_dims)
        want = got.copy()
        getattr(lib, f"layout{n}")(pointer(src), pointer(got))
        transposed(layout, to, src, want)
        assert (got == want).all(), PAIRS[n]


FRACTALS = (((8, 5, 16, 16), "FRACTAL_Z"), ((8, 5, 16, 16), "FRACTAL_Z_3D"), ((2, 2, 2, 80, 16), "FRACTAL_Z"))


def fractals() -> str:
    return "".join(
        f'extern "C" void fractal{n}(void* src, void* dst, int rows, int cols, int r, int c) {{ '
        f"{conv('Mat', 'half', layout, dims)} s; TileRight<half, 64, 64, -1, -1> d(rows, cols); at(d, dst); at(s, src);"
        " if (r < 0) TMOV(d, s); else TEXTRACT(d, s, static_cast<uint16_t>(r), static_cast<uint16_t>(c)); }\n"
        for n, (dims, layout) in enumerate(FRACTALS)
    )


def test_windows_of_fractals(lib: ctypes.CDLL) -> None:
    rng = np.random.default_rng(2)
    for n, start, valid in product(
        range(3), ((0, 0), (16, 32), (64, 16), (-1, -1)), ((64, 48), (33, 41), (0, 3))
    ):
        src, got = random(rng, (8, 80, 16)), random(rng, (64 * 64,))
        want = got.copy()
        getattr(lib, f"fractal{n}")(pointer(src), pointer(got), *valid, *start)
        first, column = max(start[0], 0), max(start[1], 0)
        for k in range(valid[0]):
            for j in range(valid[1]):  # ZN boxes of 16 x 16
                at = (k // 16 * 4 + j // 16) * 256 + j % 16 * 16 + k % 16
                want[at] = src[first // 16 + k // 16, column + j, k % 16]
        assert (got == want).all(), (n, start, valid)


# --- layouts of global memory -------------------------------------------------------------------------------


TILES = {
    "ND": "Tile<TileType::Vec, int16_t, 16, 64, BLayout::RowMajor, -1, -1>",
    "DN": "Tile<TileType::Vec, int16_t, 16, 64, BLayout::ColMajor, -1, -1>",
    "NZ": "Tile<TileType::Vec, int16_t, 16, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor>",
}


def tensors() -> str:
    return "".join(
        f'extern "C" void {way}_{form}_{n}(void* tile, void* memory, const long* s, const long* t, int rows, int cols) {{\n'
        f"  {kind} x(rows, cols); at(x, tile);\n"
        f"  GlobalTensor<int16_t, Shape<>, Stride<>, Layout::{layout}> g(static_cast<int16_t*>(memory), "
        "Shape<>(s[0], s[1], s[2], s[3], s[4]), Stride<>(t[0], t[1], t[2], t[3], t[4]));\n"
        f"  {'TLOAD(x, g)' if way == 'load' else 'TSTORE(g, x)'}; }}\n"
        for n, (layout, _, _) in enumerate(TENSORS)
        for way in ("load", "store")
        for form, kind in TILES.items()
    )


def test_every_layout_of_global_memory(lib: ctypes.CDLL) -> None:
    """Loads to and stores from a row-major, a column-major and a fractal tile, with gaps in the strides."""
    offsets = {
        "ND": lambda r, c: r * 64 + c,
        "DN": lambda r, c: c * 16 + r,
        "NZ": lambda r, c: c // 16 * 256 + r * 16 + c % 16,
    }
    rng = np.random.default_rng(3)
    for n, (layout, shape, (rows, cols)) in enumerate(TENSORS):
        inner = 16 if layout == "NDC1HWC0" else 1
        for gap, form in some(product((0, 3), TILES), 2):
            strides = [inner]
            for d in reversed(shape[1:]):
                strides.insert(0, strides[0] * d + gap * inner)
            if gap and layout in ("DN", "NZ"):  # the innermost of the other direction
                strides[3], strides[4] = 1, shape[3] + gap
                strides[2] = strides[4] * shape[4]
                strides[1], strides[0] = strides[2] * shape[2], strides[2] * shape[2] * shape[1]
            memory = random(
                rng, (int(sum((d - 1) * t for d, t in zip(shape, strides, strict=True))) + 16 * inner,)
            )
            walk = WALKS[layout]
            spots = [
                (offsets[form](r, c), int(walk(r, c, shape, strides, 16)))
                for r in range(rows)
                for c in range(cols)
            ]
            s, t = (np.array(x, np.int64) for x in (shape, strides))
            tile = random(rng, (16 * 64,))
            want = np.zeros_like(tile)
            for a, b in spots:
                want[a] = memory[b]
            getattr(lib, f"load_{form}_{n}")(
                pointer(tile), pointer(memory), pointer(s), pointer(t), rows, cols
            )
            assert (tile == want).all(), (layout, form, gap)
            tile, after = random(rng, (16 * 64,)), memory.copy()
            for a, b in spots:
                after[b] = tile[a]
            getattr(lib, f"store_{form}_{n}")(
                pointer(tile), pointer(memory), pointer(s), pointer(t), rows, cols
            )
            assert (memory == after).all(), (layout, form, gap)


KINDS = [(layout, tuple(int(d) for d in text.split("xi16")[0].split("x"))) for text, layout, *_ in CONV]


def convolutions() -> str:
    return "".join(
        f'extern "C" void {way}{n}(void* tile, void* memory, const long* s, const long* t) {{\n'
        f"  {conv('Mat', 'int16_t', layout, dims)} x; at(x, tile);\n"
        f"  GlobalTensor<int16_t, Shape<>, Stride<>, Layout::{layout}> g(static_cast<int16_t*>(memory), "
        "Shape<>(s[0], s[1], s[2], s[3], s[4]), Stride<>(t[0], t[1], t[2], t[3], t[4]));\n"
        f"  {'TLOAD(x, g)' if way == 'load' else 'TSTORE(g, x)'}; }}\n"
        for n, (layout, dims) in enumerate(KINDS)
        for way in ("load", "store")
    )


def test_convolution_tiles_are_loaded_and_stored(lib: ctypes.CDLL) -> None:
    rng = np.random.default_rng(4)
    for n, (_, layout, shape, inner, (rows, cols)) in enumerate(CONV):
        dense, apart = strides_of(shape, inner, 0, False), strides_of(shape, inner, 5, False)
        tile, memory = random(rng, KINDS[n][1]).ravel(), random(rng, (shape[0] * apart[0] + 100 * inner,))
        s, t = (np.array(x, np.int64) for x in (shape, apart))
        spots = [
            tuple(int(WALKS[layout](r, c, shape, step, 16)) for step in (dense, apart))
            for r in range(rows)
            for c in range(cols)
        ]
        want = tile.copy()
        for a, b in spots:
            want[a] = memory[b]
        getattr(lib, f"load{n}")(pointer(tile), pointer(memory), pointer(s), pointer(t))
        assert (tile == want).all(), CONV[n]
        tile, want = random(rng, tile.shape), memory.copy()
        for a, b in spots:
            want[b] = tile[a]
        getattr(lib, f"store{n}")(pointer(tile), pointer(memory), pointer(s), pointer(t))
        assert (memory == want).all(), CONV[n]


COMPACT = """
extern "C" void compact(void* tile, void* memory) {
  Tile<TileType::Mat, int16_t, 32, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512, PadValue::Zero,
       CompactMode::Normal> x(5, 30);
  at(x, tile);
  GlobalTensor<int16_t, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>> g(static_cast<int16_t*>(memory));
  TLOAD(x, g);
}
"""


def test_a_compact_tile_is_padded_up_to_its_row_block(lib: ctypes.CDLL) -> None:
    rng = np.random.default_rng(5)
    table, chip = random(rng, (16, 64)), np.full(32 * 64, 0xA5A5, np.uint16)
    lib.compact(pointer(chip), pointer(table))
    blocks = chip[: 4 * 16 * 16].reshape(4, 16, 16)  # column blocks lie 16 rows apart, not 32
    for r, c in product(range(16), range(64)):
        assert blocks[c // 16, r, c % 16] == (table[r, c] if r < 5 and c < 30 else 0)
    assert (chip[4 * 16 * 16 :] == 0xA5A5).all()
