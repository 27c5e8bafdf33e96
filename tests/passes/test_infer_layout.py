"""Layouts of views: the formula, who decides where it leaves a choice, and that loads keep their elements."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.each import together

from pto.isa.view import strided

from .running import errors, result, runs_alike

PASS = "infer-layout"


def program(
    shape: list[int | str], strides: list[int | str], tiles: tuple[str, ...] = (), layout: str = "",
    dtype: str = "f32", window: list[int] | None = None, arch: str = "a3",
) -> str:  # fmt: skip
    """A view and loads of tiles from it; extents are numbers, or names of arguments."""
    numbers = sorted({n for n in (*shape, *strides, *(window or ()), 0) if isinstance(n, int)})
    lines = [f"%c{n} = arith.constant {n} : index" for n in numbers]

    def name(n: int | str) -> str:
        return f"%c{n}" if isinstance(n, int) else f"%{n}"

    rank = "x".join("?" for _ in shape)
    given = f" {{layout = #pto.layout<{layout}>}}" if layout else ""
    lines.append(
        f"%v = pto.make_tensor_view %p, shape = [{', '.join(map(name, shape))}], strides = "
        f"[{', '.join(map(name, strides))}]{given} : !pto.tensor_view<{rank}x{dtype}>"
    )
    sizes = window or shape
    dims = "x".join(str(n) if isinstance(n, int) else "?" for n in sizes)
    part = f"!pto.partition_tensor_view<{dims}x{dtype}>"
    lines.append(
        f"%w = pto.partition_view %v, offsets = [{', '.join('%c0' for _ in shape)}], sizes = "
        f"[{', '.join(map(name, sizes))}] : !pto.tensor_view<{rank}x{dtype}> -> {part}"
    )
    for n, tile in enumerate(tiles):
        lines += [f"%t{n} = pto.alloc_tile : {tile}", f"pto.tload ins(%w : {part}) outs(%t{n} : {tile})"]
    body = "\n  ".join(lines)
    return (
        f'module attributes {{pto.target_arch = "{arch}"}} {{\n'
        f"func.func @f(%p: !pto.ptr<{dtype}>, %n: index, %m: index) {{\n  {body}\n  return\n}}\n}}\n"
    )


def inferred(*args: Any, **options: Any) -> str | None:
    """Return the layout of the view."""
    module = result(program(*args, **options), PASS)
    (view,) = [op for op in module.walk() if op.name == "pto.make_tensor_view"]
    return view.attr("layout")


# -- the formula -------------------------------------------------------------------------------------------


def test_rows_and_columns_by_what_they_mean() -> None:
    """ND: the elements row by row, DN: column by column, without gaps; ND where they are neither."""
    for rows, cols, rs, cs in itertools.product(range(1, 5), range(1, 5), range(1, 6), range(1, 6)):
        at = {(r, c): r * rs + c * cs for r in range(rows) for c in range(cols)}
        nd = all(at[r, c] == r * cols + c for r, c in at)
        dn = all(at[r, c] == c * rows + r for r, c in at)
        found = strided((rows, cols), (rs, cs), 32)
        assert found.either == (nd and dn), (rows, cols, rs, cs)
        if nd and dn:
            assert found.layout == ("DN" if cols == 1 and rows > 1 else "ND")
            assert {"ND", "DN"} <= found.fits
        else:
            assert found.layout == ("DN" if dn else "ND"), (rows, cols, rs, cs)
        assert found.layout in found.fits


@together(
    ("shape", "strides", "bits", "expected"),
    [
        ((16, 16, 16), (256, 16, 1), 16, "NZ"),
        ((1, 1, 16, 4, 1), (64, 64, 4, 1, 1), 64, "NZ"),
        ((2, 3, 16, 8, 5), (1920, 640, 40, 5, 1), 32, "NZ"),
        ((2, 3, 16, 8, 5), (1920, 640, 40, 6, 1), 32, "ND"),  # rows of a box do not follow each other
        ((2, 3, 16, 8, 5), (1920, 640, 40, 5, 2), 32, "ND"),
        ((2, 3, 15, 8, 5), (1800, 600, 40, 5, 1), 32, "ND"),
        ((2, 3, 16, 8, 5), (1920, 640, 40, 5, 1), 16, "ND"),  # boxes of 256 bytes
        ((7,), (1,), 32, "ND"),
        ((3, 4, 5), (20, 1, 4), 32, "DN"),
    ],
)
def test_more_dimensions(shape: tuple[int, ...], strides: tuple[int, ...], bits: int, expected: str) -> None:
    assert strided(shape, strides, bits).layout == expected


# -- the pass ----------------------------------------------------------------------------------------------

ROW, COLUMN = "!pto.tile_buf<vec, {}xf32>", "!pto.tile_buf<vec, {}xf32, blayout=col_major>"


@together(
    ("shape", "strides", "expected"),
    [([16, 32], [32, 1], "nd"), ([16, 32], [1, 16], "dn"), ([16, 32], [64, 1], "nd"), ([1, 8], [8, 1], "nd"),
     ([8, 1], [1, 1], "dn"), ([8, 1], [1, 8], "dn")],
)  # fmt: skip
def test_by_the_strides(shape: list[int | str], strides: list[int | str], expected: str) -> None:
    assert inferred(shape, strides) == expected


def test_the_tiles_decide_on_a_column() -> None:
    """A column is the same bytes in both; without tiles that agree it counts as DN."""
    shape: list[int | str] = [16, 1]
    rows, column = "!pto.tile_buf<vec, 16x8xf32, valid=16x1>", COLUMN.format("16x1")
    assert inferred(shape, [1, 1], (rows,)) == "nd"
    assert inferred(shape, [1, 1], (column,)) == "dn"
    assert inferred(shape, [1, 1], (rows, column)) == "dn"
    assert inferred(shape, [1, 1]) == "dn"


def test_a_padded_column_major_view() -> None:
    """Columns with gaps between them are DN for column-major tiles, which cannot be loaded from ND."""
    assert inferred([16, 4], [1, 32], (COLUMN.format("16x4"),)) == "dn"
    assert inferred([16, 4], [1, 32]) == "nd"


def test_boxes_are_told_from_rows_by_the_tiles() -> None:
    """The shape of an NZ view may be one of the formula, or show in the tile alone."""
    nz = "!pto.tile_buf<mat, 32x32xf32, blayout=col_major, slayout=row_major>"
    assert inferred([1, 4, 2, 16, 8], [1024, 256, 128, 8, 1], (nz,)) == "nz"
    plain = "!pto.tile_buf<mat, 128x8xf32, blayout=col_major, slayout=row_major>"
    assert inferred([1, 4, 2, 16, 8], [1024, 256, 128, 8, 1], (plain,)) == "nd"
    rows = "!pto.tile_buf<vec, 256x16xf16>"
    assert inferred([1, 1, 16, 16, 16], [4096, 4096, 256, 16, 1], (rows,), dtype="f16") == "nd"
    assert inferred([1, 1, 16, 16, 16], [4096, 4096, 256, 16, 1], dtype="f16") == "nz"


def test_accesses_that_differ_say_so_themselves() -> None:
    shape: list[int | str] = [1, 4, 2, 16, 8]
    nz = "!pto.tile_buf<mat, 32x32xf32, blayout=col_major, slayout=row_major>"
    rows = "!pto.tile_buf<mat, 128x8xf32, blayout=col_major, slayout=row_major>"
    module = result(program(shape, [1024, 256, 128, 8, 1], (rows, nz)), PASS)
    view, *loads = [
        op.attr("layout") for op in module.walk() if op.name in ("pto.make_tensor_view", "pto.tload")
    ]
    assert (view, loads) == ("nd", [None, "nz"])
    boxes, flat = (
        tile.replace("<mat", "<vec")
        for tile in (nz, rows.replace("blayout=col_major, slayout=row_major", "blayout=row_major"))
    )
    result(program(shape, [1024, 256, 128, 8, 1], (flat, boxes)), PASS)  # legal by the layouts of the loads


@together(
    ("shape", "strides", "tiles", "expected"),
    [
        (["n", 16], [16, 1], (), None),
        (["n", "m"], [1, "n"], (), "dn"),  # columns as long as the matrix, whatever that is
        (["n", "m"], ["m", 1], (), None),
        (["n", "m"], ["n", "m"], (), None),
        (["n", 1], [1, 1], (COLUMN.format("16x1"),), "dn"),
        (["n", 1], [1, 1], ("!pto.tile_buf<vec, 16x8xf32, valid=16x1>",), None),
        ([2, "n", "m"], ["m", 1, "n"], (), None),  # what several matrices are only the run can tell
    ],
)
def test_unknown_extents(
    shape: list[int | str], strides: list[int | str], tiles: tuple[str, ...], expected: str | None
) -> None:
    assert inferred(shape, strides, tiles) == expected


# -- layouts of the author ---------------------------------------------------------------------------------


@together(
    ("layout", "shape", "strides"),
    [
        ("nd", [16, 32], [32, 1]), ("dn", [16, 32], [1, 16]), ("dn", [16, 1], [1, 1]), ("nd", [16, 1], [1, 1]),
        ("dn", [1, 16], [16, 1]), ("dn", [16, 4], [1, 32]), ("nz", [1, 4, 2, 16, 8], [1024, 256, 128, 8, 1]),
        ("nd", [1, 1, 16, 8, 8], [1024, 1024, 64, 8, 1]), ("nd", ["n", "m"], [1, "n"]),
        ("dn", ["n", "m"], ["m", 1]),
    ],
)  # fmt: skip
def test_layouts_that_fit_stay(layout: str, shape: list[int | str], strides: list[int | str]) -> None:
    assert inferred(shape, strides, layout=layout) == layout


@pytest.mark.parametrize(
    ("layout", "shape", "strides", "other"),
    [("nd", [16, 32], [1, 16], "dn"), ("dn", [16, 32], [32, 1], "nd"), ("nz", [16, 32], [32, 1], "nd"),
     ("dn", [16, 32], [64, 1], "nd")],
)  # fmt: skip
def test_e0502_layouts_that_the_strides_contradict(
    layout: str, shape: list[int | str], strides: list[int | str], other: str
) -> None:
    (found,) = errors(program(shape, strides, layout=layout), PASS)
    assert found.code == "PTO-E0502"
    assert f"layout mismatch: user-specified layout={layout} but inferred={other}" in found.message


def test_nothing_is_written_where_it_is_not_wanted() -> None:
    module = result(program([16, 32], [1, 16]), infer_layout=False)
    assert all("layout" not in op.attrs for op in module.walk())


# -- results -----------------------------------------------------------------------------------------------


def _copy(shape: list[int], strides: list[int], tile: str, dtype: str = "f32", arch: str = "a3") -> str:
    """Load through a view, store densely as the tile is."""
    source = program(list(shape), list(strides), (tile,), dtype=dtype, arch=arch)
    head, tail = source.split("  return", 1)
    head = head.replace(
        "@f(%p: !pto.ptr<f32>, %n: index, %m: index)", "@f(%p: !pto.ptr<f32>, %q: !pto.ptr<f32>)"
    )
    store = "%o = " + head[head.index("pto.make_tensor_view") :].split("\n")[0].replace("%p", "%q")
    part = head[head.index("pto.partition_view") :].split("\n")[0].replace("%v", "%o")
    type = part.rpartition("-> ")[2]
    return f"{head}  {store}\n  %x = {part}\n  pto.tstore ins(%t0 : {tile}) outs(%x : {type})\n  return{tail}"


@together(
    ("shape", "strides", "tile"),
    [
        ([16, 32], [32, 1], "16x32xf32"), ([16, 32], [1, 16], "16x32xf32, blayout=col_major"),
        ([16, 4], [1, 32], "16x4xf32, blayout=col_major"), ([16, 1], [1, 1], "16x1xf32, blayout=col_major"),
        ([16, 1], [1, 1], "16x8xf32, valid=16x1"),
        ([2, 3, 4, 5, 8], [480, 160, 40, 8, 1], "120x8xf32"),
        ([2, 1, 1, 16, 4], [64, 64, 64, 1, 16], "16x8xf32, blayout=col_major"),
        ([1, 4, 2, 16, 8], [1024, 256, 128, 8, 1], "32x32xf32, blayout=col_major, slayout=row_major"),
        ([2, 2, 16, 8, 8], [4096, 2048, 64, 8, 1], "128x32xf32, blayout=col_major, slayout=row_major"),
        ([2, 2, 16, 8, 8], [4096, 2048, 64, 8, 1], "512x8xf32"),
    ],
)  # fmt: skip
def test_results(shape: list[int], strides: list[int], tile: str) -> None:
    source = _copy(shape, strides, f"!pto.tile_buf<vec, {tile}>", arch="a5")
    x = np.arange(8192, dtype=np.float32)
    module = runs_alike(source, [x, np.zeros_like(x)])
    assert all(op.attr("layout") for op in module.walk() if op.name == "pto.make_tensor_view")
