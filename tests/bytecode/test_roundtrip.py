"""Text to bytecode to text: every row of the table, every program of the repository, and the odd corners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.each import each, together
from tests.sampling import some

import pto
from pto.asm import FORMS, parse, parse_source, to_text
from pto.diag import Source
from pto.ir import Module
from pto.isa import Row, rows
from pto.witness.plan import Plan, dtype_choices, first_plan, forms, plan
from pto.witness.programs import build

Change = Callable[[Module], None]

_ROOT = Path(__file__).parents[2]
PROGRAM_FILES = sorted(
    path
    for folder in ("tests", "examples")
    for path in (_ROOT / folder).rglob("*.pto")
    if path.parent.name != "tune"  # texts with places for values
)


def check(make: Callable[[], Module], canonical: Change, normalise: Change | None = None) -> Module:
    """The program survives: its text, its bytes, and with debug information its names (if it has any)."""
    data = pto.to_bytecode(make())
    back = pto.from_bytecode(data)
    plain = make()
    canonical(plain)
    assert to_text(back) == to_text(plain)
    assert pto.to_bytecode(back) == data
    if normalise is not None:
        named = make()
        normalise(named)
        assert to_text(pto.from_bytecode(pto.to_bytecode(make(), debuginfo=True))) == to_text(named)
    return back


def check_text(text: str, canonical: Change, normalise: Change) -> Module:
    back = check(lambda: parse(text), canonical, normalise)
    for form in FORMS:
        again = parse(to_text(back, form))
        if form != "ssa":  # SSA text does not say which of several equal tiles a result goes to
            canonical(again)
            assert to_text(again) == to_text(back)
    return back


def _plans(row: Row) -> Iterator[Plan]:
    """One plan per form of the row."""
    isa = row.isas[0]
    choice = next(iter(dtype_choices(row, isa)))
    yield first_plan(row, isa)
    for form in forms(row):
        yield plan(row, isa, choice, form)


def test_every_row(canonical: Change) -> None:
    plans = some((plan for row in rows() for plan in _plans(row)), 4, by=lambda plan: plan.row.family)
    each(lambda plan: check(lambda: build(plan), canonical), plans)


def test_every_program(normalise: Change, canonical: Change) -> None:
    files = some(PROGRAM_FILES, 12, by=lambda path: path.parent)
    each(lambda path: program_survives(path, normalise, canonical), files)


def program_survives(path: Path, normalise: Change, canonical: Change) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    if parse_source(Source(path.name, text))[0] is None:
        assert "golden" in path.parts, "only goldens of errors may not parse"
        return

    def make() -> Module:
        module, _ = parse_source(Source(path.name, text))
        assert module is not None
        return module

    check(make, canonical, normalise)


T = "!pto.tile_buf<vec, 16x16xf32>"

CORNERS: dict[str, str] = {
    "empty module": "module {\n}",
    "no functions, attributes": 'module @m attributes {pto.target_arch = "a5", x = 1, y = [1, 2 : i32], z = {b = 1, a}} {\n}',
    "declaration": "module {\n  func.func private @g(i32, !pto.ptr<f32>) -> i32\n}",
    "argument attributes": "func.func @f(%a: i32 {x.y = 1 : i32}, %b: i32) {\n  return\n}",
    "results": "func.func @f(%a: i32) -> (i32, i32) {\n  return %a, %a : i32, i32\n}",
    "integers": "func.func @f() {\n" + "".join(
        f"  %{i} = arith.constant {v}\n" for i, v in enumerate(
            ("0 : index", "-1 : index", "true", "false", "255 : i8", "-128 : i8", "-9223372036854775808 : i64",
             "18446744073709551615 : i64", "5 : i3", f"{1 << 99} : i128", f"-{1 << 99} : i128", "7 : i5000",
             "200 : ui8")
        )
    ) + "  return\n}",
    "floats": "func.func @f() {\n" + "".join(
        f"  %{i} = arith.constant {v}\n" for i, v in enumerate(
            ("0.1 : f32", "-0.0 : f32", "3.14159265358979 : f32", "0.1 : f64", "1.0e-310 : f64", "0.1 : f16",
             "0.1 : bf16", "65504.0 : f16", "0x7F800000 : f32", "0xFFC00001 : f32", "0x7E00 : f16", "0x7FC0 : bf16",
             "1.0e+40 : f32", "1.5 : f8E4M3FN", "0x3F800000 : f32")
        )
    ) + "  return\n}",
    "dense constant": "func.func @f() {\n  %0 = arith.constant dense<[1, 2]> : tensor<2xi32>\n  return\n}",
    "unsigned comparison": "func.func @f(%a: i32) {\n  %0 = arith.cmpi ult, %a, %a : i32\n  %1 = arith.cmpi sgt, %a, %a : i32\n  return\n}",
    "flags": "func.func @f(%a: i32, %b: f32) {\n  %0 = arith.addi %a, %a overflow<nsw> : i32\n  %1 = arith.addf %b, %b fastmath<fast> : f32\n  return\n}",
    "loop with carried values": (
        "func.func @f(%n: index) {\n  %c0 = arith.constant 0 : index\n"
        "  %r:2 = scf.for %i = %c0 to %n step %n iter_args(%x = %c0, %y = %n) -> (index, index) {\n"
        "    scf.yield %y, %x : index, index\n  }\n  %s = arith.addi %r#0, %r#1 : index\n  return\n}"
    ),
    "if with and without else": (
        "func.func @f(%c: i1) {\n  scf.if %c {\n  }\n  scf.if %c {\n  } else {\n  }\n"
        "  %x = scf.if %c -> (i1) {\n    scf.yield %c : i1\n  } else {\n    scf.yield %c : i1\n  }\n  return\n}"
    ),
    "while": (
        "func.func @f(%c: i1, %n: i32) {\n  %r = scf.while (%a = %n) : (i32) -> i32 {\n    scf.condition(%c) %a : i32\n"
        "  } do {\n  ^bb0(%b: i32):\n    scf.yield %b : i32\n  }\n  return\n}"
    ),
    "switch": (
        "func.func @f(%i: index) {\n  %0 = scf.index_switch %i -> i32\n  case 2 {\n    %1 = arith.constant 1 : i32\n"
        "    scf.yield %1 : i32\n  }\n  default {\n    %2 = arith.constant 2 : i32\n    scf.yield %2 : i32\n  }\n  return\n}"
    ),
    "branches": (
        "func.func @f(%c: i1, %n: i32) {\n  cf.br ^loop(%n : i32)\n^loop(%x: i32):\n  cf.cond_br %c, ^loop(%x : i32), ^end\n"
        "^end:\n  cf.switch %n : i32, [default: ^last, 3: ^loop(%n : i32)]\n^last:\n  return\n}"
    ),
    "value used above its definition": (
        "func.func @f(%c: i1) {\n  cf.br ^b\n^a:\n  %y = arith.addi %x, %x : i32\n  return\n^b:\n"
        "  %x = arith.constant 1 : i32\n  cf.br ^a\n}"
    ),
    "endless loop of one block": "func.func @f() {\n  cf.br ^again\n^again:\n  cf.br ^again\n}",
    "foreign dialect": 'func.func @f(%a: i32) {\n  %0:2 = "my.op"(%a) {k = "v", "odd key" = 1} : (i32) -> (i32, !my.type<4>)\n  return\n}',
    "foreign op with regions and targets": (
        'func.func @f(%a: i32) {\n  "my.scope"() ({\n    "my.end"() : () -> ()\n  }) : () -> ()\n  "my.goto"()[^b] : () -> ()\n^b:\n  return\n}'
    ),
    "strings": 'module attributes {a = "q\\22 \\5C \\0A \\C3\\A9 \\F0\\9F\\98\\80", "k \\C3\\A9" = "x"} {\n}',
    "symbols": 'func.func private @"two words"()\nfunc.func @f() {\n  call @"two words"() : () -> ()\n  return\n}',
    "nested modules": (
        "module attributes {x = 1} {\n  func.func @a() {\n    return\n  }\n  module @m {\n    func.func @b(%p: i32) {\n"
        "      %c = arith.constant 3 : i32\n      return\n    }\n  }\n  func.func @c() {\n    return\n  }\n}"
    ),
    "two modules": "module @a {\n}\nmodule @b {\n}",
    "manual address": f"func.func @f(%a: i64) {{\n  %t = pto.alloc_tile addr = %a : {T}\n  return\n}}",
    "left tile of a5": (
        'module attributes {pto.target_arch = "a5"} {\n  func.func @f() {\n'
        "    %t = pto.alloc_tile : !pto.tile_buf<left, 16x16xf16, blayout=col_major, slayout=row_major>\n    return\n  }\n}"
    ),
    "optional operands": (
        f"func.func @f(%a: {T}, %p: !pto.partition_tensor_view<16x16xf32>, %x: f32) {{\n"
        f"  pto.txor ins(%a, %a, %a : {T}, {T}, {T}) outs(%a : {T})\n  pto.txor ins(%a, %a : {T}, {T}) outs(%a : {T})\n"
        f"  pto.tcolsum ins(%a : {T}) outs(%a : {T})\n  pto.tcolsum ins(%a, %a : {T}, {T}) outs(%a : {T})\n"
        f"  pto.trowexpandadd ins(%a, %a : {T}, {T}) outs(%a : {T})\n  pto.trsqrt ins(%a : {T}) outs(%a : {T})\n  return\n}}"
    ),
    "sort": (
        f"func.func @f(%a: {T}, %n: i32) {{\n  pto.tmrgsort ins(%a, %n : {T}, i32) outs(%a : {T})\n  return\n}}"
    ),
    "events of both kinds": (
        "func.func @f() {\n  pto.record_event [#pto.sync_op_type<TLOAD>, #pto.sync_op_type<TVEC>, #pto.event<EVENT_ID0>]\n"
        "  pto.wait_event [#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]\n  return\n}"
    ),
    "same names in sibling regions": (
        "func.func @f(%n: index) {\n  scf.for %i = %n to %n step %n {\n    %x = arith.addi %i, %i : index\n  }\n"
        "  scf.for %i = %n to %n step %n {\n    %x = arith.addi %i, %i : index\n  }\n  return\n}"
    ),
}  # fmt: skip


@together("name", CORNERS)
def test_corner(name: str, normalise: Change, canonical: Change) -> None:
    check_text(CORNERS[name], canonical, normalise)


def test_entry_block_as_a_target(normalise: Change, canonical: Change) -> None:
    check(lambda: parse("func.func @f() {\n^again:\n  cf.br ^again\n}"), canonical, normalise)


def test_numbers_keep_their_spelling() -> None:
    text = to_text(pto.from_bytecode(pto.to_bytecode(pto.parse(CORNERS["floats"]))))
    for wanted in (
        "0.1 : f32",
        "-0.0 : f32",
        "3.1415927 : f32",
        "0.1 : f16",
        "0.1 : bf16",
        "0xFFC00001 : f32",
        "0x7F800000 : f32",
    ):
        assert f"arith.constant {wanted}\n" in text
    assert "%c0x3DCCCCCD_f32 = arith.constant 0.1 : f32" in text


def test_constant_names() -> None:
    text = to_text(pto.from_bytecode(pto.to_bytecode(pto.parse(CORNERS["integers"]))))
    for wanted in (
        "%c0 =",
        "%c-1 =",
        "%c-1_i1 = arith.constant true",
        "%c-1_i8 = arith.constant -1 : i8",
        "%c-56_ui8 = arith.constant 200 : ui8",
    ):
        assert wanted in text
    twice = pto.parse(
        "func.func @f() {\n %a = arith.constant 1 : i32\n %b = arith.constant 1 : i32\n return\n}"
    )
    assert "%c1_i32_1 =" in to_text(pto.from_bytecode(pto.to_bytecode(twice)))


def test_debug_information_has_places_and_names() -> None:
    from pto.bytecode.debuginfo import read_debuginfo
    from pto.bytecode.file import read_file

    text = "func.func @g()\nfunc.func @f(%n: index) {\n  scf.for %i = %n to %n step %n {\n  }\n  %k =  arith.constant 1 : i32\n  return\n}"
    module = parse(text, "k.pto")
    found = read_debuginfo(read_file(pto.to_bytecode(module, debuginfo=True), "t"))
    assert found is not None and found.files == ["k.pto"]
    assert found.names == {1: {0: "n", 1: "i", 2: "k"}}
    assert found.locations == {(1, 0): (0, 3, 3), (1, 1): (0, 3, 3), (1, 2): (0, 5, 9), (1, 3): (0, 6, 3)}
    field = read_debuginfo(read_file(pto.to_bytecode(module, debuginfo=True, strict=True), "t"))
    assert field is not None and field.names == {1: {0: "0", 1: "1", 2: "c1_i32"}}


def test_built_modules_have_no_places() -> None:
    b = pto.Builder.module()
    f = b.func("k", [pto.ir.types.INDEX])
    b.op("arith.addi", [pto.ir.types.INDEX], lhs=f.args[0], rhs=f.args[0])
    b.op("func.return")
    data = pto.to_bytecode(b.built, debuginfo=True)
    assert "%0 = arith.addi %arg0, %arg0 : index" in to_text(pto.from_bytecode(data))


def test_operand_of_another_function_is_an_error() -> None:
    b = pto.Builder.module()
    first = b.func("a", [pto.ir.types.INDEX])
    b.func("b", [])
    b.op("arith.addi", [pto.ir.types.INDEX], lhs=first.args[0], rhs=first.args[0])
    with pytest.raises(pto.DiagnosticError, match="PTO-E0201"):
        pto.to_bytecode(b.built)
