"""FIFOs between the cores of a cluster: order, splits, wrap-around, back pressure, and rings that get stuck."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.sampling import some

import pto

from .programs import CONSTANTS, codes, program, run

ROWS = (
    "tpush", "tpop", "tfree", "talloc", "tpush_to_aiv", "tpush_to_aic", "tpop_from_aic", "tpop_from_aiv",
    "tfree_from_aic", "tfree_from_aiv", "aic_initialize_pipe", "aiv_initialize_pipe", "initialize_l2l_pipe",
    "initialize_l2g2l_pipe", "reserve_buffer", "import_reserved_buffer",
)  # fmt: skip

ALL = "pto.barrier #pto.pipe<PIPE_ALL>"
MAT = "!pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>"
LEFT = "!pto.tile_buf<left, 16x16xf16, slayout=row_major>"
RIGHT = "!pto.tile_buf<right, 16x16xf16, slayout=col_major>"
ACC = "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>"
#: What a vector core gets of a 16 x 16 product, by split.
PART = {0: (16, 16), 1: (8, 16), 2: (16, 8)}


def rows_of(name: str, pointer: str, type: str, rows: int, cols: int, row: str, col: str = "%c0") -> str:
    """A `rows` x `cols` window from (row, col) of a matrix of 16 columns."""
    return f"""%{name}_r = arith.constant {rows} : index
      %{name}_c = arith.constant {cols} : index
      %{name}_n = arith.constant 4096 : index
      %{name}_w = arith.constant 16 : index
      %{name}_v = pto.make_tensor_view %{pointer}, shape = [%{name}_n, %{name}_w], strides = [%{name}_w, %c1] : !pto.tensor_view<?x?x{type}>
      %{name} = pto.partition_view %{name}_v, offsets = [{row}, {col}], sizes = [%{name}_r, %{name}_c] : !pto.tensor_view<?x?x{type}> -> !pto.partition_tensor_view<{rows}x{cols}x{type}>"""


def cube_to_vector(
    arch: str, count: int, slots: int, split: int, free: bool = True, pops: int | None = None
) -> str:
    """The cube core multiplies `count` matrices with the identity and pushes them; the vector cores store them."""
    rows, cols = PART[split]
    half = f"!pto.tile_buf<vec, {rows}x{cols}xf32>"
    where = "gm_slot_buffer = %gm : !pto.ptr<f32>, " if arch == "a3" else ""
    pipe = f"{{dir_mask = 1, slot_size = 1024, slot_num = {slots}}} ({where}c2v_consumer_buf = %buf : i32)"
    lane = """%s = pto.get_subblock_idx
    %lane = arith.index_cast %s : i64 to index
    %c8 = arith.constant 8 : index
    %half = arith.muli %lane, %c8 : index"""
    row = {0: "%row", 1: "%mine", 2: "%row"}[split]
    col = {0: "%c0", 1: "%c0", 2: "%half"}[split]
    keep = f"""{rows_of("o", "out", "f32", rows, cols, row, col)}
      pto.tstore ins(%t : {half}) outs(%o : !pto.partition_tensor_view<{rows}x{cols}xf32>)"""
    if split == 0:  # only the first lane has data
        keep = f"""%first = arith.cmpi eq, %lane, %c0 : index
      scf.if %first {{
        {keep}
      }}"""
    return f"""module attributes {{pto.target_arch = "{arch}"}} {{
func.func @k_aic(%x: !pto.ptr<f16>, %eye: !pto.ptr<f16>, %out: !pto.ptr<f32>, %gm: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
    {CONSTANTS}
    %n = arith.constant {count} : index
    %c16 = arith.constant 16 : index
    %buf = pto.import_reserved_buffer {{name = "ring", peer_func = @k_aiv}} -> i32
    pto.aic_initialize_pipe {pipe}
    %a0 = arith.constant 0 : i64
    %a1 = arith.constant 1024 : i64
    %m = pto.alloc_tile addr = %a0 : {MAT}
    %e = pto.alloc_tile addr = %a1 : {MAT}
    %l = pto.alloc_tile addr = %a0 : {LEFT}
    %r = pto.alloc_tile addr = %a0 : {RIGHT}
    %acc = pto.alloc_tile addr = %a0 : {ACC}
    scf.for %i = %c0 to %n step %c1 {{
      %row = arith.muli %i, %c16 : index
      {rows_of("p", "x", "f16", 16, 16, "%row")}
      {rows_of("q", "eye", "f16", 16, 16, "%c0")}
      pto.tload ins(%p : !pto.partition_tensor_view<16x16xf16>) outs(%m : {MAT})
      pto.tload ins(%q : !pto.partition_tensor_view<16x16xf16>) outs(%e : {MAT})
      {ALL}
      pto.tmov ins(%m : {MAT}) outs(%l : {LEFT})
      pto.tmov ins(%e : {MAT}) outs(%r : {RIGHT})
      {ALL}
      pto.tmatmul ins(%l, %r : {LEFT}, {RIGHT}) outs(%acc : {ACC})
      {ALL}
      pto.tpush_to_aiv(%acc : {ACC}) {{split = {split}}}
      {ALL}
    }}
    return
}}
func.func @k_aiv(%x: !pto.ptr<f16>, %eye: !pto.ptr<f16>, %out: !pto.ptr<f32>, %gm: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    {CONSTANTS}
    %n = arith.constant {count if pops is None else pops} : index
    %c16 = arith.constant 16 : index
    %buf = pto.reserve_buffer {{name = "ring", size = {1024 * slots}, location = #pto.address_space<vec>, auto = false, base = 0}} -> i32
    pto.aiv_initialize_pipe {pipe}
    {lane}
    scf.for %i = %c0 to %n step %c1 {{
      %row = arith.muli %i, %c16 : index
      %mine = arith.addi %row, %half : index
      %t = pto.tpop_from_aic {{split = {split}}} -> {half}
      {ALL}
      {keep}
      {ALL}
      {f"pto.tfree_from_aic {{split = {split}}}" if free else ""}
    }}
    return
}}
}}
"""


def data(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.integers(-8, 8, (16 * count, 16)).astype(np.float16)
    return x, np.eye(16, dtype=np.float16), np.zeros((16 * count, 16), np.float32), np.zeros(4096, np.float32)


@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("split", [0, 1, 2])
@pytest.mark.parametrize(("count", "slots"), [(1, 4), (9, 4), (5, 8)])
def test_products_arrive_in_order(arch: str, split: int, count: int, slots: int) -> None:
    x, eye, out, gm = data(count)
    result = run(cube_to_vector(arch, count, slots, split), x, eye, out, gm, sanitize="all")
    assert result.ok, result.diagnostics
    assert np.array_equal(out, x.astype(np.float32))


def odd_products(split: int) -> str:
    """Products of which 15 rows (columns) are valid, for two vector cores with 8 and 7 of them."""
    down = split == 3
    odd = ACC.replace("16x16xf32", f"16x16xf32, valid={'15x16' if down else '16x15'}")
    text = cube_to_vector("a3", 3, 2, 1 if down else 2)
    whole, part = "!pto.tile_buf<vec, {}xf32>".format("8x16" if down else "16x8"), "8x16" if down else "16x8"
    mine = f"!pto.tile_buf<vec, {part}xf32, valid=?x?>"
    changes = {
        f"pto.tpush_to_aiv(%acc : {ACC})": f"%odd = pto.alloc_tile addr = %a0 : {odd}\n      pto.tpush_to_aiv(%odd : {odd})",
        f"pto.tpop_from_aic {{split = {1 if down else 2}}} -> {whole}": f"""%less = arith.subi %c8, %lane : index
      %t = pto.tpop_from_aic(%{"less, %c16" if down else "c16, %less"}) {{split = 0}} -> {mine}""",
        f"pto.tstore ins(%t : {whole}) outs(%o : !pto.partition_tensor_view<{part}xf32>)":
            f"pto.tstore ins(%t : {mine}) outs(%o : !pto.partition_tensor_view<{'?x16' if down else '16x?'}xf32>)",
        f"sizes = [%o_r, %o_c] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<{part}xf32>":
            f"sizes = [%{'less, %o_c' if down else 'o_r, %less'}] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<{'?x16' if down else '16x?'}xf32>",
    }  # fmt: skip
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    text = text.replace("%t = %less", "%less")
    return text.replace("split = 0", f"split = {split}").replace(
        f"split = {1 if down else 2}", f"split = {split}"
    )


@pytest.mark.parametrize("split", [3, 4])
def test_uneven_shares_of_a_product(split: int) -> None:
    """Legal, and 8 and 7 rows (columns) come to the two vector cores; refused the other way round."""
    text = odd_products(split)
    assert pto.verify(pto.parse(text)) == []
    x, eye, out, gm = data(3)
    run(text, x, eye, out, gm, sanitize="all")
    want = x.astype(np.float32).reshape(3, 16, 16)
    want[(slice(None), 15) if split == 3 else (slice(None), slice(None), 15)] = 0
    assert (out.reshape(3, 16, 16) == want).all()
    kernel = pto.parse(odd_halves("a3", split))
    assert any("only for C2V" in d.message for d in pto.verify(kernel))


@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("split", [0, 1, 2])
def test_every_schedule_gives_the_same(arch: str, split: int) -> None:
    x, eye, _, _ = data(6)
    text = cube_to_vector(arch, 6, 4, split)
    for seed in some(range(25), 4):
        out, gm = np.zeros((96, 16), np.float32), np.zeros(4096, np.float32)
        result = run(text, x, eye, out, gm, schedule=seed)
        assert result.ok, (seed, result.diagnostics)
        assert np.array_equal(out, x.astype(np.float32)), seed


def test_a_ring_that_nobody_frees_gets_stuck() -> None:
    """On A5 only tfree gives a slot back: the fifth push waits for ever."""
    x, eye, out, gm = data(5)
    result = run(cube_to_vector("a5", 5, 4, 1, free=False), x, eye, out, gm)
    assert codes(result) == ["PTO-E2104"]
    (problem,) = result.diagnostics
    everything = problem.message + " ".join(note for note, _ in problem.notes)
    assert "a free slot" in everything and "all 4 slots" in everything
    assert "which PIPE_FIX of AIC would give after its own wait" in everything


def test_a_pop_without_a_push_gets_stuck() -> None:
    x, eye, out, gm = data(2)
    out = np.zeros((64, 16), np.float32)
    result = run(cube_to_vector("a5", 2, 4, 1, pops=3), x, eye, out, gm)
    assert codes(result) == ["PTO-E2104"]
    assert "entry 2" in result.diagnostics[0].message


def vector_to_cube(arch: str, count: int, split: int) -> str:
    """Each vector core pushes its half of `count` matrices; the cube core stores the whole ones."""
    rows, cols = PART[split]
    half = f"!pto.tile_buf<vec, {rows}x{cols}xf16>"
    where = "gm_slot_buffer = %gm : !pto.ptr<f16>, " if arch == "a3" else ""
    pipe = f"{{dir_mask = 2, slot_size = 512, slot_num = 4}} ({where}v2c_consumer_buf = %buf : i32)"
    row = "%mine" if split == 1 else "%row"
    col = "%half" if split == 2 else "%c0"
    return f"""module attributes {{pto.target_arch = "{arch}"}} {{
func.func @k_aic(%x: !pto.ptr<f16>, %out: !pto.ptr<f16>, %gm: !pto.ptr<f16>) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
    {CONSTANTS}
    %n = arith.constant {count} : index
    %c16 = arith.constant 16 : index
    %buf = pto.reserve_buffer {{name = "ring", size = 4096, location = #pto.address_space<mat>, auto = false, base = 0}} -> i32
    pto.aic_initialize_pipe {pipe}
    scf.for %i = %c0 to %n step %c1 {{
      %row = arith.muli %i, %c16 : index
      %t = pto.tpop_from_aiv {{split = {split}}} -> {MAT}
      {ALL}
      {rows_of("o", "out", "f16", 16, 16, "%row")}
      pto.tstore ins(%t : {MAT}) outs(%o : !pto.partition_tensor_view<16x16xf16>)
      {ALL}
      pto.tfree_from_aiv {{split = {split}}}
    }}
    return
}}
func.func @k_aiv(%x: !pto.ptr<f16>, %out: !pto.ptr<f16>, %gm: !pto.ptr<f16>) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    {CONSTANTS}
    %n = arith.constant {count} : index
    %c16 = arith.constant 16 : index
    %buf = pto.import_reserved_buffer {{name = "ring", peer_func = @k_aic}} -> i32
    pto.aiv_initialize_pipe {pipe}
    %s = pto.get_subblock_idx
    %lane = arith.index_cast %s : i64 to index
    %c8 = arith.constant 8 : index
    %half = arith.muli %lane, %c8 : index
    %a0 = arith.constant 0 : i64
    %t = pto.alloc_tile addr = %a0 : {half}
    scf.for %i = %c0 to %n step %c1 {{
      %row = arith.muli %i, %c16 : index
      %mine = arith.addi %row, %half : index
      {rows_of("p", "x", "f16", rows, cols, row, col)}
      pto.tload ins(%p : !pto.partition_tensor_view<{rows}x{cols}xf16>) outs(%t : {half})
      {ALL}
      pto.tpush_to_aic(%t : {half}) {{split = {split}}}
      {ALL}
    }}
    return
}}
}}
"""


@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("split", [0, 1])
def test_halves_of_the_vector_cores_meet_in_a_slot(arch: str, split: int) -> None:
    count = 7
    x = np.random.default_rng(4).integers(-99, 99, (16 * count, 16)).astype(np.float16)
    out, gm = np.zeros_like(x), np.zeros(4096, np.float16)
    text = vector_to_cube(arch, count, split)

    kernel = pto.kernel(
        pto.parse(text), check=False, engine="reference"
    )  # storing an L1 tile is a stand-in for using it
    result = kernel.run(x, out, gm, sanitize="all")
    assert result.ok, result.diagnostics
    assert np.array_equal(out, x)
    for seed in some(range(25), 4):
        out[:] = 0
        assert kernel.run(x, out, gm, schedule=seed).ok
        assert np.array_equal(out, x), seed


def odd_halves(arch: str, split: int) -> str:
    """15 rows or columns of which the first vector core has 8 and the second one 7."""
    down = split == 3
    rows, cols = (15, 16) if down else (16, 15)
    part = "8x16" if down else "16x8"
    type = f"!pto.tile_buf<vec, {part}xf16, valid=?x?>"
    whole = MAT.replace("16x16xf16", f"16x16xf16, valid={rows}x{cols}")
    where = "gm_slot_buffer = %gm : !pto.ptr<f16>, " if arch == "a3" else ""
    pipe = f"{{dir_mask = 2, slot_size = 512, slot_num = 4}} ({where}v2c_consumer_buf = %buf : i32)"
    r, c = ("%mine", "%c16") if down else ("%c16", "%mine")
    view = "pto.make_tensor_view %{}, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xf16>"
    window = "!pto.tensor_view<?x?xf16> -> !pto.partition_tensor_view"
    return f"""module attributes {{pto.target_arch = "{arch}"}} {{
func.func @k_aic(%x: !pto.ptr<f16>, %out: !pto.ptr<f16>, %gm: !pto.ptr<f16>) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
    {CONSTANTS}
    %c16 = arith.constant 16 : index
    %rows = arith.constant {rows} : index
    %cols = arith.constant {cols} : index
    %buf = pto.reserve_buffer {{name = "ring", size = 4096, location = #pto.address_space<mat>, auto = false, base = 0}} -> i32
    pto.aic_initialize_pipe {pipe}
    %t = pto.tpop_from_aiv {{split = {split}}} -> {whole}
    {ALL}
    %v = {view.format("out")}
    %o = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%rows, %cols] : {window}<{rows}x{cols}xf16>
    pto.tstore ins(%t : {whole}) outs(%o : !pto.partition_tensor_view<{rows}x{cols}xf16>)
    {ALL}
    pto.tfree_from_aiv {{split = {split}}}
    return
}}
func.func @k_aiv(%x: !pto.ptr<f16>, %out: !pto.ptr<f16>, %gm: !pto.ptr<f16>) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    {CONSTANTS}
    %c16 = arith.constant 16 : index
    %buf = pto.import_reserved_buffer {{name = "ring", peer_func = @k_aic}} -> i32
    pto.aiv_initialize_pipe {pipe}
    %s = pto.get_subblock_idx
    %lane = arith.index_cast %s : i64 to index
    %c8 = arith.constant 8 : index
    %mine = arith.subi %c8, %lane : index
    %start = arith.muli %lane, %c8 : index
    %a0 = arith.constant 0 : i64
    %t = pto.alloc_tile addr = %a0 valid_row = {r} valid_col = {c} : {type}
    %v = {view.format("x")}
    %p = pto.partition_view %v, offsets = [{"%start, %c0" if down else "%c0, %start"}], sizes = [{r}, {c}] : {window}<?x?xf16>
    pto.tload ins(%p : !pto.partition_tensor_view<?x?xf16>) outs(%t : {type})
    {ALL}
    pto.tpush_to_aic(%t : {type}) {{split = {split}}}
    {ALL}
    return
}}
}}
"""


@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("split", [3, 4])
def test_uneven_halves_meet_in_a_slot(arch: str, split: int) -> None:

    x = np.random.default_rng(5).integers(-99, 99, (16, 16)).astype(np.float16)
    kernel = pto.kernel(pto.parse(odd_halves(arch, split)), check=False, engine="reference")
    want = x.copy()
    want[(15, slice(None)) if split == 3 else (slice(None), 15)] = 0
    for seed in (None, *range(8)):
        out, gm = np.zeros_like(x), np.zeros(4096, np.float16)
        result = kernel.run(x, out, gm, schedule=seed)
        assert result.ok, result.diagnostics
        assert np.array_equal(out, want), seed


ENTRIES = f"""module attributes {{{{pto.target_arch = "a3"}}}} {{{{
func.func @k(%x: !pto.ptr<f32>, %out: !pto.ptr<f32>, %gm: !pto.ptr<f32>) {{{{
    {CONSTANTS}
    %n = arith.constant 9 : index
    %c16 = arith.constant 16 : index
    %buf = arith.constant 8192 : i32
    %pipe = pto.initialize_l2g2l_pipe {{{{dir_mask = 2, slot_size = 1024, slot_num = 4, flag_base = 0}}}} (%gm : !pto.ptr<f32>, %buf : i32) -> !pto.pipe
    %slot = pto.make_tensor_view %gm, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
    %a0 = arith.constant 0 : i64
    pto.section.vector {{{{
      %t = pto.alloc_tile addr = %a0 : !pto.tile_buf<vec, 16x16xf32>
      scf.for %i = %c0 to %n step %c1 {{{{
        %row = arith.muli %i, %c16 : index
        {rows_of("p", "x", "f32", 16, 16, "%row")}
        pto.tload ins(%p : !pto.partition_tensor_view<16x16xf32>) outs(%t : !pto.tile_buf<vec, 16x16xf32>)
        {ALL}
        pto.talloc(%slot, %pipe : !pto.tensor_view<16x16xf32>, !pto.pipe) {{{{split = 0}}}}
        pto.tstore ins(%t : !pto.tile_buf<vec, 16x16xf32>) outs(%slot : !pto.tensor_view<16x16xf32>)
        {ALL}
        pto.tpush(%slot, %pipe : !pto.tensor_view<16x16xf32>, !pto.pipe) {{{{split = 0}}}}
      }}}}
    }}}}
    pto.section.cube {{{{
      %m = pto.alloc_tile addr = %a0 : !pto.tile_buf<mat, 16x16xf32, blayout=col_major, slayout=row_major>
      scf.for %i = %c0 to %n step %c1 {{{{
        %row = arith.muli %i, %c16 : index
        pto.tpop(%slot, %pipe : !pto.tensor_view<16x16xf32>, !pto.pipe) {{{{split = 0}}}}
        pto.tload ins(%slot : !pto.tensor_view<16x16xf32>) outs(%m : !pto.tile_buf<mat, 16x16xf32, blayout=col_major, slayout=row_major>)
        {ALL}
        pto.tfree(%slot, %pipe : !pto.tensor_view<16x16xf32>, !pto.pipe) {{{{split = 0}}}}
        {rows_of("o", "out", "f32", 16, 16, "%row")}
        pto.tstore ins(%m : !pto.tile_buf<mat, 16x16xf32, blayout=col_major, slayout=row_major>) outs(%o : !pto.partition_tensor_view<16x16xf32>)
        {ALL}
      }}}}
    }}}}
    return
}}}}
}}}}
"""


def test_entries_as_views_are_slots_in_memory() -> None:

    x = np.random.default_rng(5).standard_normal((144, 16)).astype(np.float32)
    out, gm = np.zeros_like(x), np.zeros(1024, np.float32)
    kernel = pto.kernel(pto.parse(ENTRIES.format()), check=False, engine="reference")
    result = kernel.run(x, out, gm, subblocks=1, sanitize="all")
    assert result.ok, result.diagnostics
    assert np.array_equal(out, x)
    for seed in some(range(25), 4):
        out[:] = 0
        assert kernel.run(x, out, gm, subblocks=1, schedule=seed).ok
        assert np.array_equal(out, x), seed


def test_a_reserved_buffer_has_to_fit() -> None:
    text = program(
        """%b = pto.reserve_buffer {name = "r", size = 1099511627776, location = #pto.address_space<vec>, auto = true} -> i32""",
        attributes="attributes {pto.kernel_kind = #pto.kernel_kind<vector>}",
    )
    assert codes(run(text, np.zeros(1, np.int64))) == ["PTO-E2102"]


QUANTISED = {
    "F322F16": ("f16", None, lambda x: x),
    "F322BF16": ("bf16", None, lambda x: x),
    "QF322F16_PRE": ("f16", 0.5, lambda x: x * 0.5),
    "QF322BF16_PRE": ("bf16", 4.0, lambda x: x * 4),
    "QF322B8_PRE": ("i8", 8.0, lambda x: np.clip(x * 8, -128, 127)),
}


def quantised(mode: str, relu: bool, split: int) -> str:
    """Products that are quantised on their way; a vector tile of another type converts them back."""
    type, scale, _ = QUANTISED[mode]
    text = cube_to_vector("a5", 3, 4, split)
    at = text.index("pto.aic_initialize_pipe")
    pipe = text[at : text.index("\n", at)]
    handle = "%pipe = pto.initialize_l2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 4, flag_base = 0} (%buf : i32) -> !pto.pipe"
    text = text.replace(pipe, handle).replace(pipe.replace("aic", "aiv"), handle)
    word = f'%scale = arith.constant {scale or 1.0} : f32\n      pto.set_quant_scalar %scale {{out_type = "{type}"}} : f32\n      '
    more = ", reluPreMode = #pto<relu_pre_mode normal_relu>" if relu else ""
    text = text.replace(
        f"pto.tpush_to_aiv(%acc : {ACC}) {{split = {split}}}",
        f'{word}pto.tpush(%acc, %pipe : {ACC}, !pto.pipe) {{split = {split}}} {{quant_mode = "{mode}"{more}}}',
    )
    rows, cols = PART[split]
    part = f"!pto.tile_buf<vec, {rows}x{cols}xf32>"
    return text.replace(
        f"%t = pto.tpop_from_aic {{split = {split}}} -> {part}",
        f"%t = pto.declare_tile -> {part}\n      pto.tpop(%t, %pipe : {part}, !pto.pipe) {{split = {split}}}",
    ).replace(f"pto.tfree_from_aic {{split = {split}}}", f"pto.tfree(%pipe : !pto.pipe) {{split = {split}}}")


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("mode", QUANTISED)
def test_a_push_from_the_accumulator_may_quantise(mode: str, relu: bool) -> None:
    """The slot holds the quantised type."""
    x, eye, out, gm = data(3)
    text = quantised(mode, relu, 1)
    result = pto.kernel(pto.parse(text), check=False, engine="reference").run(x, eye, out, gm)
    assert result.ok, result.diagnostics
    want = QUANTISED[mode][2](x.astype(np.float32))
    assert np.array_equal(out, np.maximum(want, 0) if relu else want)


def without_synchronisation(text: str) -> str:
    """The program as a frontend writes it, its pipes left to the tools."""
    return "\n".join(line for line in text.split("\n") if line.strip() != ALL)


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_without_synchronisation_a_pop_holds_up_what_follows_it(arch: str) -> None:
    """The vector core comes to its pop long before the cube core has pushed."""
    x, eye, out, gm = data(3)
    text = without_synchronisation(cube_to_vector(arch, 3, 4, 1))
    # the vector half first in the file does not make it run later: both start together
    result = run(text, x, eye, out, gm)
    assert result.ok, result.diagnostics
    assert np.array_equal(out, x.astype(np.float32))


def test_without_synchronisation_the_cube_core_waits_for_what_it_pops() -> None:

    x = np.random.default_rng(4).integers(-99, 99, (48, 16)).astype(np.float16)
    out, gm = np.zeros_like(x), np.zeros(4096, np.float16)
    text = without_synchronisation(vector_to_cube("a3", 3, 1))
    assert pto.kernel(pto.parse(text), check=False, engine="reference").run(x, out, gm).ok
    assert np.array_equal(out, x)


def test_a_kernel_that_splits_nothing_runs_on_one_vector_core() -> None:
    """Without a split only the first lane has data; a kernel that never reads its lane has no second one."""

    text = cube_to_vector("a5", 2, 4, 0)
    asking = pto.kernel(pto.parse(text), engine="reference")
    assert asking.subblocks == 2
    silent = "\n".join(
        line
        for line in text.replace(
            "%first = arith.cmpi eq, %lane, %c0 : index", "%first = arith.constant true"
        ).split("\n")
        if "subblock" not in line
    ).replace("%lane = arith.index_cast %s : i64 to index", "%lane = arith.constant 0 : index")
    kernel = pto.kernel(pto.parse(silent), engine="reference")
    assert kernel.subblocks == 1
    x, eye, out, gm = data(2)
    assert kernel.run(x, eye, out, gm).ok
    assert np.array_equal(out, x.astype(np.float32))
    assert pto.kernel(pto.parse(cube_to_vector("a5", 2, 4, 1)), engine="reference").subblocks == 2


def test_slots_of_halves() -> None:
    """On chip, each of two vector cores has slots of its own: they hold its half of a tile."""
    path = Path(__file__).parents[2] / "examples" / "09_fifo_push_pop.pto"
    text = path.read_text(encoding="utf-8").replace("slot_size = 1024", "slot_size = 512")
    a = np.eye(16, dtype=np.float16)
    y = np.zeros((16, 16), np.float32)
    result = pto.kernel(pto.parse(text), engine="reference").run(a, a, y)
    assert result.ok, result.diagnostics
    assert np.allclose(y, np.exp(np.eye(16)), rtol=1e-5)
