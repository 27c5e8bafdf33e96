"""The four text forms: each is read, each is printed, and they convert into each other."""

from __future__ import annotations

import pytest
from tests.each import together

from pto.asm import FORMS, parse, to_text
from pto.diag import DiagnosticError
from pto.ir.core import constant_of

TILE = "!pto.tile_buf<vec, 16x64xf32>"
VIEW = "!pto.partition_tensor_view<16x64xf32>"

DPS = f"""\
func.func @k(%a: {TILE}, %b: {TILE}, %mem: {VIEW}) {{
  %d = pto.alloc_tile : {TILE}
  pto.tadd ins(%a, %b : {TILE}, {TILE}) outs(%d : {TILE})
  pto.tstore ins(%d : {TILE}) outs(%mem : {VIEW})
  return
}}
"""
SSA = f"""\
func.func @k(%a: {TILE}, %b: {TILE}, %mem: {VIEW}) {{
  %d = pto.tadd %a, %b : ({TILE}, {TILE}) -> {TILE}
  pto.tstore %d, %mem : ({TILE}, {VIEW}) -> ()
  return
}}
"""
ASM = f"""\
# a comment line
.func @k
.arg %a : {TILE}
.arg %b : {TILE}
.arg %mem : {VIEW}
%d = pto.alloc_tile : {TILE}
tadd %d, %a, %b : {TILE}
tstore %mem, %d : {VIEW}, {TILE}
.end
"""


def canonical(text: str) -> str:
    """The destination-style text without the module wrapper, which assembly always has."""
    module = parse(text)
    module.implicit = False
    return to_text(module)


def test_three_forms_mean_the_same_program() -> None:
    assert canonical(DPS) == canonical(SSA) == canonical(ASM)


@pytest.mark.parametrize(("form", "text"), [("pto", DPS), ("ssa", SSA), ("dps", DPS)])
def test_printing_gives_the_text_back(form: str, text: str) -> None:
    assert to_text(parse(DPS), form) == text


@together("start", [DPS, SSA, ASM])
@together("form", FORMS)
def test_every_form_converts_and_is_a_fixpoint(start: str, form: str) -> None:
    once = to_text(parse(start), form)
    assert to_text(parse(once), form) == once
    assert canonical(once) == canonical(start)


def test_ssa_keeps_outs_where_a_tile_is_written_twice() -> None:
    twice = DPS.replace(
        "  pto.tstore", f"  pto.tmul ins(%d, %b : {TILE}, {TILE}) outs(%d : {TILE})\n  pto.tstore"
    )
    shown = to_text(parse(twice), "ssa")
    assert "%d = pto.tadd %a, %b" in shown
    assert "pto.tmul ins(%d, %b" in shown
    assert canonical(shown) == canonical(twice)


def test_ssa_keeps_an_allocation_that_is_read_first() -> None:
    read_first = DPS.replace("  pto.tadd ins(%a, %b", "  pto.tadd ins(%a, %d")
    assert "pto.alloc_tile" in to_text(parse(read_first), "ssa")


def test_ssa_keeps_an_address() -> None:
    placed = DPS.replace(
        "  %d = pto.alloc_tile :", "  %at = arith.constant 64 : i64\n  %d = pto.alloc_tile addr = %at :"
    )
    shown = to_text(parse(placed), "ssa")
    assert "addr = %at" in shown and canonical(shown) == canonical(placed)


def test_immediates_become_constants_of_the_element_type() -> None:
    text = ".arg %s : !pto.tile<f32, 16, 16>\n.arg %d : !pto.tile<f32, 16, 16>\ntadds %d, %s, 0x3F800000\ntmuls %d, %d, 2\n"
    ops = [op for op in parse(text).walk() if op.name in ("pto.tadds", "pto.tmuls")]
    assert [constant_of(op.get("scalar")) for op in ops] == [1.0, 2.0]
    assert all(str(op.get("scalar").type) == "f32" for op in ops)  # type: ignore[union-attr]


def test_a_subscripted_view_becomes_a_window_of_the_tile() -> None:
    text = (
        ".arg %g : !pto.tensor_view<64x64xf32>\n.arg %r : index\n.arg %c : index\n"
        ".arg %t : !pto.tile<f32, 16, 16>\ntload %t, %g[%r, %c]\n"
    )
    (window,) = [op for op in parse(text).walk() if op.name == "pto.partition_view"]
    assert str(window.result.type) == "!pto.partition_tensor_view<16x16xf32>"
    assert [v.name for v in window.group("offsets")] == ["r", "c"]


def test_assembly_accepts_sources_first_for_stores() -> None:
    text = f".arg %m : {VIEW}\n.arg %t : {TILE}\ntstore %t, %m\n"
    (store,) = [op for op in parse(text).walk() if op.name == "pto.tstore"]
    assert store.get("src").name == "t" and store.get("dst").name == "m"  # type: ignore[union-attr]


def test_hash_attributes() -> None:
    mask = "!pto.tile_buf<vec, 16x32xui8>"
    text = f".arg %a : {TILE}\n.arg %d : {mask}\ntcmp %d, %a, %a : {mask}, {TILE}, {TILE} #cmp=gt\n"
    (compare,) = [op for op in parse(text).walk() if op.name == "pto.tcmp"]
    assert compare.attr("cmpMode") == "gt"


def test_too_few_operands_name_the_operands() -> None:
    with pytest.raises(DiagnosticError, match=r"tadd: takes 3 operands \(dst, src0, src1\), got 2"):
        parse(f".arg %a : {TILE}\ntadd %a, %a\n")


PROGRAM = """\
#map = affine_map<()[s0] -> (s0 * 4)>
!tile = !pto.tile_buf<vec, 16x64xf32>
module @m attributes {pto.target_arch = "a5", "odd key" = 1 : i32} {
  func.func private @helper(index) -> index
  func.func @k(%n: index {pto.name = "n"}, %p: !pto.ptr<f32>, %flag: i1) -> (index, i32) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    %c0 = arith.constant 0 : index loc("k.py":1:2)
    %c1 = arith.constant 1 : index
    %neg = arith.constant -1.5e-03 : f32
    %inf = arith.constant 0xFF800000 : f32
    %t = arith.constant true
    %dense = arith.constant dense<[1, 2, 3, 4]> : vector<4xi16>
    %sum:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0, %y = %c1) -> (index, index) {
      %z = arith.addi %x, %i overflow<nsw> : index
      scf.yield %z, %y : index, index
    }
    %r = scf.if %flag -> (index) {
      scf.yield %sum#0 : index
    } else {
      %q = call @helper(%sum#1) : (index) -> index
      scf.yield %q : index
    }
    %w = scf.while (%i = %c0) : (index) -> index {
      %go = arith.cmpi slt, %i, %n : index
      scf.condition(%go) %i : index
    } do {
    ^bb0(%i: index):
      %next = arith.addi %i, %c1 : index
      scf.yield %next : index
    }
    %s = scf.index_switch %r -> i32
    case 1 {
      %one = arith.constant 1 : i32
      scf.yield %one : i32
    }
    default {
      %two = arith.constant 2 : i32
      scf.yield %two : i32
    }
    %a = affine.apply #map()[%r]
    %tile = pto.alloc_tile : !tile
    pto.set_flag[#pto.pipe<PIPE_MTE2>, <PIPE_V>, "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", <EVENT_ID0>]
    "pto.tadd"(%tile, %tile, %tile) : (!tile, !tile, !tile) -> ()
    pto.section.vector {
      pto.tneg ins(%tile : !tile) outs(%tile : !tile)
    }
    cf.cond_br %flag, ^bb1(%a : index), ^bb2
  ^bb1(%v: index):
    cf.br ^bb2
  ^bb2:
    return %r, %s : index, i32
  }
}
"""


@pytest.mark.parametrize("form", FORMS)
def test_everything_round_trips(form: str) -> None:
    module = parse(PROGRAM)
    text = to_text(module, form)
    again = parse(text)
    assert to_text(again, form) == text
    assert to_text(again) == to_text(module)


def test_names_scopes_and_forward_references() -> None:
    text = """\
func.func @f(%c: i1) {
  cf.br ^bb1
^bb2:
  %y = arith.addi %x, %x : index
  return
^bb1:
  %x = arith.constant 4 : index
  cf.br ^bb2
}
"""
    module = parse(text)
    assert to_text(parse(to_text(module))) == to_text(module)
    shadow = "func.func @f(%n: index) {\n  scf.for %i = %n to %n step %n {\n  }\n  scf.for %i = %n to %n step %n {\n  }\n  return\n}\n"
    assert to_text(parse(shadow)) == shadow


@pytest.mark.parametrize("query", ["block_idx", "block_num", "subblock_idx", "subblock_num"])
def test_a_query_may_name_its_type(query: str) -> None:
    text = "func.func @f() {\n  %%x = pto.get_%s%s\n  return\n}\n"
    assert to_text(parse(text % (query, " : i64"))) == to_text(parse(text % (query, "")))


def test_operations_keep_their_source_range() -> None:
    module = parse(PROGRAM)
    for op in module.walk():
        assert op.loc is not None or op is module.op
        text = op.loc.source.text[op.loc.start : op.loc.end] if op.loc is not None else ""
        if op.name == "func.return":
            assert text == "return %r, %s : index, i32"
        elif op.name == "pto.section.vector":
            assert text.startswith("pto.section.vector {") and text.endswith("}")


def test_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown text form 'yaml'"):
        to_text(parse(DPS), "yaml")


def test_a_module_uses_nothing_from_outside() -> None:
    """In every form: definitions after a module are not visible in it."""
    text = """"builtin.module"() ({
  "func.func"() <{sym_name = "k", function_type = () -> ()}> ({
  ^bb0:
    "func.return"() : () -> ()
  }) : () -> ()
  %a = "arith.addi"(%at, %at) : (i64, i64) -> i64
}) : () -> ()
%at = "arith.constant"() <{value = 0 : i64}> : () -> i64
"""
    with pytest.raises(DiagnosticError, match="undefined value '%at'"):
        parse(text)
