"""Inputs that once crashed a tool, hung it, or printed text that was not read again. Each keeps its fix alive."""

from __future__ import annotations

import pytest
from tests.each import together

from pto.asm import parse, parse_source, to_text
from pto.diag import Diagnostic, Source, render
from pto.verifier import verify

from ..counting import calls

TILE = "!pto.tile_buf<vec, 16x64xf32>"
VIEW = "!pto.partition_tensor_view<16x64xf32>"
FORMS = ("pto", "ssa", "asm", "generic")


def diagnose(text: str) -> list[Diagnostic]:
    module, problems = parse_source(Source("r.pto", text))
    return problems if module is None else problems + verify(module)


def fixpoint(text: str) -> None:
    module = parse(text)
    for form in FORMS:
        once = to_text(module, form)
        assert to_text(parse(once), form) == once, form


def generic(body: str, signature: str = "() -> ()", args: str = "") -> str:
    head = f"^bb0({args}):" if args else ""
    function = f'"func.func"() <{{sym_name = "k", function_type = {signature}}}> ({{{head}\n{body}\n"func.return"() : () -> ()\n}}) : () -> ()'
    return f'"builtin.module"() ({{\n{function}\n}}) : () -> ()\n'


# ---- malformed operations are turned down by the parser, at their place ----

MALFORMED = {
    "function body without the arguments": generic("", "(i32) -> ()"),
    "function without a type": '"builtin.module"() ({"func.func"() <{sym_name = "k"}> ({}) : () -> ()}) : () -> ()',
    "function type overridden": "func.func @k() attributes {function_type = i32} { return }",
    "function name overridden": "func.func @k() attributes {sym_name = 1} { return }",
    "visibility that is no word": '"builtin.module"() ({"func.func"() <{sym_name = "k", function_type = () -> (), sym_visibility = "x y"}> ({}) : () -> ()}) : () -> ()',
    "if without else region": generic('"scf.if"(%c) ({"scf.yield"() : () -> ()}) : (i1) -> ()', "(i1) -> ()", "%c: i1"),
    "if without regions": generic('"scf.if"(%c) : (i1) -> ()', "(i1) -> ()", "%c: i1"),
    "branch without successor": generic('"cf.br"() : () -> ()'),
    "switch over no numbers": generic('"cf.switch"(%x) <{case_values = dense<1.0e>}> : (i32) -> ()', "(i32) -> ()", "%x: i32"),
    "constant without value": generic('%x = "arith.constant"() : () -> i32'),
    "constant of another type": generic('%x = "arith.constant"() <{value = 0 : i64}> : () -> index'),
    "constant that is no number": generic('%x = "arith.constant"() <{value = unit}> : () -> index'),
    "call of a number": "func.func @k() { call @f() {callee = 3} : () -> ()\n return }",
    "module without a region": '"builtin.module"() : () -> ()',
    "infinite size": "func.func @k(%m: memref<4xf32>) { %s = memref.subview %m[0] [1e400] [1] : memref<4xf32> to memref<4xf32>\n return }",
    "offset beyond 64 bits": generic('%s = "memref.subview"(%m) <{static_offsets = array<i64: 9223372036854775808>, static_sizes = array<i64: 4>, static_strides = array<i64: 1>, operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (memref<4xf32>) -> memref<4xf32>', "(memref<4xf32>) -> ()", "%m: memref<4xf32>"),
    "infinite segment": generic(f'%t = "pto.alloc_tile"() <{{operandSegmentSizes = array<i32: 1e400, 0, 0>}}> : () -> {TILE}'),
    "case beyond 64 bits": "func.func @k(%i: index) { scf.index_switch %i case 11111111111111111111111 {} default {}\n return }",
    "layout that is no layout": "func.func @k(%m: memref<4xf32, <<>>}<,><>>) { return }",
    "layout with brackets that do not match": "func.func @f(%m: memref<8x32xf32, <[><>>) { return }",
    "tile with brackets that do not match": "func.func @f(%m: !pto.tile_buf<vec, 16x16xf32, [>) { return }",
    "index that is a tile": ".arg %t : !pto.tile<f32, 16, 16>\n.arg %g : !pto.tensor_view<64x64xf32>\ntload %t, %g[%t]\n",
    "argument after a label": ".arg %x : i32\n^a:\n.arg %c : i1\n",
    "label with arguments of its own": "^join(%r: i32):\n",
    "module name that is none": ".module {sym_name}\n",
    "map as a constant": ".const %c1 = affine_map<> : index\n",
    "negative bit pattern": ".const %b = -0xFF : f16\n",
    "bit pattern too wide": "func.func @k() { %b = arith.constant 0xFFFFF : f16\nreturn }",
    "directives against the dictionary": ".func @k {function_type = 1}\n.end\n",
}  # fmt: skip


@together("name", MALFORMED)
def test_malformed(name: str) -> None:
    module, problems = parse_source(Source("r.pto", MALFORMED[name]))
    assert module is None
    assert all(d.span is not None and d.severity == "error" for d in problems)


def test_a_failed_statement_with_a_name_used_before() -> None:
    assert diagnose("%w = scf.while (%x = %r) : (index) -> index {{}\n  return %w")


def test_a_deep_dictionary_does_not_spoil_the_next_directive() -> None:
    found = diagnose(".func @k {x = " + "(" * 120 + "}\n.arg\n.arg\n")
    assert {d.code for d in found} >= {"PTO-E0107"}


def test_lexical_errors_of_assembly_with_comments_point_into_the_file() -> None:
    source = Source("r.pto", "# a comment\n!\n")
    _, problems = parse_source(source)
    assert problems and all(d.span is not None and d.span.source is source for d in problems)


# ---- printed text is read again and prints the same ----

ROUND = {
    "second return": "module { func.func @k() {\nreturn\nreturn\n} }",
    "second yield": generic('"scf.if"(%c) ({"scf.yield"() : () -> ()\n"scf.yield"() : () -> ()}, {}) : (i1) -> ()', "(i1) -> ()", "%c: i1"),
    "function in a function": "module { func.func @k() { func.func @f()\nreturn } }",
    "module in a function": "module { func.func @k() { module {}\nreturn } }",
    "statement in a module": "module { func.func @k()\nscf.yield }",
    "statement beside a function": "return\nfunc.func @k()\n",
    "empty blocks": "func.func @k(%go: i1) -> index { %r = scf.if %go -> (index) {} else {} }",
    "empty function": "func.func @main() {}",
    "labelled first block without end": "func.func @k(%c: i32) -> i32 {^a:}",
    "group used before its definition": "func.func private @pair(i32) -> (i32, i32)\nfunc.func @k() { %two:2 = call @pair(%two#0) : (i32) -> (i32, i32)\nreturn }",
    "SSA result used before its definition": f"func.func @k(%p: {VIEW}, %o: {VIEW}) {{\npto.tstore %a, %o : ({TILE}, {VIEW}) -> ()\n%a = pto.tload %p : ({VIEW}) -> {TILE}\nreturn }}",
    "SSA beside a nested function": f"module {{ func.func @k(%p: {VIEW}) {{ func.func @other()\n%a = pto.tload %p : ({VIEW}) -> {TILE}\nreturn }} }}",
    "operands of the wrong kinds": generic(f'"pto.tload"(%t, %v) : ({TILE}, {VIEW}) -> ()', f"({TILE}, {VIEW}) -> ()", f"%t: {TILE}, %v: {VIEW}"),
    "optional operand of the wrong kind": generic(f'"pto.tload"(%t, %t, %t, %t) <{{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}}> : ({TILE}, {TILE}, {TILE}, {TILE}) -> ()', f"({TILE}) -> ()", f"%t: {TILE}"),
    "attribute of the wrong kind": generic('"pto.set_flag"() <{src_pipe = 3, dst_pipe = "x", event_id = unit}> : () -> ()'),
    "enum written as a string": generic('"pto.barrier"() <{pipe = "PIPE_V"}> : () -> ()'),
    "flags without a word": generic('%r = "arith.addi"(%i, %i) <{overflowFlags = #arith.overflow<>}> : (i32, i32) -> i32', "(i32) -> ()", "%i: i32"),
    "switch with further attributes": "func.func @k(%x: i32) { cf.switch %x : i32, [default: ^a] {note = 1}\n^a:\nreturn }",
    "tuple cut short": generic('"pto.mte_gm_ub"(%g, %u, %c, %c, %c, %c, %c, %c) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0>}> : (!pto.ptr<f32>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64, i64) -> ()', "(!pto.ptr<f32>, !pto.ptr<f32, ub>, i64) -> ()", "%g: !pto.ptr<f32>, %u: !pto.ptr<f32, ub>, %c: i64"),
    "name of a constant like its instruction": "func.func @k() { %carith.constant = arith.constant 127 : i8\nreturn }",
    "several results behind a return": "func.func private @pair() -> (i32, i32)\nfunc.func @k() { return\n%two:2 = call @pair() : () -> (i32, i32)\n}",
    "argument attributes in assembly": ".arg %a : i32 {x.y = 1}\n.arg %b : i32\n",
}  # fmt: skip


@together("name", ROUND)
def test_printing_is_read_again(name: str) -> None:
    fixpoint(ROUND[name])


def test_switch_keeps_its_attributes() -> None:
    assert "{note = 1}" in to_text(parse(ROUND["switch with further attributes"]))


# ---- functions and statements have their level ----


@pytest.mark.parametrize("name", ["function in a function", "module in a function", "statement in a module"])
def test_level(name: str) -> None:
    assert "PTO-E0214" in {d.code for d in diagnose(ROUND[name])}


# ---- nothing is worse than linear ----


GROWING = {
    "diagnostics on one long line": lambda n: "module {" + "func.func @f() { return } " * n + "}",
    "blocks": lambda n: "func.func @f() {\ncf.br ^b0\n" + "".join(f"^b{i}:\ncf.br ^b{i + 1}\n" for i in range(n)) + f"^b{n}:\nreturn\n}}",
    "functions": lambda n: "".join(f"func.func @f{i}() {{ return }}\n" for i in range(n)),
    "regions among many values": lambda n: "func.func @f(%c: i1) {\n" + "".join(f"%x{i} = arith.constant {i} : i32\nscf.if %c {{\n}}\n" for i in range(n)) + "return\n}",
}  # fmt: skip


@pytest.mark.parametrize("name", GROWING)
def test_linear(name: str) -> None:
    small, large = (calls(lambda n=n: render(diagnose(GROWING[name](n)))) for n in (100, 400))
    assert large < 5 * small, f"4 times the text is {large / small:.1f} times the work"


@pytest.mark.parametrize(
    "text",
    [
        "!a0 = (i32) -> i32\n" + "".join(f"!a{i + 1} = (!a{i}, !a{i}) -> !a{i}\n" for i in range(60)),
        "#a0 = 1\n" + "".join(f"#a{i + 1} = [#a{i}, #a{i}]\n" for i in range(60)),
    ],
)
def test_aliases_of_aliases_are_bounded(text: str) -> None:
    assert "PTO-E0105" in {d.code for d in diagnose(text)}


def test_a_branch_to_a_first_block_with_arguments() -> None:
    """Illegal, but it is printed and read again: the arguments are those of the function."""
    fixpoint(generic('"cf.br"(%c, %x)[^bb0] : (i1, i32) -> ()', "(i1, i32) -> ()", "%c: i1, %x: i32"))


@pytest.mark.parametrize(
    "type", ["!other.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 16x64xf32, valid=?x?>"]
)
def test_what_the_ssa_form_cannot_say_is_not_said_in_it(type: str) -> None:
    """No tile that a result could stand for."""
    adds = f"pto.tadd ins(%a, %a : {TILE}, {TILE}) outs(%d : {type})"
    fixpoint(f"func.func @k(%a: {TILE}) {{\n%d = pto.alloc_tile : {type}\n{adds}\nreturn\n}}")


@pytest.mark.parametrize("number", ["0x1FFFFFFFF", "0xFFFFFFFFFFFFFFFFFFF800000", "1" + "0" * 400])
def test_an_immediate_that_its_type_does_not_have(number: str) -> None:
    (d,) = diagnose(f".arg %s : !pto.tile<f32, 16, 16>\ntadds %s, %s, {number}\n")
    assert (d.code, d.span and d.span.place) == ("PTO-E0104", (2, 15)), render([d])


def test_a_function_type_of_a_module() -> None:
    """Only a function's is one."""
    text = (
        '"builtin.module"() ({"func.func"() <{sym_name = "f", function_type = () -> ()}> '
        '({"func.return"() : () -> ()}) : () -> ()}) {function_type} : () -> ()'
    )
    assert not verify(parse(text))
