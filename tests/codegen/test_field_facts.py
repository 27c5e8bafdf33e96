"""Output and errors of PTOAS for small programs, one fact per test; variables may have any names."""

from __future__ import annotations

import re

import pytest

from pto.diag import DiagnosticError

from .shapes import body, emit, in_order


def tiles(instruction: str, **types: str) -> str:
    """A function with one instruction; `types` are the tiles it names."""
    made = "\n".join(f"  %{n} = pto.alloc_tile : !pto.tile_buf<{t}>" for n, t in types.items())
    for name, type in types.items():
        instruction = re.sub(rf"<{name}>", f"!pto.tile_buf<{type}>", instruction)
    return (
        "func.func @k() {\n  %c0 = arith.constant 0 : index\n  %f = arith.constant 0.5 : f32\n"
        f"{made}\n  {instruction}\n  return\n}}\n"
    )


def one(op: str, ins: str, outs: str, attrs: str = "", **types: str) -> str:
    """`ins` and `outs` are names of tiles, `c0` or `f`."""
    scalar = {"c0": "index", "f": "f32"}

    def listed(names: str) -> str:
        words = names.split()
        return ", ".join(f"%{w}" for w in words) + " : " + ", ".join(scalar.get(w, f"<{w}>") for w in words)

    return tiles(f"pto.{op} ins({listed(ins)}) outs({listed(outs)}){attrs}", **types)


F32 = "vec, 16x64xf32"
COLUMN = "vec, 16x8xi32, valid=16x1"
INDEX_ROW = "vec, 1x64xi32"


@pytest.mark.parametrize(("target", "program", "call"), [
    ("a3", one("taxpy", "s f", "d", s=F32, d=F32), "TAXPY(%d, %s, %f);"),
    ("a5", one("taxpy", "s f", "d", s=F32, d=F32), "TAXPY(%d, %s, %f);"),
    ("a3", one("tcolargmax", "s t", "d", s=F32, t=F32, d=INDEX_ROW), "TCOLARGMAX(%d, %s, %t);"),
    ("a5", one("tcolargmin", "s t", "d", s=F32, t=F32, d=INDEX_ROW), "TCOLARGMIN(%d, %s, %t);"),
    ("a3", one("trowargmax", "s t", "d", s=F32, t=F32, d=COLUMN), "TROWARGMAX(%d, %s, %t);"),
    ("a5", one("trowargmin", "s t", "d", s=F32, t=F32, d=COLUMN), "TROWARGMIN(%d, %s, %t);"),
    ("a5", one("tpack", "s", "d", s="vec, 16x64xui32", d="vec, 16x64xui16"), "TPACK(%d, %s);"),
    ("a5", one("tpartmul", "a b", "d", a=F32, b=F32, d=F32), "TPARTMUL(%d, %a, %b);"),
    ("a3", one("tsort32", "s i", "d", s="vec, 1x32xf16", i="vec, 1x32xui32", d="vec, 1x128xf16"), "TSORT32(%d, %s, %i);"),
    ("a5", one("tget_scale_addr", "s", "d", s="left, 16x64xf8E4M3FN, blayout=col_major, slayout=row_major",
               d="scaling, 16x64xf16, slayout=row_major"), "TGET_SCALE_ADDR(%d, %s);"),
    ("a5", one("textract", "s c0 c0", "d", s=F32, d="vec, 16x32xf32"), "TEXTRACT(%d, %s, %z, %z);"),
    ("a5", one("tinsert", "s c0 c0", "d", s="acc, 32x32xf32, blayout=col_major, slayout=row_major, fractal=1024",
               d="mat, 32x32xf32, blayout=col_major, slayout=row_major"), "TINSERT(%d, %s, %z, %z);"),
])  # fmt: skip
def test_calls(target: str, program: str, call: str) -> None:
    in_order(body(emit(program, target)), call)


@pytest.mark.parametrize("form", ["", ".acc", ".bias"])
@pytest.mark.parametrize("family", ["tmatmul.mx", "tgemv.mx"])
def test_scaled_products_have_one_name(family: str, form: str) -> None:
    """The accumulating and the biased form are overloads."""
    from pto import isa
    from pto.codegen import cpp
    from pto.isa.profiles import PROFILES
    from pto.witness.programs import build, first_plan

    row = isa.row(family + form)
    assert row is not None
    text = cpp.emit(build(first_plan(row, "a5")), PROFILES["a5"])
    call = family.upper().replace(".", "_")
    assert f"{call}(" in text and f"{call}_ACC" not in text and f"{call}_BIAS" not in text


def test_a_prefetch_names_a_tensor_and_a_tile() -> None:
    view = "!pto.partition_tensor_view<16x64xf32>"
    program = f"""\
func.func @k(%p: !pto.ptr<f32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %v = pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<16x64xf32>
  %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<16x64xf32> -> {view}
  %t = pto.alloc_tile : !pto.tile_buf<{F32}>
  pto.tprefetch ins(%w : {view}) outs(%t : !pto.tile_buf<{F32}>)
  return
}}
"""
    in_order(emit(program), "GlobalTensor<float, ... %g = ", "TPREFETCH(%, %g);")


def test_no_function_is_an_entry_where_several_are_defined_and_none_is_marked() -> None:
    text = emit(
        "func.func private @helper() {\n  return\n}\n"
        "func.func @kernel() {\n  func.call @helper() : () -> ()\n  return\n}\n"
    )
    assert (
        "__global__" not in text
        and "\nAICORE void kernel(" in text
        and "\nstatic AICORE void helper(" in text
    )


def test_flags_are_inserted_between_tiles_placed_by_hand() -> None:
    view = "!pto.partition_tensor_view<16x64xf32>"
    windows = "".join(
        f"  %{n}v = pto.make_tensor_view %{n}, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<16x64xf32>\n"
        f"  %{n}w = pto.partition_view %{n}v, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<16x64xf32> -> {view}\n"
        for n in "ab"
    )
    program = f"""\
func.func @k(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %at = arith.constant 4096 : i64
{windows}  %t = pto.alloc_tile addr = %at : !pto.tile_buf<{F32}>
  pto.tload ins(%aw : {view}) outs(%t : !pto.tile_buf<{F32}>)
  pto.tstore ins(%t : !pto.tile_buf<{F32}>) outs(%bw : {view})
  return
}}
"""
    in_order(emit(program, "a5", insert_sync=True), "TLOAD(%t, %);", "set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);",
             "wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);", "TSTORE(%, %t);")  # fmt: skip


def test_a_move_into_the_scaling_buffer_runs_on_mte1() -> None:
    mat, fb = "mat, 32x64xf16, slayout=col_major", "scaling, 16x16xf16, slayout=row_major"
    view = "!pto.partition_tensor_view<32x64xf16>"
    program = f"""\
func.func @k(%p: !pto.ptr<f16>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %v = pto.make_tensor_view %p, shape = [%c32, %c64], strides = [%c1, %c32] : !pto.tensor_view<32x64xf16>
  %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c32, %c64] : !pto.tensor_view<32x64xf16> -> {view}
  %m = pto.alloc_tile : !pto.tile_buf<{mat}>
  %s = pto.alloc_tile : !pto.tile_buf<{fb}>
  pto.tload ins(%w : {view}) outs(%m : !pto.tile_buf<{mat}>)
  pto.textract ins(%m, %c0, %c0 : !pto.tile_buf<{mat}>, index, index) outs(%s : !pto.tile_buf<{fb}>)
  return
}}
"""
    text = emit(program, "a5", insert_sync=True)
    in_order(
        text,
        "set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);",
        "wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);",
        "TEXTRACT(",
    )
    assert "PIPE_MTE2, PIPE_V," not in text


# -- refusals ------------------------------------------------------------------------------------------------

NZ = "blayout=col_major, slayout=row_major"
ACC = f"acc, 32x32xf32, {NZ}, fractal=1024"
COLUMN_F32 = "vec, 16x8xf32, valid=16x1"


@pytest.mark.parametrize(("target", "program", "message"), [
    ("a3", one("tcvt", "s", "d", s=F32, d="vec, 16x32xf16"), "expects src and dst to have compatible shapes"),
    ("a3", one("tcvt", "s", "d", s=F32, d="vec, 16x64xf16, valid=16x32"), "expects src and dst to have the same valid_shape"),
    ("a5", one("textract", "s c0 c0", "d", s="vec, 16x64xf32, blayout=col_major", d="vec, 16x32xf32, blayout=col_major"),
     "expects A5 vec->vec textract src/dst to use ND layout (blayout=row_major, slayout=none_box)"),
    ("a5", one("tget_scale_addr", "s", "d", s="left, 16x64xf8E4M3FN, blayout=col_major, slayout=row_major", d="vec, 16x64xf16"),
     "expects dst to be in the scaling"),
    ("a3", one("thistogram", "s i", "d", s="vec, 8x32xui16", i="vec, 32x1xui8, valid=8x1, blayout=col_major", d="vec, 8x256xui32"),
     "only supported on A5"),
    ("a3", one("tinsert", "s c0 c0", "d", s=ACC, d=f"mat, 32x32xi8, {NZ}"),
     "expects A2/A3 tinsert element types to be src=f32, dst=f16/bf16"),
    ("a5", one("tinsert", "s c0 c0", "d", s=f"mat, 32x32xf16, {NZ}", d="vec, 32x32xf16"),
     "expects A5 tinsert to use a supported src/dst loc pair: acc->mat, vec->mat, or vec->vec"),
    ("a3", one("tquant", "s p", "d", " {quant_type = #pto<quant_type INT8_ASYM>}", s=F32, p=COLUMN_F32, d="vec, 16x64xui8"),
     "INT8_ASYM quantization requires an offset operand"),
    ("a3", one("tquant", "s p o", "d", " {quant_type = #pto<quant_type INT8_SYM>}", s=F32, p=COLUMN_F32, o=COLUMN_F32, d="vec, 16x64xi8"),
     "INT8_SYM quantization must not have an offset operand"),
    ("a3", one("tquant", "s p", "d", " {quant_type = #pto<quant_type INT8_SYM>}", s=F32, p=COLUMN_F32, d="vec, 16x64xui8"),
     "expects dst element type i8 for INT8_SYM quantization"),
    ("a3", one("tquant", "s p o", "d", " {quant_type = #pto<quant_type INT8_ASYM>}", s=F32, p=COLUMN_F32, o=COLUMN_F32, d="vec, 16x64xi8"),
     "expects dst element type ui8 for INT8_ASYM quantization"),
    ("a3", one("tsel", "m a b t", "d", m="vec, 16x32xui8", a="vec, 16x64xi8", b="vec, 16x64xi8", t="vec, 1x32xui8", d="vec, 16x64xi8"),
     "expects A2/A3 tsel src0, src1, and dst element type to be i16/i32/f16/f32"),
])  # fmt: skip
def test_refusals(target: str, program: str, message: str) -> None:
    with pytest.raises(DiagnosticError) as e:
        emit(program, target)
    assert any(message in d.message for d in e.value.diagnostics), str(e.value)


def test_a_compared_gather_of_integers_compares_for_equality_only() -> None:
    program = tiles(
        "%n = arith.constant 1 : i32\n"
        "  pto.tgather ins(%s, %n, %t : <s>, i32, <t>) outs(%d, %e : <d>, <e>) {cmpMode = #pto<cmp gt>}",
        s="vec, 16x64xi32", t="vec, 16x64xui8", d="vec, 16x64xi32", e="vec, 1x16xi32",
    )  # fmt: skip
    with pytest.raises(DiagnosticError) as e:
        emit(program, "a3")
    wanted = "expects A2/A3 compare-form tgather src element type to be f16/f32, or i32 when cmpMode=eq"
    assert wanted in str(e.value)


def test_a_store_moves_as_many_elements_as_the_tile_has() -> None:
    view = "!pto.partition_tensor_view<16x32xf32>"
    program = f"""\
func.func @k(%w: {view}) {{
  %t = pto.alloc_tile : !pto.tile_buf<{F32}>
  pto.tstore ins(%t : !pto.tile_buf<{F32}>) outs(%w : {view})
  return
}}
"""
    with pytest.raises(DiagnosticError, match="expects dst static element count"):
        emit(program)


# -- programs of the field's tests that no target can run ----------------------------------------------------


@pytest.mark.parametrize(("target", "program", "code", "legal"), [
    # a column of one half is 2 bytes long: the Tile does not compile with any header
    ("a3", one("tneg", "s", "d", s="vec, 1x16xf16, blayout=col_major", d="vec, 1x16xf16, blayout=col_major"), "SA-0006",
     ("1x16xf16, ", "16x16xf16, valid=1x16, ")),
    ("a5", one("thistogram", "s i", "d", s="vec, 8x32xui16", i="vec, 8x1xui8, blayout=col_major", d="vec, 8x256xui32"),
     "SA-0006", ("vec, 8x", "vec, 32x")),
    # the buffer of scale words holds 2 KiB, and a tile of them has one row
    ("a3", one("textract_fp", "s p c0 c0", "d", s=ACC, p="scaling, 32x32xf32, slayout=row_major", d=f"mat, 32x32xi8, {NZ}"),
     "SA-0352", ("32x32xf32, slayout=row_major", "1x32xui64")),
    ("a3", one("tinsert_fp", "s p c0 c0", "d", s=ACC, p="scaling, 32x32xf32, slayout=row_major", d=f"mat, 32x32xi8, {NZ}"),
     "SA-0352", ("32x32xf32, slayout=row_major", "1x32xui64")),
])  # fmt: skip
def test_a_tile_no_buffer_can_hold_is_refused(
    target: str, program: str, code: str, legal: tuple[str, str]
) -> None:
    with pytest.raises(DiagnosticError) as e:
        emit(program, target)
    assert code in {d.code for d in e.value.diagnostics}
    if "tneg" not in program:  # element-wise instructions want rows
        assert "AICORE void k(" in emit(program.replace(*legal), target)


def test_a_view_that_is_both_keeps_the_layout_its_author_gave() -> None:
    tile, view = (
        "!pto.tile_buf<vec, 16x16xf16, valid=1x16, blayout=col_major>",
        "!pto.partition_tensor_view<1x16xf16>",
    )
    program = f"""\
func.func @k(%p: !pto.ptr<f16>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %v = pto.make_tensor_view %p, shape = [%c1, %c16], strides = [%c1, %c1] {{layout = #pto.layout<dn>}} : !pto.tensor_view<?x?xf16>
  %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c16] : !pto.tensor_view<?x?xf16> -> {view}
  %t = pto.alloc_tile : {tile}
  pto.tload ins(%w : {view}) outs(%t : {tile})
  return
}}
"""
    assert "pto::Layout::DN" in emit(program)


@pytest.mark.parametrize(("instruction", "message"), [
    ("%e = pto.tput_async(%g, %g, %s : {0}, {0}, !pto.async_session) -> !pto.async_event",
     "expects dst to be a static flat contiguous logical 1D GM memref"),
    ("%e = pto.tget_async(%g, %g, %s : {0}, {0}, !pto.async_session) -> !pto.async_event",
     "expects dst to be a static flat contiguous logical 1D GM memref"),
])  # fmt: skip
def test_asynchronous_transfers_move_lines(instruction: str, message: str) -> None:
    type = "memref<16x64xf32, strided<[128, 1]>, #pto.address_space<gm>>"
    program = (
        f"func.func @k(%g: {type}, %s: !pto.async_session) {{\n  {instruction.format(type)}\n  return\n}}\n"
    )
    with pytest.raises(DiagnosticError) as e:
        emit(program)
    assert message in str(e.value)


def test_extents_of_a_popped_tile_need_a_type_that_is_open() -> None:
    tile = "!pto.tile_buf<vec, 16x16xf32>"
    program = f"""\
func.func @k() attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  %c8 = arith.constant 8 : index
  %buf = pto.reserve_buffer {{name = "ring", size = 8192, location = #pto.address_space<vec>, auto = true}} -> i32
  pto.aiv_initialize_pipe {{dir_mask = 1, slot_size = 1024}} (c2v_consumer_buf = %buf : i32, v2c_consumer_buf = %buf : i32)
  %t = pto.tpop_from_aic(%c8, %c8) {{split = 0}} -> {tile}
  pto.tfree_from_aic {{split = 0}}
  return
}}
"""
    with pytest.raises(DiagnosticError) as e:
        emit(program, "a5")
    assert "expects tile result to have dynamic validShape (?, ?) when valid_row/valid_col operands" in str(
        e.value
    )
