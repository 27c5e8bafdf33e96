"""Spellings of newer PTOAS tools for entries with another name in the table: accepted, and printed in our
spelling.
"""

from __future__ import annotations

import pytest
from tests.each import together

from pto.asm import parse, to_text
from pto.verifier import verify

T = "!pto.tile_buf<vec, 16x64xf32>"
N = "!pto.tile_buf<vec, 16x64xi32>"
VIEW = "!pto.partition_tensor_view<16x64xf32>"

#: (theirs, ours, column)
SPELLINGS = [
    (f"pto.mgather ins(%v, %i : {VIEW}, {N}) outs(%b : {T}) {{coalesce = #pto<coalesce elem>}}",
     f'pto.mgather ins(%v, %i : {VIEW}, {N}) outs(%b : {T}) {{coalesce = "elem"}}', "a5"),
    (f"pto.tdiv ins(%a, %b : {T}, {T}) outs(%b : {T}) {{precisionType = #pto<div_precision high_precision>}}",
     f"pto.tdiv ins(%a, %b : {T}, {T}) outs(%b : {T}) {{precision_mode = #pto<precision_mode HIGH_PRECISION>}}", "a5"),
    (f"pto.tlog ins(%a : {T}) outs(%b : {T}) {{precisionType = #pto<log_precision default>}}",
     f"pto.tlog ins(%a : {T}) outs(%b : {T}) {{precision_mode = #pto<precision_mode DEFAULT>}}", "a5"),
    (f'"pto.texp"(%a, %b) <{{precisionType = #pto<exp_precision high_precision>}}> : ({T}, {T}) -> ()',
     f"pto.texp ins(%a : {T}) outs(%b : {T}) {{precision_mode = #pto<precision_mode HIGH_PRECISION>}}", "a5"),
    (f'pto.tgather ins(%a, {{maskPattern = #pto.mask_pattern<P1111>}} : {T}, "row") outs(%b : {T})',
     f'pto.tgather ins(%a, {{maskPattern = #pto.mask_pattern<P1111>}} : {T}, "row") outs(%b : {T})', "a2a3"),
    (f'pto.tscatter ins(%a, {{maskPattern = #pto.mask_pattern<P1111>, scatter_axis = "col"}} : {T}) outs(%b : {T})',
     f'pto.tscatter ins(%a, {{maskPattern = #pto.mask_pattern<P1111>}} : {T}, "col") outs(%b : {T})', "a5"),
]  # fmt: skip


@together(("theirs", "ours", "column"), SPELLINGS)
def test_the_spellings_of_the_field_are_read(theirs: str, ours: str, column: str) -> None:
    text = f"func.func @k(%a: {T}, %b: {T}, %i: {N}, %v: {VIEW}) {{\n  {theirs}\n  return\n}}\n"
    module = parse(text)
    assert not [d for d in verify(module, column) if d.severity == "error"]
    assert to_text(module) == text.replace(theirs, ours)
    again = parse(to_text(module, "generic"))
    again.implicit = True
    assert to_text(again) == text.replace(theirs, ours)


@pytest.mark.parametrize("theirs", ["accPhase = #pto<acc_phase partial>", "phase = #pto<st_phase partial>"])
def test_the_phase_of_a_product(theirs: str) -> None:
    types = [
        "!pto.tile_buf<left, 1x64xf16, blayout=row_major, slayout=row_major>",
        "!pto.tile_buf<right, 64x32xf16, blayout=row_major, slayout=col_major>",
        "!pto.tile_buf<acc, 16x32xf32, valid=1x32, blayout=col_major, slayout=row_major, fractal=1024>",
    ]
    a, b, c = types
    text = f"""func.func @k(%a: {a}, %b: {b}, %c: {c}) {{
  pto.tgemv ins(%a, %b : {a}, {b}) outs(%c : {c}) {{{theirs}}}
  return
}}
"""
    module = parse(text)
    (gemv,) = (op for op in module.walk() if op.name == "pto.tgemv")
    assert str(gemv.attr("phase")) == "partial"
    assert parse(to_text(module)) is not None and "phase = #pto<" in to_text(module)


def test_a_word_that_is_none_is_refused_with_the_words_there_are() -> None:
    text = f"func.func @k(%b: {T}, %i: {N}, %v: {VIEW}) {{\n  pto.mgather ins(%v, %i : {VIEW}, {N}) outs(%b : {T}) {{coalesce = #pto<coalesce rows>}}\n  return\n}}\n"  # fmt: skip
    (found,) = verify(parse(text), "a5")
    assert found.code == "PTO-E0112" and found.got == '"rows"' and "row, elem" in found.expected
