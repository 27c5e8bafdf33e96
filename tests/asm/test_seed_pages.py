"""The documents form by form: their printed texts are read, or answered in the form of the input."""

from __future__ import annotations

from tests.each import each

import pto
from pto import driver
from pto.asm.text import parse_source
from pto.diag import Diagnostic, Source
from pto.isa import errors

TILE = "!pto.tile<f32, 16, 16>"


def problems(text: str, target: str = "a5") -> list[Diagnostic]:
    module, found = parse_source(Source("page", text))
    return found if module is None else found + pto.verify(module, target)


def first_line(text: str, target: str = "a5") -> str:
    assert problems(text, target) == []
    return pto.to_text(pto.parse(text), "pto").splitlines()[0]


# -------------------------------------------------------------------------------------------------- overview


def test_overview_assembly_form() -> None:
    """`tadds` and the subscripted `tload` as printed."""
    args = "".join(f".arg %{n} : {TILE}\n" for n in ("dst", "src", "tile"))
    text = f"""\
# Scalar operand suffix: immediate added to each tile element
{args}.arg %gtensor : !pto.memref<f32,1x16x16x16>
.arg %r : index
.arg %c : index
tadds %dst, %src, 0x3F800000 : !pto.tile<f32, 16, 16>
# Tile with explicit memory operand: load from GlobalTensor view
tload %tile, %gtensor[%r, %c] : (!pto.tile<f32,16,16>, !pto.memref<f32,1x16x16x16>) -> !pto.tile<f32,16,16>
"""
    assert problems(text) == []


def test_overview_predicate_tiles() -> None:
    """`!pto.tile<predicate, 16, 16>`: a bit per element, in rows of 32 bytes."""
    text = f"""\
func.func @f(%src: {TILE}) {{
  %cmp = pto.tcmps %src, 0 : {TILE}, i32 -> !pto.tile<predicate, 16, 16>
  return
}}
"""
    each(lambda target: problems(text, target) == [] or _fail(problems(text, target)), ["cpu", "a3", "a5"])
    assert "%cmp = pto.alloc_tile : !pto.tile_buf<vec, 16x32xui8, valid=16x2>" in pto.to_text(pto.parse(text))


def _fail(found: list[Diagnostic]) -> None:
    raise AssertionError(found)


def test_overview_layout_words_are_honoured_or_refused() -> None:
    def check(layout: str, message: str) -> None:
        text = f"func.func @f(%a: !pto.tile_buf<loc=mat, f16, 32, 32, {layout}, Zero>) {{ return }}"
        found = problems(text)
        assert [d.code for d in found] == ["PTO-E0112"] * bool(message)
        assert not message or message in found[0].message

    each(
        check,
        [
            ("ColMajor, RowMajor, NZ", ""),
            ("RowMajor, ColMajor, ZN", ""),
            ("ColMajor, RowMajor, None", ""),
            ("ColMajor, RowMajor, ZN", "ZN contradicts blayout and slayout"),
            ("RowMajor, NoneBox, NZ", "NZ contradicts blayout and slayout"),
            ("ColMajor, RowMajor, FR", "no layout is defined for FR"),
            ("ColMajor, RowMajor, RN", "no layout is defined for RN"),
        ],
    )


def test_overview_element_types() -> None:
    """`hifloat8_t`, `float4_e*` and the other names of C++ in the tile types of the documents."""

    def check(word: str, printed: str) -> None:
        assert f"32x64x{printed}>" in first_line(f"func.func @f(%a: !pto.tile<{word}, 32, 64>) {{ return }}")

    each(
        check,
        [
            ("hifloat8_t", "hif8"),
            ("float4_e2m1", "f4E2M1FN"),
            ("float4_e1m2_t", "f4E1M2FN"),
            ("float4_e2m1x2_t", "f4E2M1FN"),
            ("float8_e4m3_t", "f8E4M3FN"),
            ("bfloat16_t", "bf16"),
            ("uint8_t", "ui8"),
            ("half", "f16"),
        ],
    )


# --------------------------------------------------------------------------------------------------- tassign


def assigned(line: str, before: str = "") -> str:
    return f"""\
func.func @f(%b: !pto.tile_buf<vec, 16x16xf32>) {{
  %tile = pto.alloc_tile : !pto.tile_buf<vec, 16x16xf32>
  %addr = arith.constant 4096 : i64
  %at = arith.constant 4096 : index
  {before}
  {line}
  pto.tabs ins(%tile : !pto.tile_buf<vec, 16x16xf32>) outs(%b : !pto.tile_buf<vec, 16x16xf32>)
  return
}}
"""


def test_tassign_forms_of_manual_mode() -> None:
    """A tile without `addr` that `tassign` places first is manual mode, in every form of the page."""
    type = "!pto.tile_buf<vec, 16x16xf32>"
    lines = [
        f"pto.tassign %tile, %addr : {type}, i64",
        f"tassign %tile, %at : {type}, index",
        f"pto.tassign ins(%tile, %addr : {type}, i64)",
        "pto.tassign %tile, @tile(0x1000)",
        "tassign %tile, 0x1000",
        f"pto.tassign %tile, 4096 : {type}, index",
        f"pto.tassign %tile, 4096 : {type}, i32",
    ]

    def check(line: str) -> None:
        assert problems(assigned(line)) == []
        printed = pto.emit_cpp(pto.parse(assigned(line)), target="a5")
        assert printed.count("TASSIGN(") == 1
        assert "4096" in printed

    each(check, lines)


def test_tassign_of_a_tile_that_was_used_before() -> None:
    use = "pto.tabs ins(%tile : !pto.tile_buf<vec, 16x16xf32>) outs(%b : !pto.tile_buf<vec, 16x16xf32>)"
    found = problems(assigned("pto.tassign %tile, @tile(0x1000)", before=use))
    assert [d.code for d in found] == ["PTO-E0901"]
    assert "pto.tassign before its first use" in found[0].help


def test_tassign_has_no_effect_in_auto_mode() -> None:
    """As in the documents: a warning, and the assembler places the tile."""
    type = "!pto.tile_buf<vec, 16x16xf32>"
    line = f"%same = pto.tassign %tile, %addr : {type} -> {type}\n pto.tabs ins(%same : {type}) outs(%b : {type})"
    done = driver.lowered(pto.parse(assigned(line)), options=driver.Options(level="level2"))
    assert [(d.code, d.severity) for d in done.diagnostics] == [("PTO-E0903", "warning")]
    names = [op.name for op in done.module.walk()]
    assert "pto.tassign" not in names and names.count("pto.tabs") == 2


def test_tassign_ids_and_recipe() -> None:
    """SA-0351 .. SA-0354 lead to FIX-A12."""
    for number in range(351, 355):
        assert errors.entry(f"SA-0{number}").recipe == "FIX-A12"
    recipe = errors.recipe("fix-a12")
    assert recipe is not None
    assert "SA-0351, SA-0352, SA-0353, SA-0354" in recipe.explain
    for at, code in (("0x1010", "SA-0354"), ("0x40000", "SA-0353")):
        (found,) = problems(assigned(f"tassign %tile, {at}"))
        assert found.code == code and found.help.endswith("(FIX-A12)")


# -------------------------------------------------------------------------------------------------- tpartmul


def test_tpartmul_one_type_for_all_operands() -> None:
    tile = "!pto.tile_buf<vec, 16x16xf32>"
    args = ", ".join(f"%{n}: {tile}" for n in ("src0", "src1", "dst"))
    text = f"func.func @f({args}) {{\n  pto.tpartmul ins(%src0, %src1 : {tile}) outs(%dst : {tile})\n  return\n}}\n"
    assert problems(text) == []
    wrong = text.replace("%src1 : !pto.tile_buf<vec, 16x16xf32>)", "%src1 : !pto.tile_buf<vec, 16x16xf16>)")
    assert {d.code for d in problems(wrong)} == {"PTO-E0207"}


def test_tpartmul_element_types_as_listed() -> None:
    """The first list is that of A2/A3, the second that of A5."""
    lists = {"a2a3": "i32 i16 f16 f32", "a5": "u8 i8 u16 i16 u32 i32 f16 f32 bf16"}
    for target, names in lists.items():
        for name in "u8 i8 u16 i16 u32 i32 u64 i64 f16 f32 bf16".split():
            tile = f"!pto.tile_buf<vec, 32x32x{name.replace('u', 'ui')}>"
            text = f"func.func @f(%a: {tile}, %d: {tile}) {{\n  pto.tpartmul ins(%a, %a : {tile}) outs(%d : {tile})\n"
            found = {d.code for d in problems(f"{text}  return\n}}\n", target)}
            assert found == (set() if name in names.split() else {"SA-0287"}), (target, name)


def test_tpartmul_validity_patterns_on_every_profile() -> None:
    """One source has the valid region of dst, the other does not exceed it."""

    def tile(valid: str) -> str:
        return f"!pto.tile_buf<vec, 16x16xf32, valid={valid}>"

    def check(target: str, src0: str, src1: str, legal: bool) -> None:
        a, b, d = tile(src0), tile(src1), tile("8x8")
        text = f"""\
func.func @f(%a: {a}, %b: {b}, %d: {d}) {{
  pto.tpartmul ins(%a, %b : {a}, {b}) outs(%d : {d})
  return
}}
"""
        assert {d.code for d in problems(text, target)} == (set() if legal else {"PA-0051"})

    patterns = [
        ("8x8", "8x8", True),
        ("8x8", "4x8", True),
        ("4x4", "8x8", True),
        ("4x8", "8x4", False),
        ("8x8", "16x8", False),
    ]
    each(check, [(target, *pattern) for target in ("cpu", "a3", "a5") for pattern in patterns])
