"""Diagnostics of texts that are almost right: cause, location and way out; no follow-up errors."""

from __future__ import annotations

from pathlib import Path

from tests.each import each

import pto
from pto.asm.text import format_source, parse_source
from pto.diag import Diagnostic, Source, did_you_mean, render
from pto.driver import Options, lowered
from pto.isa import mnemonics

_GOLDEN = Path(__file__).parent.parent / "golden" / "errors"


def problems(text: str) -> list[Diagnostic]:
    module, found = parse_source(Source("k.pto", text))
    return found if module is None else found + pto.verify(module)


def one(text: str) -> Diagnostic:
    (found,) = problems(text)
    return found


def kernel(*lines: str, args: str = "%p: !pto.ptr<f32>, %n: i32") -> str:
    return "\n".join(
        (f"func.func @f({args}) {{", "  %c1 = arith.constant 1 : index", *lines, "  return", "}")
    )


def test_the_same_finding_has_the_same_severity_everywhere() -> None:
    """`pto check`, `ptoas` and `pto.verify` report the same severity."""

    def check(path: Path) -> None:
        module, _ = parse_source(Source(path.name, path.read_text().partition("// STD")[0]))
        if module is None:
            return
        said = [(d.code, d.severity, d.message) for d in pto.verify(module)]
        for options in (Options(passes="never"), Options(passes="always", check="all")):
            done = [(d.code, d.severity, d.message) for d in lowered(module, options=options).diagnostics]
            assert done[: len(said)] == said

    each(check, sorted(_GOLDEN.glob("*.pto")))


def test_a_text_of_errors_is_not_read_to_its_end() -> None:
    def check(text: str) -> None:
        assert 1000 < len(problems(text)) < 1010

    each(check, ("}" * 10_000, ".kernel k\n" + "}\n" * 10_000))


def test_lines_of_hash_comments_are_read_in_every_form() -> None:
    text = "# a file\n" + kernel("  # words: \"it's <", "  #", "  #pto.nothing is no comment")
    (found,) = problems(text)
    assert "'#pto.nothing'" in found.message
    text = "# a file\n" + kernel("  # words: \"it's <", "  #")
    assert problems(text) == []
    assert format_source(Source("k.pto", text))[0] == text + "\n"


def test_a_hash_behind_a_statement_is_one_error_that_names_the_way() -> None:
    found = one(kernel("  %c2 = arith.constant 2 : index  # trailing \"it's é"))
    assert found.code == "PTO-E0101"
    assert "//" in found.help


def test_literals_as_operands_say_arith_constant() -> None:
    def check(line: str, constant: str) -> None:
        assert f"use arith.constant: {constant}" in problems(kernel(line))[0].help

    each(
        check,
        [
            (
                "  %v = pto.make_tensor_view %p, shape = [%c1, 16], strides = [%c1, %c1] : !pto.tensor_view<?x?xf32>",
                "%c16 = arith.constant 16 : index",
            ),
            ("  scf.for %i = %c1 to 16 step %c1 {\n  }", "%c16 = arith.constant 16 : index"),
            ("  scf.for %i = %c1 to 024 step %c1 {\n  }", "%c24 = arith.constant 024 : index"),
            ("  scf.for %i = %c1 to 0X1F step %c1 {\n  }", "%c31 = arith.constant 0X1F : index"),
            ("  scf.if true {\n  }", "%true = arith.constant true"),
            (
                "  pto.tadds ins(%t, 1.5 : !pto.tile<f32, 16, 16>, f32) outs(%t : !pto.tile<f32, 16, 16>)",
                "%c = arith.constant 1.5 : f32",
            ),
            (
                "  pto.tadds ins(%t, -2 : !pto.tile<i32, 16, 16>, i32) outs(%t : !pto.tile<i32, 16, 16>)",
                "%cm2 = arith.constant -2 : i32",
            ),
        ],
    )


def test_index_against_i32_says_index_cast() -> None:
    def check(line: str) -> None:
        assert "arith.index_cast" in render(problems(kernel(line)))

    each(
        check,
        [
            "  %x = arith.addi %c1, %n : index",
            "  %x = arith.cmpi slt, %n, %c1 : i32",
            "  %q = pto.addptr %p, %n : !pto.ptr<f32> -> !pto.ptr<f32>",
            "  %s = pto.load_scalar %p[%n] : !pto.ptr<f32> -> f32",
            "  scf.for %i = %c1 to %n step %c1 {\n  }",
            "  %t = pto.alloc_tile valid_row = %n : !pto.tile_buf<vec, 16x16xf32, valid=?x16>",
        ],
    )


def test_a_stray_semicolon_is_refused() -> None:
    assert "';'" in one(kernel("  %c2 = arith.constant 2 : index;")).message
    assert problems(".const %c0 = 0 : index;\n%x = arith.addi %c0, %c0 : index;") == []
    assert "';'" in one(".const %c0 = 0 : index;;").message


def test_an_unclosed_brace_blames_the_block_that_its_indentation_shows() -> None:
    text = """\
module {
  func.func @f(%b: i1) {
    %c1 = arith.constant 1 : index
    scf.for %i = %c1 to %c1 step %c1 {
      scf.if %b {
        %x = arith.addi %i, %c1 : index
    }
    return
  }
  func.func @g(%b: i1) {
    return
  }
}
"""
    found = one(text)
    assert found.code == "PTO-E0106"
    assert found.span is not None
    assert found.span.line == 5
    cut = one("module {\n  func.func @f() {\n    return\n  }\n")
    assert cut.span is not None
    assert cut.span.line == 1


def test_a_forgotten_opening_brace_is_one_error_behind_its_line() -> None:
    def check(line: int, text: str) -> None:
        found = one(text)
        assert found.message == "expected '{', got the end of the line"
        assert found.span is not None
        assert found.span.place == (line, len(text.splitlines()[line - 1]) + 1)

    loop = kernel("  scf.for %i = %c1 to %c1 step %c1 {", "    %x = arith.addi %i, %c1 : index", "  }")
    each(check, [(3, loop.replace("step %c1 {", "step %c1")), (1, loop.replace("i32) {", "i32)"))])
    declared = "func.func @g(%a: i32)\nfunc.func @f() {\n  return\n}\n"
    assert problems(declared) == problems("func.func @g(i32)\nfunc.func @f() {\n  return\n}\n")


def test_a_program_that_ends_before_its_brace() -> None:
    for text in ("module\n", "module {}\nmodule\n"):
        found = one(text)
        assert found.code == "PTO-E0106" and found.message.startswith("expected '{', got"), text


def test_a_forgotten_type_is_missed_behind_its_line() -> None:
    found = one(kernel("  %t = pto.alloc_tile"))
    assert found.message == "alloc_tile: expected ':', got the end of the line"
    assert found.span is not None
    assert found.span.place == (3, 22)


def test_literals_as_bounds_of_a_loop_are_all_reported() -> None:
    found = problems(kernel("  scf.for %i = 0 to 10 step 1 {", "  }"))
    assert [d.help.partition(" = ")[0].partition("%")[2] for d in found] == ["c0", "c10", "c1"]


def test_a_family_named_without_its_ending_suggests_its_members() -> None:
    assert (
        did_you_mean("pto.pset", mnemonics())
        == "did you mean 'pto.pset_b8' or 'pto.pset_b16' or 'pto.pset_b32'?"
    )


def test_syntax_is_shown_in_the_form_that_was_written_and_without_variables() -> None:
    tile = "!pto.tile<f32, 16, 16>"
    args = "".join(f".arg %{n} : {tile}\n" for n in ("d", "a", "b"))
    found = one(f"{args}taddc %d, %a, %b : {tile}")
    assert found.message == "taddc: takes 4 operands (dst, src0, src1, src2), got 3"
    assert found.help.startswith("syntax: taddc %dst, %src0, %src1, %src2 : ")
    found = one(kernel("  pto.tassign : i32"))
    assert found.help.startswith("syntax: [%result =]? pto.tassign %tile, %addr : ")
    assert "$" not in found.help


def test_errors_that_name_a_destination_point_at_it() -> None:
    """Once, where every source differs from it; and where it is written, not where it is read."""
    a, d = "!pto.tile_buf<vec, 16x16xf32>", "!pto.tile_buf<vec, 16x16xf16>"

    def check(lines: str, message: str, place: tuple[int, int]) -> None:
        found = one(f"func.func @f(%a: {a}, %t: {a}, %dst: {d}) {{\n{lines}\n  return\n}}")
        assert found.message == message
        assert found.span is not None
        assert found.span.place == place

    each(
        check,
        [
            (
                f"  pto.tadd ins(%a, %t : {a}, {a})\n      outs(%dst : {d})",
                "tadd: expects src0, src1 and dst to have the same element type",
                (3, 12),
            ),
            (
                f"  pto.ttrans ins(%a, %t : {a}, {a})\n      outs(%a : {a})",
                "ttrans: dst may not share storage with src",
                (3, 12),
            ),
        ],
    )


def test_bounds_of_a_loop_without_a_type() -> None:
    text = """\
func.func @k() {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : i32
  scf.for %i = %c0 to %c0 step %c8 {
  }
  return
}
"""
    _, (found,) = parse_source(Source("k.pto", text))
    assert (found.code, found.expected, found.got) == ("PTO-E0207", "index", "i32")
    assert found.help.startswith("write ': i32' after the step")
    assert pto.parse(text.replace("%c0 to %c0", "%c8 to %c8").replace("step %c8", "step %c8 : i32"))


def test_tiles_that_overlap_in_part_are_told_with_their_bytes() -> None:
    tile = "!pto.tile_buf<vec, 16x16xf32>"
    text = "func.func @f() {\n  %c0 = arith.constant 0 : i64\n  %c64 = arith.constant 64 : i64\n"
    for name, at in (("a", "c0"), ("b", "c64")):
        text += f"  %{name} = pto.alloc_tile addr = %{at} : {tile}\n"
    found = one(f"{text}  pto.tneg ins(%a : {tile}) outs(%b : {tile})\n  return\n}}\n")
    assert (found.code, found.got) == ("PTO-E0701", "%b at bytes 0x40-0x43f and %a at bytes 0x0-0x3ff")
