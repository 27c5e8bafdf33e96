"""`--strict-v0`: programs that the PTOAS reader does not accept are refused, with all locations at once."""

from __future__ import annotations

import pytest
from tests.each import together

import pto
from pto.asm import parse

T = "!pto.tile_buf<vec, 16x16xf32>"

REFUSED = {
    "v0 cannot encode an address": f"%t = pto.alloc_tile addr = %a : {T}",
    "v0 has no number for it": "%0 = arith.divsi %n, %n : index",
    "v0 expects 0 results": "%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (index) {\n  scf.yield %x : index\n}",
    "v0 expects 2 operands, got 3": f"pto.tcvt ins(%v, %v : {T}, {T}) outs(%v : {T})",
    "v0 expects 3 operands, got 2": f"pto.tcolsum ins(%v : {T}) outs(%v : {T})",
    "no predicate 'ult'": "%0 = arith.cmpi ult, %n, %n : index",
    "v0 has no constants of this type": "%0 = arith.constant dense<1> : tensor<2xi32>",
    "#pto.sync_op_type": "pto.record_event [#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]",
    "the reader of PTOAS lacks the operation": f"pto.tstore_fp ins(%v, %v : {T}, {T}) outs(%p : !pto.partition_tensor_view<16x16xf32>)",
}  # fmt: skip

HEAD = f"func.func @f(%a: i64, %n: index, %v: {T}, %p: !pto.partition_tensor_view<16x16xf32>) {{\n"


@together("why", REFUSED)
def test_refused(why: str) -> None:
    module = parse(f"{HEAD}{REFUSED[why]}\nreturn\n}}")
    with pytest.raises(pto.DiagnosticError) as caught:
        pto.to_bytecode(module, strict=True)
    found = caught.value.diagnostics
    assert [d.code for d in found] == ["PTO-E1216"]
    assert why in found[0].message
    assert found[0].span is not None and found[0].span.place[0] == 2
    pto.from_bytecode(pto.to_bytecode(module))


def test_e1216_all_at_once() -> None:
    body = "\n".join(REFUSED.values())
    with pytest.raises(pto.DiagnosticError) as caught:
        pto.to_bytecode(
            parse(
                f"{HEAD}{body.replace('%0', '%q').replace('%q = arith.cmpi', '%z = arith.cmpi').replace('%q = arith.constant', '%y = arith.constant')}\nreturn\n}}"
            ),
            strict=True,
        )
    assert len(caught.value.diagnostics) == len(REFUSED)


@together(
    ("text", "why"),
    [
        ("func.func @f() -> i32 {\n%0 = arith.constant 1 : i32\nreturn %0 : i32\n}", "func.return: v0 expects 0 operands"),
        ("module {\nmodule @a {\n}\n}", "only functions at module level"),
        ("func.func @f() {\ncf.br ^b\n^b:\nreturn\n}", "cf.br: v0 has no number for it"),
        ("func.func @f(%c: i1) {\n%x = scf.if %c -> (i1) {\nscf.yield %c : i1\n} else {\nscf.yield %c : i1\n}\nreturn\n}", "scf.if: v0 expects 0 results"),
        ("func.func @f() {\nscf.yield %x : i32\n^b:\n%x = arith.constant 1 : i32\nreturn\n}", "which is defined later"),
    ],
)  # fmt: skip
def test_structure_is_refused(text: str, why: str) -> None:
    with pytest.raises(pto.DiagnosticError, match=why):
        pto.to_bytecode(parse(text), strict=True)


def test_strict_files_hold_no_generic_operation() -> None:
    text = f"{HEAD}pto.tadd ins(%v, %v : {T}, {T}) outs(%v : {T})\nscf.for %i = %n to %n step %n {{\n}}\nreturn\n}}"
    module = parse(text)
    assert pto.to_bytecode(module, strict=True) == pto.to_bytecode(module)
    assert b"\xff\xff" not in pto.to_bytecode(module)
