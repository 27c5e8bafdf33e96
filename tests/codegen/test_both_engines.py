"""Forms with a spelling of their own: the C++ compiles with our headers and agrees with engine reference."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto.diag import DiagnosticError

from .shapes import HEAD, TILE, WINDOW, body, emit, in_order, window

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler"
)


def both(program: str, *arrays: np.ndarray[Any, Any], entry: str | None = None) -> list[np.ndarray[Any, Any]]:
    """Run a program on both engines; the arrays afterwards, which have to be the same."""
    ours = [a.copy() for a in arrays]
    theirs = [a.copy() for a in arrays]
    pto.kernel(pto.parse(program), entry, engine="cpp", check=False)(*ours)
    pto.kernel(pto.parse(program), entry, check=False, engine="reference")(*theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert bits(a) == bits(b), (a, b)
    return ours


def bits(array: np.ndarray[Any, Any]) -> bytes:
    """The bytes of an array; one NaN is as good as another."""
    floats = array.dtype.kind in "fV"
    return np.where(np.isnan(array), array.dtype.type(np.nan), array).tobytes() if floats else array.tobytes()


def refused(program: str, target: str, *words: str) -> None:
    with pytest.raises(DiagnosticError) as e:
        emit(program, target)
    assert {d.code for d in e.value.diagnostics} <= {"PTO-E1301", "PTO-E1302"}
    assert all(w in str(e.value) for w in words), str(e.value)


def square() -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).standard_normal((16, 16)).astype(np.float32)


# -- synchronization -----------------------------------------------------------------------------------------

DATA_TOKENS = f"""\
func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>) {{
{HEAD}
{window("in", "a")}
{window("out", "o")}
  %t = pto.alloc_tile : {TILE}
  pto.tload ins(%in : {WINDOW}) outs(%t : {TILE})
  pto.tsync ins(%t : {TILE})
  pto.tneg ins(%t : {TILE}) outs(%t : {TILE})
  pto.tsync ins(%t : {TILE})
  pto.tstore ins(%t : {TILE}) outs(%out : {WINDOW})
  return
}}
"""


@needs_compiler
def test_data_as_tokens_wait_for_every_pipe() -> None:
    """The call takes events; a tile that stands for what wrote it is waited for by a barrier."""
    in_order(emit(DATA_TOKENS), "TLOAD(%t, %);", "pipe_barrier(PIPE_ALL); // TSYNC(%t)", "TNEG(%t, %t);",
             "pipe_barrier(PIPE_ALL); // TSYNC(%t)", "TSTORE(")  # fmt: skip
    a = square()
    assert np.array_equal(both(DATA_TOKENS, a, np.zeros_like(a))[1], -a)


def test_the_pipe_of_an_operation_class() -> None:
    program = "func.func @k() {\n  pto.tsync {op = #pto.op<TLOAD>}\n  return\n}\n"
    for target in ("a3", "a5"):
        assert "TSYNC<pto::Op::TLOAD>();" in emit(program, target) or "TSYNC<Op::TLOAD>();" in emit(
            program, target
        )


# -- accesses in a layout of their own -----------------------------------------------------------------------


OWN_IDS = """\
module attributes {pto.target_arch = "a5"} {
func.func @k(%out: !pto.ptr<i64>) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %i1 = arith.constant 1 : i64
  pto.section.cube {
    pto.store_scalar %i1, %out[%c0] : !pto.ptr<i64>, i64
    pto.set_intra_block #pto.pipe<PIPE_S>, 3
    pto.set_intra_block #pto.pipe<PIPE_S>, 19
    pto.wait_intra_core #pto.pipe<PIPE_S>, 4
    pto.wait_intra_core #pto.pipe<PIPE_S>, 20
    %sum = pto.load_scalar %out[%c1] : !pto.ptr<i64> -> i64
    pto.store_scalar %sum, %out[%c3] : !pto.ptr<i64>, i64
  }
  pto.section.vector {
    %own = pto.get_subblock_idx
    %first = arith.cmpi slt, %own, %i1 : i64
    %at = scf.if %first -> (index) {
      pto.wait_intra_core #pto.pipe<PIPE_S>, 3
      scf.yield %c1 : index
    } else {
      pto.wait_intra_core #pto.pipe<PIPE_S>, 19
      %c2 = arith.constant 2 : index
      scf.yield %c2 : index
    }
    %v = pto.load_scalar %out[%c0] : !pto.ptr<i64> -> i64
    pto.store_scalar %v, %out[%at] : !pto.ptr<i64>, i64
    scf.if %first {
      pto.set_intra_block #pto.pipe<PIPE_S>, 4
    } else {
      pto.set_intra_block #pto.pipe<PIPE_S>, 20
    }
  }
  return
}
}
"""


@needs_compiler
def test_the_second_vector_core_may_name_its_semaphores_as_the_cube_core_does() -> None:
    (found,) = both(OWN_IDS, np.zeros(4, np.int64))
    assert found.tolist() == [1, 1, 1, 1]


def other_layout(given: str) -> str:
    tile = "!pto.tile_buf<vec, 8x32xf32, blayout=col_major>"
    part = "!pto.partition_tensor_view<2x8x16xf32>"
    view = """pto.make_tensor_view %{p}, shape = [%c2, %c8, %c16], strides = [%c128, %c1, %c8] {{layout = #pto.layout<{l}>}} : !pto.tensor_view<2x8x16xf32>
  %{n} = pto.partition_view %{n}_v, offsets = [%c0, %c0, %c0], sizes = [%c2, %c8, %c16] : !pto.tensor_view<2x8x16xf32> -> """
    return f"""\
func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>) {{
{HEAD}
  %in_v = {view.format(p="a", n="in", l="dn")}{part}
  %out_v = {view.format(p="o", n="out", l="dn")}{part}
  %t = pto.alloc_tile : {tile}
  pto.tload ins(%in : {part}) outs(%t : {tile}){given}
  pto.tsync ins(%t : {tile})
  pto.tstore ins(%t : {tile}) outs(%out : {part}){given}
  return
}}
"""


def test_the_layout_of_an_access_is_that_of_its_tensor() -> None:
    plain = emit(other_layout(""))
    assert plain == emit(other_layout(" {layout = #pto.layout<dn>}"))
    assert plain.count("pto::Layout::DN> v") == 2 and "Layout::ND" not in plain
    two = f"""\
func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>) {{
{HEAD}
  %v = pto.make_tensor_view %a, shape = [%c16, %c1], strides = [%c1, %c1] {{layout = #pto.layout<dn>}} : !pto.tensor_view<16x1xf32>
  %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c1] : !pto.tensor_view<16x1xf32> -> !pto.partition_tensor_view<16x1xf32>
  %s = pto.alloc_tile : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>
  %t = pto.alloc_tile : !pto.tile_buf<vec, 16x8xf32, valid=16x1>
  pto.tload ins(%w : !pto.partition_tensor_view<16x1xf32>) outs(%s : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>)
  pto.tload ins(%w : !pto.partition_tensor_view<16x1xf32>) outs(%t : !pto.tile_buf<vec, 16x8xf32, valid=16x1>) {{layout = #pto.layout<nd>}}
  return
}}
"""
    text = emit(two)
    found = in_order(
        text, "pto::Layout::DN> %dn = ", "TLOAD(%s, %dn);", "pto::Layout::ND> %nd = ", "TLOAD(%t, %nd);"
    )
    assert found["dn"] != found["nd"]


@needs_compiler
def test_an_access_in_a_layout_of_its_own_does_the_same() -> None:
    a = np.arange(256, dtype=np.float32)
    out = both(other_layout(" {layout = #pto.layout<dn>}"), a, np.zeros_like(a))[1]
    assert np.array_equal(out, a)


# -- FIFOs ---------------------------------------------------------------------------------------------------

ACC = "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>"
MAT = "!pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>"
LEFT = "!pto.tile_buf<left, 16x16xf16, blayout={0}, slayout=row_major>"
RIGHT = "!pto.tile_buf<right, 16x16xf16, slayout=col_major>"
ALL = "pto.barrier #pto.pipe<PIPE_ALL>"


def pushed(arch: str, attrs: str, split: int = 0, tensor: bool = False) -> str:
    """A product that goes from the cube core to the first vector core."""
    left = LEFT.format("row_major" if arch == "a3" else "col_major")
    in_gm = arch == "a3" or tensor
    where = "%slots : !pto.tensor_view<32x64xf32>" if tensor else "%gm : !pto.ptr<f32>"
    init = (
        f"pto.initialize_l2g2l_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 8, flag_base = 0}} ({where}, %buf : i32)"
        if in_gm
        else "pto.initialize_l2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 8, flag_base = 0} (%buf : i32)"
    )
    slots = (
        """\
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %slots = pto.make_tensor_view %gm, shape = [%c32, %c64], strides = [%c64, %c1] : !pto.tensor_view<32x64xf32>"""
        if tensor
        else ""
    )
    f16 = "!pto.partition_tensor_view<16x16xf16>"
    half = """\
  %{n}_v = pto.make_tensor_view %{p}, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf16>
  %{n} = pto.partition_view %{n}_v, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf16> -> """
    return f"""\
module attributes {{pto.target_arch = "{arch}"}} {{
func.func @k_aic(%x: !pto.ptr<f16>, %e: !pto.ptr<f16>, %o: !pto.ptr<f32>, %gm: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
{HEAD}
{slots}
  %buf = arith.constant 0 : i32
  %p = {init} -> !pto.pipe
  %a0 = arith.constant 0 : i64
  %a1 = arith.constant 1024 : i64
  %m = pto.alloc_tile addr = %a0 : {MAT}
  %n = pto.alloc_tile addr = %a1 : {MAT}
  %l = pto.alloc_tile addr = %a0 : {left}
  %r = pto.alloc_tile addr = %a0 : {RIGHT}
  %acc = pto.alloc_tile addr = %a0 : {ACC}
{half.format(n="xw", p="x")}{f16}
{half.format(n="ew", p="e")}{f16}
  pto.tload ins(%xw : {f16}) outs(%m : {MAT})
  pto.tload ins(%ew : {f16}) outs(%n : {MAT})
  {ALL}
  pto.tmov ins(%m : {MAT}) outs(%l : {left})
  pto.tmov ins(%n : {MAT}) outs(%r : {RIGHT})
  {ALL}
  pto.tmatmul ins(%l, %r : {left}, {RIGHT}) outs(%acc : {ACC})
  {ALL}
  pto.tpush(%acc, %p : {ACC}, !pto.pipe) {{split = {split}}}{attrs}
  return
}}
func.func @k_aiv(%x: !pto.ptr<f16>, %e: !pto.ptr<f16>, %o: !pto.ptr<f32>, %gm: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
{HEAD}
{slots}
  %buf = arith.constant 0 : i32
  %p = {init} -> !pto.pipe
  %t = pto.declare_tile -> {TILE}
  pto.tpop(%t, %p : {TILE}, !pto.pipe) {{split = {split}}}
  {ALL}
{window("out", "o")}
  %s = pto.get_subblock_idx
  %zero = arith.constant 0 : i64
  %first = arith.cmpi eq, %s, %zero : i64
  scf.if %first {{
    pto.tstore ins(%t : {TILE}) outs(%out : {WINDOW})
  }}
  {ALL}
  pto.tfree(%p : !pto.pipe) {{split = {split}}}
  return
}}
}}
"""


def product() -> list[np.ndarray[Any, Any]]:
    x = np.random.default_rng(3).integers(-40, 40, (16, 16)).astype(np.float16) / np.float16(8)
    return [x, np.eye(16, dtype=np.float16), np.zeros((16, 16), np.float32), np.zeros(2048, np.float32)]


@needs_compiler
@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_a_push_through_the_fix_pipe(arch: str) -> None:
    attrs = ' {quant_mode = "F322F16", reluPreMode = #pto<relu_pre_mode normal_relu>}'
    text = emit(pushed(arch, attrs), arch)
    config = "FixpipeParams<LayoutMode_t::NZ2ND, QuantMode_t::F322F16, ReluPreMode::NormalRelu, STPhase::Unspecified>"
    assert f", {config}>(" in text
    arrays = product()
    assert np.array_equal(both(pushed(arch, attrs), *arrays)[2], np.maximum(arrays[0], 0).astype(np.float32))


def test_a_split_push_through_the_fix_pipe_has_no_spelling() -> None:
    attrs = " {reluPreMode = #pto<relu_pre_mode normal_relu>}"
    refused(pushed("a5", attrs, split=1), "a5", "no C++ spelling of a split push with 'reluPreMode'")


@needs_compiler
def test_slots_that_are_a_tensor() -> None:
    """The handle takes a pointer: that of the tensor."""
    text = emit(pushed("a3", "", tensor=True), "a3")
    assert "GlobalTensor" not in body(text, "k_aic").partition("TPipe")[0]
    in_order(body(text, "k_aic"), "k_aic(__gm__ half* %, __gm__ half* %, __gm__ float* %, __gm__ float* %gm)",
             "TPipe<0, Direction::DIR_C2V, 1024, 8, 8, true>(%gm, ")  # fmt: skip
    arrays = product()
    assert np.array_equal(both(pushed("a3", "", tensor=True), *arrays)[2], arrays[0].astype(np.float32))


@needs_compiler
def test_blocks_have_slots_of_their_own() -> None:
    """A pair that takes its block as an argument leaves it to the launch to deal out the slots."""
    shared = (Path(__file__).parents[1] / "sanitize" / "programs" / "blocks_share_slots.bad.pto").read_text()
    text = shared.replace(
        "%all: !pto.ptr<f32>)", "%all: !pto.ptr<f32>, %__pypto_spmd_block_idx: i32)"
    ).replace("%block = pto.get_block_idx", "%block = arith.extsi %__pypto_spmd_block_idx : i32 to i64")
    own = pto.kernel(pto.parse(text.replace("%all, %offset", "%all, %zero")), engine="reference")
    assert own.dealt == {3}
    x = np.random.default_rng(3).integers(-4, 4, (16, 16)).astype(np.float16) / np.float16(8)
    results = []
    for k in (own, pto.kernel(own.module, engine="cpp")):
        y, slots = np.zeros((2, 16, 16), np.float32), np.zeros(4096, np.float32)
        options = {"sanitize": ["race"]} if k is own else {}
        k(x, np.eye(16, dtype=np.float16), y, slots, blocks=2, **options)
        assert np.array_equal(slots[:256], x.ravel()) and np.array_equal(slots[2048:2304], x.ravel())
        results.append(y)
    assert np.array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0][1], np.exp(x.astype(np.float32)), rtol=1e-6)
    # Programs that deal them out themselves, with the argument or with an instruction, and those of one block.
    one = text.replace("__pypto_spmd_block_idx", "turn").replace("%all, %offset", "%all, %zero")
    for other in (shared, shared.replace("%all, %offset", "%all, %zero"), text, one):
        assert not pto.kernel(pto.parse(other), engine="reference").dealt


# -- copies with loops ---------------------------------------------------------------------------------------

LOOPS = """\
func.func @k(%a: !pto.ptr<f32, gm>, %o: !pto.ptr<f32, gm>) {
  %at = arith.constant 0 : i64
  %ub = pto.castptr %at : i64 -> !pto.ptr<f32, ub>
  %z = arith.constant 0 : i64
  %len = arith.constant 64 : i64
  %n2 = arith.constant 2 : i64
  %n3 = arith.constant 3 : i64
  %s128 = arith.constant 128 : i64
  %s256 = arith.constant 256 : i64
  %s512 = arith.constant 512 : i64
  %s64 = arith.constant 64 : i64
  %s192 = arith.constant 192 : i64
  %s1024 = arith.constant 1024 : i64
  pto.mte_gm_ub %a, %ub, %z, %len nburst(%n2, %s128, %s64) loop(%n3, %s256, %s128) loop(%n2, %s1024, %s512)
      : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64, loop i64, i64, i64, loop i64, i64, i64
  pto.barrier #pto.pipe<PIPE_ALL>
  pto.mte_ub_gm %ub, %o, %len nburst(%n2, %s64, %s64) loop(%n3, %s128, %s192)
      : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64, loop i64, i64, i64
  return
}
"""


@needs_compiler
def test_copies_with_loops() -> None:
    """Two loops are in registers, whose counts are put back; loops behind them stand around the copy."""
    text = emit(LOOPS, "a5")
    in_order(text, "set_loop1_stride_outtoub((uint64_t) %s128 << 40 | (uint64_t) %s256);",
             "set_loop2_stride_outtoub(", "set_loop_size_outtoub((uint64_t) %n2 << 21 | (uint64_t) %n3);",
             "copy_gm_to_ubuf_align_v2(%ub, %a, 0, %", "set_loop_size_outtoub(1 << 21 | 1);",
             "set_loop1_stride_ubtoout((uint64_t) %s128 << 40 | (uint64_t) %s192);",
             "set_loop_size_ubtoout(1 << 21 | (uint64_t) %n3);", "copy_ubuf_to_gm_align_v2(")  # fmt: skip
    third = LOOPS.replace(
        "loop(%n2, %s1024, %s512)", "loop(%n2, %s1024, %s512) loop(%n2, %s64, %s64)"
    ).replace(
        "loop i64, i64, i64, loop i64, i64, i64", "loop i64, i64, i64, loop i64, i64, i64, loop i64, i64, i64"
    )
    in_order(emit(third, "a5"), "set_loop_size_outtoub(", "for (uint64_t %i = 0; %i < (uint64_t) %n2; %i += 1) {",
             "copy_gm_to_ubuf_align_v2((__ubuf__ float*) ((__ubuf__ uint8_t*) % + (%i * %)), (__gm__ float*)")  # fmt: skip
    a = np.arange(1024, dtype=np.float32)
    module = f'module attributes {{pto.target_arch = "a5"}} {{\n{third}}}\n'
    out = both(module, a, np.zeros(256, np.float32))[1]
    assert out[:16].tolist() == list(range(16))


#: Grouped copies between others whose loops are in registers.
BESIDE = LOOPS.replace("  pto.mte_gm_ub", "  pto.set_loop1_stride_outtoub %s256, %s128 : i64, i64\n"
                       "  pto.set_loop_size_outtoub %n3, %z1 : i64, i64\n  pto.mte_gm_ub", 1).replace(
    "  %len =", "  %z1 = arith.constant 1 : i64\n  %no = arith.constant false\n  %len ="
).replace("  pto.barrier", "  pto.barrier #pto.pipe<PIPE_ALL>\n"
          "  pto.copy_gm_to_ubuf %a, %ub, %z, %z1, %len, %z, %z, %no, %z, %s64, %s64 : !pto.ptr<f32, gm>, "
          "!pto.ptr<f32, ub>, i64, i64, i64, i64, i64, i1, i64, i64, i64\n  pto.barrier", 1)  # fmt: skip


@needs_compiler
def test_copies_beside_those_under_registers() -> None:
    text = emit(BESIDE, "a5")
    in_order(text, "uint64_t %kept = 1 << 21 | 1 /* outtoub */;", "%kept = (uint64_t) %one << 21 | (uint64_t) %n3;",
             "set_loop_size_outtoub(%kept);", "set_loop_size_outtoub(1 << 21 | 1);", "for (uint64_t",
             "set_loop_size_outtoub(%kept);", "copy_gm_to_ubuf_align_v2(")  # fmt: skip
    program = f'module attributes {{pto.target_arch = "a5"}} {{\n{BESIDE}}}\n'
    out = both(program, np.arange(1024, dtype=np.float32), np.zeros(256, np.float32))[1]
    assert out[48:64].tolist() == list(range(64, 80))


@needs_compiler
def test_rows_are_padded() -> None:
    """With a constant and with a number of the run, also before the burst."""
    program = LOOPS.replace("loop(%n2, %s1024, %s512)", "loop(%n2, %s1024, %s512) pad(%f, %z, %z)").replace(
        "loop i64, i64, i64, loop i64, i64, i64", "loop i64, i64, i64, loop i64, i64, i64, pad f32, i64, i64"
    )
    program = program.replace("nburst(%n2, %s128, %s64) loop(%n3", "nburst(%n2, %s64, %s64) loop(%n3")
    program = program.replace("arith.constant 64 : i64\n  %n2", "arith.constant 40 : i64\n  %n2")
    at_run_time = program.replace("%o: !pto.ptr<f32, gm>)", "%o: !pto.ptr<f32, gm>, %f: f32)")
    constant = program.replace("  %len = ", "  %f = arith.constant -1.5 : f32\n  %len = ")
    assert "set_mov_pad_val(0xbfc00000);" in emit(constant, "a5")
    a = np.arange(1024, dtype=np.float32)
    for text, more in ((constant, ()), (at_run_time, (np.float32(-1.5),))):
        module = f'module attributes {{pto.target_arch = "a5"}} {{\n{text}}}\n'.replace(
            "mte_ub_gm %ub, %o, %len", "mte_ub_gm %ub, %o, %s64"
        )
        out = both(module, a, np.zeros(256, np.float32), *more)[1]
        assert out[:10].tolist() == list(range(10)) and (out[10:16] == -1.5).all()


# -- memrefs as tiles ----------------------------------------------------------------------------------------

ON_CHIP = "memref<16x16xf32, #pto.address_space<vec>>"
APART = "memref<16x8xf32, strided<[16, 1]>, #pto.address_space<vec>>"
MEMREFS = f"""\
func.func private @negate(%m: {APART}) {{
  pto.tneg ins(%m : {APART}) outs(%m : {APART})
  return
}}
func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>) attributes {{pto.kernel}} {{
{HEAD}
{window("in", "a")}
{window("out", "o")}
  %at = arith.constant 0 : i64
  %t = pto.alloc_tile addr = %at : {TILE}
  pto.tload ins(%in : {WINDOW}) outs(%t : {TILE})
  {ALL}
  %p = pto.tile_buf_addr %t : {TILE} -> {ON_CHIP}
  %m = memref.subview %p[0, 0] [16, 8] [1, 1] : {ON_CHIP} to {APART}
  func.call @negate(%m) : ({APART}) -> ()
  {ALL}
  pto.tstore ins(%t : {TILE}) outs(%out : {WINDOW})
  return
}}
"""


@needs_compiler
def test_a_memref_that_stands_for_a_tile_becomes_one() -> None:
    text = emit(MEMREFS)
    in_order(body(text, "negate"), "negate(__ubuf__ float* %m)",
             "Tile<TileType::Vec, float, 16, 16, BLayout::RowMajor, 16, 8, SLayout::NoneBox, ...> %t;",
             "TASSIGN(%t, reinterpret_cast<uint64_t>(%m));", "TNEG(%t, %t);")  # fmt: skip
    a = square()
    want = a.copy()
    want[:, :8] *= -1
    assert np.array_equal(both(MEMREFS, a, np.zeros_like(a))[1], want)


def test_a_memref_whose_lines_no_tile_has_is_refused() -> None:
    odd = APART.replace("[16, 1]", "[64, 2]")
    program = f"func.func @k(%m: {odd}) {{\n  pto.tneg ins(%m : {odd}) outs(%m : {odd})\n  return\n}}\n"
    refused(program, "a3", "as a C++ tile", "pto.bind_tile")


# -- entries, views that are handed on, forms without words --------------------------------------------------


@pytest.mark.parametrize("mark", ["pto.entry", "pto.kernel", "hacc.entry", "pto.aicore"])
def test_every_mark_of_an_entry(mark: str) -> None:
    helper = "func.func @h(%p: !pto.ptr<f32>) {\n  return\n}\n"
    text = emit(f"{helper}func.func @k(%p: !pto.ptr<f32>) attributes {{{mark}}} {{\n  return\n}}\n")
    assert "__global__ AICORE void k(" in text and "\nAICORE void h(" in text
    with pytest.raises(DiagnosticError, match="PTO entry functions must return void"):
        value = "%c = arith.constant 1 : i32\n  return %c : i32"
        emit(f"{helper}func.func @k() -> i32 attributes {{{mark}}} {{\n  {value}\n}}\n")
    with pytest.raises(DiagnosticError, match=f"`{mark}` is only valid on function definitions"):
        emit(f"{helper}func.func private @k(!pto.ptr<f32>) attributes {{{mark}}}\n")


def test_a_view_whose_layout_its_type_cannot_say_is_not_handed_on() -> None:
    view = "!pto.tensor_view<2x8x16xf32>"
    program = f"""\
func.func private @use(%v: {view}) {{
  return
}}
func.func @k(%a: !pto.ptr<f32>) attributes {{pto.entry}} {{
{HEAD}
  %v = pto.make_tensor_view %a, shape = [%c2, %c8, %c16], strides = [%c128, %c1, %c8] {{layout = #pto.layout<dn>}} : {view}
  func.call @use(%v) : ({view}) -> ()
  return
}}
"""
    refused(program, "a3", "cannot pass on a view of layout DN")
    assert "GlobalTensor<" in emit(program.replace("%c1, %c8]", "%c16, %c1]").replace("<dn>", "<nd>"))


@pytest.mark.parametrize("name", ["tput", "tget"])
def test_a_transfer_without_a_staging_tile_has_no_spelling(name: str) -> None:
    program = f"""\
func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>) {{
{HEAD}
{window("in", "a")}
{window("out", "o")}
  pto.{name} %out, %in : ({WINDOW}, {WINDOW})
  return
}}
"""
    refused(program, "a3", f"{name}: no C++ spelling without 'ping'")


@pytest.mark.parametrize("mode", ["upward", "downward", "toward_zero", "to_nearest_away"])
def test_a_cast_rounds_to_nearest_even_only(mode: str) -> None:
    program = f"""\
func.func @k(%o: !pto.ptr<f16>, %x: f32) {{
  %c0 = arith.constant 0 : index
  %h = arith.truncf %x {mode} : f32 to f16
  pto.store_scalar %h, %o[%c0] : !pto.ptr<f16>, f16
  return
}}
"""
    refused(program, "a3", "arith.truncf: no C++ spelling with 'roundingmode'")
    assert "(half) v2" in emit(program.replace(f"%x {mode}", "%x"))


def test_paddings_of_a_load_have_no_spelling() -> None:
    program = DATA_TOKENS.replace(
        "outs(%t : !pto.tile_buf<vec, 16x16xf32>)\n  pto.tsync",
        "outs(%t : !pto.tile_buf<vec, 16x16xf32>) left_padding_num = %c1 : index\n  pto.tsync",
        1,
    )
    refused(program, "a3", "tload: no C++ spelling with 'left_padding_num'")


def test_boxed_exponents_of_groups_along_rows_have_no_spelling() -> None:
    src, dst, flat = "vec, 64x64xf32", "vec, 64x64xi8", "vec, 1x128x"
    t = {"s": src, "d": dst, "e": flat + "ui8", "m": flat + "f32", "g": flat + "f32", "z": flat + "ui8"}
    allocated = "\n".join(f"  %{n} = pto.alloc_tile : !pto.tile_buf<{x}>" for n, x in t.items())
    types = ", ".join(f"!pto.tile_buf<{t[n]}>" for n in "demgz")
    program = f"""\
func.func @k() {{
{allocated}
  pto.tquant ins(%s : !pto.tile_buf<{src}>) outs(%d, %e, %m, %g, %z : {types}) {{quant_type = #pto<quant_type MXFP8>, grp_axis = 0 : i32}}
  return
}}
"""
    refused(program, "a5", "tquant: no C++ spelling with 'grp_axis'")


# -- scalars -------------------------------------------------------------------------------------------------


@needs_compiler
@pytest.mark.parametrize("n", [-1, 0, 3])
def test_a_negative_bound_is_no_iteration(n: int) -> None:
    program = """\
func.func @k(%p: !pto.ptr<i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n32 = pto.load_scalar %p[%c1] : !pto.ptr<i32> -> i32
  %n = arith.index_cast %n32 : i32 to index
  func.call @count(%p, %n) : (!pto.ptr<i32>, index) -> ()
  return
}
func.func private @count(%p: !pto.ptr<i32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 {
    %x = pto.load_scalar %p[%c0] : !pto.ptr<i32> -> i32
    %y = arith.addi %x, %one : i32
    pto.store_scalar %y, %p[%c0] : !pto.ptr<i32>, i32
  }
  return
}
"""
    (out,) = both(program, np.array([0, n], np.int32), entry="k")
    assert out[0] == max(n, 0)


@needs_compiler
def test_an_offset_that_is_read_as_unsigned() -> None:
    """Row 60 + 200, where a signed byte would be -56 and the row 4."""
    view, tile, part = (
        "!pto.tensor_view<?x8xf32>",
        "!pto.tile_buf<vec, 1x8xf32>",
        "!pto.partition_tensor_view<1x8xf32>",
    )
    program = f"""\
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c60 = arith.constant 60 : index
  %c300 = arith.constant 300 : index
  %byte = arith.constant -56 : i8
  %wide = arith.index_castui %byte : i8 to index
  %row = arith.addi %wide, %c60 : index
  %vx = pto.make_tensor_view %x, shape = [%c300, %c8], strides = [%c8, %c1] : {view}
  %vy = pto.make_tensor_view %y, shape = [%c1, %c8], strides = [%c8, %c1] : {view}
  %px = pto.partition_view %vx, offsets = [%row, %c0], sizes = [%c1, %c8] : {view} -> {part}
  %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c1, %c8] : {view} -> {part}
  %t = pto.alloc_tile : {tile}
  pto.tload ins(%px : {part}) outs(%t : {tile})
  pto.tstore ins(%t : {tile}) outs(%py : {part})
  return
}}
"""
    x = np.arange(300 * 8, dtype=np.float32).reshape(300, 8)
    _, y = both(program, x, np.zeros((1, 8), np.float32))
    assert np.array_equal(y[0], x[260])


@needs_compiler
def test_numbers_of_one_bit_and_zeros_with_a_sign() -> None:
    """i1 as -1 in signed types, the kept bits of wider numbers, and -0.0 of every type."""
    lines: list[str] = []
    stored: list[tuple[str, str]] = []
    for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        x, y = (f"%x{i}_{a}{b}" for i in range(2))
        lines += [f"{x} = arith.trunci %n{a} : i32 to i1", f"{y} = arith.trunci %n{b} : i32 to i1"]
        for op in ("maxsi", "minsi", "maxui", "minui", "addi", "muli"):
            lines.append(f"%{op}{a}{b} = arith.{op} {x}, {y} : i1")
            stored.append((f"%{op}{a}{b}", "i1"))
        lines.append(f"%sum{a}{b}, %over{a}{b} = arith.addui_extended {x}, {y} : i1, i1")
        lines.append(f"%low{a}{b}, %high{a}{b} = arith.mulsi_extended {x}, {y} : i1")
        stored += [(f"%{name}{a}{b}", "i1") for name in ("sum", "over", "low", "high")]
    lines += [
        "%two = arith.index_cast %n2 : i32 to index",
        "%cast = arith.index_castui %two : index to i1",
        "%part = arith.fptoui %half : f32 to i1",
        "%whole = arith.fptosi %minus : f32 to i1",
    ]
    stored += [("%cast", "i1"), ("%part", "i1"), ("%whole", "i1")]
    lines += [f"%k{i} = arith.constant {i} : index" for i in range(len(stored) + 4)]
    for i, (name, _) in enumerate(stored):
        lines += [f"%w{i} = arith.extui {name} : i1 to i32"]
        lines += [f"pto.store_scalar %w{i}, %p[%k{i}] : !pto.ptr<i32>, i32"]
    for i, type in enumerate(("f32", "f16", "bf16")):
        bits = f"i{type[-2:]}"
        lines += [f"%z{i} = arith.constant -0.0 : {type}", f"%b{i} = arith.bitcast %z{i} : {type} to {bits}"]
        if bits != "i32":
            lines += [f"%e{i} = arith.extui %b{i} : {bits} to i32"]
        value = f"%b{i}" if bits == "i32" else f"%e{i}"
        lines += [f"pto.store_scalar {value}, %p[%k{len(stored) + i}] : !pto.ptr<i32>, i32"]
    constants = [f"%n{i} = arith.constant {i} : i32" for i in range(3)]
    constants += ["%half = arith.constant 0.5 : f32", "%minus = arith.constant -1.0 : f32"]
    body = "\n  ".join([*constants, *lines])
    (out,) = both(
        f"func.func @k(%p: !pto.ptr<i32>) {{\n  {body}\n  return\n}}\n", np.zeros(len(stored) + 3, np.int32)
    )
    assert [hex(n & 0xFFFFFFFF) for n in out[-3:].tolist()] == ["0x80000000", "0x8000", "0x8000"]


#: Of x, and of x and y.
UNARY = ("sqrt absf floor ceil round roundeven trunc rsqrt exp exp2 log log2 tanh sin cos erf").split()
BINARY = ("math.copysign", "arith.remf", "math.powf")


@needs_compiler
def test_functions_of_scalars() -> None:
    """Functions of the C library called by emitted C++ have the bits of the reference engine."""
    types = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
    rng, count = np.random.default_rng(5), 40
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.5,
        -1.75,
        0.007297515869140625,
        0.2093505859375,
        300.0,
        88.75,
        np.inf,
        np.nan,
    ]
    values = np.concatenate([edges, rng.normal(size=count - len(edges) - 4) * 4, rng.normal(size=4) * 1e4])
    wide = len(UNARY) + len(BINARY) + 1
    lines, arrays = [], []
    for type, dtype in types.items():
        arrays += [values.astype(dtype), np.zeros(count * wide, dtype)]
        ptr = f"!pto.ptr<{type}>"
        made = [f"math.{name} %x_{type} : {type}" for name in UNARY]
        made += [f"{name} %x_{type}, %y_{type} : {type}" for name in BINARY]
        made += [f"math.fma %x_{type}, %y_{type}, %x_{type} : {type}"]
        lines += [f"%x_{type} = pto.load_scalar %in_{type}[%i] : {ptr} -> {type}"]
        lines += [f"%y_{type} = pto.load_scalar %in_{type}[%j] : {ptr} -> {type}"]
        for k, line in enumerate(made):
            lines += [f"%r{k}_{type} = {line}", f"%to{k}_{type} = arith.addi %base, %c{k} : index"]
            lines += [f"pto.store_scalar %r{k}_{type}, %out_{type}[%to{k}_{type}] : {ptr}, {type}"]
    constants = "\n  ".join(f"%c{k} = arith.constant {k} : index" for k in range(wide))
    text = "\n    ".join(lines)
    (*_, last) = both(
        f"""\
func.func @k({", ".join(f"%in_{t}: !pto.ptr<{t}>, %out_{t}: !pto.ptr<{t}>" for t in types)}) {{
  {constants}
  %count = arith.constant {count} : index
  %last = arith.constant {count - 1} : index
  %wide = arith.constant {wide} : index
  scf.for %i = %c0 to %count step %c1 {{
    %j = arith.subi %last, %i : index
    %base = arith.muli %i, %wide : index
    {text}
  }}
  return
}}
""",
        *arrays,
    )
    assert last[4 * wide : 4 * wide + 7].tolist() == [2.5**0.5, 2.5, 2, 3, 3, 2, 2]


def test_constants_of_bf16_are_rounded_once() -> None:
    """Also below the normal numbers, where they have fewer bits."""
    for number in (0.1, -0.0, 1e-39, 4.7e-41, 1.3775e-40, 3.5e38, -1.0):
        text = emit(
            f"func.func @k(%o: !pto.ptr<bf16>) {{\n  %c0 = arith.constant 0 : index\n"
            f"  %x = arith.constant {number!r} : bf16\n"
            f"  pto.store_scalar %x, %o[%c0] : !pto.ptr<bf16>, bf16\n  return\n}}\n"
        )
        literal = re.findall(r"const bfloat16_t v\d+ = (.*)f;", text)[0]
        with np.errstate(over="ignore"):
            want = np.array(number).astype(ml_dtypes.bfloat16)
            got = np.float32(float(literal))
        assert got.astype(ml_dtypes.bfloat16).tobytes() == want.tobytes()
        assert np.isinf(got) or got == want.astype(np.float32)


NARROW = f"""\
func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>) {{
{HEAD}
{window("in", "a")}
{window("out", "o")}
  %t = pto.alloc_tile : {TILE}
  pto.tload ins(%in : {WINDOW}) outs(%t : {TILE})
  pto.barrier #pto.pipe<PIPE_ALL>
  %part = pto.subview %t[%c1, %c2] sizes [8, 4] : {TILE} -> !pto.tile_buf<vec, 8x4xf32>
  pto.tadd ins(%part, %part : !pto.tile_buf<vec, 8x4xf32>, !pto.tile_buf<vec, 8x4xf32>) outs(%part : !pto.tile_buf<vec, 8x4xf32>)
  %bits = pto.treshape %t : {TILE} -> !pto.tile_buf<vec, 16x16xi32>
  pto.tadd ins(%bits, %bits : !pto.tile_buf<vec, 16x16xi32>, !pto.tile_buf<vec, 16x16xi32>) outs(%bits : !pto.tile_buf<vec, 16x16xi32>)
  pto.barrier #pto.pipe<PIPE_ALL>
  pto.tstore ins(%t : {TILE}) outs(%out : {WINDOW})
  return
}}
"""


@needs_compiler
def test_a_window_narrower_than_a_line_and_floats_seen_as_integers() -> None:
    """The lines of a window are those of its tile; a reshape requires the same bytes, not the same class."""
    given = square()
    assert not pto.verify(pto.parse(NARROW), "a5")
    _, found = both(NARROW, given, np.zeros_like(given))
    given[1:9, 2:6] *= 2
    assert (found.view(np.int32) == given.view(np.int32) * 2).all()


IN_PLACE = f"""\
func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<ui8>) {{
{HEAD}
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : i64
  %limit = arith.constant 0.0 : f32
{window("in", "a")}
  %bytes = pto.make_tensor_view %o, shape = [%c16, %c32], strides = [%c32, %c1] : !pto.tensor_view<16x32xui8>
  %out = pto.partition_view %bytes, offsets = [%c0, %c0], sizes = [%c16, %c32] : !pto.tensor_view<16x32xui8> -> !pto.partition_tensor_view<16x32xui8>
  %t = pto.alloc_tile addr = %zero : {TILE}
  %m = pto.alloc_tile addr = %zero : !pto.tile_buf<vec, 16x32xui8>
  pto.tload ins(%in : {WINDOW}) outs(%t : {TILE})
  pto.barrier #pto.pipe<PIPE_ALL>
  pto.tcmps ins(%t, %limit {{cmpMode = #pto<cmp gt>}} : {TILE}, f32) outs(%m : !pto.tile_buf<vec, 16x32xui8>)
  pto.barrier #pto.pipe<PIPE_ALL>
  pto.tstore ins(%m : !pto.tile_buf<vec, 16x32xui8>) outs(%out : !pto.partition_tensor_view<16x32xui8>)
  return
}}
"""


@needs_compiler
def test_a_comparison_where_its_source_lies() -> None:
    given = square()
    _, found = both(IN_PLACE, given, np.full((16, 32), 255, np.uint8))
    assert (np.unpackbits(found[:, :2], axis=1, bitorder="little") == (given > 0)).all() and not found[
        :, 2:
    ].any()


def products() -> str:
    """Two products into one accumulator, of which the second has 8 rows and 5 columns only."""
    mat = "!pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>"
    left, right, acc = (
        f"!pto.tile_buf<{loc}, 16x16x{elem}, valid=?x?, blayout={outer}_major, slayout={inner}_major{fractal}>"
        for loc, elem, outer, inner, fractal in (
            ("left", "f16", "row", "row", ""), ("right", "f16", "row", "col", ""), ("acc", "f32", "col", "row", ", fractal=1024"),
        )
    )  # fmt: skip
    half, single = (f"!pto.partition_tensor_view<16x16x{elem}>" for elem in ("f16", "f32"))
    lines = [
        f"func.func @k(%a: {half}, %b: {half}, %o: {single}, %rows: index, %cols: index) attributes {{pto.entry}} {{",
        "%z = arith.constant 0 : i64", "%behind = arith.constant 4096 : i64", "%all = arith.constant 16 : index",
        f"%m = pto.alloc_tile addr = %z : {mat}", f"%n = pto.alloc_tile addr = %behind : {mat}",
        f"%l = pto.alloc_tile addr = %z valid_row = %all valid_col = %all : {left}",
        f"%r = pto.alloc_tile addr = %z valid_row = %all valid_col = %all : {right}",
        f"%some = pto.alloc_tile addr = %z valid_row = %rows valid_col = %all : {left}",
        f"%few = pto.alloc_tile addr = %z valid_row = %all valid_col = %cols : {right}",
        f"%c = pto.alloc_tile addr = %z valid_row = %all valid_col = %all : {acc}",
        f"pto.tload ins(%a : {half}) outs(%m : {mat})", f"pto.tload ins(%b : {half}) outs(%n : {mat})",
        f"pto.tmov ins(%m : {mat}) outs(%l : {left})", f"pto.tmov ins(%n : {mat}) outs(%r : {right})",
        f"pto.tmatmul ins(%l, %r : {left}, {right}) outs(%c : {acc})",
        f"pto.tmatmul.acc ins(%c, %some, %few : {acc}, {left}, {right}) outs(%c : {acc})",
        f"pto.tstore ins(%c : {acc}) outs(%o : {single})", "return", "}",
    ]  # fmt: skip
    text = "\n".join(
        line if line.startswith("%") else f"{line}\npto.barrier <PIPE_ALL>" for line in lines[1:-2]
    )
    return f"{lines[0]}\n{text}\nreturn\n}}\n"


@needs_compiler
def test_a_product_that_is_smaller_than_the_accumulator_keeps_the_rest() -> None:
    """In a run operands alone say how large it is; one accumulator serves products of several sizes."""
    a, b = (np.random.default_rng(s).integers(-4, 5, (16, 16)).astype(np.float16) for s in (1, 2))
    once = a.astype(np.float32) @ b.astype(np.float32)
    want = once.copy()
    want[:8, :5] *= 2
    for engine in ("cpp", "reference"):
        found = np.zeros((16, 16), np.float32)
        pto.kernel(pto.parse(products()), engine=engine, target="a3")(a, b, found, 8, 5)
        assert (found == want).all(), engine


EXPANDED = """\
func.func @k(%a: !pto.partition_tensor_view<1x16xf32>, %o: !pto.partition_tensor_view<8x16xf32>, %n: index) attributes {pto.entry} {
  %z = arith.constant 0 : i64
  %behind = arith.constant 64 : i64
  %one = arith.constant 1 : index
  %all = pto.alloc_tile addr = %z : !pto.tile_buf<vec, 1x16xf32>
  %row = pto.alloc_tile addr = %z valid_row = %one valid_col = %n : !pto.tile_buf<vec, 1x16xf32, valid=?x?>
  %t = pto.alloc_tile addr = %behind : !pto.tile_buf<vec, 8x16xf32>
  pto.tload ins(%a : !pto.partition_tensor_view<1x16xf32>) outs(%all : !pto.tile_buf<vec, 1x16xf32>)
  pto.barrier <PIPE_ALL>
  pto.tcolexpand ins(%row : !pto.tile_buf<vec, 1x16xf32, valid=?x?>) outs(%t : !pto.tile_buf<vec, 8x16xf32>)
  pto.barrier <PIPE_ALL>
  pto.tstore ins(%t : !pto.tile_buf<vec, 8x16xf32>) outs(%o : !pto.partition_tensor_view<8x16xf32>)
  return
}
"""


@needs_compiler
def test_a_row_is_expanded_as_wide_as_its_destination() -> None:
    """Kernels from compilers rely on it: the elements after the valid region are expanded, too."""
    row = np.arange(16, dtype=np.float32)[None]
    for engine in ("cpp", "reference"):
        found = np.zeros((8, 16), np.float32)
        pto.kernel(pto.parse(EXPANDED), engine=engine, target="a3")(row, found, 5)
        assert (found == row).all(), engine
